//! The tables of a run, declared once: their columns with type, unit and meaning. The simulator makes
//! its tables of it, Python its frames, and the documentation its pages.

use link::QueueSummary;
use link::columns::{Value, values};

use super::table::{Column, Table};

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct TableSpec {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Whether a simulation has it; else a generated trace does.
    pub simulated: bool,
    /// The keys of `[measure]` without which it has no rows.
    pub needs: &'static [&'static str],
    /// Its columns; those of a series end with the signals of its queues.
    pub columns: &'static [ColumnSpec],
}

/// Columns of one type, unit and meaning.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// Their names.
    pub names: &'static [&'static str],
    /// Their type.
    pub kind: ColumnKind,
    /// The unit, or the range; empty for none.
    pub unit: &'static str,
    /// What they tell, in Markdown.
    pub doc: &'static str,
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Whole numbers from 0.
    Count,
    /// Real numbers; may be empty.
    Real,
    /// Text.
    Text,
}

impl ColumnKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Real => "real",
            Self::Text => "text",
        }
    }

    /// A column of it, without rows.
    fn column(self) -> Column {
        match self {
            Self::Count => Column::Count(Vec::new()),
            Self::Real => Column::Real(Vec::new()),
            Self::Text => Column::Text(Vec::new()),
        }
    }
}

impl TableSpec {
    /// Its columns by name, in order.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, ColumnKind)> {
        self.columns
            .iter()
            .flat_map(|column| column.names.iter().map(move |name| (*name, column.kind)))
    }

    /// The table without rows.
    pub(crate) fn empty(&self) -> Table {
        let mut table = Table::default();
        self.named().for_each(|(name, kind)| table.push(name, kind.column()));
        table
    }
}

/// What was measured at a queue, by the names of the columns.
pub fn measured(summary: &QueueSummary) -> impl Iterator<Item = (&'static str, Value)> {
    let names = QUEUES.named().map(|(name, _)| name).skip_while(|name| *name != "arrivals");
    names.zip(values(summary))
}

const fn count(
    names: &'static [&'static str],
    unit: &'static str,
    doc: &'static str,
) -> ColumnSpec {
    ColumnSpec { names, kind: ColumnKind::Count, unit, doc }
}

const fn real(names: &'static [&'static str], unit: &'static str, doc: &'static str) -> ColumnSpec {
    ColumnSpec { names, kind: ColumnKind::Real, unit, doc }
}

const fn text(names: &'static [&'static str], doc: &'static str) -> ColumnSpec {
    ColumnSpec { names, kind: ColumnKind::Text, unit: "", doc }
}

/// Every table that a run may have beside its summary, in order.
pub const TABLES: [&TableSpec; 17] = [
    &QUEUES,
    &FLOWS,
    &SERIES,
    &GROUPS,
    &FLOW_SERIES,
    &CONTROL,
    &CONTROL_SIGNALS,
    &DELAYS,
    &FLOW_DELAYS,
    &TRANSFERS,
    &COMPLETIONS,
    &SLOWDOWNS,
    &CALLS,
    &LINKS,
    &AUTORATE,
    &SKEW,
    &PERSISTENCE,
];

/// One row a run: these, then those of the primary queue.
pub const SUMMARY: TableSpec = TableSpec {
    name: "summary",
    row: "one row a run",
    simulated: true,
    needs: &[],
    columns: &[
        count(&["seed"], "", "The seed of the run."),
        real(&["duration_s"], "s", "Simulated time."),
        real(&["measured_s"], "s", "Length of the measured window: duration − warm-up."),
        count(&["flows"], "", "Number of flows."),
        count(
            &["events"],
            "",
            "Events that the simulator handled in the whole run: a measure of its work, not of the network.",
        ),
        count(
            &["packets_delivered"],
            "packets",
            "Departures from the primary queue in the whole run, warm-up included.",
        ),
    ],
};

/// What Python adds to the summary.
pub const WALL: ColumnSpec = real(
    &["wall_s"],
    "s",
    "Time that the run took on this machine (Python only; not part of what is repeatable).",
);

/// Managed queues.
pub const QUEUES: TableSpec = TableSpec {
    name: "queues",
    row: "a row per managed queue; the first is the primary one",
    simulated: true,
    needs: &[],
    columns: &[
        text(&["queue"], "The link, as `A->B`."),
        text(&["aqm"], "The queue discipline."),
        count(
            &["arrivals", "departures"],
            "packets",
            "Packets handed to the queue, and packets that the transmitter took.",
        ),
        count(&["drops"], "packets", "Drops of all causes."),
        count(
            &["drops_overflow", "drops_early", "drops_penalty", "drops_policed"],
            "packets",
            "Drops by cause.",
        ),
        count(&["marks"], "packets", "Packets whose CE bit this queue set."),
        count(
            &["arrivals_bytes", "departures_bytes", "drops_bytes"],
            "bytes",
            "Arrivals, departures and drops in bytes.",
        ),
        real(
            &["loss"],
            "0 … 1",
            "`drops / arrivals`; where more were dropped than arrived, because packets from before the window were dropped in it, `drops / (departures + drops)`; 0 without drops.",
        ),
        real(
            &["mark_rate"],
            "0 … 1",
            "`marks / arrivals`; where more were marked than arrived, `marks / (departures + drops)`.",
        ),
        real(
            &["throughput_bps"],
            "bit/s",
            "`8 · departures_bytes / measured_s`: headers, retransmissions and acknowledgements included.",
        ),
        real(
            &["utilisation"],
            "0 … 1",
            "Share of the measured window in which the link was sending: `1 − idle_fraction`.",
        ),
        real(
            &["idle_fraction"],
            "0 … 1",
            "Share of the measured window in which the link sent nothing.",
        ),
        count(
            &["idle_periods"],
            "",
            "Number of idle periods; one that is under way as the window begins counts.",
        ),
        real(
            &["queue_mean_packets", "queue_mean_bytes"],
            "packets, bytes",
            "Mean of the queue, weighted by time.",
        ),
        count(
            &["queue_p50_packets", "queue_p95_packets", "queue_p99_packets"],
            "packets",
            "The least length that the queue did not exceed in 50, 95, 99 % of the time.",
        ),
        count(
            &["queue_max_packets"],
            "packets",
            "The greatest length that lasted longer than 0 s.",
        ),
        real(&["delay_mean_s"], "s", "Mean time in the queue of the packets that departed."),
        real(
            &["delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s"],
            "s",
            "Quantiles and maximum of this time.",
        ),
        real(
            &["jain"],
            "1/n … 1",
            "Jain's fairness index, (Σx)² / (n·Σx²), of the goodputs of the flows whose data crosses this queue and that have data to send all the time: `infinite` flows over TCP, `quinn`, `noq`, `tfrc` or `window` that are there from the start of the measured window or before to its end. Empty for fewer than two such flows, and where none of them gets anything.",
        ),
        count(
            &["state_bytes"],
            "bytes",
            "What the algorithm remembers for the queue as a whole: averages, bins, tables of fixed size. Packet buffers do not count.",
        ),
        count(
            &["state_flow_bytes"],
            "bytes",
            "What it remembers for each flow that it distinguishes; 0 if it does not distinguish flows.",
        ),
        count(&["state_flows"], "", "The most flows that it distinguishes at a time."),
        count(&["state_packet_bytes"], "bytes", "What it remembers for each queued packet."),
        count(
            &["parameters_set"],
            "",
            "Parameters of the algorithm that differ from their defaults.",
        ),
    ],
};

/// Flows.
pub const FLOWS: TableSpec = TableSpec {
    name: "flows",
    row: "a row per flow",
    simulated: true,
    needs: &[],
    columns: &[
        count(&["flow"], "", "Number of the flow, from 0, in the order of the scenario."),
        text(&["group"], "The `name` of its `[[traffic]]`."),
        text(&["transport"], "How its data is carried."),
        real(&["start_s"], "s", "When it starts."),
        real(
            &["goodput_bps"],
            "bit/s",
            "TCP: packets delivered in order, each counted once, × `packet` × 8 / `measured_s`. Datagrams (all other transports): those that arrived. Headers are included, unlike in the usual definition. When the retransmission of a lost packet arrives, the data received behind it counts at that moment, also data from before the measured window.",
        ),
        real(
            &["throughput_bps"],
            "bit/s",
            "8 · bytes that departed from the primary queue / `measured_s`: retransmissions included.",
        ),
        real(
            &["loss"],
            "0 … 1",
            "`drops / arrivals` of this flow at the primary queue; if more were dropped than arrived, as for the `loss` of a queue; 0 without drops.",
        ),
        count(&["arrivals", "drops"], "packets", "This flow's packets at the primary queue."),
        count(
            &["drops_overflow", "drops_early", "drops_penalty", "drops_policed"],
            "packets",
            "Drops by cause.",
        ),
        count(&["marks"], "packets", "Packets of this flow that the primary queue marked."),
        count(&["arrivals_bytes", "drops_bytes"], "bytes", "Arrived and dropped bytes."),
        real(&["drops_bps"], "bit/s", "8 · `drops_bytes` / `measured_s`."),
        count(&["retransmits"], "packets", "Packets sent again."),
        count(
            &["timeouts"],
            "",
            "Retransmission timeouts, those of a SYN included. With `ecn_timeout`, also the end of a wait that an ECN echo caused, if packets are in flight. `tfrc`: times without feedback (RFC 5348 §4.4).",
        ),
        count(&["ecn_reductions"], "", "Window reductions after an ECN echo."),
        real(
            &["srtt_s"],
            "s",
            "Smoothed round-trip time at the end; empty before the first sample.",
        ),
        real(
            &["completed_s"],
            "s",
            "`finite` flows: when the last packet was acknowledged; empty if it was not.",
        ),
    ],
};

/// Queues over time; the signals of the disciplines follow these columns.
pub const SERIES: TableSpec = TableSpec {
    name: "series",
    row: "a row per queue and sampling instant, warm-up included",
    simulated: true,
    needs: &["interval"],
    columns: &[
        real(&["time_s"], "s", "The instant."),
        text(&["queue"], "The link, as `A->B`."),
        count(&["backlog_packets", "backlog_bytes"], "packets, bytes", "What is queued."),
        count(
            &["arrivals", "departures", "drops", "marks"],
            "packets",
            "In this sampling interval.",
        ),
        real(&["idle_s"], "s", "Time in this interval in which the link sent nothing."),
    ],
};

/// Groups of flows over time.
pub const GROUPS: TableSpec = TableSpec {
    name: "groups",
    row: "a row per group of flows, queue and sampling instant",
    simulated: true,
    needs: &["interval", "groups"],
    columns: &[
        real(&["time_s"], "s", "The instant."),
        text(&["queue"], "The link, as `A->B`."),
        text(&["group"], "The `name` of the `[[traffic]]`."),
        count(
            &["backlog_packets", "backlog_bytes"],
            "packets, bytes",
            "Queue of this group's flows.",
        ),
        real(
            &["average_packets"],
            "packets",
            "A moving average of `backlog_packets` with weight 0.002, updated at each arrival of any group at the queue (HRC §3).",
        ),
        count(&["arrivals", "departures", "drops"], "packets", "In this sampling interval."),
        count(&["drops_bytes"], "bytes", "In this sampling interval."),
        real(&["throughput_bps"], "bit/s", "8 · bytes that departed / interval."),
        real(&["goodput_bps"], "bit/s", "As in the table of flows, over this interval."),
    ],
};

/// Flows over time.
pub const FLOW_SERIES: TableSpec = TableSpec {
    name: "flow_series",
    row: "a row per flow and sampling instant, with `flows` under `[measure]`",
    simulated: true,
    needs: &["interval", "flows"],
    columns: &[
        real(&["time_s"], "s", "The instant."),
        count(&["flow"], "", "As in the table of flows."),
        text(&["group"], "The `name` of the `[[traffic]]`."),
        real(
            &["cwnd_packets"],
            "packets",
            "The congestion window at that instant; empty for transports without one.",
        ),
        real(
            &["srtt_s"],
            "s",
            "The smoothed round-trip time at that instant; empty before the first sample.",
        ),
        real(&["goodput_bps"], "bit/s", "As in the table of flows, over this interval."),
    ],
};

/// What congestion controls do.
pub const CONTROL: TableSpec = TableSpec {
    name: "control",
    row: "a row per flow over TCP and change of phase, round trip or loss episode, warm-up included, with `control` under `[measure]`",
    simulated: true,
    needs: &["control"],
    columns: &[
        real(&["time_s"], "s", "When it happened."),
        count(&["flow"], "", "As in the table of flows."),
        text(&["group"], "The `name` of the `[[traffic]]`."),
        text(
            &["event"],
            "`phase`: another phase begins. `round`: a round trip, counted by packets, begins. `loss`, `timeout`: a repair begins, after acknowledgements or the timer told of a loss. `recovered`: it ends. `undo`: it was needless. `restart`: the first packet after a time without any (`bbr`, `bbr1`).",
        ),
        text(
            &["phase"],
            "The phase that begins or lasts: of `bbr` `startup`, `drain`, `down`, `cruise`, `refill`, `up`, `probe-rtt`; of `bbr1` `startup`, `drain`, `probe-bw`, `probe-rtt`; of others `slow-start`, `congestion-avoidance`, `reduction` (after an ECN echo), `recovery`, `timeout`.",
        ),
        text(&["ended"], "With `phase`: the phase that ended; empty at the start."),
        count(&["nth"], "", "How often this phase has begun."),
        real(
            &["since_s"],
            "s",
            "For how long the phase lasts; with `phase`, how long the one before lasted.",
        ),
        count(&["rounds"], "", "The same in round trips."),
        real(&["cwnd_packets"], "packets", "The congestion window."),
        count(&["inflight_packets"], "packets", "Sent, and neither acknowledged nor found lost."),
        real(
            &["pacing_bps"],
            "bit/s",
            "What a paced sender sends at most; empty for one that is not.",
        ),
        real(&["ssthresh"], "packets", "The slow-start threshold; empty before the first loss."),
        real(&["alpha"], "0 … 1", "`dctcp`, `prague`: the smoothed share of marks."),
        real(
            &["round_count", "cycle_count"],
            "",
            "`bbr`, `bbr1`, as all that follows: BBR.round_count; BBR.cycle_count. Empty where the version has no such value or it is infinite.",
        ),
        real(&["pacing_gain", "cwnd_gain"], "", "The gains of the phase."),
        real(
            &["max_bw", "bw", "bw_shortterm", "bw_latest"],
            "bit/s",
            "Estimated bandwidths, in packets on the wire; `bw_latest` is the greatest sample of the round.",
        ),
        real(
            &["inflight_longterm", "inflight_shortterm", "inflight_latest"],
            "packets",
            "What losses leave of what may be under way; `inflight_latest` is the most that was delivered in a round.",
        ),
        real(
            &["full_bw", "full_bw_count", "full_bw_now", "full_bw_reached"],
            "bit/s, –",
            "The search for a plateau: the rate that it compares with, rounds without growth, and 1 or 0.",
        ),
        real(
            &["min_rtt", "probe_rtt_min_delay"],
            "s",
            "Least round trips: of 10 s, and since the last ProbeRTT.",
        ),
        real(
            &[
                "bdp",
                "target_inflight",
                "inflight_target",
                "inflight_target_max_bw",
                "inflight_with_headroom",
            ],
            "packets",
            "BBR.bdp; TargetInflight(); Inflight(1.0), and the same with `max_bw` in place of `bw`; InflightWithHeadroom().",
        ),
        real(
            &["extra_acked", "max_inflight", "prior_cwnd"],
            "packets",
            "By how much acknowledgements run ahead; the bound of the window that follows; the window before losses or ProbeRTT.",
        ),
        real(
            &[
                "prev_probe_too_high",
                "prev_probe_precautionary",
                "is_bw_probe_sample",
                "idle_restart",
            ],
            "",
            "1 if it is so, else 0.",
        ),
        real(
            &["bw_probe_up_rounds"],
            "",
            "How often a probe has doubled the steps in which it raises `inflight_longterm`.",
        ),
        real(
            &["bw_probe_wait"],
            "s",
            "How long after `down` began the next probe begins at the latest.",
        ),
        real(
            &["probe_rtt_min_stamp", "probe_rtt_done_stamp"],
            "s",
            "When `probe_rtt_min_delay` was measured; when the last ProbeRTT may end, 0 before that is known.",
        ),
        real(&["loss_ranges"], "", "Separate ranges of packets lost in the round."),
        real(
            &["high_lost", "high_inflight"],
            "packets",
            "When losses last ended a probe or `startup`: RS.lost and RS.tx_in_flight.",
        ),
        real(
            &["undo_bw_shortterm", "undo_inflight_shortterm", "undo_inflight_longterm"],
            "bit/s, packets",
            "What SaveStateUponLoss() kept.",
        ),
        real(
            &["delivered", "lost", "app_limited"],
            "packets, –",
            "C.delivered and C.lost of the connection; 1 while what is sent is limited by the application.",
        ),
    ],
};

/// How many columns of [`CONTROL`] come before the values of the controls.
pub(crate) const CONTROL_FIXED: usize = 12;

/// Signals of users' own controllers.
pub const CONTROL_SIGNALS: TableSpec = TableSpec {
    name: "control_signals",
    row: "a row per row of the table of control and signal of a user's own controller",
    simulated: true,
    needs: &["control"],
    columns: &[
        real(&["time_s"], "s", "As in the table of control."),
        count(&["flow"], "", "As in the table of flows."),
        text(&["group"], "The `name` of the `[[traffic]]`."),
        text(&["event"], "As in the table of control."),
        text(&["signal"], "The name that the class declares in `signals`."),
        real(&["value"], "", "In the unit declared there; empty if it is not finite."),
    ],
};

/// Delays by group.
pub const DELAYS: TableSpec = TableSpec {
    name: "delays",
    row: "a row per group and kind of delay, and per managed queue where it is of one, with `delays` under `[measure]`",
    simulated: true,
    needs: &["delays"],
    columns: &[
        DELAY_QUEUE,
        text(&["group"], "The `name` of the `[[traffic]]`."),
        DELAY_KIND,
        DELAY_SAMPLES,
        DELAY_MEAN,
        DELAY_QUANTILES,
    ],
};

/// Delays of each flow.
pub const FLOW_DELAYS: TableSpec = TableSpec {
    name: "flow_delays",
    row: "a row per flow and kind of delay, and per managed queue where it is of one, with `delays` under `[measure]`",
    simulated: true,
    needs: &["delays"],
    columns: &[
        count(&["flow"], "", "As in the table of flows."),
        text(&["group"], "The `name` of the `[[traffic]]`."),
        DELAY_KIND,
        DELAY_QUEUE,
        DELAY_SAMPLES,
        DELAY_MEAN,
        DELAY_QUANTILES,
    ],
};

const DELAY_QUEUE: ColumnSpec =
    text(&["queue"], "The link, as `A->B`; empty for a delay from end to end.");
const DELAY_KIND: ColumnSpec = text(
    &["kind"],
    "`queueing`: the time in the queue, of packets that departed. `one-way`: from sending a data packet, for the first time or again, to its arrival at the receiver; copies that a wire makes count, too; for `scream` from the frame on. `round-trip` (TCP only): the sender's samples, of one packet a round trip, with `rack` of each acknowledgement; none where it is unclear which transmission was acknowledged (Karn).",
);
const DELAY_SAMPLES: ColumnSpec = count(&["samples"], "", "Number of packets or samples.");
const DELAY_MEAN: ColumnSpec = real(&["delay_mean_s"], "s", "Their mean.");
const DELAY_QUANTILES: ColumnSpec = real(
    &["delay_p50_s", "delay_p90_s", "delay_p95_s", "delay_p99_s", "delay_max_s"],
    "s",
    "Their quantiles and maximum.",
);

/// Transfers.
pub const TRANSFERS: TableSpec = TableSpec {
    name: "transfers",
    row: "a row per group with transfers and kind of them",
    simulated: true,
    needs: &[],
    columns: &[
        text(&["group"], "The `name` of the `[[traffic]]`."),
        text(&["kind"], "`flow`, `request` or `page`."),
        count(&["began"], "", "Number of transfers that began."),
        count(&["completed"], "", "Number of these that were completed by the end of the run."),
        real(
            &["time_mean_s", "time_p50_s", "time_p95_s", "time_p99_s", "time_max_s"],
            "s",
            "Times of the completed ones. A flow is complete when its last packet is acknowledged.",
        ),
        real(
            &["slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99", "slowdown_max"],
            "≥ 1",
            "Its time divided by the time that it would take alone: in slow start, with an acknowledgement for each packet, and without a queue on the way back. Empty for pages.",
        ),
        real(
            &["rpm"],
            "1/min",
            "How many would follow one another in a minute: 60 s / mean of the shortest 95 % of the times; empty if they took no time. For requests of one packet without a handshake these are the round trips per minute of draft-ietf-ippm-responsiveness; with a handshake a request takes two round trips.",
        ),
    ],
};

/// How long transfers took.
pub const COMPLETIONS: TableSpec = TableSpec {
    name: "completions",
    row: "a row per group, kind of transfer and length of time",
    simulated: true,
    needs: &[],
    columns: &[
        text(&["group", "kind"], "As above."),
        real(&["time_s"], "s", "A length of time, from a histogram: at most 1/32 too high."),
        count(&["completed"], "", "Transfers that took no longer."),
        real(&["share"], "0 … 1", "Their share of all that began."),
    ],
};

/// How much longer transfers took than alone, by size.
pub const SLOWDOWNS: TableSpec = TableSpec {
    name: "slowdowns",
    row: "a row per group, kind of transfer and range of sizes that occurs",
    simulated: true,
    needs: &[],
    columns: &[
        text(&["group", "kind"], "As above; pages have none."),
        count(
            &["packets_least", "packets_most"],
            "packets",
            "Least and greatest size of the transfers in this row.",
        ),
        count(&["completed"], "", "Transfers of these sizes that were completed."),
        real(
            &["slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99"],
            "≥ 1",
            "The slowdowns of the table of transfers, of these sizes.",
        ),
    ],
};

/// What datagrams meet from end to end.
pub const CALLS: TableSpec = TableSpec {
    name: "calls",
    row: "a row per group of `cbr` or `scream` flows, with `calls` under `[measure]`",
    simulated: true,
    needs: &["calls"],
    columns: &[
        text(&["group"], "The `name` of the `[[traffic]]`."),
        count(
            &["expected"],
            "packets",
            "Packets that should have arrived, summed over flows: all that were sent in the window up to the last that arrived, and those after it that are a second old at its end, or as old as the flow's longest delay. Younger ones may still be under way.",
        ),
        count(&["received"], "packets", "How many arrived."),
        real(&["loss"], "0 … 1", "1 − `received` / `expected`."),
        real(
            &["delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s"],
            "s",
            "One-way delays from end to end, transmission and propagation included; for `scream` from the frame on, with the wait at the sender.",
        ),
        real(
            &["jitter_s"],
            "s",
            "Mean difference between the delays of two successive packets of a flow, without its sign (D of RFC 3550 §6.4.1).",
        ),
        real(
            &["r_factor"],
            "0 … 93.2",
            "How a call with these packets would sound: R of ITU-T G.107, mean over flows.",
        ),
        real(&["mos"], "1 … 4.4", "The mean opinion score that goes with it."),
    ],
};

/// What autorate algorithms see and decide.
pub const AUTORATE: TableSpec = TableSpec {
    name: "autorate",
    row: "a row per step and shaper of an `[[autorate]]`",
    simulated: true,
    needs: &[],
    columns: &[
        real(
            &["time_s"],
            "s",
            "When the step is made; the columns tell of the time since the one before.",
        ),
        count(&["autorate"], "", "The number of the `[[autorate]]`, from 0."),
        text(&["direction"], "`down` or `up`."),
        text(&["shaper"], "The shaper's link, as `A->B`."),
        real(&["rate_bps"], "bit/s", "The shaper's rate."),
        real(
            &["capacity_bps"],
            "bit/s",
            "What the line could carry: of the other links on the probes' way, the lowest mean rate.",
        ),
        real(&["sent_bps"], "bit/s", "What left the shaper."),
        count(&["backlog_bytes"], "bytes", "What waits in the shaper's queue at the step."),
        count(&["probes"], "packets", "Probes that came back."),
        count(&["lost"], "packets", "Probes that are known to be lost: one sent later came back."),
        real(&["delay_s"], "s", "Mean one-way delay on this way of the probes that came back."),
    ],
};

/// What links that vary could carry, and what became of packets on their wires.
pub const LINKS: TableSpec = TableSpec {
    name: "links",
    row: "a row per link that varies or impairs packets",
    simulated: true,
    needs: &[],
    columns: &[
        text(&["wire"], "The link whose wire it is, as `A->B`."),
        real(&["capacity_bps"], "bit/s", "Its mean rate in the measured window, framing included."),
        real(
            &["entered", "came_out"],
            "packets",
            "Packets that went into the wire and that came out of it, copies and damaged ones included. This and the next columns are empty if the wire only delays.",
        ),
        real(
            &["lost", "duplicated", "corrupted", "reordered"],
            "packets",
            "Lost on the wire; came out a second time; came out damaged (each copy counts); came out before a packet that went in earlier.",
        ),
    ],
};

/// What the largest flows of a trace carry.
pub const SKEW: TableSpec = TableSpec {
    name: "skew",
    row: "a row per share of flows and length of windows",
    simulated: false,
    needs: &[],
    columns: &[
        text(
            &["window"],
            "Length of the windows of which this is the mean; `whole` for the whole capture.",
        ),
        real(&["window_s"], "s", "The same in seconds; empty for the whole capture."),
        real(&["flow_share"], "0 … 1", "Share of the flows, taken from the largest down."),
        real(
            &["byte_share", "packet_share"],
            "0 … 1",
            "What these flows carry of the bytes and packets.",
        ),
        real(&["next_share"], "0 … 1", "What they carry of the bytes of the next window."),
    ],
};

/// What the largest flows of a window carry in the next.
pub const PERSISTENCE: TableSpec = TableSpec {
    name: "persistence",
    row: "a row per share of bytes and length of windows",
    simulated: false,
    needs: &[],
    columns: &[
        text(&["window"], "Length of the windows."),
        real(&["window_s"], "s", "The same in seconds."),
        real(&["byte_share"], "0 … 1", "Share of a window's bytes, carried by its largest flows."),
        real(
            &["next_share"],
            "0 … 1",
            "What these flows carry of the next window's bytes, on average.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    use aqm::{Cause, Counters};
    use link::QueueStats;

    use super::*;
    use crate::Run;

    fn value(counters: &Counters, name: &str) -> Value {
        let summary = QueueStats::new(0).summary(1, counters);
        measured(&summary).find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    fn type_of(column: &Column) -> ColumnKind {
        match column {
            Column::Count(_) => ColumnKind::Count,
            Column::Real(_) => ColumnKind::Real,
            Column::Text(_) => ColumnKind::Text,
        }
    }

    /// What a run gives is what is declared, name by name, in order and in type.
    #[test]
    fn tables_are_as_declared() {
        let text = "duration = \"2s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10mbit\"\n\
                    delay = \"5ms\"\njitter = \"1ms\"\n\
                    [[queue]]\nlink = \"a->b\"\naqm = \"red\"\nbuffer = \"50p\"\n\
                    [[traffic]]\ntransport = \"sack\"\napp = \"finite\"\nsize = \"20kB\"\n\
                    from = [\"a\"]\nto = [\"b\"]\n\
                    [[traffic]]\ntransport = \"cbr\"\nrate = \"64kbit\"\n\
                    from = [\"a\"]\nto = [\"b\"]\n\
                    [measure]\ninterval = \"500ms\"\ngroups = true\ndelays = true\ncalls = true\nflows = true\ncontrol = true\n";
        let scenario = crate::capture::scenario(text, "x").unwrap();
        let outcome = Run::new(scenario, text, "x").unwrap().finish();
        for (spec, table) in outcome.tables() {
            let declared: Vec<_> = spec.named().collect();
            let made: Vec<_> = table.columns().map(|(name, c)| (name, type_of(c))).collect();
            assert_eq!(made[..declared.len()], declared, "{}", spec.name);
            let signals = spec.name == "series" || spec.name == "summary";
            assert!(signals || made.len() == declared.len(), "{}", spec.name);
            // Of controllers and algorithms that are brought along, which this run has not got.
            let brought = [CONTROL_SIGNALS.name, AUTORATE.name].contains(&spec.name);
            assert!(table.columns().all(|(_, c)| (c.len() > 0) != brought), "{}", spec.name);
        }
        // What a table needs is what it has no rows without.
        let (unmeasured, _) = text.split_once("[measure]").unwrap();
        let scenario = crate::capture::scenario(unmeasured, "x").unwrap();
        for (spec, table) in Run::new(scenario, unmeasured, "x").unwrap().finish().tables() {
            let empty = table.columns().all(|(_, c)| c.len() == 0);
            let brought = spec.name == AUTORATE.name;
            assert_eq!(empty, brought || !spec.needs.is_empty(), "{}", spec.name);
        }
        let names: Vec<_> = outcome.tables().map(|(spec, _)| spec.name).skip(1).collect();
        let simulated: Vec<_> = TABLES.iter().filter(|t| t.simulated).map(|t| t.name).collect();
        assert_eq!(names, simulated);
    }

    #[test]
    fn where_nothing_arrives_nothing_is_lost() {
        let none = Counters::default();
        assert_eq!(["loss", "mark_rate"].map(|name| value(&none, name)), [Value::Real(0.0); 2]);
    }

    #[test]
    fn a_share_is_one_at_most_whatever_waited_before_the_window() {
        let mut counters = Counters::default();
        counters.arrived.count(1000);
        (0..72).for_each(|_| counters.dropped[Cause::Early as usize].count(1000));
        (0..18).for_each(|_| counters.marked[Cause::Early as usize].count(1000));
        (0..8).for_each(|_| counters.departed.count(1000));
        let found = ["loss", "mark_rate"].map(|name| value(&counters, name));
        assert_eq!(found, [Value::Real(72.0 / 80.0), Value::Real(18.0 / 80.0)]);
    }

    #[test]
    fn drops_stand_at_their_cause() {
        let mut counters = Counters::default();
        for (cause, drops) in Cause::ALL.into_iter().zip(1..) {
            (0..drops).for_each(|_| counters.dropped[cause as usize].count(1000));
        }
        for (cause, drops) in Cause::ALL.into_iter().zip(1..) {
            assert_eq!(value(&counters, &format!("drops_{}", cause.name())), Value::Count(drops));
        }
    }
}
