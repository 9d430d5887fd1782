use super::*;
use crate::fifo::Fifo;
use crate::packet::{FlowKey, Label};
use crate::policy::drop_tail::DropTail;
use crate::policy::lab::env;
use crate::qdisc::Discipline as _;
use crate::rng::Rng;
use std::vec;
use std::vec::Vec;

type Plain = Htb<Fifo<DropTail, u32>>;

fn mbit(rate: f64) -> Rate {
    Rate::new((rate * 1e6) as u64).unwrap()
}

/// Leaf n takes what host n sends.
fn built(classes: &[Class]) -> Result<Plain, TreeError> {
    let inner = |n: usize| classes.iter().any(|class| class.parent == Some(n));
    let leaves = (0..classes.len()).filter(|n| !inner(*n));
    let rule = |host: u16| Rule { host: Some(host..=host), ..Rule::default() };
    let rules: Vec<_> = leaves.enumerate().map(|(n, class)| (rule(n as u16), class)).collect();
    let queue = |_, env: &Env| {
        Ok::<_, TreeError>(Fifo::new(&Default::default(), env, &mut Rng::new(1, 0)).unwrap())
    };
    let sorting = Sorting::Rules(&rules);
    Htb::new(classes, sorting, &Env { rate: Rate::from_mbit(1000), ..env(100) }, |e| e, queue)
}

/// What a leaf is offered, Mbit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Offers {
    /// It always has packets.
    All,
    Mbit(f64),
}

/// A link of 1 Gbit/s behind a tree, and packets of 1000 bytes.
struct Bench {
    q: Plain,
    now: u64,
    /// When packets left of each leaf, ns.
    left: Vec<Vec<u64>>,
}

impl Bench {
    fn new(classes: &[Class]) -> Self {
        let q = built(classes).unwrap();
        let left = vec![Vec::new(); q.leaves.len()];
        Self { q, now: 0, left }
    }

    fn arrive(&mut self, leaf: usize, now: u64) {
        let now = Instant::from_nanos(now);
        let label = Label { host: leaf as u16, ..Label::default() };
        let flow = FlowKey::labelled(leaf as u32, label);
        let meta = Meta { len: 1000, flow, arrived: now, ..Meta::default() };
        self.q.enqueue(meta, leaf as u32, &mut Cx { now, rng: &mut Rng::new(1, 0) }, &mut ());
    }

    fn run(&mut self, offers: &[Offers], seconds: f64) {
        let end = self.now + (seconds * 1e9) as u64;
        let mut next: Vec<Option<u64>> = vec![Some(self.now); offers.len()];
        let (mut free, mut held) = (self.now, false);
        loop {
            let (leaf, coming) = (0..offers.len())
                .filter_map(|leaf| next[leaf].map(|at| (leaf, at)))
                .min_by_key(|(_, at)| *at)
                .unwrap_or((0, u64::MAX));
            let ready = self.q.ready_at().filter(|_| held).map_or(free, Instant::as_nanos);
            let waits = ready.max(free).max(self.now);
            let asks = if self.q.backlog().packets > 0 { waits } else { u64::MAX };
            // A packet that comes may go before what waits.
            self.now = coming.min(asks);
            if self.now >= end {
                return;
            }
            held = false;
            if coming <= asks {
                next[leaf] = match offers[leaf] {
                    Offers::All => None,
                    Offers::Mbit(rate) => Some(coming + (8e12 / (rate * 1e6)) as u64 / 1000 * 1000),
                };
                let packets = if offers[leaf] == Offers::All { 50 } else { 1 };
                (0..packets).for_each(|_| self.arrive(leaf, coming));
            }
            while free <= self.now {
                let now = Instant::from_nanos(self.now);
                let mut cx = Cx { now, rng: &mut Rng::new(1, 0) };
                let Some((_, leaf)) = self.q.dequeue(&mut cx, &mut ()) else {
                    held = true;
                    break;
                };
                let leaf = leaf as usize;
                self.left[leaf].push(self.now);
                free = self.now + 8000;
                if offers[leaf] == Offers::All {
                    self.arrive(leaf, self.now);
                }
            }
        }
    }

    /// Mbit/s of each leaf.
    fn rates(&self, seconds: f64) -> Vec<f64> {
        self.left.iter().map(|left| left.len() as f64 * 8e3 / 1e6 / seconds).collect()
    }
}

/// The borrowing rule, drop by drop: each leaf has its rate; then, from the lowest level on, each class gives
/// what its rate leaves to those below that want more, by turns with their quanta as weights, as far as
/// all ceils between allow.
struct Naive<'a> {
    classes: &'a [Class],
    wants: Vec<f64>,
    used: Vec<f64>,
    /// What each class on the way got of its list, by the level of who lends.
    shares: Vec<f64>,
}

impl Naive<'_> {
    fn children(&self, of: usize) -> Vec<usize> {
        (0..self.classes.len()).filter(|n| self.classes[*n].parent == Some(of)).collect()
    }

    fn level(&self, of: usize) -> usize {
        self.children(of).into_iter().map(|child| 1 + self.level(child)).max().unwrap_or(0)
    }

    fn mbit(rate: Rate) -> f64 {
        rate.bits_per_second() as f64 / 1e6
    }

    /// The hungry leaf below a class whose turn it is, and the way to it.
    fn hungry(&self, class: usize, drop: f64) -> Option<Vec<usize>> {
        let children = self.children(class);
        if children.is_empty() {
            return (self.used[class] + drop <= self.wants[class]).then(Vec::new);
        }
        let fits = |n: &usize| self.used[*n] + drop <= Self::mbit(self.classes[*n].ceil);
        let ways = children.into_iter().filter(fits).filter_map(|child| {
            let mut way = self.hungry(child, drop)?;
            way.push(child);
            Some(way)
        });
        let turn = |way: &Vec<usize>| {
            let child = *way.last().unwrap();
            self.shares[child] / f64::from(self.classes[child].quantum)
        };
        ways.min_by(|a, b| turn(a).total_cmp(&turn(b)))
    }

    fn gives(mut self) -> Vec<f64> {
        let leaves: Vec<usize> =
            (0..self.classes.len()).filter(|n| self.children(*n).is_empty()).collect();
        for &leaf in &leaves {
            let own = self.wants[leaf].min(Self::mbit(self.classes[leaf].rate));
            let mut class = Some(leaf);
            while let Some(n) = class {
                self.used[n] += own;
                class = self.classes[n].parent;
            }
        }
        let drop = 0.02;
        for level in 1..8 {
            for lender in
                (0..self.classes.len()).filter(|n| self.level(*n) == level).collect::<Vec<_>>()
            {
                self.shares.fill(0.0);
                let rate = Self::mbit(self.classes[lender].rate);
                while self.used[lender] + drop <= rate
                    && let Some(way) = self.hungry(lender, drop)
                {
                    for class in way {
                        self.used[class] += drop;
                        self.shares[class] += drop;
                    }
                    let mut class = Some(lender);
                    while let Some(n) = class {
                        self.used[n] += drop;
                        class = self.classes[n].parent;
                    }
                }
            }
        }
        leaves.into_iter().map(|leaf| self.used[leaf]).collect()
    }
}

/// A class of a random tree: rates of children add up to their parent's at most.
fn random_tree(rng: &mut Rng) -> Vec<Class> {
    let mut classes = vec![Class::new(None, mbit(60.0 + rng.below(40) as f64))];
    let mut open = vec![(0usize, 0usize)];
    while let Some((parent, depth)) = open.pop() {
        let children = 2 + rng.below(3);
        let rate = classes[parent].rate.bits_per_second() as f64 / 1e6;
        let most = classes[parent].ceil.bits_per_second() as f64 / 1e6;
        for _ in 0..children {
            let own = rate / children as f64 * (0.3 + 0.7 * rng.uniform());
            let ceil = own + (most - own) * [0.0, 0.3, 1.0, 1.0][rng.below(4)];
            let quantum = [1000, 2000, 5000, 10_000][rng.below(4)];
            let class = Class {
                ceil: mbit(ceil.max(own)),
                quantum,
                // What waits for the turns of others is not lost.
                burst: 30_000,
                cburst: 30_000,
                ..Class::new(Some(parent), mbit(own))
            };
            classes.push(class);
            if depth < 2 && rng.chance(0.3) && classes.len() < 20 {
                open.push((classes.len() - 1, depth + 1));
            }
        }
    }
    classes
}

/// Long-run rates over random trees with random offers agree with the borrowing rule within 2 %.
#[test]
fn rates_are_those_of_the_naive_rule() {
    let mut rng = Rng::new(7, 0);
    let mut deepest = 0;
    for round in 0..40 {
        let classes = random_tree(&mut rng);
        let mut bench = Bench::new(&classes);
        let offers: Vec<Offers> = (0..bench.left.len())
            .map(|_| match rng.below(4) {
                0 => Offers::Mbit(0.5 + 10.0 * rng.uniform()),
                _ => Offers::All,
            })
            .collect();
        let seconds = 8.0;
        bench.run(&offers, seconds);
        let mut wants = vec![0.0; classes.len()];
        for (leaf, offers) in bench.q.leaves.iter().zip(&offers) {
            let ceil = Naive::mbit(classes[leaf.class].ceil);
            wants[leaf.class] = match offers {
                Offers::All => ceil,
                Offers::Mbit(rate) => rate.min(ceil),
            };
        }
        let (used, shares) = (vec![0.0; classes.len()], vec![0.0; classes.len()]);
        let naive = Naive { classes: &classes, wants, used, shares };
        deepest = deepest.max(naive.level(0));
        let expected = naive.gives();
        for (leaf, (got, expected)) in bench.rates(seconds).iter().zip(&expected).enumerate() {
            let close = (got - expected).abs() <= 0.02 * expected + 0.05;
            assert!(
                close,
                "round {round}, leaf {leaf}: {got} not {expected}, {classes:#?} {offers:?}"
            );
        }
    }
    assert_eq!(deepest, 3);
}

/// Two classes with 2 and 4 Mbit/s below one with 10 share the other 4 by their quanta, 1 : 3.
#[test]
fn what_is_left_is_shared_by_quantum() {
    let class =
        |rate, quantum| Class { ceil: mbit(10.0), quantum, ..Class::new(Some(0), mbit(rate)) };
    let classes = [Class::new(None, mbit(10.0)), class(2.0, 2000), class(4.0, 6000)];
    let mut bench = Bench::new(&classes);
    bench.run(&[Offers::All; 2], 10.0);
    let rates = bench.rates(10.0);
    assert!((rates[0] - 3.0).abs() < 0.03 && (rates[1] - 7.0).abs() < 0.07, "{rates:?}");
}

/// The lower number borrows first; the other keeps its rate.
#[test]
fn a_lower_prio_takes_all_that_is_left() {
    let class = |prio| Class { ceil: mbit(10.0), prio, ..Class::new(Some(0), mbit(2.0)) };
    let classes = [Class::new(None, mbit(10.0)), class(0), class(1)];
    let mut bench = Bench::new(&classes);
    bench.run(&[Offers::All; 2], 10.0);
    let rates = bench.rates(10.0);
    assert!((rates[0] - 8.0).abs() < 0.08 && (rates[1] - 2.0).abs() < 0.02, "{rates:?}");
}

/// No class sends more in t seconds than cburst, a packet and ceil · t; and a burst leaves at the link's
/// rate, 8 µs a packet.
#[test]
fn a_ceil_holds_over_each_interval() {
    let class =
        |cburst| Class { ceil: mbit(8.0), burst: 4000, cburst, ..Class::new(Some(0), mbit(4.0)) };
    let classes = [Class::new(None, mbit(50.0)), class(1000), class(5000)];
    let mut bench = Bench::new(&classes);
    bench.run(&[Offers::All; 2], 1.0);
    for (left, cburst) in bench.left.iter().zip([1000, 5000]) {
        for (first, from) in left.iter().enumerate() {
            for (n, at) in left[first..].iter().enumerate() {
                let bytes = 1000 * (n as u64 + 1);
                assert!(bytes <= cburst + 1000 + (at - from) / 1000, "{bytes} in {} ns", at - from);
            }
        }
    }
    let burst: Vec<u64> = bench.left[1][..5].iter().map(|at| at - bench.left[1][0]).collect();
    assert_eq!(burst, [0, 8000, 16_000, 24_000, 32_000]);
}

/// Random packets: each is sent, dropped or queued, the books of the tree are those of its leaves, and what
/// is held back is let go when the tree says so.
#[test]
fn every_packet_is_accounted_for() {
    let mut rng = Rng::new(5, 0);
    for _ in 0..30 {
        let classes = random_tree(&mut rng);
        let mut q = built(&classes).unwrap();
        let (leaves, mut now) = (q.leaves.len(), 0);
        let (mut came, mut sent) = (0, 0);
        for _ in 0..4000 {
            now += rng.below(100_000) as u64;
            let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut Rng::new(1, 0) };
            if rng.chance(0.6) {
                let label = Label { host: rng.below(leaves + 1) as u16, ..Label::default() };
                let len = [40, 576, 1500, 9000][rng.below(4)];
                let meta = Meta { len, flow: FlowKey::labelled(1, label), ..Meta::default() };
                q.enqueue(meta, 0, &mut cx, &mut ());
                came += 1;
            } else if q.dequeue(&mut cx, &mut ()).is_some() {
                sent += 1;
            } else if q.backlog().packets > 0 {
                assert!(q.ready_at().is_some_and(|at| at > cx.now));
            }
            let c = q.counters();
            assert_eq!((c.arrived.packets, c.departed.packets), (came, sent));
            let queued = u64::from(q.backlog().packets);
            assert_eq!(came, sent + c.all_dropped().packets + queued);
            let own = q.leaves.iter().fold(Backlog::default(), |all, l| all + l.queue.backlog());
            assert_eq!(q.backlog(), own);
        }
        while q.backlog().packets > 0 {
            let now = q.ready_at().map_or(Instant::from_nanos(now), |at| at);
            let mut cx = Cx { now, rng: &mut Rng::new(1, 0) };
            while q.dequeue(&mut cx, &mut ()).is_some() {}
        }
    }
}

/// A packet takes 1 ms, then 4 ms, then 1 s; then 1 ms at once, though the class waited for its packet's second.
/// Of the last rate there are bursts of 1600 bytes at each change at most.
#[test]
fn other_rates_hold_at_once_and_packets_stay() {
    let tree = |rate| [Class::new(None, mbit(100.0)), Class::new(Some(0), mbit(rate))];
    let mut bench = Bench::new(&tree(8.0));
    for (rate, expected) in [(8.0, 1000), (2.0, 250), (0.008, 1), (8.0, 1000)] {
        let env = Env { now: Instant::from_nanos(bench.now), rate: mbit(1000.0), ..env(100) };
        let (left, waits) = (bench.left[0].len(), bench.q.backlog().packets);
        bench.q.retune(&tree(rate), &env);
        assert_eq!(bench.q.backlog().packets, waits);
        bench.run(&[Offers::All], 1.0);
        let left = bench.left[0].len() - left;
        assert!(left.abs_diff(expected) <= 2, "{rate}: {left}");
    }
}

#[test]
fn classes_have_to_make_a_tree() {
    let root = Class::new(None, mbit(10.0));
    let child = Class::new(Some(0), mbit(1.0));
    for (classes, expected) in [
        (vec![], (0, "class")),
        (vec![root.clone(), root.clone()], (1, "parent")),
        (vec![root.clone(), Class { parent: Some(1), ..child.clone() }], (1, "parent")),
        (vec![root.clone(), Class { ceil: mbit(0.5), ..child.clone() }], (1, "ceil")),
        (vec![root.clone(), Class { prio: 8, ..child.clone() }], (1, "prio")),
        (vec![root.clone(), Class { quantum: 0, ..child.clone() }], (1, "quantum")),
    ] {
        let error = built(&classes).unwrap_err();
        assert_eq!((error.class, error.key), expected);
    }
    let deep: Vec<_> = (0..9).map(|n: usize| Class::new(n.checked_sub(1), mbit(1.0))).collect();
    let error = built(&deep).unwrap_err();
    assert_eq!((error.class, error.key), (8, "parent"));
    assert!(built(&deep[..8]).is_ok());
}

/// In a leaf whose queue holds a flow back, a packet of another flow that may leave at once does.
#[test]
fn a_leaf_is_asked_again_when_a_packet_comes_that_may_leave() {
    use crate::fair::fq::Fq;
    let classes = [Class::new(None, mbit(100.0))];
    let queue = |_, env: &Env| {
        let config = crate::policy::lab::config(&[("maxrate", "400kbit")]);
        Ok::<_, TreeError>(Fq::new(&config, env, &mut Rng::new(1, 0)).unwrap())
    };
    let env = Env { rate: Rate::from_mbit(1000), ..env(100) };
    let mut q: Htb<Fq<u32>> = Htb::new(&classes, Sorting::Keys, &env, |e| e, queue).unwrap();
    let mut rng = Rng::new(1, 0);
    let mut arrive = |q: &mut Htb<Fq<u32>>, flow, ms: u64| {
        let now = Instant::from_nanos(ms * 1_000_000);
        let meta = Meta { len: 1000, flow: FlowKey(flow), arrived: now, ..Meta::default() };
        q.enqueue(meta, 0, &mut Cx { now, rng: &mut rng }, &mut ());
    };
    let depart = |q: &mut Htb<Fq<u32>>, ms: u64| {
        let now = Instant::from_nanos(ms * 1_000_000);
        let sent = q.dequeue(&mut Cx { now, rng: &mut Rng::new(1, 0) }, &mut ());
        sent.map(|(meta, _): (Meta, u32)| meta.flow.0)
    };
    arrive(&mut q, 1, 0);
    arrive(&mut q, 1, 0);
    assert_eq!([depart(&mut q, 0), depart(&mut q, 1)], [Some(1), None], "the next is due at 20 ms");
    arrive(&mut q, 2, 5);
    assert_eq!([depart(&mut q, 5), depart(&mut q, 6)], [Some(2), None]);
    assert_eq!(q.ready_at(), Some(Instant::from_nanos(20_000_000)));
    assert_eq!(depart(&mut q, 20), Some(1));
}

/// A link of 8 Mbit/s; the first leaf has 2 of them, the second 4 and may have all. What a key says of no
/// leaf goes to the last one.
#[test]
fn keys_name_classes_and_each_is_counted() {
    let classes = [
        Class::new(None, mbit(8.0)),
        Class { ceil: mbit(2.0), ..Class::new(Some(0), mbit(2.0)) },
        Class { ceil: mbit(8.0), ..Class::new(Some(0), mbit(4.0)) },
    ];
    let queue = |_, env: &Env| {
        Ok::<_, TreeError>(Fifo::new(&Default::default(), env, &mut Rng::new(1, 0)).unwrap())
    };
    let mut q: Plain = Htb::new(&classes, Sorting::Keys, &env(100), |e| e, queue).unwrap();
    let mut rng = Rng::new(1, 0);
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let named = [1, 2, 2, 0, 3, 9];
    for class in named {
        let meta = Meta { len: 1000, flow: FlowKey(7).in_class(class), ..Meta::default() };
        q.enqueue(meta, class.into(), &mut Cx { now: at(0), rng: &mut rng }, &mut ());
    }
    let waits = |q: &Plain| q.counts().iter().map(|c| c.backlog.packets).collect::<Vec<_>>();
    assert_eq!(waits(&q), [6, 1, 5], "0 has classes below it, and 3 and 9 are none");
    for ms in 0..50 {
        q.dequeue(&mut Cx { now: at(ms), rng: &mut rng }, &mut ());
    }
    let counts = q.counts();
    let told = |c: &ClassCount| (c.counters.departed.packets, c.borrowed);
    let none = Tally::default();
    let borrowed = counts[2].borrowed;
    assert_eq!(counts.iter().map(told).collect::<Vec<_>>(), [(6, none), (1, none), (5, borrowed)]);
    // A packet takes 2 ms of 4 Mbit/s, and a burst of 1600 B is 3.2 ms. From 1 ms on one leaves each ms: the
    // first four find 3.2, 2.2, 1.2 and 0.2 ms, and the fifth is 0.8 ms short.
    assert_eq!((borrowed.packets, borrowed.bytes), (1, 1000));
    assert_eq!(counts[0].counters, *q.counters());
    assert_eq!(waits(&q), [0; 3]);
}

/// A leaf learns that it has run empty: RED's average ages while it waits.
#[test]
fn a_leaf_that_runs_empty_learns_of_it() {
    use crate::policy::red::Red;
    let classes = [Class::new(None, mbit(8.0))];
    let queue = |_, env: &Env| {
        let config =
            crate::policy::lab::config(&[("min_th", "5p"), ("max_th", "15p"), ("w_q", "0.1")]);
        Ok::<_, TreeError>(Fifo::new(&config, env, &mut Rng::new(1, 0)).unwrap())
    };
    let mut q: Htb<Fifo<Red, u32>> =
        Htb::new(&classes, Sorting::Keys, &env(100), |e| e, queue).unwrap();
    let mut rng = Rng::new(1, 0);
    let mut average = |q: &mut Htb<Fifo<Red, u32>>, ms: u64| {
        let now = Instant::from_nanos(ms * 1_000_000);
        let mut cx = Cx { now, rng: &mut rng };
        let meta = Meta { len: 1000, arrived: now, ..Meta::default() };
        q.enqueue(meta, 0, &mut cx, &mut ());
        let mut average = None;
        q.leaves[0].queue.observe(now, &mut |name, value| {
            average = average.or((name == "avg").then_some(value));
        });
        average.unwrap()
    };
    let busy = (0..9).map(|_| average(&mut q, 0)).last().unwrap();
    assert!(busy > 2.0, "{busy}");
    let mut rng = Rng::new(1, 0);
    for ms in 1..50 {
        q.dequeue(&mut Cx { now: Instant::from_nanos(ms * 1_000_000), rng: &mut rng }, &mut ());
    }
    assert_eq!(q.backlog().packets, 0);
    let rested = average(&mut q, 1000);
    assert!(rested < 0.01 * busy, "{rested} after a second, {busy} before");
}

/// Leaves that together are sure of 2.4 times their link take turns of a packet; those of lower prio go first.
#[test]
fn leaves_that_are_promised_more_than_the_link_has_share_it() {
    for (prio, expected) in [([1, 1, 1], [333.3; 3]), ([0, 1, 1], [400.0, 300.0, 300.0])] {
        let root = Class::new(None, mbit(1000.0));
        let leaf = |n: u32| Class {
            quantum: 2000 * n,
            prio: prio[n as usize - 1],
            ..Class::new(Some(0), mbit(400.0 * f64::from(n)))
        };
        let classes = [root, leaf(1), leaf(2), leaf(3)];
        let mut bench = Bench::new(&classes);
        bench.run(&[Offers::All; 3], 1.0);
        for (got, expected) in bench.rates(1.0).iter().zip(expected) {
            assert!((got - expected).abs() < 2.0, "{prio:?}: {got} Mb/s, not {expected}");
        }
    }
}
