//! Stories of the fair queues: packets of 1000 bytes unless told otherwise, that are told apart by
//! their numbers.

use std::vec;
use std::vec::Vec;

use super::{Fair, Scheme, drr::Drr, flow_queue::FlowQueue, sfq::Sfq};
use crate::policy::codel::Codel;

type FqCodel = FlowQueue<Codel>;
use crate::context::{Cause, Cx};
use crate::packet::{Ecn, FlowKey, Label, Meta};
use crate::policy::lab::{config, env};
use crate::qdisc::{Discipline as _, Outlet, Qdisc as _};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Limit;

#[derive(Default)]
struct Drops(Vec<u32>);

impl Outlet<u32> for Drops {
    fn dropped(&mut self, _: &Meta, packet: u32, _: Cause, _: Instant) {
        self.0.push(packet);
    }
    fn marked(&mut self, _: &Meta, _: &u32, _: Cause, _: Instant) {}
}

struct Bench<S: Scheme> {
    queue: Fair<S, u32>,
    now: Instant,
    rng: Rng,
    drops: Drops,
    next: u32,
}

impl<S: Scheme> Bench<S> {
    fn new(packets: u64, settings: &[(&str, &str)]) -> Self {
        Self::with(Limit::packets(packets).unwrap(), settings)
    }

    fn with(limit: Limit, settings: &[(&str, &str)]) -> Self {
        let env = crate::Env { limit, ..env(1) };
        let mut rng = Rng::new(7, 0);
        let queue = Fair::new(&config(settings), &env, &mut rng).unwrap();
        Self { queue, now: env.now, rng, drops: Drops::default(), next: 0 }
    }

    /// `n` packets of a flow arrive.
    fn arrive(&mut self, flow: u64, n: u32, len: u32) {
        for _ in 0..n {
            let meta = Meta { len, ecn: Ecn::NotEct, flow: FlowKey(flow), ..Meta::default() };
            let mut cx = Cx { now: self.now, rng: &mut self.rng };
            self.queue.enqueue(meta, self.next, &mut cx, &mut self.drops);
            self.next += 1;
        }
    }

    /// Sends a packet: its flow, number and length.
    fn depart(&mut self) -> Option<(u64, u32, u32)> {
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        let sent = self.queue.dequeue(&mut cx, &mut self.drops);
        sent.map(|(meta, id)| (meta.flow.0, id, meta.len))
    }

    /// The flows of the next `n` packets.
    fn flows(&mut self, n: usize) -> Vec<u64> {
        (0..n).filter_map(|_| self.depart()).map(|p| p.0).collect()
    }

    fn wait_ms(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.queue.on_timer(&mut cx, &mut self.drops);
    }

    fn signal(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.queue.observe(self.now, &mut |n, value| {
            if n == name {
                found = value;
            }
        });
        found
    }
}

#[test]
fn a_flood_gets_its_turn_and_no_more() {
    let mut b = Bench::<Sfq>::new(1000, &[]);
    b.arrive(1, 100, 1000);
    (2..5).for_each(|flow| b.arrive(flow, 2, 1000));
    assert_eq!(b.flows(9), [1, 2, 3, 4, 1, 2, 3, 4, 1]);
    assert_eq!(b.flows(1000), vec![1; 97]);
}

#[test]
fn flows_that_meet_in_a_queue_share_its_turn() {
    let mut b = Bench::<Sfq>::new(1000, &[("queues", "1")]);
    b.arrive(1, 3, 1000);
    b.arrive(2, 1, 1000);
    assert_eq!(b.flows(4), [1, 1, 1, 2]);
}

#[test]
fn the_longest_queue_gives_way_when_the_buffer_is_full() {
    for (drop, lost) in [("tail", [8, 7]), ("front", [0, 1])] {
        let mut b = Bench::<Sfq>::new(10, &[("drop", drop)]);
        b.arrive(1, 9, 1000);
        b.arrive(2, 3, 1000);
        assert_eq!(b.drops.0, lost, "{drop}");
        assert_eq!((b.signal("queues"), b.signal("longest")), (2.0, 7000.0));
    }
}

/// The preset `linux` of SFQ.
fn linux_sfq() -> &'static [(&'static str, &'static str)] {
    super::sfq::ABOUT.presets.iter().find(|(name, _)| *name == "linux").unwrap().1
}

/// Two long packets are more bytes than three short ones.
#[test]
fn linux_s_longest_queue_has_most_packets() {
    for (settings, lost) in [(&[][..], 4), (linux_sfq(), 2)] {
        let mut b = Bench::<Sfq>::new(4, settings);
        b.arrive(1, 3, 100);
        b.arrive(2, 2, 1000);
        assert_eq!(b.drops.0, [lost], "{settings:?}");
    }
}

/// A flow sends a packet whenever its last one has left; two others have several queued.
#[test]
fn linux_s_emptied_queue_leaves_at_once_and_comes_back_at_the_end() {
    let quantum = [("quantum", "1514")];
    for (settings, order) in
        [(&quantum[..], [1, 1, 2, 2, 3, 3, 1]), (linux_sfq(), [1, 2, 2, 3, 3, 1, 2])]
    {
        let mut b = Bench::<Sfq>::new(100, settings);
        [(1, 1), (2, 9), (3, 9)].into_iter().for_each(|(flow, n)| b.arrive(flow, n, 1000));
        let sent = order.map(|_| {
            let flow = b.depart().unwrap().0;
            if flow == 1 {
                b.arrive(1, 1, 1000);
            }
            flow
        });
        assert_eq!(sent, order, "{settings:?}");
    }
}

#[test]
fn a_queue_with_a_part_of_its_own_cannot_take_what_others_leave() {
    let mut b = Bench::<Sfq>::new(1000, &[("queue_limit", "3p")]);
    b.arrive(1, 5, 1000);
    assert_eq!(b.drops.0, [3, 4]);
}

/// RED from 2 kB to 8 kB with w_q = 1 in a queue of 9 kB: the flood is dropped early, the other is
/// let alone.
#[test]
fn a_red_in_each_queue_sees_its_own_flow_alone() {
    let settings = [
        ("queue_limit", "9kB"),
        ("aqm", "red"),
        ("mode", "bytes"),
        ("min_th", "2kB"),
        ("max_th", "8kB"),
        ("w_q", "1"),
    ];
    let mut b = Bench::<Sfq>::with(Limit::bytes(414_000).unwrap(), &settings);
    b.arrive(1, 100, 1000);
    b.arrive(2, 3, 1000);
    let c = b.queue.counters();
    assert!(c.dropped[Cause::Early as usize].packets > 90);
    assert!(b.drops.0.iter().all(|id| *id < 100));
    // The first finds 0 bytes, the second 1000, the third 2000: p_b is 0 up to there.
    assert_eq!(b.drops.0[0].min(3), 3);
}

#[test]
fn a_change_of_hash_leaves_queued_packets_where_they_are() {
    let mut b = Bench::<Sfq>::new(1000, &[("queues", "1024"), ("perturb", "10s")]);
    b.arrive(1, 50, 1000);
    b.wait_ms(9_999);
    b.arrive(1, 1, 1000);
    assert_eq!(b.signal("queues"), 1.0);
    b.wait_ms(1);
    b.arrive(1, 1, 1000);
    assert_eq!(b.signal("queues"), 2.0, "the same flow is elsewhere now");
    let order: Vec<u32> = (0..3).filter_map(|_| b.depart()).map(|p| p.1).collect();
    assert_eq!(order, [0, 51, 1], "and overtakes its own packets");
}

/// 300 against 1500 bytes: turns of a quantum, not packets. SV95: a quantum and two packets apart at
/// most.
#[test]
fn long_and_short_packets_get_equal_shares_by_bytes() {
    let mut b = Bench::<Drr>::new(10_000, &[]);
    b.arrive(1, 1000, 300);
    b.arrive(2, 1000, 1500);
    let mut bytes = [0u32; 3];
    for _ in 0..600 {
        let (flow, _, len) = b.depart().unwrap();
        bytes[flow as usize] += len;
        assert!(bytes[1].abs_diff(bytes[2]) <= 1500 + 2 * 1500, "{bytes:?}");
    }
    assert_eq!((bytes[1], bytes[2]), (150_000, 150_000), "100 turns each");
}

#[test]
fn every_flow_of_drr_has_a_queue_of_its_own() {
    let mut b = Bench::<Drr>::new(1000, &[]);
    (0..1000).for_each(|flow| b.arrive(flow, 1, 1000));
    assert_eq!(b.signal("queues"), 1000.0);
    // One flow more, while every slot is taken: the first of the longest loses its packet.
    b.arrive(1000, 1, 1000);
    assert_eq!(b.drops.0, [0]);
    assert_eq!(b.flows(2000), (1..=1000).collect::<Vec<u64>>());
}

/// More flows than DRR has queues: the last ones share the first queue with flow 0, and all is sent.
#[test]
fn flows_beyond_the_most_queues_of_drr_share_the_first() {
    let most = u64::from(super::drr::MOST_QUEUES);
    let mut b = Bench::<Drr>::new(u64::from(Limit::MAX_PACKETS), &[]);
    (0..most + 3).for_each(|flow| b.arrive(flow, 1, 1000));
    assert_eq!(b.signal("queues"), most as f64);
    let sent = b.flows(most as usize + 9);
    assert_eq!(sent.len() as u64, most + 3);
    assert_eq!(sent[sent.len() - 3..], [most, most + 1, most + 2], "a packet a turn");
    assert!(b.drops.0.is_empty());
    b.arrive(7, 2, 1000);
    assert_eq!(b.flows(9), [7, 7]);
}

#[test]
fn a_flow_that_sends_little_does_not_wait() {
    let mut b = Bench::<FqCodel>::new(1000, &[]);
    (0..20).for_each(|flow| b.arrive(flow, 20, 1000));
    b.flows(60);
    b.arrive(99, 1, 1000);
    assert_eq!(b.flows(2).iter().position(|flow| *flow == 99), Some(0));
    // Its queue was found empty: it is not new again before a round of 20 turns has passed.
    b.arrive(99, 2, 1000);
    let wait = b.flows(60).iter().position(|flow| *flow == 99).unwrap();
    assert!((10..=40).contains(&wait), "{wait}");
}

/// As in Linux, whose hash of flows has no DS field.
#[test]
fn packets_of_a_flow_with_several_codepoints_share_a_queue() {
    for ways in ["1", "8"] {
        let mut bench = Bench::<FqCodel>::new(100, &[("ways", ways)]);
        for dscp in [0, 46, 8, 0] {
            bench.arrive(FlowKey::labelled(7, Label { dscp, ..Label::default() }).0, 1, 1000);
        }
        assert_eq!(bench.signal("queues"), 1.0, "{ways}");
    }
}

#[test]
fn codel_signals_the_flow_whose_queue_stands() {
    let mut b = Bench::<FqCodel>::new(10_000, &[]);
    b.arrive(1, 500, 1000);
    for _ in 0..400 {
        b.arrive(2, 1, 100);
        b.wait_ms(1);
        b.depart();
        b.depart();
    }
    assert!(!b.drops.0.is_empty());
    assert!(b.drops.0.iter().all(|id| *id < 500), "{:?}", b.drops.0);
}

/// Beside a flow with a standing queue a packet of a sparse flow waits for 10 ms, and 200 ms later the next.
/// Until Linux 7.0 CoDel took that for an interval above target, and dropped every other one.
#[test]
fn a_sparse_flow_is_signalled_only_by_the_stale_queues_of_older_kernels() {
    for (backlog, lost) in [("all", 0), ("all-stale", 2)] {
        let mut b = Bench::<FqCodel>::new(10_000, &[("backlog", backlog)]);
        b.arrive(1, 1000, 1000);
        let mut sparse = Vec::new();
        for _ in 0..5 {
            sparse.push(b.next);
            b.arrive(2, 1, 100);
            b.wait_ms(10);
            b.flows(5);
            b.wait_ms(190);
        }
        assert_eq!(sparse.iter().filter(|id| b.drops.0.contains(id)).count(), lost, "{backlog}");
    }
}

/// 90 of 100 packets are of one flow: 45 of them go at once, the oldest first; of 300, 64.
#[test]
fn the_longest_queue_loses_half_from_its_head() {
    for (room, lost) in [(100, 45), (300, 64)] {
        let mut b = Bench::<FqCodel>::new(room, &[]);
        b.arrive(1, room as u32 - 10, 1000);
        b.arrive(2, 11, 1000);
        assert_eq!(b.drops.0, (0..lost).collect::<Vec<u32>>());
    }
}

/// Eight flows at a time have a set of eight queues to themselves, where a hash for eight queues has some
/// of them meet. A ninth shares the first queue.
#[test]
fn flows_of_a_set_share_a_queue_only_when_others_have_all() {
    for (ways, queues) in [("1", 4.0), ("8", 8.0)] {
        let mut b = Bench::<FqCodel>::new(100, &[("queues", "8"), ("ways", ways)]);
        (1..9).for_each(|flow| b.arrive(flow, 1, 1000));
        assert_eq!(b.signal("queues"), queues, "with one way by the seed");
        b.arrive(8, 1, 1000);
        assert_eq!(b.signal("queues"), queues, "a flow stays where it is");
    }
    let mut b = Bench::<FqCodel>::new(100, &[("queues", "8"), ("ways", "8")]);
    (1..10).for_each(|flow| b.arrive(flow, 1, 1000));
    assert_eq!(b.flows(2), [1, 9], "one behind the other, within a quantum");
}

/// A flow whose queue is not the first of its set moves to one that has become idle before it.
#[test]
fn a_flow_of_a_set_may_leave_its_own_queue() {
    let mut b = Bench::<FqCodel>::new(100, &[("queues", "8"), ("ways", "8")]);
    b.arrive(1, 1, 1000);
    b.arrive(2, 9, 1000);
    // The first queue has nothing to send, goes to the old ones, and leaves them.
    assert_eq!(b.flows(5), [1, 2, 2, 2, 2]);
    let first = b.next;
    b.arrive(2, 1, 1000);
    assert_eq!(b.depart().unwrap().1, first, "and overtakes its own packets, as in ns-3");
}

#[test]
fn queues_are_whole_sets() {
    let (config, env) = (config(&[("queues", "10"), ("ways", "8")]), env(10));
    let refused = Fair::<FqCodel, u32>::new(&config, &env, &mut Rng::new(1, 0)).err().unwrap();
    assert_eq!(refused.key, "ways");
}

#[test]
fn one_long_packet_may_cost_several_queues_their_packets() {
    let mut b = Bench::<FqCodel>::with(Limit::bytes(4000).unwrap(), &[]);
    (0..10).for_each(|flow| b.arrive(flow, 1, 400));
    b.arrive(10, 1, 1000);
    // The arriving packet is the longest queue itself.
    assert_eq!(b.drops.0, [10]);
    (0..10).for_each(|flow| b.arrive(flow, 1, 60));
    assert!(b.queue.backlog().bytes <= 4000);
}

/// A bound of memory beside a buffer with room for all packets is as that bound alone.
#[test]
fn a_bound_of_memory_is_a_buffer_of_bytes() {
    let run = |limit: Limit, settings: &[(&str, &str)]| {
        let mut bench = Bench::<FqCodel>::with(limit, settings);
        for n in 0..200 {
            bench.arrive(n % 7, 1, 200 + 97 * (n as u32 % 11));
            if n % 3 == 0 {
                bench.depart();
            }
        }
        bench.drops.0
    };
    let bounded = run(Limit::packets(1000).unwrap(), &[("memory_limit", "9kB")]);
    assert_eq!(bounded, run(Limit::bytes(9000).unwrap(), &[]));
    assert!(bounded.len() > 50, "{}", bounded.len());
}
