//! Stories of FQ: packets that are told apart by their numbers, on a clock that the test steps.

use std::vec::Vec;

use super::{Fq, KNOWN};
use crate::context::{Cause, Cx};
use crate::packet::{Ecn, FlowKey, Meta};
use crate::policy::lab::{config, env};
use crate::qdisc::{Discipline as _, Qdisc as _};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

struct Bench {
    queue: Fq<u32>,
    now: Instant,
    rng: Rng,
    next: u32,
}

impl Bench {
    fn new(settings: &[(&str, &str)]) -> Self {
        let mut rng = Rng::new(7, 0);
        let queue = Fq::new(&config(settings), &env(1000), &mut rng).unwrap();
        Self { queue, now: Instant::ZERO, rng, next: 0 }
    }

    /// `n` packets of a flow arrive.
    fn arrive(&mut self, flow: u64, n: u32, len: u32) {
        for _ in 0..n {
            let meta = Meta { len, ecn: Ecn::Ect0, flow: FlowKey(flow), arrived: self.now };
            let mut cx = Cx { now: self.now, rng: &mut self.rng };
            self.queue.enqueue(meta, self.next, &mut cx, &mut ());
            self.next += 1;
        }
    }

    /// The flow of the packet that is sent, and whether it is marked.
    fn depart(&mut self) -> Option<(u64, bool)> {
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        let (meta, _) = self.queue.dequeue(&mut cx, &mut ())?;
        Some((meta.flow.0, meta.ecn == Ecn::Ce))
    }

    /// The flows of all packets that may be sent now.
    fn flows(&mut self) -> Vec<u64> {
        core::iter::from_fn(|| self.depart()).map(|sent| sent.0).collect()
    }

    /// How many packets are sent at once, and again whenever the first may: with the time in µs.
    fn bursts(&mut self) -> Vec<(u64, usize)> {
        let mut bursts = Vec::new();
        loop {
            bursts.push((self.now.as_nanos() / 1000, self.flows().len()));
            let Some(at) = self.queue.ready_at() else { return bursts };
            self.now = at;
        }
    }

    fn wait_ms(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
}

/// Ten packets of a new flow, two of others, then two of each in turn.
#[test]
fn a_new_flow_sends_its_initial_quantum_and_then_takes_turns() {
    let mut b = Bench::new(&[]);
    b.arrive(1, 15, 1514);
    b.arrive(2, 13, 1514);
    let mut expected = [[1; 10], [2; 10]].concat();
    expected.extend([1, 1, 2, 2, 1, 1, 2, 1]);
    assert_eq!(b.flows(), expected);
}

/// 8 Mb/s are 1 byte a µs.
#[test]
fn a_flow_sends_a_quantum_at_a_time_at_its_rate() {
    let mut b = Bench::new(&[("maxrate", "8mbit")]);
    b.arrive(1, 16, 1514);
    assert_eq!(b.bursts(), [(0, 10), (3028, 2), (6056, 2), (9084, 2)]);
}

/// What a packet exceeds the quantum by, the next turns pay for: 20 000 bytes in 20 ms, after 15 140 at once.
#[test]
fn packets_of_any_length_go_at_the_rate() {
    let mut b = Bench::new(&[("maxrate", "8mbit")]);
    b.arrive(1, 36, 1000);
    let (last, _) = *b.bursts().last().unwrap();
    assert!((18_000..22_000).contains(&last), "{last}");
}

/// 400 kb/s are 50 bytes a ms.
#[test]
fn a_slow_flow_sends_packet_by_packet() {
    let mut b = Bench::new(&[("maxrate", "400kbit")]);
    b.arrive(1, 3, 1000);
    assert_eq!(b.bursts(), [(0, 1), (20_000, 1), (40_000, 1)]);
}

#[test]
fn a_late_turn_is_made_up_for_by_half_a_gap_at_most() {
    let mut b = Bench::new(&[("maxrate", "400kbit")]);
    b.arrive(1, 5, 1000);
    assert_eq!(b.flows().len(), 1);
    // 4 ms late: the next comes 16 ms later.
    b.wait_ms(24);
    assert_eq!(b.bursts()[..2], [(24_000, 1), (40_000, 1)]);
    let mut b = Bench::new(&[("maxrate", "400kbit")]);
    b.arrive(1, 5, 1000);
    assert_eq!(b.flows().len(), 1);
    b.wait_ms(100);
    assert_eq!(b.bursts()[..3], [(100_000, 1), (110_000, 1), (130_000, 1)]);
}

#[test]
fn a_held_flow_lets_others_pass() {
    let mut b = Bench::new(&[("maxrate", "400kbit")]);
    b.arrive(1, 3, 1000);
    assert_eq!(b.flows(), [1]);
    assert_eq!(b.queue.ready_at(), Some(Instant::from_nanos(20_000_000)));
    b.arrive(2, 1, 1000);
    assert_eq!(b.queue.ready_at(), None, "another may send");
    assert_eq!(b.flows(), [2]);
    b.wait_ms(20);
    assert_eq!(b.flows(), [1]);
}

#[test]
fn a_flow_has_so_many_packets_queued_and_no_more() {
    let mut b = Bench::new(&[("flow_limit", "3")]);
    b.arrive(1, 5, 1000);
    b.arrive(2, 2, 1000);
    let overflows = b.queue.counters().dropped[Cause::Overflow as usize].packets;
    assert_eq!((overflows, b.queue.backlog().packets), (2, 5));
}

/// A flow that left the turns with half a quantum comes back with that, or with a whole one after a pause.
#[test]
fn credit_is_refilled_after_a_pause() {
    for (pause, order) in [(40, [1, 2, 1]), (41, [1, 1, 2])] {
        let mut b = Bench::new(&[("initial_quantum", "1000"), ("quantum", "1000")]);
        b.arrive(1, 1, 1500);
        b.arrive(3, 2, 1000);
        assert_eq!(b.flows(), [1, 3, 3], "then it was the turn of 1");
        b.wait_ms(pause);
        b.arrive(1, 2, 600);
        b.arrive(2, 1, 600);
        assert_eq!(b.flows(), order, "{pause} ms");
    }
}

/// At 400 kb/s the second packet is due after 20 ms. 3 ms later it has waited 3 ms.
#[test]
fn what_waits_beyond_its_pacing_is_marked() {
    for (threshold, marked) in [("2ms", true), ("4ms", false)] {
        let mut b = Bench::new(&[("maxrate", "400kbit"), ("ce_threshold", threshold)]);
        b.arrive(1, 2, 1000);
        assert_eq!(b.depart(), Some((1, false)));
        assert_eq!(b.depart(), None);
        b.wait_ms(23);
        assert_eq!(b.depart(), Some((1, marked)), "{threshold}");
    }
}

/// Only the flow without packets for longest is forgotten, and is a new one when it comes back.
#[test]
fn of_more_flows_than_are_known_the_oldest_is_forgotten() {
    let mut b = Bench::new(&[("initial_quantum", "2000")]);
    let flows = u64::from(KNOWN);
    for flow in 0..flows {
        b.arrive(flow, 1, 1000);
        assert_eq!(b.flows(), [flow]);
    }
    let credit = |b: &Bench, flow| {
        let mut credit = None;
        b.queue.observe_flow(
            &Meta { flow: FlowKey(flow), ..Meta::default() },
            b.now,
            &mut |name, value| {
                if name == "flow_credit" {
                    credit = Some(value);
                }
            },
        );
        credit
    };
    b.arrive(flows, 1, 1000);
    assert_eq!([0, 1, flows].map(|flow| credit(&b, flow)), [0.0, 1000.0, 2000.0].map(Some));
    b.arrive(0, 1, 1000);
    assert_eq!([0, 1, 2].map(|flow| credit(&b, flow)), [2000.0, 0.0, 1000.0].map(Some));
    assert_eq!(b.flows(), [flows, 0]);
}

/// While no flow has packets, three pass by in the order in which they came; then flows take turns.
#[test]
fn what_comes_while_no_flow_waits_takes_the_fast_path() {
    let mut b = Bench::new(&[("fast_path", "3"), ("initial_quantum", "1000")]);
    for _ in 0..4 {
        b.arrive(1, 1, 1000);
        b.arrive(2, 1, 1000);
    }
    // Fast: 1, 2, 1. Flow 2 has three packets, flow 1 two.
    assert_eq!(b.flows(), [1, 2, 1, 2, 1, 2, 2, 1]);
    b.arrive(1, 4, 1000);
    b.depart();
    assert_eq!(b.queue.lines.backlog_of(b.queue.fast()).packets, 2);
    // The fourth has made a flow, so that the next does not pass it.
    b.arrive(1, 1, 1000);
    assert_eq!(b.queue.lines.backlog_of(b.queue.fast()).packets, 2);
}

#[test]
fn the_fast_path_has_no_marks_and_no_rates() {
    let settings = [("fast_path", "3"), ("ce_threshold", "1ms")];
    let mut b = Bench::new(&settings);
    b.arrive(1, 4, 1000);
    b.wait_ms(2);
    let sent: Vec<_> = core::iter::from_fn(|| b.depart()).map(|sent| sent.1).collect();
    assert_eq!(sent, [false, false, false, true]);
    let mut b = Bench::new(&[("fast_path", "3"), ("maxrate", "400kbit")]);
    b.arrive(1, 3, 1000);
    assert_eq!(b.bursts(), [(0, 1), (20_000, 1), (40_000, 1)]);
}

/// Flow 1 has run empty while flow 2 was new. With `old` it comes back behind flow 3, which is new.
#[test]
fn an_emptied_flow_comes_back_as_a_new_or_an_old_one() {
    for (emptied, expected) in [("old-if-any", [2, 1, 3]), ("old", [2, 3, 1])] {
        let mut b = Bench::new(&[("emptied", emptied)]);
        b.arrive(1, 1, 1000);
        b.arrive(2, 2, 1000);
        assert_eq!([b.depart(), b.depart()].map(|sent| sent.unwrap().0), [1, 2]);
        b.arrive(1, 1, 1000);
        b.arrive(3, 1, 1000);
        assert_eq!(b.flows(), expected, "{emptied}");
    }
}
