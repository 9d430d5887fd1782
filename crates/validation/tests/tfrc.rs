//! TFRC against its equation and an ideal model, and against TCP.

use std::collections::VecDeque;

use aqm::{Rng, response};
use sim::{Outcome, Run, Scenario};
use validation::lossy;

fn run(text: &str) -> Outcome {
    Scenario::from_toml(text, "tfrc")
        .and_then(|scenario| Run::new(scenario, text, "tfrc"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// Mean goodput of the flows of a group, packets of 1000 bytes per second.
fn packets(outcome: &Outcome, rows: std::ops::Range<usize>) -> f64 {
    let n = rows.len() as f64;
    let goodput = |row| outcome.flows.number("goodput_bps", row).unwrap_or(f64::NAN) / 8000.0;
    rows.map(goodput).sum::<f64>() / n
}

/// The packets between loss events, the newest and not yet closed one first, each with its discount.
struct Intervals(VecDeque<(f64, f64)>);

impl Intervals {
    const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

    /// The weighted mean of eight intervals from number `first` on, where the open one's share of the
    /// discounts is `discount`.
    fn mean(&self, first: usize, discount: f64) -> f64 {
        let (sum, weights) = self.0.iter().enumerate().skip(first).zip(Self::WEIGHTS).fold(
            (0.0, 0.0),
            |(sum, weights), ((k, (packets, old)), weight)| {
                let weight = weight * old * if k > 0 { discount } else { 1.0 };
                (sum + packets * weight, weights + weight)
            },
        );
        sum / weights
    }

    fn discount(&self, discounting: bool) -> f64 {
        let share = 2.0 * self.mean(1, 1.0) / self.0[0].0;
        if discounting { share.clamp(0.25, 1.0) } else { 1.0 }
    }
}

/// What an ideal TFRC sends, packets per second: each packet is lost with probability `p`, the round
/// trip of `rtt` s is constant, a loss is known after three more packets, and what the receiver tells
/// once a round trip and at each loss event is the rate a round trip later. There is no other limit.
///
/// It lies below the equation at the mean interval between loss events: in an interval the sender is
/// slow, all its packets take long; what it sends is the harmonic mean of its rates over packets.
fn ideal(p: f64, rtt: f64, discounting: bool) -> f64 {
    const PACKETS: u32 = 400_000;
    let mut rng = Rng::new(7, 0);
    let mut intervals = Intervals(VecDeque::from([(1.0 / p, 1.0); 9]));
    let mut rate = response::tfrc(p, rtt);
    let (mut now, mut event_at, mut told_at) = (0.0, f64::NEG_INFINITY, 0.0);
    // Losses: packets of this interval before it, its time, packets that came after it.
    let mut losses: Vec<(f64, f64, u32)> = Vec::new();
    let mut told: VecDeque<(f64, f64)> = VecDeque::new();
    for _ in 0..PACKETS {
        now += 1.0 / rate;
        while told.front().is_some_and(|(at, _)| *at <= now) {
            rate = told.pop_front().map_or(rate, |(_, next)| next);
        }
        let before = intervals.0[0].0;
        intervals.0[0].0 += 1.0;
        if rng.chance(p) {
            losses.push((before, now, 0));
            continue;
        }
        let mut event = false;
        losses.iter_mut().for_each(|loss| loss.2 += 1);
        while let Some((length, at, _)) = losses.first().copied().filter(|loss| loss.2 >= 3) {
            losses.remove(0);
            if at > event_at + rtt {
                (event, event_at) = (true, at);
                let since = intervals.0[0].0;
                intervals.0[0].0 = length;
                let discount = intervals.discount(discounting);
                intervals.0.iter_mut().skip(1).for_each(|each| each.1 *= discount);
                intervals.0.push_front((since - length, 1.0));
                intervals.0.truncate(9);
                losses.iter_mut().for_each(|loss| loss.0 -= length);
            }
        }
        if event || now >= told_at + rtt {
            told_at = now;
            let discount = intervals.discount(discounting);
            let mean = intervals.mean(0, discount).max(intervals.mean(1, 1.0));
            told.push_back((now + rtt, response::tfrc((1.0 / mean).min(1.0), rtt)));
        }
    }
    f64::from(PACKETS) / now
}

#[test]
fn the_rate_under_independent_loss_is_that_of_the_ideal() {
    for discounting in [false, true] {
        for p in [0.001, 0.003, 0.01, 0.03, 0.1] {
            let outcome = lossy(
                "320s",
                &format!("p = {p}"),
                &format!("flows = 20\ntransport = \"tfrc\"\ndiscounting = {discounting}"),
            )
            .unwrap();
            let measured = packets(&outcome, 0..20) / (1.0 - p);
            let expected = ideal(p, 0.1, discounting);
            assert!((measured / expected - 1.0).abs() < 0.03, "p = {p}: {measured} for {expected}");
            let srtt = outcome.flows.number("srtt_s", 0).unwrap();
            assert!((srtt - 0.1).abs() < 1e-3, "{srtt}");
        }
    }
}
/// A lone flow finds the link's rate and does not lose much of it; after its
/// end nothing more is sent.
#[test]
fn a_lone_flow_fills_its_link_and_stops() {
    let outcome = run(r#"
        duration = "60s"
        [network]
        preset = "dumbbell"
        [[queue]]
        aqm = "red"
        buffer = "50p"
        params = { preset = "feng" }
        [[traffic]]
        transport = "tfrc"
        stop = "40s"
        [measure]
        interval = "10s"
        "#);
    let departures: Vec<f64> =
        (0..6).map(|row| outcome.series.number("departures", row).unwrap()).collect();
    // 10 s of 10 Mb/s are 12 500 packets.
    assert!(departures[1..4].iter().all(|n| *n > 0.85 * 12_500.0), "{departures:?}");
    assert!(departures[4] < 100.0 && departures[5] == 0.0, "{departures:?}");
}
