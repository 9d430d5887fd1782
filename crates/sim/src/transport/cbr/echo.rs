//! Datagrams that the far end sends back: what became of each.

use std::collections::VecDeque;

/// A datagram that came back, times in ns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Echo {
    /// When it was sent.
    pub sent: u64,
    /// When the far end sent it back.
    pub turned: u64,
    /// When it came back.
    pub back: u64,
}

/// The datagrams of a flow that have not come back, and news of those that have.
#[derive(Clone, Default, Debug)]
pub(crate) struct Echoes {
    /// The number of the first of `out`.
    first: u32,
    out: VecDeque<Echo>,
    /// Whether anybody takes the news.
    pub(crate) heard: bool,
    /// Those that came back since they were taken last.
    pub(crate) back: Vec<Echo>,
    /// When those were sent that a later one overtook.
    pub(crate) lost: Vec<u64>,
}

impl Echoes {
    /// Datagram `number` is sent at `now` (ns); numbers follow each other.
    pub(super) fn send(&mut self, number: u32, now: u64) {
        if self.out.is_empty() {
            self.first = number;
        }
        self.out.push_back(Echo { sent: now, ..Echo::default() });
    }

    fn place(&self, number: u32) -> Option<usize> {
        number.checked_sub(self.first).map(|place| place as usize)
    }

    /// The far end sends datagram `number` back at `now` (ns).
    pub(super) fn turn(&mut self, number: u32, now: u64) {
        let place = self.place(number);
        if let Some(echo) = place.and_then(|place| self.out.get_mut(place)) {
            echo.turned = now;
        }
    }

    /// How long datagram `number` was under way that comes back at `now`, ns.
    pub(super) fn round_trip(&self, number: u32, now: u64) -> Option<u64> {
        Some(now - self.out.get(self.place(number)?)?.sent)
    }

    /// Datagram `number` comes back at `now` (ns): those before it are lost.
    pub(super) fn come_back(&mut self, number: u32, now: u64) {
        let Some(place) = self.place(number).filter(|place| *place < self.out.len()) else {
            return;
        };
        let before = self.out.drain(..=place);
        self.first = number + 1;
        for (echo, is_it) in before.zip((0..=place).map(|n| n == place)) {
            match (self.heard, is_it) {
                (false, _) => {}
                (true, true) => self.back.push(Echo { back: now, ..echo }),
                (true, false) => self.lost.push(echo.sent),
            }
        }
    }

    /// When the oldest was sent that is still under way, ns.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.out.front().map(|echo| echo.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_tells_both_ways_and_what_it_overtook() {
        let mut echoes = Echoes { heard: true, ..Echoes::default() };
        (1..=4).for_each(|n| echoes.send(n, 10 * u64::from(n)));
        echoes.turn(1, 15);
        echoes.turn(3, 35);
        echoes.come_back(1, 20);
        assert_eq!(echoes.round_trip(3, 47), Some(17));
        echoes.come_back(3, 47);
        assert_eq!(
            echoes.back,
            [Echo { sent: 10, turned: 15, back: 20 }, Echo { sent: 30, turned: 35, back: 47 }]
        );
        assert_eq!((&echoes.lost[..], echoes.oldest()), (&[20][..], Some(40)));
        echoes.come_back(2, 50); // late, and a copy
        echoes.come_back(3, 50);
        assert_eq!((echoes.back.len(), echoes.round_trip(2, 60)), (2, None));
    }
}
