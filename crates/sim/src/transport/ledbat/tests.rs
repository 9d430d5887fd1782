//! The rules of §2.4.2, by hand.

use std::collections::VecDeque;

use super::Options;
use super::sender::Sender;

const MS: u64 = 1_000_000;
const O: Options = Options { target: 100e6, gain: 1.0, ecn: true };

/// A path that the test controls: what is sent comes after a delay, and its answer 50 ms later.
#[derive(Default)]
struct Path {
    s: Sender,
    now: u64,
    sent: VecDeque<(u32, u64)>,
}

impl Path {
    fn send(&mut self) {
        while let Some(number) = self.s.send(self.now) {
            self.sent.push_back((number, self.now));
        }
    }

    /// What is under way comes after `delay` ms, but for `lost`; each answer lets the next packets out.
    fn round(&mut self, delay: u64, lost: &[usize], marked: bool, o: &Options) {
        self.send();
        for i in 0..self.sent.len() {
            let Some((number, sent)) = self.sent.pop_front() else { break };
            let arrived = sent + delay * MS;
            self.now = arrived + 50 * MS;
            if !lost.contains(&i) {
                self.s.on_answer(self.now, number, (arrived, marked), o);
                self.send();
            }
        }
    }

    /// With a window of about 30 packets.
    fn grown() -> Self {
        let mut p = Self::default();
        (0..30).for_each(|_| p.round(50, &[], false, &O));
        p
    }
}

/// Without a queue a window of answers adds a packet; with a gain of 10 an answer does, no more than one above
/// what was under way.
#[test]
fn without_a_queue_it_grows_by_its_gain() {
    let mut p = Path::default();
    for _ in 0..20 {
        let before = p.s.window;
        p.round(50, &[], false, &O);
        // Whole packets are sent, the window grows meanwhile, and is no more than one above them.
        let least = before.floor() / (before + 1.0) - 0.15;
        assert!((least..=1.0).contains(&(p.s.window - before)), "{before}: {}", p.s.window);
    }
    let mut p = Path::default();
    for window in [4.0, 8.0] {
        p.round(50, &[], false, &Options { gain: 10.0, ..O });
        assert_eq!(p.s.window, window, "as in slow start");
    }
}

/// At the target the window stays, and twice as much delay takes away what none adds.
#[test]
fn it_keeps_the_target() {
    let mut p = Path::grown();
    // The filter needs four samples to forget what was shorter.
    let mut more = Vec::new();
    for delay in [150, 150, 250, 250] {
        let before = p.s.window;
        p.round(delay, &[], false, &O);
        more.push(p.s.window - before);
    }
    assert!((0.0..0.2).contains(&more[0]) && more[1].abs() < 1e-9, "{more:?}");
    assert!((-1.0..-0.7).contains(&more[2]) && (-1.1..-0.9).contains(&more[3]), "{more:?}");
    (0..100).for_each(|_| p.round(250, &[], false, &O));
    assert_eq!(p.s.window, 2.0, "never less");
}

/// A loss halves the window once, whatever else of it is lost; so does a mark.
#[test]
fn a_loss_or_a_mark_halves_it_once_a_round_trip() {
    for (lost, marked) in [(vec![1, 3, 5], false), (vec![], true)] {
        let mut p = Path::grown();
        let before = p.s.window;
        p.round(50, &lost, marked, &O);
        assert!((p.s.window / before - 0.54).abs() < 0.06, "{before} {}", p.s.window);
        assert_eq!((p.s.timeouts, p.s.marked), (0, u32::from(marked)));
    }
}

/// RFC 6298: a second without an answer leaves a window of a packet, and the next silence is twice as long; an
/// answer makes it two again.
#[test]
fn silence_leaves_a_packet() {
    let mut p = Path::grown();
    for silence in [2000, 4000] {
        p.now = p.s.deadline;
        p.s.on_silence();
        assert_eq!((p.s.window, p.s.under_way), (1.0, 0));
        assert!(p.s.send(p.now).is_some() && p.s.send(p.now).is_none());
        assert_eq!(p.s.deadline, p.now + silence * MS);
    }
    p.now = p.s.deadline;
    p.s.on_silence();
    p.sent.clear();
    p.round(50, &[], false, &O);
    assert_eq!((p.s.window, p.s.timeouts), (2.0, 3));
    p.s.stopped = true;
    assert!(p.s.send(p.now).is_none());
}
