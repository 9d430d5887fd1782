use super::*;
use crate::context::Cause;
use crate::packet::{Ack, Carried, Ecn};
use crate::policy::lab::{config, env};
use crate::units::Limit;
use std::vec;
use std::vec::Vec;

/// CAKE on the bench's link: 1 ms a packet of 1000 bytes.
struct Bench {
    q: Cake<u32>,
    rng: Rng,
    now: Instant,
}

impl Bench {
    fn new(packets: u64, settings: &[(&str, &str)]) -> Self {
        Self::on(&env(packets), settings)
    }

    /// On a link that is another's.
    fn on(env: &Env, settings: &[(&str, &str)]) -> Self {
        let mut rng = Rng::new(3, 0);
        let q = Cake::new(&config(settings), false, env, &mut rng).unwrap();
        Self { q, rng, now: env.now }
    }

    /// A packet of flow `flow`, which is its payload, too.
    fn arrive(&mut self, flow: u32, label: Label, len: u32) {
        let flow_key = FlowKey::labelled(flow, label);
        let meta = Meta { len, ecn: Ecn::NotEct, flow: flow_key, ..Meta::default() };
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.q.enqueue(meta, flow, &mut cx, &mut ());
    }

    /// The flow that sends next; the link is busy for as long as that takes.
    fn depart(&mut self) -> Option<u32> {
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        let (meta, flow) = self.q.dequeue(&mut cx, &mut ())?;
        self.now += Duration::from_micros(u64::from(meta.len));
        Some(flow)
    }

    /// Packets sent of each flow while all of `flows` have some all the time.
    fn shares(&mut self, flows: &[(u32, Label)], packets: usize) -> Vec<usize> {
        let mut sent = vec![0; flows.len()];
        for _ in 0..20 {
            flows.iter().for_each(|&(flow, label)| self.arrive(flow, label, 1000));
        }
        for _ in 0..packets {
            let flow = self.depart().unwrap();
            let place = flows.iter().position(|(known, _)| *known == flow).unwrap();
            sent[place] += 1;
            self.arrive(flow, flows[place].1, 1000);
        }
        sent
    }
}

fn host(host: u16) -> Label {
    Label { host, ..Label::default() }
}

fn dscp(dscp: u8) -> Label {
    Label { dscp, ..Label::default() }
}

/// HTM18 §III.B: a host with one flow gets as much as one with eight, and each of those an eighth.
#[test]
fn hosts_share_equally_and_their_flows_share_what_they_get() {
    let label = |flow: u32| Label { peer: flow as u16, ..host(u16::from(flow > 0)) };
    let flows: Vec<_> = (0..9).map(|flow| (flow, label(flow))).collect();
    for isolation in ["dual-srchost", "triple-isolate"] {
        let settings = [("isolation", isolation), ("target", "1h")];
        let sent = Bench::new(5000, &settings).shares(&flows, 8000);
        assert!(sent[0].abs_diff(4000) <= 40, "{isolation}: {sent:?}");
        assert!(sent[1..].iter().all(|n| n.abs_diff(500) <= 10), "{isolation}: {sent:?}");
    }
    // Each has a receiver of its own.
    for isolation in ["flows", "dual-dsthost"] {
        let settings = [("isolation", isolation), ("target", "1h")];
        let sent = Bench::new(5000, &settings).shares(&flows, 9000);
        assert!(sent.iter().all(|n| n.abs_diff(1000) <= 10), "{isolation}: {sent:?}");
    }
    let settings = [("isolation", "srchost"), ("target", "1h")];
    let sent = Bench::new(5000, &settings).shares(&flows, 8000);
    assert!(sent[0].abs_diff(4000) <= 10, "{sent:?}");
}

/// diffserv3: latency-sensitive traffic is sure of a quarter, background of a sixteenth, best effort
/// has the rest, 11 : 1 : 4; and what one does not use the others have.
#[test]
fn tins_share_by_their_rates() {
    let mut bench = Bench::new(5000, &[("target", "1h")]);
    let all = [(0, dscp(0)), (1, dscp(8)), (2, dscp(46))];
    let sent = bench.shares(&all, 8000);
    for (got, expected) in sent.iter().zip([5500, 500, 2000]) {
        assert!(got.abs_diff(expected) <= 30, "{sent:?}");
    }
    let sent = Bench::new(5000, &[("target", "1h")]).shares(&all[..2], 8000);
    assert!(sent[1].abs_diff(500) <= 20, "{sent:?}");
}

/// A packet that comes now and then goes before those of a flow that has some all the time.
#[test]
fn a_sparse_flow_does_not_wait() {
    let mut bench = Bench::new(1000, &[("target", "1h")]);
    (0..50).for_each(|_| bench.arrive(1, Label::default(), 1000));
    (0..10).for_each(|_| assert_eq!(bench.depart(), Some(1)));
    for _ in 0..3 {
        bench.arrive(2, Label::default(), 100);
        assert_eq!(bench.depart(), Some(2));
        (0..5).for_each(|_| assert_eq!(bench.depart(), Some(1)));
    }
}

/// Nine flows in one set of eight: all but one have a queue alone, and none is lost.
#[test]
fn flows_meet_only_where_a_set_is_full() {
    let mut bench = Bench::new(1000, &[("sets", "1"), ("diffserv", "besteffort")]);
    let mut busy = Vec::new();
    for flow in 0..9 {
        (0..2).for_each(|_| bench.arrive(flow, Label::default(), 1000));
        let queues = (0..8).filter(|line| bench.q.lines.backlog_of(*line).packets > 0).count();
        busy.push(queues);
    }
    assert_eq!(busy, [1, 2, 3, 4, 5, 6, 7, 8, 8]);
    let sent = core::iter::from_fn(|| bench.depart()).count();
    assert_eq!(sent, 18);
}

/// The flow with the longest queue loses its oldest packets, whoever comes.
#[test]
fn the_longest_queue_gives_way() {
    let mut bench = Bench::new(20, &[]);
    (0..15).for_each(|_| bench.arrive(1, Label::default(), 1000));
    (0..10).for_each(|_| bench.arrive(2, Label::default(), 100));
    assert_eq!(bench.q.counters().dropped[Cause::Overflow as usize].packets, 5);
    let sent: Vec<u32> = core::iter::from_fn(|| bench.depart()).collect();
    assert_eq!(sent.iter().filter(|flow| **flow == 2).count(), 10);
    assert_eq!(sent.len(), 20);
}

/// Flows that ignore signals, each in its own queue, do not take from one that keeps within its share.
#[test]
fn a_flood_does_not_harm_a_flow_within_its_share() {
    let mut bench = Bench::new(200, &[]);
    let mut quiet = 0;
    for round in 0..2000 {
        (1..4).for_each(|flow| bench.arrive(flow, Label::default(), 1000));
        if round % 4 == 0 {
            bench.arrive(0, Label::default(), 500);
        }
        quiet += usize::from(bench.depart() == Some(0));
    }
    let rest = core::iter::from_fn(|| bench.depart()).filter(|flow| *flow == 0).count();
    assert_eq!(quiet + rest, 500, "none was dropped");
    assert!(bench.q.counters().all_dropped().packets > 3000);
}

/// At 1 Mbit/s a packet of 1514 bytes takes 12.1 ms: the target is 18.2, the interval 13.2 longer. A
/// tin with a sixteenth of the rate has sixteen times that, and an interval of twice the target.
#[test]
fn targets_grow_on_slow_links() {
    let config = CakeConfig::default();
    let ms = |d: Duration| libm::round(d.as_secs_f64() * 1e4) / 10.0;
    let limit = Limit::packets(100).unwrap();
    let cobalt = |bits| config.cobalt(&Env::new(limit, Rate::new(bits).unwrap()));
    assert_eq!(ms(cobalt(100_000_000).target), 5.0);
    assert_eq!((ms(cobalt(1_000_000).target), ms(cobalt(1_000_000).interval)), (18.2, 113.2));
    assert_eq!((ms(cobalt(62_500).target), ms(cobalt(62_500).interval)), (290.7, 581.4));
    assert_eq!(quantum(Rate::from_mbit(1)) >> 16, 300);
    assert_eq!(quantum(Rate::from_mbit(20)) >> 16, 610);
    assert_eq!(quantum(Rate::from_mbit(100)) >> 16, 1514);
}

/// HTM18 §III.A: what is shared is time on the wire. With 40 bytes more in ATM cells 60 bytes are 3 cells,
/// 159 bytes, and 1500 are 33, 1749: of two flows of one tin eleven small packets are sent for a large one;
/// in the tin of DSCP 46, which has a quarter of the wire to the other's three, a third as many. So it is
/// on a link that has its framing from the beginning, as the simulator's have, and on one that gets it later.
#[test]
fn what_frames_add_is_shared_as_well() {
    let framed = Env { framing: "overhead 40 atm".parse().unwrap(), ..env(5000) };
    let benches = || {
        let mut told = Bench::new(5000, &[("target", "1h")]);
        told.q.rate_changed(&framed);
        [told, Bench::on(&framed, &[("target", "1h")])]
    };
    let in_tins = [(host(1), 11.0), (dscp(46), 11.0 / 3.0)];
    for ((other, expected), mut bench) in
        in_tins.into_iter().flat_map(|tin| benches().map(|bench| (tin, bench)))
    {
        let flows = [(0, Label::default(), 1500), (1, other, 60)];
        for (flow, label, len) in flows.repeat(50) {
            bench.arrive(flow, label, len);
        }
        let mut sent = [0_f64; 2];
        for _ in 0..6000 {
            let flow = bench.depart().unwrap() as usize;
            let (_, label, len) = flows[flow];
            sent[flow] += 1.0;
            // What `depart` did not count of the time on the wire, at 8 Mb/s.
            bench.now += Duration::from_micros(u64::from(framed.framing.on_wire(len) - len));
            bench.arrive(flow as u32, label, len);
        }
        let ratio = sent[1] / sent[0];
        assert!((ratio / expected - 1.0).abs() < 0.03, "{ratio} for {expected}");
    }
}

#[test]
fn a_told_rate_is_as_good_as_one_that_was_known() {
    let slow = Env { limit: Limit::packets(10).unwrap(), rate: Rate::from_mbit(1), ..env(10) };
    let mut bench = Bench::new(10, &[]);
    bench.q.rate_changed(&slow);
    let known = Cake::<u32>::new(&config(&[]), false, &slow, &mut Rng::new(3, 0)).unwrap();
    for (told, known) in bench.q.tins.iter().zip(&known.tins) {
        assert_eq!(
            (told.schedule.rate, told.flows.quantum),
            (known.schedule.rate, known.flows.quantum)
        );
    }
}

/// Background has sent 500 bytes at its sixteenth of 8 Mb/s, which is 8 ms; best effort nothing. A new
/// rate meanwhile does not forgive it: the tin is still late, and best effort goes first.
#[test]
fn a_told_rate_leaves_a_tin_the_time_that_it_has_used() {
    let mut bench = Bench::new(100, &[]);
    let start = bench.now;
    (0..3).for_each(|_| bench.arrive(1, dscp(8), 500));
    assert_eq!(bench.depart(), Some(1));
    bench.q.rate_changed(&Env { rate: Rate::from_mbit(4), now: bench.now, ..env(100) });
    assert_eq!(bench.q.tins[1].schedule.next, start + Duration::from_millis(8));
    (0..3).for_each(|_| bench.arrive(2, dscp(0), 500));
    let sent: Vec<_> = (0..4).map(|_| bench.depart().unwrap()).collect();
    assert_eq!(sent, [2, 2, 2, 1]);
}

#[derive(Clone, Copy, Default)]
struct Segment(usize, Ack);

impl Carried for Segment {
    fn ack(&self) -> Ack {
        self.1
    }
}

/// tc-cake(8): `ack-filter` keeps two acknowledgements of a flow, `ack-filter-aggressive` one, and both
/// what tells of ECN, of a gap, or twice the same.
#[test]
fn acknowledgements_give_way_to_later_ones() {
    let left = |filter: &str, acks: &[Ack]| {
        let (mut rng, env) = (Rng::new(3, 0), env(100));
        let mut q = Cake::new(&config(&[("ack_filter", filter)]), false, &env, &mut rng).unwrap();
        let mut cx = Cx { now: env.now, rng: &mut rng };
        for (n, &ack) in acks.iter().enumerate() {
            // Another flow's between them.
            for (flow, ack) in [(7, ack), (8, Ack::new(1, [false; 2], true))] {
                let meta = Meta { len: 64, flow: FlowKey(flow), ..Meta::default() };
                q.enqueue(meta, Segment(n, ack), &mut cx, &mut ());
            }
        }
        let sent = std::iter::from_fn(|| q.dequeue(&mut cx, &mut ()));
        let of_first = sent.filter(|(meta, _)| meta.flow == FlowKey(7));
        of_first.map(|(_, Segment(n, _))| n).collect::<Vec<_>>()
    };
    let plain = |number| Ack::new(number, [false; 2], true);
    let echo = |number| Ack::new(number, [true, false], true);
    let with_sack = |number| Ack::new(number, [false; 2], false);
    let six: Vec<Ack> = (0..6).map(plain).collect();
    assert_eq!(left("off", &six), [0, 1, 2, 3, 4, 5]);
    assert_eq!(left("on", &six), [4, 5]);
    assert_eq!(left("aggressive", &six), [5]);
    // Duplicates, and blocks of SACK.
    assert_eq!(left("aggressive", &[plain(1), plain(1), plain(1)]), [0, 1, 2]);
    assert_eq!(left("aggressive", &[plain(1), with_sack(1), with_sack(2), plain(3)]), [0, 1, 2, 3]);
    assert_eq!(left("on", &[plain(1), plain(2), with_sack(2), with_sack(3)]), [1, 2, 3]);
    // One that was overtaken, also where numbers wrap; a number's end tells nothing of its order.
    assert_eq!(left("aggressive", &[plain(7), plain(6)]), [0, 1]);
    assert_eq!(left("on", &[plain(8), plain(7), plain(6)]), [0, 1, 2]);
    assert_eq!(left("aggressive", &[plain(7), plain(6), plain(8)]), [1, 2]);
    assert_eq!(left("aggressive", &[plain(u32::MAX), plain(2)]), [1]);
    assert_eq!(left("aggressive", &[plain(2), plain(u32::MAX)]), [0, 1]);
    assert_eq!(left("aggressive", &[plain(4095), plain(4096), plain(3 << 12)]), [2]);
    assert_eq!(left("aggressive", &[plain(3 << 12), plain(4097)]), [0, 1]);
    // A change of ECE stays where it is.
    let changes = [plain(1), plain(2), echo(3), echo(4), echo(5), plain(6), plain(7)];
    assert_eq!(left("aggressive", &changes), [1, 4, 6]);
    // Other packets than acknowledgements stay.
    assert_eq!(left("aggressive", &[Ack::NONE, plain(1), Ack::NONE, plain(2)]), [0, 1, 2, 3]);
}
