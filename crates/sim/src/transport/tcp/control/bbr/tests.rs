//! The parts that both versions estimate by, by the numbers of the drafts.

use super::*;
use aqm::Rng;

#[test]
fn the_maximum_filter_is_that_of_the_last_slots() {
    let mut rng = Rng::new(7, 0);
    for length in [1, 2, 10] {
        let (mut filter, mut all, mut slot) = (MaxFilter::default(), Vec::new(), 0);
        for _ in 0..2000 {
            slot += rng.below(3) as u32;
            let value = rng.uniform();
            filter.update(slot, value, length);
            all.push((slot, value));
            let naive = all.iter().filter(|(at, _)| slot - at < length).map(|&(_, value)| value);
            assert_eq!(filter.max(), naive.fold(0.0, f64::max));
        }
    }
}

/// Three rounds with less than a quarter more.
#[test]
fn the_pipe_is_full_after_three_rounds_without_growth() {
    let mut full = FullPipe::default();
    for rate in [1.0, 2.0, 4.0, 5.0, 6.0, 6.1] {
        full.update(rate);
        assert!(!full.now, "{rate}");
    }
    full.update(6.2);
    assert!(full.now && full.reached, "6, 6.1 and 6.2 are less than 1.25 times 5");
    full.restart(6.2);
    assert!(!full.now && full.reached, "it was full once");
}

#[test]
fn a_round_ends_with_what_was_sent_after_its_begin() {
    let mut rounds = Rounds::default();
    let mut acked = |prior_delivered, total| {
        rounds.update(&Sample { prior_delivered, total, ..Sample::default() });
        (rounds.started, rounds.count)
    };
    assert_eq!(acked(0, 1), (true, 1));
    assert_eq!(acked(0, 2), (false, 1));
    assert_eq!(acked(1, 11), (true, 2), "sent when one had been delivered");
    assert_eq!(acked(10, 12), (false, 2));
    assert_eq!(acked(11, 13), (true, 3));
}

/// 200 ms, and a round trip, from when little is under way.
#[test]
fn the_stay_with_little_under_way_has_its_time() {
    let (mut stay, mut rounds) = (ProbeRtt::default(), Rounds::default());
    let mut at = |ms: u64, in_flight, prior_delivered, total| {
        let now = ms * 1_000_000;
        let sample = Sample { now, in_flight, prior_delivered, total, ..Sample::default() };
        rounds.update(&sample);
        stay.is_over(&sample, &mut rounds, 4.0)
    };
    assert!(!at(0, 9, 0, 10));
    assert!(!at(10, 4, 1, 20), "it begins");
    assert!(!at(100, 4, 21, 24), "a round is over");
    assert!(!at(210, 4, 22, 28), "not yet more than 200 ms");
    assert!(at(211, 4, 23, 30));
}

/// 10 packets a ms expected: 25 at once are 15 ahead, and a slow time begins anew.
#[test]
fn acknowledgements_in_bursts_run_ahead() {
    let mut ahead = Aggregation::default();
    let mut acked = |ms: u64, newly, round| {
        let sample = Sample { now: ms * 1_000_000, newly, ..Sample::default() };
        ahead.update(&sample, 100.0, 1e-5, round, 10);
        ahead.most.max()
    };
    assert_eq!(acked(1, 25, 1), 25.0, "the interval begins with it");
    assert!((acked(2, 25, 2) - 40.0).abs() < 1e-9, "50 in the time of 10");
    assert!((acked(100, 1, 3) - 40.0).abs() < 1e-9, "of the last ten rounds");
    assert_eq!(acked(200, 1, 12), 1.0, "forgotten");
}

/// A burst, a minute at the estimated rate, and a pause. The two packets that come 10 ms behind it run ahead by no more
/// than themselves. By the draft's words, which set only the begin of the interval, they run ahead by all that came in
/// that minute, bounded by the window.
#[test]
fn what_came_before_a_pause_does_not_run_ahead() {
    let extra = |restart: fn(&mut Aggregation, u64)| {
        let mut ahead = Aggregation::default();
        let acked = |ahead: &mut Aggregation, ms: u64, newly, round| {
            let sample = Sample { now: ms * 1_000_000, newly, ..Sample::default() };
            ahead.update(&sample, 200.0, 1e-5, round, 10);
        };
        acked(&mut ahead, 0, 250, 0);
        (1..=6000).for_each(|n| acked(&mut ahead, 10 * n, 100, n as u32));
        restart(&mut ahead, 70_000_000_000);
        (0..10).for_each(|n| acked(&mut ahead, 70_010 + n, 2, 7000 + n as u32));
        ahead.most.max()
    };
    assert_eq!(extra(Aggregation::restart), 2.0);
    assert_eq!(extra(|ahead, now| ahead.since = now), 200.0);
}

#[test]
fn the_rate_only_grows_before_the_pipe_was_full() {
    let mut pacing = Pacing::new(1500.0);
    assert_eq!(pacing.gap(28.0, 0), 35_714, "28 packets a ms before there is a round trip");
    pacing.set(2e-5, false);
    pacing.set(1e-5, false);
    assert_eq!(pacing.gap(28.0, 40_000_000), 50_000);
    pacing.set(1e-5, true);
    assert_eq!(pacing.gap(28.0, 40_000_000), 100_000);
    pacing.set(1e-12, true);
    assert_eq!(pacing.gap(28.0, 40_000_000), 40_000_000, "a packet a round trip at least");
    assert_eq!(pacing.burst(2.0), 2.0);
    pacing.set(1e-2, true);
    for bytes in [500.0, 1500.0, 9000.0] {
        let burst = Pacing { packet: bytes, ..pacing }.burst(2.0);
        assert!(
            (burst * bytes - 65_536.0).abs() < 1e-6,
            "64 KB in packets of {bytes} bytes: {burst}"
        );
    }
}
