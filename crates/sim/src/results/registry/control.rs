//! What congestion controls and autorate algorithms do.

use super::{FLOW, GROUP, TableSpec, count, real, text};

/// What congestion controls do.
pub const CONTROL: TableSpec = TableSpec {
    name: "control",
    row: "a row per flow over TCP and change of phase, round trip or loss episode, warm-up included, with `control` under `[measure]`",
    simulated: true,
    needs: &["control"],
    columns: &[
        real(&["time_s"], "s", "When it happened."),
        FLOW,
        GROUP,
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

/// Signals of users' own controllers.
pub const CONTROL_SIGNALS: TableSpec = TableSpec {
    name: "control_signals",
    row: "a row per row of the table of control and signal of a user's own controller",
    simulated: true,
    needs: &["control"],
    columns: &[
        real(&["time_s"], "s", "As in the table of control."),
        FLOW,
        GROUP,
        text(&["event"], "As in the table of control."),
        text(&["signal"], "The name that the class declares in `signals`."),
        real(&["value"], "", "In the unit declared there; empty if it is not finite."),
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
