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
pub const TABLES: [&TableSpec; 14] = [
    &QUEUES,
    &FLOWS,
    &SERIES,
    &GROUPS,
    &FLOW_SERIES,
    &DELAYS,
    &FLOW_DELAYS,
    &TRANSFERS,
    &COMPLETIONS,
    &SLOWDOWNS,
    &CALLS,
    &LINKS,
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
        count(&["flows"], "", "How many flows there were."),
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
        count(&["arrivals", "departures"], "packets", "See above."),
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
            "The same in bytes.",
        ),
        real(
            &["loss"],
            "0 … 1",
            "`drops / arrivals`; where more were dropped than arrived, since they had waited before the window, `drops / (departures + drops)`; 0 without drops.",
        ),
        real(
            &["mark_rate"],
            "0 … 1",
            "`marks / arrivals`; where more were marked than arrived, of those that left, as in `loss`.",
        ),
        real(
            &["throughput_bps"],
            "bit/s",
            "`8 · departures_bytes / measured_s`: headers, retransmissions and acknowledgements included.",
        ),
        real(
            &["utilisation"],
            "0 … 1",
            "Share of the window in which the link was sending: `1 − idle_fraction`.",
        ),
        real(&["idle_fraction"], "0 … 1", "Share of the window in which the link sent nothing."),
        count(
            &["idle_periods"],
            "",
            "How many idle periods there were; one that lasts as the window begins counts.",
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
        count(&["queue_max_packets"], "packets", "The greatest length that lasted for any time."),
        real(&["delay_mean_s"], "s", "Mean time in the queue of the packets that departed."),
        real(
            &["delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s"],
            "s",
            "Quantiles and maximum of the same.",
        ),
        real(
            &["jain"],
            "1/n … 1",
            "Jain's fairness index, (Σx)² / (n·Σx²), of the goodputs of the flows that can be compared: they cross this queue with their data, and they always have data to send (`infinite`, over TCP, `tfrc` or `window`) from the window's start or before to the end. Empty for fewer than two such flows, and where none of them gets anything.",
        ),
        count(
            &["state_bytes"],
            "bytes",
            "What the algorithm remembers for the queue as a whole: averages, bins, tables of fixed size. Without packets and the room for them.",
        ),
        count(
            &["state_flow_bytes"],
            "bytes",
            "What it remembers for each flow that it tells from others; 0 if it tells none.",
        ),
        count(&["state_flows"], "", "The most flows that it tells from others at a time."),
        count(&["state_packet_bytes"], "bytes", "What it remembers for each queued packet."),
        count(
            &["parameters_set"],
            "",
            "Parameters of the algorithm that are not at their defaults.",
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
            "TCP: packets delivered in order, each counted once, × `packet` × 8 / `measured_s`. Datagrams (all other transports): those that arrived. Headers are included. If a lost packet arrives early in the window, everything that waited for it counts at that moment.",
        ),
        real(
            &["throughput_bps"],
            "bit/s",
            "8 · bytes that departed from the primary queue / `measured_s`: retransmissions included.",
        ),
        real(
            &["loss"],
            "0 … 1",
            "`drops / arrivals` of this flow at the primary queue; where more were dropped than arrived, as the `loss` of a queue; 0 without drops.",
        ),
        count(
            &["arrivals", "drops"],
            "packets",
            "What this flow's packets met at the primary queue.",
        ),
        count(
            &["drops_overflow", "drops_early", "drops_penalty", "drops_policed"],
            "packets",
            "Drops by cause.",
        ),
        count(&["marks"], "packets", "Packets of this flow that the primary queue marked."),
        count(
            &["arrivals_bytes", "drops_bytes"],
            "bytes",
            "What arrived and what was dropped in bytes.",
        ),
        real(&["drops_bps"], "bit/s", "8 · `drops_bytes` / `measured_s`."),
        count(&["retransmits"], "packets", "Packets sent again."),
        count(
            &["timeouts"],
            "",
            "Retransmission timeouts, those of a SYN included, and with `ecn_timeout` those that end a wait while packets are under way. `tfrc`: times without feedback (RFC 5348 §4.4).",
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
        count(&["arrivals", "departures", "drops", "marks"], "packets", "In this interval."),
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
            "What is queued of this group's flows.",
        ),
        real(
            &["average_packets"],
            "packets",
            "The same in packets, averaged: at each arrival at the queue, of whatever group, the average moves by 0.002 of its distance from the backlog that the packet finds (HRC §3).",
        ),
        count(&["arrivals", "departures", "drops"], "packets", "In this interval."),
        count(&["drops_bytes"], "bytes", "In this interval."),
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
    "`queueing`: the time in the queue, of packets that departed. `one-way`: from when the transport sent a data packet, for the first time or again, to when it came, each copy of those that a wire has come out twice; of `scream` from the frame on. `round-trip`: TCP only, the samples that it takes: of one packet a round trip, with `rack` of each acknowledgement, of none that was sent again and may have been either (Karn).",
);
const DELAY_SAMPLES: ColumnSpec =
    count(&["samples"], "", "How many packets, or samples, these are of.");
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
        count(&["began"], "", "How many began."),
        count(&["completed"], "", "How many of them were completed by the end of the run."),
        real(
            &["time_mean_s", "time_p50_s", "time_p95_s", "time_p99_s", "time_max_s"],
            "s",
            "How long those took that were completed. A flow is complete when its last packet is acknowledged.",
        ),
        real(
            &["slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99", "slowdown_max"],
            "≥ 1",
            "Each one's time over the time that it takes with nothing else under way, in slow start and with an acknowledgement for each packet, for which the way back is wide enough; empty for pages.",
        ),
        real(
            &["rpm"],
            "1/min",
            "60 / the mean of the shortest 95 % of these times: how many would follow one another in a minute; empty if they took no time. Of requests of one packet without a handshake these are the round trips per minute of draft-ietf-ippm-responsiveness; with a handshake a request is two.",
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
        count(&["packets_least", "packets_most"], "packets", "The sizes of the row."),
        count(&["completed"], "", "Transfers of these sizes that were completed."),
        real(
            &["slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99"],
            "≥ 1",
            "As above, of these sizes.",
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
            "Packets that should have come: those from the first that came to the last, by their numbers, summed over flows.",
        ),
        count(&["received"], "packets", "How many came."),
        real(&["loss"], "0 … 1", "1 − `received` / `expected`."),
        real(
            &["delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s"],
            "s",
            "One-way delays from end to end, transmission and propagation included; of `scream` from the frame on, the wait at the sender included.",
        ),
        real(
            &["jitter_s"],
            "s",
            "By how much the delays of two packets of a flow that come in succession differ, in the mean (D of RFC 3550 §6.4.1).",
        ),
        real(
            &["r_factor"],
            "0 … 93.2",
            "How a call with these packets would sound: R of ITU-T G.107, mean over flows.",
        ),
        real(&["mos"], "1 … 4.4", "The mean opinion score that goes with it."),
    ],
};

/// What links that vary could carry, and what became of packets on their wires.
pub const LINKS: TableSpec = TableSpec {
    name: "links",
    row: "a row per link that varies or impairs packets",
    simulated: true,
    needs: &[],
    columns: &[
        text(&["wire"], "The link, as `A->B`."),
        real(
            &["capacity_bps"],
            "bit/s",
            "What its rate came to in the mean of the window, framing included.",
        ),
        real(
            &["entered", "came_out"],
            "packets",
            "Went into the wire, and came out of it, with copies and damaged ones; empty, as what follows, where the wire does nothing but delay.",
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
        real(&["flow_share"], "0 … 1", "So large a share of the flows, the largest, …"),
        real(
            &["byte_share", "packet_share"],
            "0 … 1",
            "… carries these shares of the bytes and packets …",
        ),
        real(&["next_share"], "0 … 1", "… and this share of the bytes of the next window."),
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
        real(
            &["byte_share"],
            "0 … 1",
            "The largest flows that together carry this share of the bytes of a window …",
        ),
        real(&["next_share"], "0 … 1", "… carry this share of the next one's, in the mean."),
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
                    [measure]\ninterval = \"500ms\"\ngroups = true\ndelays = true\ncalls = true\nflows = true\n";
        let scenario = crate::capture::scenario(text, "x").unwrap();
        let outcome = Run::new(scenario, text, "x").unwrap().finish();
        for (spec, table) in outcome.tables() {
            let declared: Vec<_> = spec.named().collect();
            let made: Vec<_> = table.columns().map(|(name, c)| (name, type_of(c))).collect();
            assert_eq!(made[..declared.len()], declared, "{}", spec.name);
            let signals = spec.name == "series" || spec.name == "summary";
            assert!(signals || made.len() == declared.len(), "{}", spec.name);
            assert!(table.columns().all(|(_, c)| c.len() > 0), "{}", spec.name);
        }
        // What a table needs is what it has no rows without.
        let (unmeasured, _) = text.split_once("[measure]").unwrap();
        let scenario = crate::capture::scenario(unmeasured, "x").unwrap();
        for (spec, table) in Run::new(scenario, unmeasured, "x").unwrap().finish().tables() {
            let empty = table.columns().all(|(_, c)| c.len() == 0);
            assert_eq!(empty, !spec.needs.is_empty(), "{}", spec.name);
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
