//! The sending half: the allowed rate, from feedback and its absence (RFC 5348 §4).

use aqm::response;

use super::clock::Clock;
use super::receiver::Feedback;
use super::{FIRST_WAIT, LONGEST_GAP, Options, RTT_WEIGHT, Timeout, nanoseconds, seconds};

/// No timer is running.
const NEVER: u64 = u64::MAX;

/// The least rate, packets per second.
const LEAST_RATE: f64 = 1.0 / LONGEST_GAP;

/// The sender's state. Rates are in packets per second.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The allowed rate, X.
    rate: f64,
    /// Smoothed round-trip time R, s; 0 before the first sample.
    rtt: f64,
    /// Smoothed square root of the round-trip time, √s (R_sqmean).
    root: f64,
    /// How many times as fast as the allowed rate says packets leave: R_sqmean/√R_sample.
    pace: f64,
    /// The loss event rate of the last report.
    p: f64,
    /// Receive rates reported in the last two round trips, each with its time (X_recv_set).
    received: [Option<(f64, u64)>; 3],
    /// When the rate was doubled last, ns (tld).
    doubled: Option<u64>,
    /// When the nofeedback timer expires, ns.
    deadline: u64,
    /// When the last packet was due, ns.
    sent: u64,
    /// The round trip as a TCP with a coarse clock sees it, where the equation's timeout is its own.
    clock: Clock,
    /// The last packet's number.
    seq: u32,
    /// How often the nofeedback timer expired.
    pub timeouts: u32,
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            rate: 1.0,
            rtt: 0.0,
            root: 0.0,
            pace: 1.0,
            p: 0.0,
            received: [None; 3],
            doubled: None,
            deadline: NEVER,
            sent: 0,
            clock: Clock::default(),
            seq: 0,
            timeouts: 0,
        }
    }
}

/// The initial window in packets of `len` bytes, as TCP has it (§4.2, RFC 3390).
fn initial_window(len: u16) -> f64 {
    (4380.0 / f64::from(len)).clamp(2.0, 4.0)
}

impl Sender {
    /// When the nofeedback timer expires, ns; `u64::MAX` for never.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// The allowed rate, packets per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The smoothed round-trip time, ns; 0 before the first sample.
    pub fn srtt(&self) -> u64 {
        nanoseconds(self.rtt)
    }

    /// The number of the packet to send now, from 1 on.
    pub fn send(&mut self, now: u64) -> u32 {
        if self.seq == 0 {
            self.deadline = now + FIRST_WAIT;
        }
        self.sent = now;
        self.seq += 1;
        self.seq
    }

    /// When the next packet is due, ns.
    pub fn due(&self, now: u64) -> u64 {
        let rate = (self.rate * self.pace).max(LEAST_RATE);
        (self.sent + nanoseconds(1.0 / rate).max(1)).max(now)
    }

    /// Stops for good.
    pub fn stop(&mut self) {
        self.deadline = NEVER;
    }

    /// Feedback arrives; packets have `len` bytes (§4.3).
    pub fn on_feedback(&mut self, now: u64, feedback: Feedback, len: u16, o: &Options) {
        let taken = now.saturating_sub(feedback.echo).max(1);
        let sample = seconds(taken);
        if let Timeout::Clock(tick) = o.timeout {
            self.clock.sample(taken, tick);
        }
        let first = self.rtt == 0.0;
        let smoothed =
            |old, new| if first { new } else { RTT_WEIGHT * old + (1.0 - RTT_WEIGHT) * new };
        self.rtt = smoothed(self.rtt, sample);
        // §4.5: a round trip above the average slows packets down at once.
        self.root = smoothed(self.root, libm::sqrt(sample));
        self.pace = self.root / libm::sqrt(sample);
        self.p = f64::from(feedback.p);
        let initial = initial_window(len) / self.rtt;
        if first {
            // §4.2: the first feedback tells the round trip, not what the path can take; nor do those
            // of the next two round trips, as what limits nothing stays in the set for so long.
            self.received[0] = Some((f64::INFINITY, now));
            self.rate = initial;
            self.doubled = Some(now);
        } else {
            self.remember(now, f64::from(feedback.rate));
            let limit = 2.0 * self.most_received();
            if self.p > 0.0 {
                self.rate = self.equation(o).min(limit).max(LEAST_RATE);
            } else if self.doubled.is_none_or(|at| seconds(now - at) >= self.rtt) {
                self.rate = (2.0 * self.rate).min(limit).max(initial);
                self.doubled = Some(now);
            }
        }
        self.restart_timer(now);
    }

    /// Puts a receive rate into the set of those of the last two round trips.
    fn remember(&mut self, now: u64, rate: f64) {
        let recent = |at: u64| seconds(now - at) <= 2.0 * self.rtt;
        let mut kept = self.received.map(|entry| entry.filter(|(_, at)| recent(*at)));
        kept.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.map(|(_, at)| at)));
        self.received = [Some((rate, now)), kept[0], kept[1]];
    }

    /// The largest receive rate in the set, which the first feedback begins.
    fn most_received(&self) -> f64 {
        self.received.iter().flatten().map(|(rate, _)| *rate).fold(0.0, f64::max)
    }

    /// What the equation gives, packets per second.
    fn equation(&self, o: &Options) -> f64 {
        let timeout = match o.timeout {
            Timeout::RoundTrips => None,
            Timeout::Fixed(ns) => Some(seconds(ns)),
            Timeout::Clock(tick) => self.clock.timeout(tick),
        };
        response::tfrc_with(self.p, self.rtt, timeout.unwrap_or(4.0 * self.rtt))
    }

    /// The nofeedback timer expires (§4.4), and the sender was not idle.
    pub fn on_timer(&mut self, now: u64, o: &Options) {
        self.timeouts += 1;
        if self.p == 0.0 {
            self.rate = (self.rate / 2.0).max(LEAST_RATE);
        } else {
            let equation = self.equation(o);
            let received = self.most_received();
            // What limited the rate, the receive rate or the equation, is halved.
            let limit = if equation > 2.0 * received { received } else { equation / 2.0 };
            let limit = limit.max(LEAST_RATE);
            self.received = [Some((limit / 2.0, now)), None, None];
            self.rate = equation.min(limit).max(LEAST_RATE);
        }
        self.restart_timer(now);
    }

    /// max(4 R, the time of two packets) from now on (§4.3, §4.4); by the new rate, as a slow sender's
    /// next packet could not be answered sooner.
    fn restart_timer(&mut self, now: u64) {
        let wait = if self.rtt == 0.0 {
            FIRST_WAIT.max(nanoseconds(2.0 / self.rate))
        } else {
            nanoseconds((4.0 * self.rtt).max(2.0 / self.rate))
        };
        self.deadline = now + wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const O: Options = Options { ecn: false, discounting: true, timeout: Timeout::RoundTrips };

    fn feedback(echo: u64, p: f32, rate: f32) -> Feedback {
        Feedback { echo, p, rate }
    }

    #[test]
    fn it_begins_with_a_packet_a_second_and_then_the_initial_window() {
        let mut s = Sender::default();
        assert_eq!((s.send(0), s.due(0), s.deadline()), (1, 1000 * MS, 2000 * MS));
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &O);
        // 4 packets of 1000 bytes in 100 ms.
        assert!((s.rate() - 40.0).abs() < 1e-9);
        assert_eq!(s.due(100 * MS), 100 * MS, "25 ms after the first are over");
        assert_eq!(s.deadline(), 500 * MS);
        for (len, packets) in [(40, 4.0), (1095, 4.0), (1460, 3.0), (2190, 2.0), (9000, 2.0)] {
            assert_eq!(initial_window(len), packets, "{len} bytes");
        }
    }

    #[test]
    fn without_loss_it_doubles_once_a_round_trip_up_to_twice_what_arrives() {
        let mut s = Sender::default();
        s.send(0);
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &O);
        for (at, received, expected) in [
            (150, 10.0, 40.0),
            // No limit until two round trips after the first feedback.
            (200, 10.0, 80.0),
            (301, 40.0, 80.0),
            (401, 90.0, 160.0),
            // The greatest of two round trips counts.
            (501, 70.0, 180.0),
        ] {
            s.on_feedback(at * MS, feedback((at - 100) * MS, 0.0, received), 1000, &O);
            assert!((s.rate() - expected).abs() < 1e-6, "{} at {at} ms", s.rate());
        }
    }

    /// §3.1: at p = 1 %, R = 100 ms: 1/(0.1·0.0816497 + 0.4·0.183712·0.01·1.0032) = 112.33.
    #[test]
    fn with_loss_it_takes_the_equation() {
        let mut s = Sender::default();
        s.send(0);
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &O);
        s.on_feedback(200 * MS, feedback(100 * MS, 0.01, 500.0), 1000, &O);
        assert!((s.rate() - 112.33).abs() < 0.01, "{}", s.rate());
        s.on_feedback(400 * MS, feedback(300 * MS, 0.01, 30.0), 1000, &O);
        s.on_feedback(700 * MS, feedback(600 * MS, 0.01, 30.0), 1000, &O);
        assert!((s.rate() - 60.0).abs() < 1e-3, "twice what arrives: {}", s.rate());
    }

    /// With a timeout of 0.3 s the equation gives 1/(0.1·0.0816497 + 0.3·0.183712·0.01·1.0032) = 114.71.
    #[test]
    fn the_equation_may_have_another_timeout() {
        let o = Options { timeout: Timeout::Fixed(300 * MS), ..O };
        let mut s = Sender::default();
        s.send(0);
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &o);
        s.on_feedback(200 * MS, feedback(100 * MS, 0.01, 500.0), 1000, &o);
        assert!((s.rate() - 114.71).abs() < 0.01, "{}", s.rate());
        s.on_timer(s.deadline(), &o);
        assert!((s.rate() - 57.36).abs() < 0.01, "{}", s.rate());
    }

    /// 0.3 s, too, with a clock of 100 ms; round trips of 160 ms are two of its ticks: 0.4 s, and
    /// 1/(0.106·0.0816497 + 0.4·0.183712·0.01·1.0032) = 106.47.
    #[test]
    fn the_equation_may_have_the_timeout_of_a_coarse_clock() {
        let o = Options { timeout: Timeout::Clock(100 * MS), ..O };
        let mut s = Sender::default();
        s.send(0);
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &o);
        s.on_feedback(200 * MS, feedback(100 * MS, 0.01, 500.0), 1000, &o);
        assert!((s.rate() - 114.71).abs() < 0.01, "{}", s.rate());
        s.on_feedback(360 * MS, feedback(200 * MS, 0.01, 500.0), 1000, &o);
        assert!((s.rate() - 106.47).abs() < 0.01, "{}", s.rate());
    }

    #[test]
    fn the_round_trip_is_smoothed_and_a_longer_one_slows_packets_down() {
        let mut s = Sender::default();
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &O);
        s.send(100 * MS);
        assert_eq!(s.due(0), 125 * MS, "40 packets/s");
        s.on_feedback(300 * MS, feedback(100 * MS, 0.01, 1000.0), 1000, &O);
        assert!((s.srtt() as f64 / 110e6 - 1.0).abs() < 1e-6, "0.9·100 + 0.1·200: {}", s.srtt());
        // 0.9·√0.1 + 0.1·√0.2 over √0.2: 0.736.
        s.send(300 * MS);
        let gap = (s.due(0) - 300 * MS) as f64 / 1e9;
        assert!((gap * s.rate() * 0.736_396 - 1.0).abs() < 1e-5, "{gap}");
    }

    #[test]
    fn silence_halves_the_rate() {
        let mut s = Sender::default();
        s.send(0);
        s.on_timer(2000 * MS, &O);
        assert!((s.rate() - 0.5).abs() < 1e-12 && s.deadline() == 6000 * MS);
        (0..20).for_each(|_| s.on_timer(10_000 * MS, &O));
        assert!((s.rate() - LEAST_RATE).abs() < 1e-12);

        let mut s = Sender::default();
        s.send(0);
        s.on_feedback(100 * MS, feedback(0, 0.0, 10.0), 1000, &O);
        s.on_feedback(200 * MS, feedback(100 * MS, 0.01, 500.0), 1000, &O);
        // 112.33 by the equation; then half of that, and then half of what the set still allows.
        for expected in [56.17, 28.08, 14.04] {
            s.on_timer(s.deadline(), &O);
            assert!((s.rate() - expected).abs() < 0.05, "{} for {expected}", s.rate());
        }
        assert_eq!(s.timeouts, 3);
    }
}
