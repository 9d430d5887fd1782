//! A link whose packets wait until another one for the same packets has sent all of its own.

use aqm::Instant;
use link::NEVER;

use super::{Link, Spec, SpecError};
use crate::frame::Layer;

impl Link {
    /// A link at `now` that holds all packets back, since another one for the same packets still has some:
    /// [`Link::free_from`] lets them go from the queue and [`Link::open`] from the wire.
    ///
    /// # Errors
    /// When there can be no such link.
    pub fn held(spec: &Spec, layer: Layer, longest: usize, now: u64) -> Result<Self, SpecError> {
        let mut link = Self::begin(spec, layer, longest, Instant::from_nanos(now))?;
        link.server.hold(now);
        link.shut_from = 0;
        Ok(link)
    }

    /// The transmitter of a link that was held is free at `at` (ns).
    pub fn free_from(&mut self, at: u64) {
        self.server.free_from(at);
    }

    /// The wire of a link that was held lets packets out.
    pub fn open(&mut self) {
        self.shut_from = NEVER;
    }

    /// When the transmitter is free, if nothing is queued, ns.
    pub fn free_at(&self) -> Option<u64> {
        (self.backlog().packets == 0).then(|| self.wire.transmitter.free_at())
    }

    /// Whether no packet is here.
    pub fn is_empty(&self) -> bool {
        self.backlog().packets == 0 && self.wire.flights.len() == 0
    }

    /// When a packet is sent or comes out next, ns; earlier is harmless.
    pub fn next_step(&self) -> u64 {
        self.server.next_departure().min(self.next_event())
    }
}

#[cfg(test)]
mod tests {
    use aqm::{Duration, Limit, Rate};

    use super::*;

    /// Packets come at 1 and 2 ms. The transmitter of 8 Mb/s is free at 5 ms and the wire is 10 ms long; by
    /// 17 ms both are out, but not before it is open.
    #[test]
    fn held_packets_leave_when_the_transmitter_is_free_and_the_wire_is_open() {
        const MS: u64 = 1_000_000;
        let limit = Limit::packets(9).unwrap();
        for aqm in ["droptail", "pie", "cake"] {
            let spec = Spec::new(Rate::from_mbit(8), Duration::from_millis(10), limit, aqm);
            let mut link = Link::held(&spec, Layer::Ip, 1500, MS).unwrap();
            let out = |link: &mut Link, now| {
                let mut count = 0;
                link.deliver(now, |_| count += 1);
                count
            };
            for at in [MS, 2 * MS] {
                link.arrive(at, &[0x45; 1000]);
                assert_eq!((out(&mut link, at), link.free_at()), (0, None));
            }
            assert_eq!(out(&mut link, 4 * MS), 0);
            link.free_from(5 * MS);
            assert_eq!((link.next_step(), link.next_event()), (5 * MS, NEVER));
            assert_eq!((out(&mut link, 17 * MS), link.free_at()), (0, Some(7 * MS)));
            assert!(!link.is_empty());
            link.open();
            assert_eq!((link.next_event(), out(&mut link, 15 * MS)), (16 * MS, 0));
            assert_eq!((out(&mut link, 17 * MS), link.is_empty(), link.check()), (2, true, true));
        }
    }

    /// One that has nothing to send is idle then.
    #[test]
    fn a_link_that_was_held_and_is_empty_sends_at_once() {
        let spec =
            Spec::new(Rate::from_mbit(8), Duration::ZERO, Limit::packets(9).unwrap(), "droptail");
        let mut link = Link::held(&spec, Layer::Ip, 1500, 5).unwrap();
        link.free_from(10);
        link.open();
        link.deliver(20, |_| panic!("nothing came"));
        link.arrive(30, &[0x45; 1000]);
        assert_eq!(link.next_event(), 1_000_030);
    }
}
