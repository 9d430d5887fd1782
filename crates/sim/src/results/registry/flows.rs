//! What a run tells of flows and their transfers.

use super::{CAUSES, ColumnSpec, FLOW, GOODPUT, GROUP, QUEUE, TIME, TableSpec, count, real, text};

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
        CAUSES,
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

/// Groups of flows over time.
pub const GROUPS: TableSpec = TableSpec {
    name: "groups",
    row: "a row per group of flows, queue and sampling instant",
    simulated: true,
    needs: &["interval", "groups"],
    columns: &[
        TIME,
        QUEUE,
        GROUP,
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
        GOODPUT,
    ],
};

/// Flows over time.
pub const FLOW_SERIES: TableSpec = TableSpec {
    name: "flow_series",
    row: "a row per flow and sampling instant, with `flows` under `[measure]`",
    simulated: true,
    needs: &["interval", "flows"],
    columns: &[
        TIME,
        FLOW,
        GROUP,
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
        GOODPUT,
    ],
};

/// Delays by group.
pub const DELAYS: TableSpec = TableSpec {
    name: "delays",
    row: "a row per group and kind of delay, and per managed queue where it is of one, with `delays` under `[measure]`",
    simulated: true,
    needs: &["delays"],
    columns: &[DELAY_QUEUE, GROUP, DELAY_KIND, DELAY_SAMPLES, DELAY_MEAN, DELAY_QUANTILES],
};

/// Delays of each flow.
pub const FLOW_DELAYS: TableSpec = TableSpec {
    name: "flow_delays",
    row: "a row per flow and kind of delay, and per managed queue where it is of one, with `delays` under `[measure]`",
    simulated: true,
    needs: &["delays"],
    columns: &[FLOW, GROUP, DELAY_KIND, DELAY_QUEUE, DELAY_SAMPLES, DELAY_MEAN, DELAY_QUANTILES],
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
        GROUP,
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
        GROUP,
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
