//! Bytes to time on the wire.

use std::sync::Arc;

use aqm::{Duration, Framing, Rate};

use crate::steps::Steps;
use crate::varying::Varying;

/// Turns bytes into time on the wire, carrying what is below a nanosecond, so that the long-run
/// rate is exact: to less than 2⁻⁶⁴ ns a packet.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: u64,
    /// Time owed, in units of 2⁻⁶⁴ ns.
    carry: u64,
    /// Whole ns and carry (rounded up) of the last length, which is mostly the next one too.
    last: (u32, u64, u64),
    /// Those of another length, since data and acknowledgements alternate on many links.
    other: (u32, u64, u64),
    /// A varying rate or framing, if any. It is looked at only if the length differs from the last one, so
    /// that a plain link pays nothing for it.
    special: Option<Box<Special>>,
}

#[derive(Clone, Debug)]
struct Special {
    framing: Framing,
    varying: Option<Varying>,
    aggregates: bool,
}

/// How a link's transmitter sends, beside its rate.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Sending {
    /// Rates in bit/s over time, in place of the link's own.
    pub rates: Option<Arc<Steps<u64>>>,
    /// What a packet takes on the wire beside its own bytes.
    pub framing: Framing,
    /// Whether the queue puts packets together and says how long they take ([`aqm::Qdisc::aggregate`]). The
    /// transmitter adds nothing to that.
    pub aggregates: bool,
}

/// Stands for no length: no packet is this long.
const NO_LENGTH: u32 = u32::MAX;
const NOTHING: (u32, u64, u64) = (NO_LENGTH, 0, 0);

impl Serialiser {
    /// Nothing owed yet.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate: rate.bits_per_second(),
            carry: 0,
            last: NOTHING,
            other: NOTHING,
            special: None,
        }
    }

    /// This serialiser, sending as `sending` says. Where the rate varies, [`Serialiser::whole`] counts with
    /// the highest.
    #[must_use]
    pub fn with(mut self, sending: &Sending) -> Self {
        (self.last, self.other) = (NOTHING, NOTHING);
        if let Some(rates) = &sending.rates {
            let highest = rates.steps().iter().map(|step| step.1).max().unwrap_or(0);
            self.rate = highest.max(1);
        }
        self.special = (*sending != Sending::default()).then(|| {
            let varying = sending.rates.clone().map(Varying::new);
            let Sending { framing, aggregates, .. } = *sending;
            Box::new(Special { framing, varying, aggregates })
        });
        self
    }

    /// How long a packet of `len` bytes takes, whole ns without the carried fraction.
    pub fn whole(&self, len: u32) -> u64 {
        let len = self.special.as_ref().map_or(len, |special| special.framing.on_wire(len));
        time(len.into(), self.rate)
    }

    /// When the last of `packets` is sent if the first begins at `start` (ns), whole ns without the carried
    /// fraction. They have `bytes` in all and count as equally long; [`FAR`](crate::varying::FAR): never.
    fn finish(&self, start: u64, packets: u32, bytes: u64) -> u64 {
        let Some(special) = &self.special else {
            return start.saturating_add(time(bytes, self.rate));
        };
        let mean = bytes.checked_div(packets.into()).unwrap_or(0) as u32;
        let rest = bytes.saturating_sub(u64::from(mean) * u64::from(packets));
        let on_wire = u64::from(special.framing.on_wire(mean)) * u64::from(packets) + rest;
        match special.varying.clone() {
            Some(mut varying) if packets > 0 => varying.finish(start, on_wire),
            _ => start.saturating_add(time(on_wire, self.rate)),
        }
    }

    /// How long the next packet, of `len` bytes, takes from `start` (ns) on, ns.
    #[inline]
    pub fn transmission(&mut self, start: u64, len: u32) -> u64 {
        if self.last.0 != len {
            self.change_length(start, len);
        }
        let (carry, over) = self.carry.overflowing_add(self.last.2);
        self.carry = carry;
        self.last.1 + u64::from(over)
    }

    #[cold]
    #[inline(never)]
    fn change_length(&mut self, start: u64, len: u32) {
        std::mem::swap(&mut self.last, &mut self.other);
        if self.last.0 == len {
            return;
        }
        let mut on_wire = len;
        if let Some(special) = &mut self.special {
            if special.aggregates {
                self.last = NOTHING;
                return;
            }
            on_wire = special.framing.on_wire(len);
            if let Some(varying) = &mut special.varying {
                let finish = varying.finish(start, on_wire);
                self.last = (NO_LENGTH, finish.saturating_sub(start), 0);
                return;
            }
        }
        let bit_ns = u128::from(on_wire) * 8_000_000_000;
        let rate = u128::from(self.rate);
        let carry = ((bit_ns % rate) << 64).div_ceil(rate);
        self.last = (len, (bit_ns / rate) as u64, carry as u64);
    }
}

/// Whole ns of `bytes` at `rate` (bit/s).
fn time(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000 / u128::from(rate)) as u64
}

/// A transmitter and the wire behind it.
#[derive(Clone, Debug)]
pub struct Transmitter {
    serialiser: Serialiser,
    /// Propagation delay, ns.
    delay: u64,
    /// When it is free, or was last, ns.
    free_at: u64,
}

impl Transmitter {
    /// Free at time 0.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self { serialiser: Serialiser::new(rate), delay: delay.as_nanos(), free_at: 0 }
    }

    /// This transmitter, sending as `sending` says.
    #[must_use]
    pub fn with(mut self, sending: &Sending) -> Self {
        self.serialiser = self.serialiser.with(sending);
        self
    }

    /// A packet of `len` bytes comes to it at `now`. Returns when it arrives at the far end of the
    /// wire.
    #[inline]
    pub fn send(&mut self, now: u64, len: u32) -> u64 {
        let start = self.free_at.max(now);
        self.free_at = start + self.serialiser.transmission(start, len);
        self.free_at + self.delay
    }

    /// When it is free, or was last, ns.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Propagation delay, ns.
    #[inline]
    pub fn delay(&self) -> u64 {
        self.delay
    }

    /// How long a packet of `len` bytes takes if nothing is before it, in transmission and on the
    /// wire, ns.
    pub fn alone(&self, len: u32) -> (u64, u64) {
        (self.serialiser.whole(len), self.delay)
    }

    /// Another rate, which `sending` may vary, from now on; what is being sent keeps its time.
    pub fn change_rate(&mut self, rate: Rate, sending: &Sending) {
        self.serialiser = Serialiser::new(rate).with(sending);
    }

    /// The packet under way at `now` (ns), of `len` bytes, starts again unless it would end sooner by going
    /// on. Returns how much sooner it is sent, ns.
    pub fn send_again(&mut self, now: u64, len: u32) -> u64 {
        let before = self.free_at;
        if before > now {
            self.free_at = before.min(now + self.serialiser.transmission(now, len));
        }
        before - self.free_at
    }

    /// When `packets` of `bytes` in all, each as long as their mean, are sent if they begin at `now` (ns)
    /// or when it is free, ns; [`FAR`](crate::varying::FAR) for never.
    pub fn sent(&self, now: u64, packets: u32, bytes: u64) -> u64 {
        self.serialiser.finish(self.free_at.max(now), packets, bytes)
    }

    /// Another propagation delay from now on; what is being sent has it, too.
    pub fn change_delay(&mut self, delay: Duration) {
        self.delay = delay.as_nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 45 Mb/s: 1000 bytes take 177 777.7… ns; 45 000 packets take 8 s to the nanosecond.
    #[test]
    fn the_long_run_rate_is_exact() {
        let mut s = Serialiser::new(Rate::from_mbit(45));
        let total: u64 = (0..45_000).map(|_| s.transmission(0, 1000)).sum();
        assert_eq!(total, 8_000_000_000);
    }

    #[test]
    fn packets_of_mixed_lengths_keep_the_rate_too() {
        let mut s = Serialiser::new(Rate::new(7_000_003).unwrap());
        let total: u64 = (0..70_000).map(|i| s.transmission(0, [40, 1000, 1500][i % 3])).sum();
        let bits = (0..70_000u64).map(|i| [320, 8000, 12_000][(i % 3) as usize]).sum::<u64>();
        assert_eq!(total, (u128::from(bits) * 1_000_000_000 / 7_000_003) as u64);
    }

    /// With Ethernet's 38 bytes 962 are 1000. What a mean leaves over counts once, unframed.
    #[test]
    fn framing_holds_for_lengths_that_were_sent_before_and_for_means() {
        let framed = Sending { framing: "ethernet".parse().unwrap(), ..Sending::default() };
        let mut s = Serialiser::new(Rate::from_mbit(8));
        assert_eq!(s.transmission(0, 962), 962_000);
        let mut s = s.with(&framed);
        assert_eq!(s.transmission(0, 962), 1_000_000);
        let t = Transmitter::new(Rate::from_mbit(8), Duration::ZERO).with(&framed);
        assert_eq!(t.sent(0, 2, 2 * 962 + 1), 2_001_000);
    }

    #[test]
    fn a_change_moves_what_comes_and_not_what_was_sent() {
        let mut t = Transmitter::new(Rate::from_mbit(8), Duration::from_millis(1));
        assert_eq!(t.send(0, 1000), 2_000_000);
        t.change_rate(Rate::from_mbit(80), &Sending::default());
        t.change_delay(Duration::ZERO);
        assert_eq!((t.free_at(), t.send(0, 1000)), (1_000_000, 1_100_000));
    }

    #[test]
    fn framing_takes_time_and_a_rate_that_varies_its_integral() {
        let framing = "ethernet".parse().unwrap();
        let sending = Sending { framing, ..Sending::default() };
        let mut t = Transmitter::new(Rate::from_mbit(8), Duration::ZERO).with(&sending);
        assert_eq!(
            [t.send(0, 962), t.send(0, 962), t.send(0, 40)],
            [1_000_000, 2_000_000, 2_084_000]
        );
        assert_eq!(t.alone(962), (1_000_000, 0));
        let rates = Steps::new(&[(0, 8_000_000), (1_000_000, 16_000_000)], false).map(Arc::new);
        let mut t = t.with(&Sending { rates, ..sending });
        assert_eq!([t.send(2_084_000, 962), t.free_at()], [2_584_000; 2]);
        assert_eq!(t.alone(962), (500_000, 0), "with the highest rate");
        assert_eq!(t.sent(0, 2, 2 * 962), 3_584_000, "two behind the one that is being sent");
    }

    /// 1000 bytes take 1 ms at 8 Mb/s; at 80 Mb/s they are sent at 0.6 ms if they begin again at 0.5 ms.
    #[test]
    fn what_begins_again_is_sent_sooner_or_as_it_was() {
        let sending = Sending::default();
        let mut t = Transmitter::new(Rate::from_mbit(8), Duration::ZERO);
        t.send(0, 1000);
        t.change_rate(Rate::from_mbit(80), &sending);
        assert_eq!((t.send_again(500_000, 1000), t.free_at()), (400_000, 600_000));
        t.change_rate(Rate::from_mbit(8), &sending);
        assert_eq!((t.send_again(550_000, 1000), t.free_at()), (0, 600_000));
        assert_eq!((t.send_again(700_000, 1000), t.free_at()), (0, 600_000), "it is idle");
    }
}
