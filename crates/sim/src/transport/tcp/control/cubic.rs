//! CUBIC (RFC 9438), with `HyStart`++ (RFC 9406).

mod linux;

use linux::Whole;

use super::{CongestionControl, Event, Growth, RoundTrip, SlowStart, Times};
use crate::transport::tcp::Options;

/// CUBIC's multiplicative decrease (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// CUBIC's C in packets per s³ (RFC 9438 §5.1).
const C: f64 = 0.4;
/// A packet a round trip on average, with [`BETA`] instead of a half (RFC 9438 §4.3).
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// No packet that is acknowledged opens the window by more: with it the target, 1.5 cwnd at most (§4.2), is reached
/// in a round trip. The RFC has that bound for the cubic function, Linux for Reno's share as well.
const MOST: f64 = 0.5;

/// CUBIC with fast convergence and `HyStart`++ (RFC 9438 §4.7, §4.10).
#[derive(Clone, Default, Debug)]
pub struct Cubic {
    start: HyStart,
    curve: Curve,
    /// As it was before the repair of losses that goes on or was the last.
    before: Curve,
    /// RFC 8312: Reno's share is never that of Reno.
    rfc8312: bool,
    /// In place of the curve, where packets are counted as in Linux.
    whole: Option<Whole>,
}

/// The window as a function of time (§4.1).
#[derive(Clone, Copy, Default, Debug)]
struct Curve {
    /// The window before the last reduction, less if that one came early (§4.7).
    w_max: f64,
    /// `cwnd` at the last reduction.
    prior: f64,
    /// Time in s from the epoch's start to `w_max`.
    k: f64,
    /// What Reno would have (§4.3).
    w_est: f64,
    /// When this stage of congestion avoidance began, ns; `None` until its first acknowledgement.
    epoch: Option<u64>,
    /// The last acknowledgement in congestion avoidance, ns.
    last: u64,
    /// The stage follows a timeout (§4.8).
    timed_out: bool,
}

impl Curve {
    /// Figure 1: `W_cubic(t)` in packets, t in s.
    fn window(&self, t: f64) -> f64 {
        let from_plateau = t - self.k;
        C * from_plateau * from_plateau * from_plateau + self.w_max
    }

    fn begin(&mut self, cwnd: f64, now: u64) -> u64 {
        if std::mem::take(&mut self.timed_out) || self.w_max < cwnd {
            // §4.8, and the stage that a slow start without a loss led to: K = 0.
            (self.w_max, self.k) = (cwnd, 0.0);
        } else {
            self.k = libm::cbrt((self.w_max - cwnd) / C); // Figure 2
        }
        self.w_est = cwnd;
        self.epoch = Some(now);
        now
    }
}

impl Cubic {
    fn reduce(&mut self, window: f64) -> f64 {
        self.start.done = true;
        if let Some(whole) = &mut self.whole {
            return whole.reduce(window);
        }
        // §4.7: who could not get back to where it was leaves room to newcomers.
        let curve = &mut self.curve;
        curve.w_max = if window < curve.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        curve.prior = window;
        curve.epoch = None;
        // 0.7 of 90 packets are 63, and not a bit less, as 0.7 · 90.0 is.
        window * 7.0 / 10.0
    }

    fn on_timeout(&mut self) {
        // RFC 9406 §4.3: only the first slow start.
        self.start.done = true;
        if let Some(whole) = &mut self.whole {
            whole.on_timeout();
        }
        self.curve.timed_out = true;
        self.curve.epoch = None;
    }

    /// §4.2: time in which the application did not fill the window does not count.
    fn on_unused(&mut self, now: u64) {
        let (epoch, last) = match &mut self.whole {
            Some(whole) => (&mut whole.epoch, &mut whole.last),
            None => (&mut self.curve.epoch, &mut self.curve.last),
        };
        if let Some(epoch) = epoch {
            *epoch += now - *last;
        }
        *last = now;
    }

    /// RFC 9406 §4.3: the first slow start begins anew with its rounds. What comes behind the slow start is a stage
    /// of its own (RFC 9438 §4.2); Linux goes on with the curve.
    fn on_restart(&mut self) {
        if !self.start.done {
            self.start = HyStart::default();
        }
        self.curve.epoch = None;
    }
}

impl CongestionControl for Cubic {
    fn new(o: &Options) -> Self {
        let whole = (o.control.rfc8312 && o.window.whole_packets && o.window.count_packets)
            .then(Whole::default);
        Self { rfc8312: o.control.rfc8312, whole, ..Self::default() }
    }

    fn growth(&mut self, growth: &Growth) -> f64 {
        let &Growth { cwnd, whole, acked, counted, times } = growth;
        if let Some(curve) = &mut self.whole {
            return curve.grow(whole, acked, times);
        }
        let Times { now, srtt } = times;
        let curve = &mut self.curve;
        let epoch = curve.epoch.unwrap_or_else(|| curve.begin(cwnd, now));
        curve.last = now;
        let seconds = |ns: u64| ns as f64 / 1e9;
        // Figure 4, with α = 1 once the window before the reduction is reached again.
        let alpha = if curve.w_est >= curve.prior && !self.rfc8312 { 1.0 } else { FRIENDLY };
        curve.w_est += alpha * f64::from(acked) / cwnd;
        if curve.window(seconds(now - epoch)) < curve.w_est {
            return (curve.w_est - cwnd).clamp(0.0, MOST * f64::from(acked));
        }
        // §4.2: towards the window a round trip ahead.
        let target = curve.window(seconds(now - epoch + srtt)).clamp(cwnd, (1.0 + MOST) * cwnd);
        counted * (target - cwnd) / cwnd
    }

    fn after_loss(&mut self, window: f64) -> f64 {
        self.reduce(window)
    }

    fn after_echo(&mut self, window: f64, _now: u64) -> Option<f64> {
        Some(self.reduce(window))
    }

    fn on_event(&mut self, event: Event, now: u64) {
        match event {
            Event::Unused => self.on_unused(now),
            Event::Restarted => self.on_restart(),
            Event::TimedOut => self.on_timeout(),
            Event::RepairBegins => self.before = self.curve,
            // §4.9: what a needless repair did to the curve is undone; RFC 8312 and Linux leave it.
            Event::RepairUndone if !self.rfc8312 => self.curve = self.before,
            Event::RepairUndone => {}
        }
    }

    fn slow_start(&mut self) -> Option<&mut dyn SlowStart> {
        Some(&mut self.start)
    }
}

/// RFC 9406 §4.2 and §4.3: `MIN_RTT_THRESH`, `MAX_RTT_THRESH` (ns), `MIN_RTT_DIVISOR`.
const MIN_RTT_THRESH: u64 = 4_000_000;
const MAX_RTT_THRESH: u64 = 16_000_000;
const MIN_RTT_DIVISOR: u64 = 8;
/// By how much conservative slow start is slower, and how many rounds it takes.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u8 = 5;

/// `N_RTT_SAMPLE`: a round says nothing before so many.
const N_RTT_SAMPLE: u8 = 8;

/// `HyStart`++ (RFC 9406): slow start slows down when round trips grow, and ends if they stay long.
///
/// The RFC judges a round at every acknowledgement from its eighth sample on. A sender that times one
/// packet a round trip has no more than that: its rounds are judged by it.
#[derive(Clone, Default, Debug)]
struct HyStart {
    /// The least round trip of this round and of the last, ns; 0: none yet.
    least: u64,
    last: u64,
    /// Of this round.
    samples: u8,
    /// Conservative slow start: the round trip below which it was a false alarm, and its rounds.
    conservative: Option<(u64, u8)>,
    /// The first slow start is over.
    done: bool,
}

impl SlowStart for HyStart {
    fn growth(&self) -> f64 {
        let conservative = self.conservative.is_some() && !self.done;
        if conservative { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 }
    }

    #[inline(never)]
    fn on_sample(&mut self, RoundTrip { rtt, begins, only }: RoundTrip) -> bool {
        let enough = if only { 1 } else { N_RTT_SAMPLE };
        if self.done {
            return false;
        }
        if begins {
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                self.done = *rounds == CSS_ROUNDS;
            }
            (self.last, self.least, self.samples) = (self.least, 0, 0);
        }
        self.least = if self.least == 0 { rtt } else { self.least.min(rtt) };
        self.samples = self.samples.saturating_add(1);
        if self.samples < enough || self.last == 0 {
            return self.done;
        }
        let grown = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        self.conservative = match self.conservative {
            None if self.least >= self.last + grown => Some((self.least, 0)),
            Some((baseline, _)) if self.least < baseline => None,
            as_before => as_before,
        };
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(now: u64, srtt: u64) -> Times {
        Times { now, srtt }
    }

    /// What an acknowledgement of `acked` packets that counts for `counted` opens.
    fn open(cubic: &mut Cubic, cwnd: f64, acked: u32, counted: f64, times: Times) -> f64 {
        cubic.growth(&Growth { cwnd, whole: cwnd, acked, counted, times })
    }

    /// The one sample of a round.
    fn only(rtt: u64) -> RoundTrip {
        RoundTrip { rtt, begins: true, only: true }
    }

    /// Lets a window grow for `seconds`, an acknowledgement a packet, evenly over each round trip.
    fn grow(cubic: &mut Cubic, mut cwnd: f64, seconds: f64, rtt: u64) -> f64 {
        let mut now = 0.0;
        while now < seconds * 1e9 {
            cwnd += open(cubic, cwnd, 1, 1.0, at(now as u64, rtt));
            now += rtt as f64 / cwnd;
        }
        cwnd
    }

    /// 100 packets before the loss: 70 are left, K = ∛(30/0.4) = 4.217 s; the window is back at
    /// 100 then, and 0.4·2³ = 3.2 above it 2 s later. Round trips of 200 ms leave Reno behind:
    /// 70 + 31·0.529 = 86.
    #[test]
    fn the_window_is_a_cubic_of_time() {
        let mut cubic = Cubic::default();
        let left = cubic.reduce(100.0);
        assert_eq!(left, 70.0);
        let window = grow(&mut cubic, left, 4.217, SECOND / 5);
        assert!((cubic.curve.k - 4.217).abs() < 0.001, "{}", cubic.curve.k);
        assert!((window - 100.0).abs() < 0.5, "{window}");
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        let window = grow(&mut cubic, 70.0, 6.217, SECOND / 5);
        assert!((window - 103.2).abs() < 0.5, "{window}");
    }

    /// Round trips of 10 ms: in 1 s Reno's window gains 100·0.529 = 53 packets (and one each beyond
    /// where it was), the cubic is below where it was.
    #[test]
    fn it_grows_as_reno_where_that_is_faster() {
        let mut cubic = Cubic::default();
        let left = cubic.reduce(100.0);
        let window = grow(&mut cubic, left, 0.5, SECOND / 100);
        assert!((window - (70.0 + 50.0 * FRIENDLY)).abs() < 1.0, "{window}");
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        // 30 packets take 30/0.529 = 56.7 round trips; the other 43.3 add one each.
        let window = grow(&mut cubic, 70.0, 1.0, SECOND / 100);
        assert!((window - 143.3).abs() < 1.5, "{window}");
    }

    /// §4.7: a second reduction below the first's window leaves 0.85 of it.
    #[test]
    fn an_early_reduction_makes_room() {
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        assert_eq!(cubic.curve.w_max, 100.0);
        cubic.reduce(80.0);
        assert!((cubic.curve.w_max - 68.0).abs() < 1e-9, "80·(1 + 0.7)/2");
        cubic.reduce(90.0);
        assert_eq!(cubic.curve.w_max, 90.0);
    }

    /// §4.8: after a timeout the window grows from where slow start left it, with K = 0.
    #[test]
    fn after_a_timeout_the_plateau_is_where_the_stage_begins() {
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        cubic.on_timeout();
        let window = grow(&mut cubic, 50.0, 5.0, SECOND);
        // One second ahead at the last acknowledgement: between 0.4·5³ = 50 and 0.4·6³ = 86 more.
        assert_eq!(cubic.curve.k, 0.0);
        assert!((95.0..137.0).contains(&window), "{window}");
    }

    /// 0.7 of each multiple of ten is a whole number, which is not to be rounded down to one less.
    #[test]
    fn what_is_left_of_a_whole_window_is_exact() {
        for tens in 1..10_000 {
            let (window, left) = (f64::from(10 * tens), f64::from(7 * tens));
            assert_eq!(Cubic::default().reduce(window), left);
            let mut whole = Cubic { whole: Some(Whole::default()), ..Cubic::default() };
            assert_eq!(whole.reduce(window), (window * 717.0 / 1024.0).floor());
        }
    }

    /// Time in which nothing was to be sent does not let the window grow.
    #[test]
    fn idle_time_does_not_count() {
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        let rtt = SECOND / 10;
        open(&mut cubic, 70.0, 1, 1.0, at(0, rtt));
        cubic.on_unused(20 * SECOND);
        // Three times the plateau's time have passed; as if none had: still far below 100.
        assert!(open(&mut cubic, 70.0, 1, 1.0, at(20 * SECOND, rtt)) < 0.05);
    }

    /// §4.2: a restart after idleness ends the stage. A hundred round trips of 10 ms had Reno's share at 123; the
    /// next stage begins with 40, and opens by 0.53 packets a round trip as this one did.
    #[test]
    fn a_restart_begins_another_stage() {
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        let rtt = SECOND / 100;
        assert!(grow(&mut cubic, 70.0, 1.0, rtt) > 110.0);
        cubic.on_unused(3 * SECOND);
        cubic.on_restart();
        let growth = open(&mut cubic, 40.0, 1, 1.0, at(3 * SECOND, rtt));
        assert!((growth - FRIENDLY / 40.0).abs() < 1e-9, "{growth}");
        assert!((cubic.curve.k - libm::cbrt(60.0 / C)).abs() < 1e-9, "{}", cubic.curve.k);
    }

    /// As the target is 1.5 of the window at most, an acknowledgement adds half of what it acknowledges at most,
    /// where Reno's share is ahead as well.
    #[test]
    fn the_window_opens_by_half_of_what_is_acknowledged_at_most() {
        for rfc8312 in [false, true] {
            for acked in [1, 2] {
                let mut cubic = Cubic { rfc8312, ..Cubic::default() };
                cubic.reduce(100.0);
                open(&mut cubic, 70.0, 1, 1.0, at(0, SECOND / 100));
                cubic.curve.w_est = 500.0;
                let growth = open(&mut cubic, 70.0, acked, 1.0, at(SECOND / 100, SECOND / 100));
                assert_eq!(growth, 0.5 * f64::from(acked), "{rfc8312}");
                let growth =
                    open(&mut cubic, 70.0, acked, acked.into(), at(60 * SECOND, SECOND / 100));
                assert_eq!(growth, 0.5 * f64::from(acked), "{rfc8312}");
            }
        }
    }

    /// RFC 9406 §4.2: 4 ms more than 20 ms are an alarm, false if the next round trip is shorter;
    /// after five rounds slow start is over, for good. Here a round has one sample.
    #[test]
    fn slow_start_ends_when_round_trips_stay_longer() {
        let mut control = Cubic::default();
        let ms = |rtt: f64| (rtt * 1e6) as u64;
        let mut round = |rtt: f64| (control.start.on_sample(only(ms(rtt))), control.start.growth());
        for (rtt, growth) in [(20.0, 1.0), (23.9, 1.0), (27.9, 0.25), (27.8, 1.0), (40.0, 0.25)] {
            assert_eq!(round(rtt), (false, growth), "{rtt}");
        }
        for _ in 0..4 {
            assert_eq!(round(41.0), (false, 0.25));
        }
        assert!(round(41.0).0);
        assert_eq!(round(90.0), (false, 1.0));
    }

    /// §4.9: what was needless leaves nothing behind; RFC 8312 knows no such rule.
    #[test]
    fn a_needless_repair_leaves_the_curve() {
        for (rfc8312, k) in [(false, 4.217), (true, 0.0)] {
            let mut cubic = Cubic { rfc8312, ..Cubic::default() };
            let left = cubic.reduce(100.0);
            grow(&mut cubic, left, 2.0, SECOND / 5);
            cubic.on_event(Event::RepairBegins, 0);
            cubic.after_loss(80.0);
            cubic.on_timeout();
            cubic.on_event(Event::RepairUndone, 0);
            grow(&mut cubic, 80.0, 1.0, SECOND / 5);
            assert!((cubic.curve.k - k).abs() < 0.001, "{rfc8312}: {}", cubic.curve.k);
        }
    }

    /// RFC 9406 §4.3: the rounds of a slow start that a pause cut short do not count for the next.
    #[test]
    fn a_restart_begins_its_rounds_anew() {
        let mut control = Cubic::default();
        let round = |c: &mut Cubic, ms: u64| c.start.on_sample(only(ms * 1_000_000));
        for ms in [20, 40, 40, 40, 40] {
            assert!(!round(&mut control, ms));
        }
        control.on_restart();
        assert_eq!(control.start.growth(), 1.0);
        for ms in [40, 40, 40] {
            assert!(!round(&mut control, ms));
        }
        assert_eq!(control.start.growth(), 1.0);
    }

    /// RFC 9406 §4.3: later slow starts, as behind a timeout, are ordinary ones.
    #[test]
    fn a_loss_in_conservative_slow_start_ends_it() {
        for end in [Cubic::on_timeout, |c: &mut Cubic| {
            c.after_loss(50.0);
        }] {
            let mut control = Cubic::default();
            for ms in [20, 40] {
                control.start.on_sample(only(ms * 1_000_000));
            }
            assert_eq!(control.start.growth(), 0.25);
            end(&mut control);
            assert_eq!(control.start.growth(), 1.0);
        }
    }

    /// With more samples the eighth decides, within the round, and so does each after it.
    #[test]
    fn the_eighth_sample_of_a_round_slows_slow_start_down() {
        let mut start = HyStart::default();
        let mut sample = |rtt: u64, begins| {
            start.on_sample(RoundTrip { rtt: rtt * 1_000_000, begins, only: false });
            start.conservative.is_some()
        };
        (0..10).for_each(|n| assert!(!sample(20, n == 0)));
        for n in 0..7 {
            assert!(!sample(30, n == 0), "{n}");
        }
        assert!(sample(30, false));
        assert!(!sample(29, false), "the least is less than it was");
        for n in 0..8 {
            assert_eq!(sample(40, n == 0), n == 7, "{n}");
        }
        // One less than a round's least is none if the round has had less.
        assert!(sample(41, false));
    }
}
