//! The RFC's rules, one by one.

use std::collections::BTreeSet;

use aqm::Rng;

use super::delay::{Delay, TARGETS};
use super::rate::MediaRate;
use super::receiver::Receiver;
use super::sender::Sender;
use super::{Options, Report, TOLD};

const MS: u64 = 1_000_000;
const O: Options = Options {
    ecn: false,
    rates: [150_000.0, 1_500_000.0, 300_000.0],
    frame: 40 * MS,
    pause: [0; 2],
    compete: true,
};

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{got} for {expected}");
}

/// The receiver remembers 32 numbers in a word; a naive one remembers all of them.
#[test]
fn a_report_says_what_a_list_of_all_numbers_says() {
    let mut rng = Rng::new(7, 0);
    for round in 0..200 {
        let (mut receiver, mut all, mut marks) = (Receiver::default(), BTreeSet::new(), 0_u16);
        let (loss, step) = (rng.uniform(), 1.0 + 40.0 * rng.uniform());
        let mut number = 0_u32;
        for _ in 0..100 {
            // Some come late.
            let late = (8.0 * rng.uniform() * rng.uniform()) as u32;
            number += (step * rng.uniform() * rng.uniform()) as u32;
            if rng.uniform() < loss || !all.insert(number.saturating_sub(late)) {
                continue;
            }
            let marked = rng.uniform() < 0.3;
            marks = marks.wrapping_add(u16::from(marked));
            receiver.on_data(u64::from(number) * MS, number.saturating_sub(late), marked);
            let highest = *all.last().unwrap();
            let missing = (0..TOLD.min(highest))
                .filter(|k| !all.contains(&(highest - 1 - k)))
                .fold(0, |bits, k| bits | 1 << k);
            let mut copy = receiver.clone();
            let (report, _) = copy.report(u64::from(number) * MS, 1200);
            let report = report.map(|r| (r.highest, r.missing, r.marks));
            assert_eq!(report, Some((highest, missing, marks)), "round {round}");
        }
    }
}

/// §4.2.2: every 400 ms at 25 kb/s and below, every 20 ms from 500 kb/s on.
#[test]
fn reports_come_the_more_often_the_more_there_is() {
    for (packets, expected) in [(1_u32, 400), (5, 100), (10, 50), (25, 20), (200, 20)] {
        let mut receiver = Receiver::default();
        receiver.on_data(0, 0, false);
        receiver.report(0, 1250);
        for number in 1..=packets {
            receiver.on_data(500 * MS, number, false);
        }
        // 20 kb/s for each packet in half a second.
        let (_, next) = receiver.report(500 * MS, 1250);
        assert_eq!(next / MS - 500, expected, "{packets} packets");
        assert_eq!(receiver.report(next, 1250), (None, u64::MAX), "nothing new");
    }
}

/// A delay that rises by the same each time has R(1)/R(0) near 1: the values are −9.5 … 9.5, their
/// squares sum to 665, the products of neighbours to 565.25; the average fraction comes on top.
#[test]
fn a_rising_delay_is_a_trend() {
    let mut delay = Delay::default();
    delay.measure(0, 100 * MS);
    for k in 1..=20_u64 {
        delay.measure(50 * k * MS, (100 + 5 * k) * MS);
    }
    let mut average = 0.0;
    (1..=20).for_each(|k| average += 0.1 * (0.05 * f64::from(k) - average));
    near(delay.trend, average * 565.25 / 665.0);
    near(delay.trend_memory, delay.trend);
    let mut steady = Delay::default();
    (0..40).for_each(|k| steady.measure(50 * k * MS, 100 * MS));
    assert_eq!((steady.now, steady.trend), (0.0, 0.0));
}

/// The base is the least of ten minutes: a path that gets longer is a queue until then.
#[test]
fn an_old_base_is_forgotten() {
    let mut delay = Delay::default();
    delay.measure(0, 20 * MS);
    for minute in 1..=10_u64 {
        near(delay.now, if minute == 1 { 0.0 } else { 0.030 });
        delay.measure(minute * 60_000 * MS, 50 * MS);
    }
    near(delay.now, 0.0);
}

/// §4.1.2.3: a steady delay of 0.3 s is others' doing, and becomes the target; losses add half of it,
/// up to the upper end; an empty queue brings the lower end back.
#[test]
fn the_target_makes_room_beside_others() {
    let mut delay = Delay::default();
    let settle = |delay: &mut Delay, now: f64| {
        delay.now = now;
        (0..300).for_each(|_| delay.adjust_target());
    };
    settle(&mut delay, 0.3);
    near(delay.target, 0.3);
    (0..10).for_each(|_| delay.round(true));
    settle(&mut delay, 0.2);
    near(delay.target, 0.3);
    settle(&mut delay, 0.3);
    near(delay.target, TARGETS[1]);
    settle(&mut delay, 0.0);
    near(delay.target, TARGETS[0]);
}

/// A sender with `packets` of 1000 bytes under way, sent at once, and a window of twenty.
fn sender(packets: u32) -> Sender {
    let mut sender = Sender::new(0, 1000, &O);
    sender.cwnd = 20_000.0;
    sender.queue.extend(vec![0; packets as usize]);
    for number in 0..packets {
        sender.paced_until = 0;
        assert_eq!(sender.send(0), Some((number, 0)));
    }
    sender
}

fn report(highest: u32, missing: u32, marks: u16) -> Report {
    Report { highest, arrived: 50 * MS, missing, marks }
}

/// §4.1.2.1: × 0.8 at losses, × 0.9 at marks, once a round trip of 100 ms; the rate × 0.9.
#[test]
fn the_window_gives_way_once_a_round_trip() {
    let mut sender = sender(19);
    sender.on_report(100 * MS, report(3, 0b10, 0), &O);
    near(sender.cwnd, 16_000.0);
    near(sender.rate.target, 270_000.0);
    // The same loss again, and another one in the same round trip.
    sender.on_report(110 * MS, report(5, 0b1_1001, 0), &O);
    assert!(sender.cwnd >= 16_000.0, "{}", sender.cwnd);
    let before = sender.cwnd;
    sender.on_report(220 * MS, report(9, 0, 1), &O);
    near(sender.cwnd, 0.9 * before);
    assert!(!sender.rising);
}

/// §4.1.2.2: fast increase adds what is acknowledged while the window is used; else LEDBAT's rule.
#[test]
fn the_window_grows_by_what_is_acknowledged() {
    let mut fast = sender(19);
    fast.on_report(100 * MS, report(3, 0, 0), &O);
    near(fast.cwnd, 24_000.0);
    let mut idle = sender(5);
    idle.on_report(100 * MS, report(3, 0, 0), &O);
    near(idle.cwnd, 20_000.0);
    let mut slow = sender(19);
    slow.rising = false;
    slow.on_report(100 * MS, report(3, 0, 0), &O);
    // No queueing delay: off target by 1.
    near(slow.cwnd, 20_000.0 + 4000.0 * 1000.0 / 20_000.0);
}

/// §4.1.2.5 and 6: one packet more below the target; apart by the window and the round trip.
#[test]
fn packets_are_paced_within_the_window() {
    let mut sender = sender(20);
    sender.queue.push_back(0);
    assert!(sender.has_room(), "a packet more");
    sender.delay.now = 0.2;
    assert!(!sender.has_room());
    sender.delay.now = 0.0;
    (sender.srtt, sender.paced_until) = (0.1, 0);
    assert!(sender.send(5 * MS).is_some());
    // 20 000 bytes in 100 ms: one each 5 ms.
    assert_eq!(sender.paced_until, 10 * MS);
}

/// Nothing is heard: all is given up, and a late report of it says nothing.
#[test]
fn silence_ends_a_stall() {
    let mut sender = sender(20);
    assert_eq!(sender.deadline, 1000 * MS);
    sender.on_silence(1000 * MS, &O);
    near(sender.cwnd, 16_000.0);
    assert!(sender.has_room() && sender.deadline == u64::MAX);
    sender.on_report(1100 * MS, report(19, 0, 0), &O);
    assert_eq!((sender.srtt, sender.silences), (0.0, 1));
    sender.queue.push_back(0);
    assert_eq!(sender.send(1200 * MS), Some((20, 0)));
}

/// §4.1.3: half of the rate a second, at most 200 kb/s a second, in fast increase; less near the rate
/// at which congestion was seen; 5 % less each time while more than 20 ms wait at the sender.
#[test]
fn the_rate_follows_its_steps() {
    let delay = Delay::default();
    let adjust = |rate: &mut MediaRate, now: u64, queued: f64, rising: bool| {
        (rate.encoded, rate.sent) = (0.2 * rate.target, 0.2 * rate.target);
        rate.adjust(now * MS, queued, rising, &delay, &O);
    };
    let mut rate = MediaRate::new(0, &O);
    adjust(&mut rate, 199, 0.0, true);
    near(rate.target, 300_000.0);
    adjust(&mut rate, 200, 0.0, true);
    near(rate.target, 330_000.0);
    for k in 2..=4 {
        adjust(&mut rate, 200 * k, 0.0, true);
    }
    near(rate.target, 330_000.0 * 1.1 * 1.1 + 39_930.0);
    adjust(&mut rate, 1000, 0.0, true);
    near(rate.target, 439_230.0 + 40_000.0);
    rate.congestion(0.9, &O);
    near(rate.target, 0.9 * 479_230.0);
    // (4 · 0.1)² = 0.16, and a fifth at least.
    adjust(&mut rate, 1200, 0.0, true);
    near(rate.target, 431_307.0 + 8000.0);
    // Otherwise by a fifth of what is sent, which is more than the ramp.
    adjust(&mut rate, 1400, 0.0, false);
    near(rate.target, 439_307.0 + 40_000.0);
    adjust(&mut rate, 1600, 0.03 * 479_307.0, false);
    near(rate.target, 0.95 * 479_307.0);
}
