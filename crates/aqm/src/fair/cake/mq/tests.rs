use super::*;
use crate::any::{BuildError, configure};
use crate::context::Cause;
use crate::packet::Ecn;
use crate::policy::lab::{config, env};
use proptest::prelude::{any, prop, prop_assert_eq, prop_oneof, proptest};
use std::collections::VecDeque;
use std::vec;

/// Bytes of each packet here.
const LEN: u64 = 1000;
/// 800 Mb/s: 10 µs a packet, 20 kB in 200 µs.
const RATE: [(&str, &str); 2] = [("shared_rate", "800mbit"), ("target", "1h")];

/// CAKEs before a link that takes no time, with one flow for each, which has packets while it is `on`.
struct Bench {
    q: Many<u32>,
    rng: Rng,
    flows: Vec<FlowKey>,
    on: Vec<bool>,
    now: Instant,
    /// Packets sent of each flow.
    sent: Vec<u64>,
}

impl Bench {
    fn new(count: u32) -> Self {
        let mut rng = Rng::new(3, 0);
        let q = Many::new(count, &config(&RATE), &env(10_000), &mut rng).unwrap();
        let flow = |queue| (1..).map(FlowKey).find(|flow| q.queue_of(*flow) == queue).unwrap();
        let flows = (0..count as usize).map(flow).collect();
        let all = count as usize;
        Self { q, rng, flows, on: vec![false; all], now: Instant::ZERO, sent: vec![0; all] }
    }

    fn arrive(&mut self, flow: usize) {
        let meta =
            Meta { len: LEN as u32, ecn: Ecn::NotEct, flow: self.flows[flow], arrived: self.now };
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.q.enqueue(meta, flow as u32, &mut cx, &mut ());
    }

    /// Some flows have packets all the time from now on, the others none; what waits of these is sent.
    fn are_on(&mut self, flows: impl Fn(usize) -> bool) {
        for flow in 0..self.on.len() {
            if flows(flow) && !self.on[flow] {
                (0..2).for_each(|_| self.arrive(flow));
            }
            self.on[flow] = flows(flow);
        }
    }

    /// Packets sent of each flow in the next so many µs.
    fn run(&mut self, us: u64) -> Vec<u64> {
        let (before, end) = (self.sent.clone(), self.now + Duration::from_micros(us));
        while let Some(ready) = self.q.ready_at()
            && ready < end
        {
            self.now = self.now.max(ready);
            let mut cx = Cx { now: self.now, rng: &mut self.rng };
            if let Some((_, flow)) = self.q.dequeue(&mut cx, &mut ()) {
                self.sent[flow as usize] += 1;
                if self.on[flow as usize] {
                    self.arrive(flow as usize);
                }
            }
        }
        self.now = end;
        self.sent.iter().zip(before).map(|(now, before)| now - before).collect()
    }
}

/// Of eight queues, each number that is active shares 800 Mb/s, to a packet of each; alone one has all.
#[test]
fn queues_that_are_active_share_the_rate() {
    let mut bench = Bench::new(8);
    for active in [1, 2, 3, 5, 8, 4, 1] {
        bench.are_on(|flow| flow < active);
        bench.run(2000);
        let sent = bench.run(40_000);
        for (flow, got) in sent.iter().enumerate() {
            let expected = if flow < active { 4000 / active as u64 } else { 0 };
            assert!(got.abs_diff(expected) <= 1, "{active} active: {sent:?}");
        }
    }
}

/// When `more` queues begin at once beside `few`, each divides by as many as it sees: those of before by
/// `few` still, the new ones by few + 1, few + 2 … more. So together they go at 1 + H(more) − H(few) times
/// the rate (H: harmonic numbers) until each has looked again, after 200 µs and a packet at the latest. With
/// a packet of each at once, that is the most that the sum exceeds the rate by. When they end, the others
/// count them in the look after the last packet once more.
#[test]
fn the_sum_is_off_by_no_more_than_two_looks() {
    let harmonic = |n: usize| (1..=n).map(|k| 1.0 / k as f64).sum::<f64>();
    for (few, more) in [(1, 2), (1, 4), (1, 8), (2, 3), (3, 8), (7, 8)] {
        let mut bench = Bench::new(8);
        bench.are_on(|flow| flow < few);
        bench.run(5130);
        bench.are_on(|flow| flow < more);
        let sent: u64 = bench.run(10_000).iter().sum();
        let excess = sent as f64 - 1000.0;
        // 200 µs are 20 packets at the rate.
        let most = (harmonic(more) - harmonic(few)) * (20.0 + more as f64) + more as f64;
        let least = (harmonic(more) - harmonic(few)) * 20.0 / 2.0 - more as f64;
        assert!((least..=most).contains(&excess), "{few} … {more}: {excess}, not {least} … {most}");

        bench.are_on(|flow| flow < few);
        let sent: u64 = bench.run(10_000).iter().sum();
        let lack = 1000.0 - sent as f64;
        let part = 1.0 - few as f64 / more as f64;
        let most = part * 2.0 * (20.0 + more as f64) + few as f64;
        assert!((0.0..=most).contains(&lack), "{more} … {few}: {lack}, not 0 … {most}");
    }
}

/// A queue with a packet now and then counts, and leaves most of its half unused.
#[test]
fn what_an_active_queue_does_not_need_nobody_gets() {
    let mut bench = Bench::new(2);
    bench.are_on(|flow| flow == 0);
    let mut sent = [0; 2];
    for _ in 0..200 {
        bench.arrive(1);
        let now = bench.run(100);
        sent = [sent[0] + now[0], sent[1] + now[1]];
    }
    assert_eq!(sent[1], 200);
    assert!(sent[0].abs_diff(1000) <= 25, "{sent:?} of 2000");
}

/// Flow 0 has run empty above target, and its COBALT is not at rest when flow 1 sends the last packet. A target
/// later the queue looks again, without packets: what the other queue sent before that no longer counts.
#[test]
fn a_queue_looks_again_when_its_cobalts_may_be_at_rest() {
    let mut bench = Bench::new(2);
    let settings = config(&[RATE[0], ("target", "1ms")]);
    bench.q = Many::new(2, &settings, &env(10_000), &mut Rng::new(3, 0)).unwrap();
    let q = &bench.q;
    let flows = |queue| (1..).map(FlowKey).filter(move |flow| q.queue_of(*flow) == queue);
    bench.flows = flows(0).take(2).chain(flows(1).take(1)).collect();
    (bench.on, bench.sent) = (vec![false; 3], vec![0; 3]);
    (0..300).for_each(|_| bench.arrive(0));
    (0..400).for_each(|_| bench.arrive(1));
    bench.run(6500);
    assert!(bench.q.backlog().packets > 0);
    while bench.q.backlog().packets > 0 {
        bench.run(1);
    }
    bench.run(500);
    bench.arrive(2);
    bench.run(1000);
    let queue = &bench.q.queues[0];
    assert_eq!(queue.looked, queue.sent.map(|sent| sent + Duration::from_millis(1)));
    bench.arrive(0);
    assert_eq!(bench.q.queues[0].active, 1);
}

/// The rate of the link, without one of their own; a new one holds at once, for all.
#[test]
fn they_share_the_rate_of_their_link() {
    let mut bench = Bench::new(2);
    bench.q.shared_rate = None;
    bench.are_on(|_| true);
    bench.run(1000);
    for (mbit, expected) in [(80, 50), (8, 5)] {
        let env = Env { now: bench.now, rate: Rate::from_mbit(mbit), ..env(100) };
        bench.q.rate_changed(&env);
        bench.run(5000);
        let sent = bench.run(10_000);
        assert!(sent.iter().all(|got| got.abs_diff(expected) <= 1), "{mbit} Mb/s: {sent:?}");
    }
}

#[test]
fn the_cake_with_most_bytes_makes_room() {
    let mut rng = Rng::new(3, 0);
    let mut bench = Bench::new(2);
    bench.q = Many::new(2, &config(&RATE), &env(10), &mut rng).unwrap();
    bench.flows.sort_by_key(|flow| bench.q.queue_of(*flow));
    (0..9).for_each(|_| bench.arrive(0));
    (0..4).for_each(|_| bench.arrive(1));
    let waits = |bench: &Bench| {
        bench.q.queues.iter().map(|queue| queue.cake.backlog().packets).collect::<Vec<_>>()
    };
    assert_eq!(waits(&bench), [6, 4]);
    assert_eq!(bench.q.counters().dropped[Cause::Overflow as usize].packets, 3);
}

/// With 8 queues on a link of 10 Mb/s.
#[test]
fn a_shared_rate_is_not_beyond_the_link_s_nor_next_to_nothing() {
    for (rate, taken) in [
        ("10mbit", true),
        ("10001kbit", false),
        ("8kbit", true),
        ("7999bit", false),
        ("1bit", false),
    ] {
        let settings = config(&[("queues", "8"), ("shared_rate", rate)]);
        let env = Env { rate: Rate::from_mbit(10), ..env(10) };
        let built = Cakes::<u32>::new(&settings, &env, &mut Rng::new(1, 0));
        assert_eq!(built.is_ok(), taken, "{rate}");
        if let Err(e) = built {
            let allowed = "8kbit, 1kbit for each queue, … 10mbit, the rate of its link or class";
            assert_eq!((e.key, &*e.allowed), ("shared_rate", allowed));
        }
    }
}

/// Not that they would have no effect.
#[test]
fn what_goes_with_one_queue_or_with_several_alone_is_refused_in_words() {
    for (settings, words) in [
        (&[("shared_rate", "5mbit")][..], "a CAKE alone has the rate of its link"),
        (
            &[("queues", "4"), ("autorate_ingress", "true")],
            "several queues share a fixed rate, as in Linux",
        ),
    ] {
        let Err(BuildError::Parameter(_, e)) = configure::<CakeConfig>(&[], settings) else {
            panic!("{settings:?} is taken")
        };
        assert!(e.hint.starts_with(words), "{}", e.hint);
    }
}

#[test]
fn a_rate_of_their_own_needs_a_shaper() {
    let settings = config(&[("queues", "2"), ("shared_rate", "1mbit"), ("unlimited", "true")]);
    let error = Cakes::<u32>::new(&settings, &env(10), &mut Rng::new(1, 0)).unwrap_err();
    assert_eq!(error.key, "shared_rate");
}

/// What leaves when, and what is dropped or marked, at 8 Mb/s: 1 µs a byte. Arrivals: the time since the one
/// before, µs, the flow and the length.
fn story(q: &mut impl Qdisc<u32>, arrivals: &[(u64, FlowKey, u32, bool)]) -> Vec<(u64, u32)> {
    let mut rng = Rng::new(7, 0);
    let (mut events, mut free, mut at) = (Vec::new(), 0, 0);
    let mut coming: VecDeque<_> = arrivals.iter().zip(0..).collect();
    loop {
        let asks = q.ready_at().map_or(free, |ready| free.max(ready.as_nanos()));
        let next = coming.front().map(|((gap, ..), _)| at + gap * 1000);
        if q.backlog().packets > 0 && next.is_none_or(|next| asks < next) {
            let mut cx = Cx { now: Instant::from_nanos(asks), rng: &mut rng };
            let sent = q.dequeue(&mut cx, &mut ());
            free = asks + u64::from(sent.map_or(0, |(meta, _)| meta.len)) * 1000;
            events.extend(sent.map(|(meta, id)| (asks, id << 1 | u32::from(meta.ecn == Ecn::Ce))));
        } else if let Some(((_, flow, len, capable), id)) = coming.pop_front() {
            at = next.unwrap_or_default();
            free = free.max(at);
            let (len, arrived) = (*len, Instant::from_nanos(at));
            let ecn = if *capable { Ecn::Ect0 } else { Ecn::NotEct };
            let meta = Meta { len, ecn, flow: *flow, arrived };
            q.enqueue(meta, id, &mut Cx { now: arrived, rng: &mut rng }, &mut ());
        } else {
            return events;
        }
    }
}

proptest! {
    /// One of them, and one of four alone with traffic, do with each packet what a CAKE on its link does.
    #[test]
    fn a_queue_alone_is_a_cake(
        arrivals in prop::collection::vec((0..2500u64, 0..6u64, 40..1500u32, any::<bool>()), 1..400),
        other in prop_oneof![
            proptest::strategy::Just(&[][..]),
            proptest::strategy::Just(&[("diffserv", "diffserv8"), ("ecn", "false")][..]),
            proptest::strategy::Just(&[("ingress", "true"), ("isolation", "hosts")][..]),
            proptest::strategy::Just(&[("unlimited", "true"), ("isolation", "flowblind")][..]),
        ],
    ) {
        let settings: Vec<_> = [("rtt", "2ms")].iter().chain(other).copied().collect();
        let (config, env) = (config(&settings), env(12));
        let four = Many::<u32>::new(4, &config, &env, &mut Rng::new(3, 0)).unwrap();
        let first: Vec<_> =
            (1..).map(FlowKey).filter(|flow| four.queue_of(*flow) == 0).take(6).collect();
        let arrivals: Vec<_> = arrivals
            .into_iter()
            .map(|(gap, flow, len, capable)| (gap, first[flow as usize], len, capable))
            .collect();
        let mut plain = Cake::<u32>::new(&config, false, &env, &mut Rng::new(3, 0)).unwrap();
        let mut one = Many::<u32>::new(1, &config, &env, &mut Rng::new(3, 0)).unwrap();
        let expected = story(&mut plain, &arrivals);
        prop_assert_eq!(story(&mut one, &arrivals), &expected[..]);
        prop_assert_eq!(one.counters(), plain.counters());
        let mut four = four;
        prop_assert_eq!(story(&mut four, &arrivals), expected);
        prop_assert_eq!(four.counters(), plain.counters());
    }
}
