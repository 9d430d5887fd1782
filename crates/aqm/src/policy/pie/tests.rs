//! PIE by hand, and its stories.

use super::*;
use crate::context::Backlog;
use crate::packet::Ecn;
use crate::policy::lab::{Fate, Lab, config, env};
use std::vec::Vec;

type Story = Lab<Pie>;

#[test]
fn steps_are_damped_as_in_the_table_of_the_rfc() {
    for (p, by) in [
        (0.0, 2048.0),
        (9e-7, 2048.0),
        (1e-6, 512.0),
        (1e-5, 128.0),
        (1e-4, 32.0),
        (1e-3, 8.0),
        (0.01, 2.0),
        (0.0999, 2.0),
        (0.1, 1.0),
        (1.0, 1.0),
    ] {
        assert_eq!(damping(p), by, "{p}");
    }
}

#[test]
fn p_by_hand() {
    let (rfc, free) = (PieConfig::default(), PieConfig { cap: false, ..PieConfig::default() });
    let linux =
        PieConfig { steep_above: Duration::from_millis(250), p_max: 256.0, ..PieConfig::default() };
    let past: PieConfig = config(LINUX);
    let steep = PieConfig { steep_above: Duration::from_millis(250), ..PieConfig::default() };
    for (c, p, delay, old, expected) in [
        // 0.125·0.015 + 1.25·0.015 = 0.020625 at 30 ms after 15 ms.
        (&rfc, 0.0, 30, 15, 0.020_625 / 2048.0),
        (&rfc, 0.05, 30, 15, 0.05 + 0.020_625 / 2.0),
        (&rfc, 0.1, 30, 15, 0.12), // capped
        (&free, 0.1, 30, 15, 0.120_625),
        // 0.125·(−0.01) + 1.25·(−0.02) = −0.02625 at 5 ms after 25 ms.
        (&rfc, 0.5, 5, 25, 0.5 - 0.026_25),
        (&rfc, 0.001, 5, 25, 0.0), // 0.001 − 0.02625/8 < 0
        // Empty twice: (0.5 − 0.125·0.015)·0.98.
        (&rfc, 0.5, 0, 0, 0.498_125 * 0.98),
        (&free, 0.99, 500, 0, 1.0),
        (&linux, 1.0, 251, 251, 1.04),
        (&linux, 1.9, 5, 845, 1.9 - 1.051_25),
        (&linux, 255.97, 251, 251, 256.0),
        (&past, 255.95, 251, 251, 255.99),
        (&past, 255.97, 251, 251, 1.0), // eight bits of room above 1
        (&steep, 0.3, 250, 250, 0.3 + 0.02), // capped
        (&steep, 0.3, 251, 251, 0.3 + 0.02 + 0.02),
        (&steep, 0.0, 251, 251, 0.0295 / 2048.0 + 0.02),
        (&rfc, 0.3, 15, 15, 0.3), // at the target and steady
    ] {
        let [delay, old] = [delay, old].map(Duration::from_millis);
        let got = updated(p, delay, old, true, c);
        assert!((got - expected).abs() < 1e-12, "{p} {delay} {old}: {got}");
    }
}

/// A queue of `packets` that stands for `ms` milliseconds on a link of a packet a millisecond.
/// Fates of the arrivals.
fn stand(lab: &mut Story, packets: u32, ms: u64, ecn: Ecn) -> Vec<Fate> {
    let mut fates = Vec::new();
    for _ in 0..ms {
        while lab.backlog().packets < packets {
            fates.push(lab.arrive_as(1000, ecn));
        }
        lab.wait_ms(1);
        lab.tick();
        lab.depart();
    }
    fates
}

/// A queue of 60 ms from the start. The allowance of 150 ms ends with the tenth update.
#[test]
fn a_burst_passes_for_as_long_as_the_allowance() {
    let mut lab = Story::new(1000, &[]);
    assert!(stand(&mut lab, 60, 149, Ecn::NotEct).iter().all(|f| *f == Fate::Queued));
    assert!(lab.signal("burst") > 0.0);
    stand(&mut lab, 60, 2, Ecn::NotEct);
    assert_eq!(lab.signal("burst"), 0.0);
}

/// Before the first update nothing is known: neither a delay nor a probability.
#[test]
fn the_first_update_may_come_later() {
    let mut lab = Story::new(1000, &[("first_update", "500ms")]);
    stand(&mut lab, 60, 499, Ecn::NotEct);
    assert_eq!([lab.signal("delay"), lab.signal("p_d")], [0.0; 2]);
    stand(&mut lab, 60, 2, Ecn::NotEct);
    assert_eq!(lab.signal("delay"), 0.06);
    stand(&mut lab, 60, 12, Ecn::NotEct);
    let first = lab.signal("p_d");
    stand(&mut lab, 60, 3, Ecn::NotEct);
    assert!(lab.signal("p_d") > first, "15 ms later comes the second");
}

/// In a steady queue of 60 ms p climbs by α·45 ms = 0.005625 an update, damped.
#[test]
fn p_climbs_while_the_delay_is_above_target_and_falls_when_the_queue_is_gone() {
    let mut lab = Story::new(1000, &[("ecn", "false")]);
    let fates = stand(&mut lab, 60, 3000, Ecn::Ect0);
    let p = lab.signal("p_d");
    assert!(p > 0.1, "{p}");
    assert!(fates.contains(&Fate::Dropped(Cause::Early)));
    while lab.depart().is_some() {}
    for _ in 0..2000 {
        lab.wait_ms(15);
        lab.tick();
    }
    assert_eq!(lab.signal("p_d"), 0.0);
    assert_eq!(lab.signal("burst"), 0.15, "calm: the allowance is back");
}

#[test]
fn above_the_threshold_marks_give_way_to_drops() {
    let mut lab = Story::new(1000, &[]);
    let early = stand(&mut lab, 60, 600, Ecn::Ect0);
    assert!(lab.signal("p_d") < 0.1);
    assert!(early.contains(&Fate::Marked) && !early.contains(&Fate::Dropped(Cause::Early)));
    stand(&mut lab, 60, 1000, Ecn::Ect0);
    assert!(lab.signal("p_d") > 0.1);
    let late = stand(&mut lab, 60, 1000, Ecn::Ect0);
    assert!(late.contains(&Fate::Dropped(Cause::Early)) && !late.contains(&Fate::Marked));
}

/// A queue of 60 ms until p is 0.15, then one of six packets, the first of which leaves after 4 ms:
/// by departures packets are spared at once, by updates only after the next.
#[test]
fn a_short_delay_spares_at_once_or_from_the_next_update_on() {
    let spared = |by| {
        let mut lab = Story::new(1000, &[("ecn", "false"), ("spared_by", by)]);
        while lab.signal("p_d") < 0.15 {
            stand(&mut lab, 60, 1, Ecn::Ect0);
        }
        while lab.backlog().packets > 6 {
            lab.depart();
        }
        lab.wait_ms(4);
        lab.depart();
        (0..200).all(|_| {
            let kept = lab.arrive() == Fate::Queued;
            lab.depart();
            kept
        })
    };
    assert!(spared("last-departure") && !spared("last-update"));
}

/// 100 departures are 99 times a millisecond apart; of the updates six were at 15 ms to 90.
#[test]
fn the_allowance_goes_by_updates_or_by_departures() {
    for (word, left) in [("updates", 0.06), ("departures", 0.051)] {
        let mut lab = Story::new(1000, &[("delay", "last-departure"), ("burst_runs", word)]);
        stand(&mut lab, 60, 100, Ecn::NotEct);
        assert!((lab.signal("burst") - left).abs() < 1e-9, "{word}: {}", lab.signal("burst"));
    }
}

/// Two packets wait on a slow link: the delay is far above target, and nothing is dropped.
#[test]
fn a_short_queue_is_spared() {
    let mut lab = Story::new(10, &[("ecn", "false")]);
    for _ in 0..1000 {
        while lab.backlog().packets < 3 {
            assert_eq!(lab.arrive(), Fate::Queued);
        }
        (0..7).for_each(|_| {
            lab.wait_ms(15);
            lab.tick();
        });
        lab.depart();
    }
    assert!(lab.signal("p_d") > 0.5);
}

/// A PIE whose p is `p` and whose delay is 60 ms, without an allowance.
fn pie_at(p: f64, settings: &[(&str, &str)]) -> (Pie, Env, Rng) {
    let (env, mut rng) = (Env { mean_packet: 1514, ..env(100) }, Rng::new(3, 0));
    let mut pie = Pie::new(&config(settings), &env, &mut rng).unwrap();
    (pie.p, pie.burst) = (p, Duration::ZERO);
    (pie.old, pie.sojourn) = (Duration::from_millis(60), Duration::from_millis(60));
    (pie, env, rng)
}

/// What becomes of a packet that finds `bytes`.
fn arrive((pie, env, rng): &mut (Pie, Env, Rng), meta: Meta, bytes: u64) -> Arrival {
    let backlog = Backlog { packets: 2, bytes };
    let q = View { backlog, limit: env.limit, ring: &[], head: 0 };
    pie.on_arrival(&meta, &q, &mut Cx { now: env.now, rng })
}

/// p = 1. Linux spares packets that find less than 3028 bytes, the RFC those that find two mean packets or
/// less: on a slow link that is a queue of two, for which p is as large as it may be.
#[test]
fn linux_drops_what_finds_two_packets() {
    let dropped = Arrival::Reject(Cause::Early);
    for (settings, bytes, fate) in [
        (&[][..], 3028, Arrival::Admit),
        (&[], 3029, dropped),
        (LINUX, 3027, Arrival::Admit),
        (LINUX, 3028, dropped),
    ] {
        let meta = Meta { len: 1514, ..Meta::default() };
        let got = arrive(&mut pie_at(1.0, settings), meta, bytes);
        assert_eq!(got, fate, "{settings:?} {bytes}");
    }
}

/// 8 Mbit/s: 16 384 bytes in packets of 1000 are 17 packets, 17 ms (the first starts the clock).
/// A queue of 32 packets then has an estimated delay of 32 000/16 384 · 17 ms = 33.2 ms.
#[test]
fn the_departure_rate_gives_the_delay_that_time_stamps_give() {
    let mut lab = Story::new(100, &[("delay", "departure-rate")]);
    stand(&mut lab, 33, 300, Ecn::Ect0);
    let delay = lab.signal("delay");
    assert!((delay - 0.0332).abs() < 0.0012, "{delay}");
    let mut lab = Story::new(100, &[]);
    stand(&mut lab, 33, 300, Ecn::Ect0);
    assert_eq!(lab.signal("delay"), 0.033);
}

#[test]
fn departure_times_are_smoothed() {
    let ms = Duration::from_millis;
    assert_eq!(smoothed(ms(0), ms(20), 16_384), ms(20));
    // Weight 16384/65536 = ¼.
    assert_eq!(smoothed(ms(20), ms(40), 16_384), ms(25));
    assert_eq!(smoothed(ms(20), ms(40), 1 << 20), ms(40));
}

/// What a PIE held at `p` says to 20 000 packets of `len` bytes that find 60 packets: the gaps
/// between signals.
fn gaps(p: f64, len: u32, settings: &[(&str, &str)]) -> Vec<u32> {
    let (env, mut rng) = (env(100), Rng::new(3, 0));
    let mut pie = Pie::new(&config(settings), &env, &mut rng).unwrap();
    (pie.p, pie.burst, pie.old) = (p, Duration::ZERO, Duration::from_millis(60));
    let backlog = Backlog { packets: 60, bytes: 60_000 };
    let q = View { backlog, limit: env.limit, ring: &[], head: 0 };
    let meta = Meta { len, ..Meta::default() };
    let (mut gaps, mut gap) = (Vec::new(), 0);
    for _ in 0..20_000 {
        gap += 1;
        let mut cx = Cx { now: env.now, rng: &mut rng };
        if pie.on_arrival(&meta, &q, &mut cx) != Arrival::Admit {
            gaps.push(core::mem::take(&mut gap));
        }
    }
    gaps
}

/// At p = 0.1 nine packets add up to 0.9, the first sum that is not below 0.85, and 85 to 8.5.
#[test]
fn derandomised_signals_keep_their_distance() {
    let spaced = gaps(0.1, 1000, &[("derandomise", "true")]);
    assert_eq!(spaced.iter().min(), Some(&9));
    assert!(spaced.iter().all(|g| *g <= 85));
    assert_eq!(gaps(0.1, 1000, &[]).iter().min(), Some(&1));
    let certain = gaps(1e-9, 1000, &[("derandomise", "true")]);
    assert!(certain.is_empty());
}

/// p = 0.05 and a sum of 8.5 with the next packet: it is marked. In Linux the sum stays, and so are all that
/// follow, until one that cannot be marked is dropped. A mark by the coin begins a new sum there, too.
#[test]
fn linux_marks_on_after_a_certain_mark() {
    let packet = |ecn| Meta { len: 1514, ecn, ..Meta::default() };
    for (settings, left) in [(&[("derandomise", "true")][..], 0.0), (LINUX, 8.5)] {
        let mut lab = pie_at(0.05, settings);
        lab.0.accumulated = 8.45;
        assert_eq!(arrive(&mut lab, packet(Ecn::Ect0), 9000), Arrival::Signal(Cause::Early));
        assert!((lab.0.accumulated - left).abs() < 1e-9, "{}", lab.0.accumulated);
    }
    let mut lab = pie_at(0.05, LINUX);
    lab.0.accumulated = 8.45;
    for _ in 0..10 {
        assert_eq!(arrive(&mut lab, packet(Ecn::Ect1), 9000), Arrival::Signal(Cause::Early));
    }
    assert_eq!(arrive(&mut lab, packet(Ecn::NotEct), 9000), Arrival::Signal(Cause::Early));
    assert_eq!(lab.0.accumulated, 0.0, "what cannot be marked is dropped");
    lab.0.accumulated = 0.9;
    while arrive(&mut lab, packet(Ecn::Ect0), 9000) == Arrival::Admit {}
    assert_eq!(lab.0.accumulated, 0.0, "by the coin");
}

/// What `derandomise` has added up does not outlive calm: the queue is as new then.
#[test]
fn calm_takes_back_what_was_added_up() {
    let (env, mut rng) = (env(100), Rng::new(3, 0));
    let settings = [("derandomise", "true")];
    let mut pie = Pie::new(&config(&settings), &env, &mut rng).unwrap();
    let q = View { backlog: Backlog::default(), limit: env.limit, ring: &[], head: 0 };
    for (p, left) in [(0.5, 0.8), (0.0, 0.0)] {
        (pie.p, pie.accumulated) = (p, 0.8);
        pie.on_timer(&q, &mut Cx { now: pie.next, rng: &mut rng });
        assert_eq!(pie.accumulated, left, "{p}");
    }
}

/// p = 0.2 for 1000 bytes: 0.1 for 500, 1 for 9000. σ of 2000 of 20 000: 42; the band is 5 σ.
#[test]
fn in_byte_mode_large_packets_run_a_larger_risk() {
    let signals = |len| gaps(0.2, len, &[("mode", "bytes")]).len();
    assert!((1790..2210).contains(&signals(500)), "{}", signals(500));
    assert_eq!(signals(9000), 20_000);
}

/// p = 0.2 for 1514 bytes in Linux, and for longer packets: 0.066 for 500, 1321 of 20 000. σ of 4000: 57, of
/// 1321: 35; the band is 5 σ.
#[test]
fn in_linux_s_byte_mode_none_runs_a_larger_risk_than_p() {
    let linux = ("full_length", LINUX.iter().find(|(name, _)| *name == "full_length").unwrap().1);
    let signals = |len| gaps(0.2, len, &[("mode", "bytes"), linux]).len();
    for (len, expected) in [(500, 1321_usize), (1514, 4000), (9000, 4000)] {
        assert!(signals(len).abs_diff(expected) < 285, "{len}: {}", signals(len));
    }
}
