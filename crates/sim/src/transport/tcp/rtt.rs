//! Round-trip time and retransmission timeout (RFC 6298), with Karn's rule.

/// Smoothed round-trip time, in ns. `srtt = 0` means that there was no sample yet.
#[derive(Clone, Copy, Default, Debug)]
pub struct RttEstimator {
    srtt: u64,
    rttvar: u64,
}

/// How the timeout was backed off; aside of the [`RttEstimator`], so that the sender stays small.
#[derive(Clone, Copy, Default, Debug)]
pub struct Backoff {
    /// How often the timeout has been doubled.
    doublings: u8,
    /// [`STALE`] and [`SLOW`], until the next sample, and [`TICKS`]; together two bytes, which one instruction
    /// moves.
    flags: u8,
}

/// The next sample begins the average anew.
const STALE: u8 = 1;
/// Before the first sample the timeout is 3 s at least (RFC 6298 §5.7).
const SLOW: u8 = 2;
/// The clock ticks.
const TICKS: u8 = 4;

/// The timeout after a SYN that was lost (RFC 6298 §5.7), ns.
const AFTER_LOST_SYN: u64 = 3_000_000_000;

impl Backoff {
    /// Ends it: a packet that was sent once got through.
    pub fn end(&mut self) {
        self.doublings = 0;
    }

    /// How often the timeout was doubled.
    pub fn doublings(self) -> u8 {
        self.doublings
    }

    /// Ends it after a SYN that was lost.
    pub fn begin_slowly(&mut self) {
        (self.doublings, self.flags) = (0, SLOW | self.flags & TICKS);
    }

    /// From now on round trips are measured in ticks.
    pub fn tick(&mut self) {
        self.flags |= TICKS;
    }

    /// Doubles the timeout; with `forget`, four times in a row end the average.
    pub fn double(&mut self, forget: bool) {
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
        self.flags |= if forget && self.doublings >= STALE_AFTER { STALE } else { 0 };
    }
}

/// Bounds of the retransmission timeout, in ns.
#[derive(Clone, Copy, Debug)]
pub struct RtoBounds {
    /// Before the first sample (RFC 6298 §2.1: 1 s).
    pub initial: u64,
    /// The least timeout (§2.4 says 1 s, systems use 200 ms).
    pub min: u64,
    /// The largest timeout (§2.5: at least 60 s).
    pub max: u64,
    /// Clock granularity G (§2.3).
    pub granularity: u64,
    /// Of a clock that ticks, in whose ticks round trips and timeouts are; 0: of none.
    pub tick: u64,
}

impl RtoBounds {
    /// `least` bounds what is added to the smoothed round trip, not the timeout.
    pub fn above_srtt(self, least: u64) -> Self {
        Self { min: 0, granularity: self.granularity.max(least), ..self }
    }
}

const MOST_DOUBLINGS: u8 = 16;
/// So many doublings say that the average may be bogus (RFC 6298 §5; as many as in ns-2).
const STALE_AFTER: u8 = 4;

impl RttEstimator {
    /// Takes a sample of a packet that was sent once (Karn), whatever the clock.
    #[inline]
    pub fn sample(&mut self, rtt: u64, backoff: &mut Backoff) {
        self.sample_at(rtt, 0, 0, backoff);
    }

    /// Takes a sample at `now` of a packet that was sent at `sent`, where the clock may tick every `tick`.
    #[inline(always)]
    pub fn sample_at(&mut self, now: u64, sent: u64, tick: u64, backoff: &mut Backoff) {
        if backoff.flags != 0 || self.srtt == 0 {
            return self.sample_otherwise(now, sent, tick, backoff);
        }
        self.average(now - sent);
    }

    /// A sample that begins the average, or that a ticking clock measures.
    #[inline(never)]
    fn sample_otherwise(&mut self, now: u64, sent: u64, tick: u64, backoff: &mut Backoff) {
        let begins = backoff.flags & STALE != 0 || self.srtt == 0;
        let ticks = tick > 0;
        backoff.flags &= TICKS;
        let rtt = if ticks { (now / tick - sent / tick).max(1) * tick } else { now - sent };
        if begins {
            self.srtt = rtt.max(1);
            self.rttvar = rtt / 2;
        } else if ticks {
            // Whole ticks differ from whole ticks; eighths and fourths of one are kept, as in BSD and ns-2.
            let error = (self.srtt / tick * tick).abs_diff(rtt);
            let more = rtt > self.srtt;
            self.rttvar = (self.rttvar + error / 4 - self.rttvar / tick * tick / 4).max(tick / 4);
            self.srtt = if more { self.srtt + error / 8 } else { self.srtt - error / 8 };
        } else {
            self.average(rtt);
        }
    }

    /// RFC 6298 §2.3: beta = 1/4, then alpha = 1/8.
    #[inline(always)]
    fn average(&mut self, rtt: u64) {
        let error = self.srtt.abs_diff(rtt);
        self.rttvar = self.rttvar - self.rttvar / 4 + error / 4;
        self.srtt = (self.srtt - self.srtt / 8 + rtt / 8).max(1);
    }

    /// The timeout in ns.
    #[inline(always)]
    pub fn rto(&self, backoff: Backoff, bounds: &RtoBounds) -> u64 {
        let base = if self.srtt == 0 {
            if backoff.flags & SLOW != 0 {
                bounds.initial.max(AFTER_LOST_SYN)
            } else {
                bounds.initial
            }
        } else {
            (self.srtt + (4 * self.rttvar).max(bounds.granularity)).max(bounds.min)
        };
        // Of whole ticks two at least, as in ns-2: none would be for ever.
        let base = (base - base.checked_rem(bounds.tick).unwrap_or(0)).max(2 * bounds.tick);
        (base << backoff.doublings).min(bounds.max)
    }

    /// The smoothed round-trip time in ns; 0 before the first sample.
    pub fn srtt(&self) -> u64 {
        self.srtt
    }

    /// How much round trips vary, ns (RFC 6298's RTTVAR).
    pub fn variation(&self) -> u64 {
        self.rttvar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BOUNDS: RtoBounds =
        RtoBounds { initial: 1000 * MS, min: 0, max: 60_000 * MS, granularity: MS, tick: 0 };

    /// RFC 6298 §2.2–2.3 by hand: 100 ms, then 140 ms.
    #[test]
    fn two_samples_by_hand() {
        let (mut e, mut b) = (RttEstimator::default(), Backoff::default());
        assert_eq!(e.rto(b, &BOUNDS), 1000 * MS);
        e.sample(100 * MS, &mut b); // srtt 100, rttvar 50
        assert_eq!(e.rto(b, &BOUNDS), 300 * MS);
        e.sample(140 * MS, &mut b); // rttvar 0.75·50 + 0.25·40 = 47.5; srtt 0.875·100 + 0.125·140 = 105
        assert_eq!(e.rto(b, &BOUNDS), 295 * MS);
    }

    #[test]
    fn backoff_doubles_up_to_the_bound_and_its_end_is_told() {
        let (mut e, mut b) = (RttEstimator::default(), Backoff::default());
        e.sample(100 * MS, &mut b);
        b.double(false);
        assert_eq!(e.rto(b, &BOUNDS), 600 * MS);
        (0..40).for_each(|_| b.double(false));
        assert_eq!(e.rto(b, &BOUNDS), 60_000 * MS);
        e.sample(100 * MS, &mut b);
        b.end();
        assert!(e.rto(b, &BOUNDS) < 300 * MS);
    }

    /// The timeout stays what it was until there is a sample; that one begins anew if it is to.
    #[test]
    fn four_doublings_may_end_the_average() {
        for (doublings, forget, srtt) in [(4, true, 900), (3, true, 200), (4, false, 200)] {
            let (mut e, mut b) = (RttEstimator::default(), Backoff::default());
            e.sample(100 * MS, &mut b);
            (0..doublings).for_each(|_| b.double(forget));
            assert_eq!(e.rto(b, &BOUNDS), (300 * MS) << doublings);
            e.sample(900 * MS, &mut b);
            assert_eq!(e.srtt(), srtt * MS, "{doublings} {forget}");
        }
    }

    /// A clock of 10 ms counts its ticks between sending and answer, and the average keeps eighths of one, its
    /// variation fourths, and the timeout has whole ones, as in ns-2. By hand: 72 and 18; 73 and 18 + 1 - 4; 65 and
    /// 15 + 8 - 3; 66 and 20 + 1 - 5.
    #[test]
    fn a_clock_may_tick() {
        let bounds = RtoBounds { tick: 10 * MS, ..BOUNDS };
        let (mut e, mut b) = (RttEstimator::default(), Backoff::default());
        b.tick();
        for (sent, now, doublings, rto) in
            [(4, 99, 0, 270), (6, 101, 0, 240), (206, 207, 0, 280), (300, 395, 1, 480)]
        {
            (0..doublings).for_each(|_| b.double(true));
            e.sample_at(now * MS, sent * MS, 10 * MS, &mut b);
            assert_eq!(e.rto(b, &bounds), rto * MS, "{sent} {now}");
        }
    }

    #[test]
    fn a_timeout_is_two_ticks_at_least() {
        let bounds = RtoBounds { tick: 3000 * MS, ..BOUNDS };
        assert_eq!(RttEstimator::default().rto(Backoff::default(), &bounds), 6000 * MS);
    }

    #[test]
    fn the_minimum_holds() {
        let (mut e, mut b) = (RttEstimator::default(), Backoff::default());
        (0..100).for_each(|_| e.sample(10 * MS, &mut b));
        assert_eq!(e.rto(b, &RtoBounds { min: 200 * MS, ..BOUNDS }), 200 * MS);
        assert_eq!(e.rto(b, &BOUNDS), e.srtt() + MS);
        assert_eq!(e.rto(b, &BOUNDS.above_srtt(200 * MS)), e.srtt() + 200 * MS);
    }
}
