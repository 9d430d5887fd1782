//! BLUE's story, event by event.

use super::*;
use crate::packet::Ecn;
use crate::policy::lab::{Fate, Lab, config, refused};
use crate::qdisc::Qdisc;
use std::vec::Vec;

type Story = Lab<Blue>;

/// Fills a queue of `n` packets to the brim.
fn full(n: u64, settings: &[(&str, &str)]) -> Story {
    let mut lab = Story::new(n, settings);
    (0..n).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
    lab
}

/// Settings with which one loss makes every signal certain and one idle event ends it.
fn certain(extra: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let mut settings = std::vec![("increment", "1"), ("decrement", "1")];
    settings.extend(extra);
    settings
}

#[test]
fn losses_raise_p_once_in_a_freeze_time_and_the_first_acts_at_once() {
    let mut lab = full(3, &[]);
    assert_eq!(lab.signal("p_m"), 0.0);
    assert_eq!(lab.arrive(), Fate::Dropped(Cause::Overflow));
    assert_eq!(lab.signal("p_m"), 0.02, "last_update was long ago");
    lab.wait_ms(50);
    lab.arrive();
    assert_eq!(lab.signal("p_m"), 0.02, "frozen");
    lab.wait_ms(50);
    lab.arrive();
    assert_eq!(lab.signal("p_m"), 0.02, "exactly freeze_time is not more than freeze_time");
    lab.now += Duration::from_nanos(1);
    lab.arrive();
    assert_eq!(lab.signal("p_m"), 0.04);
}

#[test]
fn p_begins_where_it_is_told() {
    let mut lab = Story::new(2, &[("initial", "1"), ("ecn", "false")]);
    assert_eq!(lab.arrive(), Fate::Dropped(Cause::Early), "every signal is certain");
    assert_eq!(lab.depart(), None);
    assert_eq!(lab.signal("p_m"), 1.0 - 0.002, "and an idle link lowers it");
}

#[test]
fn an_idle_link_lowers_p_and_shares_the_freeze_with_losses() {
    let mut lab = full(1, &[]);
    lab.arrive();
    assert_eq!(lab.depart(), Some(0));
    assert_eq!(lab.depart(), None);
    assert_eq!(lab.signal("p_m"), 0.02, "the loss froze it for the idle event too");
    lab.wait_ms(101);
    assert_eq!(lab.depart(), None);
    assert_eq!(lab.signal("p_m"), 0.02 - 0.002);
    lab.wait_ms(1000);
    assert_eq!(
        lab.signal("p_m"),
        0.02 - 0.002,
        "one decrement for one event, however long it is idle"
    );
}

#[test]
fn p_stays_within_0_and_1() {
    let mut lab = full(1, &[("increment", "0.4"), ("decrement", "0.7"), ("freeze_time", "1ms")]);
    for expected in [0.4, 0.8, 1.0, 1.0] {
        lab.arrive();
        assert!((lab.signal("p_m") - expected).abs() < 1e-12);
        lab.wait_ms(2);
    }
    lab.depart();
    for expected in [0.3, 0.0, 0.0] {
        lab.depart();
        assert!((lab.signal("p_m") - expected).abs() < 1e-12);
        lab.wait_ms(2);
    }
}

/// At p_m = 1 every packet is signalled; what a signal is depends on `ecn` and the packet.
#[test]
fn a_signal_is_a_mark_where_it_can_be() {
    for (ecn, packet, fate) in [
        ("true", Ecn::Ect0, Fate::Marked),
        ("true", Ecn::Ect1, Fate::Marked),
        ("true", Ecn::NotEct, Fate::Dropped(Cause::Early)),
        ("false", Ecn::Ect0, Fate::Dropped(Cause::Early)),
    ] {
        let mut lab = full(1, &certain(&[("ecn", ecn)]));
        lab.arrive();
        lab.depart();
        assert_eq!(lab.arrive_as(1000, packet), fate, "ecn = {ecn}, {packet:?}");
    }
}

#[test]
fn more_than_l_queued_counts_as_an_overflow() {
    let mut lab = Story::new(10, &[("threshold", "2p")]);
    (0..3).for_each(|_| _ = lab.arrive());
    assert_eq!(lab.signal("p_m"), 0.0, "the third packet found 2, which is not more than 2");
    lab.arrive();
    assert_eq!(lab.signal("p_m"), 0.02);
    assert_eq!(lab.dropped(), []);
}

#[test]
fn in_byte_mode_l_counts_bytes_and_small_packets_run_a_small_risk() {
    let mut lab = Story::new(10, &certain(&[("mode", "bytes"), ("threshold", "1500B")]));
    lab.arrive_as(1500, Ecn::Ect0);
    lab.arrive_as(100, Ecn::Ect0);
    assert_eq!(lab.signal("p_m"), 0.0);
    // Now 1600 bytes are queued: p_m becomes 1, and a packet of the mean length is marked.
    assert_eq!(lab.arrive_as(1000, Ecn::Ect0), Fate::Marked);
    // One of 100 bytes is marked with probability 0.1: 1000 tries, σ = √(1000·0.1·0.9) = 9.5.
    let mut marks = 0;
    for _ in 0..1000 {
        marks += u32::from(lab.arrive_as(100, Ecn::Ect0) == Fate::Marked);
        lab.depart();
    }
    assert!((100 - 50..100 + 50).contains(&marks), "{marks}");
}

#[test]
fn the_victim_of_a_full_buffer_is_chosen_by_drop() {
    for (drop, gone) in [("tail", [3, 4]), ("front", [0, 1])] {
        let mut lab = full(3, &[("drop", drop)]);
        (0..2).for_each(|_| _ = lab.arrive());
        assert_eq!(lab.dropped(), gone);
        assert_eq!(lab.signal("p_m"), 0.02, "either is a loss");
    }
}

#[test]
fn a_signal_at_the_head_spares_the_arriving_packet() {
    let mut lab = Story::new(2, &certain(&[("signal", "head")]));
    lab.arrive_as(1000, Ecn::NotEct);
    lab.arrive();
    lab.arrive(); // lost: p_m = 1
    assert_eq!(lab.depart(), Some(0));
    lab.arrive_as(1000, Ecn::NotEct); // marks packet 1 at the head
    assert_eq!((lab.dropped(), lab.queue.counters().all_marked().packets), ([2].into(), 1));
}

/// δ2 = 0.1, freeze 10 ms. Idle from 100 ms: decrements at 100, 110, 120 … ms.
#[test]
fn a_long_idle_period_decays_by_the_clock_when_asked_to() {
    let mut lab = full(
        1,
        &[
            ("increment", "1"),
            ("decrement", "0.1"),
            ("idle_decay", "continuous"),
            ("freeze_time", "10ms"),
        ],
    );
    lab.arrive(); // lost: p_m = 1
    lab.depart();
    lab.wait_ms(100);
    lab.depart();
    let mut seen = Vec::new();
    for _ in 0..3 {
        lab.now += Duration::from_nanos(1);
        seen.push(lab.signal("p_m"));
        lab.now += Duration::from_nanos(9_999_999);
        seen.push(lab.signal("p_m")); // the end of the freeze itself is not yet more than it
    }
    for (seen, expected) in seen.iter().zip([0.9, 0.9, 0.8, 0.8, 0.7, 0.7]) {
        assert!((seen - expected).abs() < 1e-12, "{seen:?}");
    }
    // The signal is a pure look: what an arrival finds is the same, and it ends the decay.
    lab.wait_ms(15); // 145 ms: 0.9 at 100, then 110, 120, 130, 140
    assert!((lab.signal("p_m") - 0.5).abs() < 1e-12);
    while lab.arrive_as(100, Ecn::NotEct) != Fate::Queued {}
    lab.wait_ms(10_000);
    assert!((lab.signal("p_m") - 0.5).abs() < 1e-12, "a packet waits: the link is not idle");
}

#[test]
fn asking_again_while_idle_changes_nothing_under_continuous_decay() {
    let settings = [("idle_decay", "continuous"), ("increment", "1"), ("decrement", "0.01")];
    let (mut asked, mut left_alone) = (full(1, &settings), full(1, &settings));
    for lab in [&mut asked, &mut left_alone] {
        lab.arrive();
        lab.depart();
        lab.depart();
    }
    for _ in 0..40 {
        asked.wait_ms(37);
        left_alone.wait_ms(37);
        asked.depart();
        assert_eq!(asked.signal("p_m"), left_alone.signal("p_m"));
    }
    assert!(asked.signal("p_m") < 0.9);
}

/// 1000 freezes of (1 ± 0.5) · 10 ms, looked at every 0.1 ms.
#[test]
fn jitter_spreads_the_freezes_evenly() {
    let mut lab =
        full(1, &[("freeze_time", "10ms"), ("freeze_jitter", "0.5"), ("increment", "0.0001")]);
    let (mut gaps, mut since, mut p) = (Vec::new(), 0u32, 0.0);
    while gaps.len() < 1000 {
        lab.now += Duration::from_micros(100);
        since += 1;
        lab.arrive();
        if lab.signal("p_m") > p {
            p = lab.signal("p_m");
            gaps.push(since);
            since = 0;
        }
    }
    let gaps = &gaps[1..];
    let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
    // Uniform on 50 … 150 ticks: σ of the mean = 28.9/√1000 = 0.9; rounding up adds ½.
    assert!((mean - 100.5).abs() < 5.0, "{mean}");
    assert!(gaps.iter().all(|g| (50..=151).contains(g)));
    assert!(gaps.iter().any(|&g| g < 60) && gaps.iter().any(|&g| g > 140));
}

/// Every packet waits 30 ms, and the weight is 1: the freeze is 10 + 30 ms.
#[test]
fn the_automatic_freeze_adds_the_queueing_delay() {
    let mut lab = full(
        1,
        &[("freeze", "auto"), ("freeze_time", "10ms"), ("delay_weight", "1"), ("ecn", "true")],
    );
    lab.wait_ms(30);
    lab.depart();
    lab.arrive_as(1000, Ecn::Ect0);
    lab.arrive(); // lost
    assert_eq!(lab.signal("p_m"), 0.02);
    lab.wait_ms(40);
    lab.arrive();
    assert_eq!(lab.signal("p_m"), 0.02, "40 ms are not more than 40 ms");
    lab.wait_ms(1);
    lab.arrive();
    assert_eq!(lab.signal("p_m"), 0.04);
}

#[test]
fn marks_raise_p_only_in_the_legacy_mode() {
    for (legacy, expected) in [("false", 0.5), ("true", 1.0)] {
        let mut lab =
            full(1, &[("increment", "0.5"), ("legacy_mark_increment", legacy), ("mode", "bytes")]);
        lab.arrive();
        lab.depart();
        lab.wait_ms(101);
        // Twice the mean length: signalled with probability 0.5 · 2 = 1.
        assert_eq!(lab.arrive_as(2000, Ecn::Ect0), Fate::Marked);
        assert_eq!(lab.signal("p_m"), expected);
    }
}

/// BLUE report App. C: `inc_marking_prob`, `dec_marking_prob`, `enque`.
#[test]
fn in_the_reports_class_p_moves_at_other_times() {
    let near = |lab: &Story, p: f64| assert!((lab.signal("p_m") - p).abs() < 1e-12, "{p}");
    // Three idle events, and ten losses, each at one instant: L holds none or all that is queued.
    for (updates, l, idle, lost) in
        [("true", "0p", 0.7, 1e-4), ("true", "1p", 0.7, 1e-5), ("false", "1p", 0.9, 1e-5)]
    {
        let settings = [("legacy_updates", updates), ("threshold", l), ("decrement", "0.1")];
        let mut lab = Story::new(1, &[&settings[..], &[("initial", "1")]].concat());
        (0..3).for_each(|_| _ = lab.depart());
        near(&lab, idle);
        let mut lab = full(1, &[&settings[..], &[("increment", "0.00001")]].concat());
        (0..10).for_each(|_| _ = lab.arrive());
        near(&lab, lost);
    }
    // Twice the mean length: signalled with probability 0.5 · 2 = 1, and there is no room.
    for (updates, marks, p) in
        [("true", "false", 0.5), ("true", "true", 0.6), ("false", "false", 0.6)]
    {
        let settings = [("legacy_updates", updates), ("legacy_mark_increment", marks)];
        let more = [("mode", "bytes"), ("initial", "0.5"), ("increment", "0.1")];
        let mut lab = Story::new(1, &[&settings[..], &more].concat());
        lab.arrive();
        assert_eq!(lab.arrive_as(2000, Ecn::Ect0), Fate::Dropped(Cause::Overflow));
        near(&lab, p);
    }
}

#[test]
fn steps_of_each_update_mode() {
    let c = |update| {
        config::<BlueConfig>(&[
            ("update", update),
            ("increment", "0.02"),
            ("decrement", "0.002"),
            ("increase_factor", "1.25"),
            ("decrease_factor", "0.975"),
        ])
    };
    for (update, p, up, down) in [
        ("additive", 0.4, 0.42, 0.398),
        ("additive", 0.001, 0.021, 0.0),
        ("additive", 0.99, 1.0, 0.988),
        ("multiplicative", 0.4, 0.5, 0.39), // 0.4·1.25, 0.4·0.975
        ("multiplicative", 0.0, 0.02, 0.0), // leaves zero by δ1
        ("multiplicative", 0.002, 0.02, 0.0), // 0.00195 < δ2
        ("multiplicative", 0.9, 1.0, 0.8775),
        ("mixed", 0.4, 0.52, 0.388), // 0.5 + 0.02, 0.39 − 0.002
        ("mixed", 0.0, 0.02, 0.0),
    ] {
        let c = c(update);
        assert!((raised(p, &c) - up).abs() < 1e-12, "{update} {p} up");
        assert!((lowered(p, &c) - down).abs() < 1e-12, "{update} {p} down");
    }
}

#[test]
fn many_decrements_at_once_equal_as_many_single_ones() {
    for update in ["additive", "multiplicative", "mixed"] {
        for factor in ["0.975", "1", "0"] {
            let c = config::<BlueConfig>(&[("update", update), ("decrease_factor", factor)]);
            let mut p = 0.9;
            for n in 0..600 {
                let closed = lowered_often(0.9, n, &c);
                assert!((closed - p).abs() < 1e-9, "{update} {factor} {n}: {closed} {p}");
                p = lowered(p, &c);
            }
        }
        let c = config::<BlueConfig>(&[("update", update)]);
        assert_eq!(lowered_often(1.0, u64::MAX, &c), 0.0, "{update}");
    }
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    for (settings, key) in [
        (&[("threshold", "1.5bdp")][..], "threshold"),
        (&[("idle_decay", "continuous"), ("freeze_time", "0s")], "freeze_time"),
        (&[("signal", "head"), ("ecn", "false")], "signal"),
    ] {
        assert_eq!(refused::<Blue>(settings).key, key);
    }
}
