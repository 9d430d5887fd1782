//! What a run tells of itself, its queues and links.

use super::{CAUSES, ColumnSpec, QUEUE, TIME, TableSpec, count, real, text};

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
        QUEUE,
        text(&["aqm"], "The queue discipline."),
        count(
            &["arrivals", "departures"],
            "packets",
            "Packets handed to the queue, and packets that the transmitter took.",
        ),
        count(&["drops"], "packets", "Drops of all causes."),
        CAUSES,
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

/// The classes of queues that are trees of them.
pub const CLASSES: TableSpec = TableSpec {
    name: "classes",
    row: "a row per class of a queue with `[[queue.class]]`",
    simulated: true,
    needs: &[],
    columns: &[
        QUEUE,
        text(
            &["class"],
            "Its `name`; of an entry with `each`, with the number of the host, as `circuit[7]`.",
        ),
        count(
            &["arrivals", "departures", "drops", "marks"],
            "packets",
            "Packets of the class and of all below it.",
        ),
        count(
            &["arrivals_bytes", "departures_bytes", "drops_bytes"],
            "bytes",
            "Arrivals, departures and drops in bytes.",
        ),
        count(
            &["borrowed", "borrowed_bytes"],
            "packets, bytes",
            "Those of the departures that left by the rate of a class above it.",
        ),
        count(
            &["backlog_packets", "backlog_bytes"],
            "packets, bytes",
            "What is queued at the end.",
        ),
        real(&["throughput_bps"], "bit/s", "`departures_bytes` over the window."),
    ],
};

/// What access points sent to their stations.
pub const STATIONS: TableSpec = TableSpec {
    name: "stations",
    row: "a row per station of a link with `wifi`",
    simulated: true,
    needs: &[],
    columns: &[
        QUEUE,
        text(
            &["station"],
            "Its host, the `peer` of its traffic; `others` for all that have no entry.",
        ),
        real(&["rate_bps"], "bit/s", "The rate at which it receives."),
        count(
            &["arrivals", "departures"],
            "packets",
            "Packets for it that came, and that were sent.",
        ),
        count(&["arrivals_bytes", "departures_bytes"], "bytes", "Both in bytes."),
        count(&["aggregates"], "", "Aggregates that were sent to it."),
        real(&["aggregate_mean"], "packets", "Their mean length: `departures / aggregates`."),
        real(&["airtime_s"], "s", "The time that they took, with their overhead."),
        real(&["airtime_share"], "0 … 1", "This time over that of all stations of the link."),
        real(&["throughput_bps"], "bit/s", "`departures_bytes` over the window."),
    ],
};

/// Queues over time; the signals of the disciplines follow these columns.
pub const SERIES: TableSpec = TableSpec {
    name: "series",
    row: "a row per queue and sampling instant, warm-up included",
    simulated: true,
    needs: &["interval"],
    columns: &[
        TIME,
        QUEUE,
        count(&["backlog_packets", "backlog_bytes"], "packets, bytes", "What is queued."),
        count(
            &["arrivals", "departures", "drops", "marks"],
            "packets",
            "In this sampling interval.",
        ),
        real(&["idle_s"], "s", "Time in this interval in which the link sent nothing."),
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
