//! What a generated trace is like.

use super::{TableSpec, real, text};

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
