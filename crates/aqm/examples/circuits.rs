//! Packets a second through a tree of 1000 circuits, each with an FQ-CoDel: `circuits [CIRCUITS]`.
//!
//! Every circuit has packets all the time, so that each departure is a choice among all that may send. The
//! link's packets are 1000 bytes long, and come in as they go out.

use aqm::fair::Fair;
use aqm::fair::flow_queue::{FlowQueue, FlowQueueConfig};
use aqm::fair::htb::{Class, Htb, Rule, Sorting, TreeError};
use aqm::policy::codel::Codel;
use aqm::{
    Cx, Discipline as _, Duration, Env, FlowKey, Instant, Label, Limit, Meta, Qdisc as _, Rate, Rng,
};

type Leaf = Fair<FlowQueue<Codel>, u32>;

const PACKETS: u64 = 3_000_000;
/// 10 Gbit/s.
const RATE: u64 = 10_000_000_000;

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn main() {
    let circuits: u16 =
        std::env::args().nth(1).map_or(Some(1000), |n| n.parse().ok()).unwrap_or(1000);
    let mut queue = tree(circuits).expect("a tree");
    let mut rng = Rng::new(1, 0);
    let mut now = Instant::ZERO;
    let arrive = |queue: &mut Htb<Leaf>, now: Instant, circuit: u16, rng: &mut Rng| {
        let label = Label { peer: circuit, ..Label::default() };
        let flow = FlowKey::labelled(rng.below(4) as u32, label);
        let meta = Meta { len: 1000, flow, arrived: now, ..Meta::default() };
        queue.enqueue(meta, u32::from(circuit), &mut Cx { now, rng }, &mut ());
    };
    for n in 0..8 * circuits {
        arrive(&mut queue, now, n % circuits, &mut rng);
    }
    let time = Duration::from_nanos(8 * 1000 * 1_000_000_000 / RATE);
    let (began, mut sent, mut asked) = (std::time::Instant::now(), 0, 0u64);
    while sent < PACKETS {
        asked += 1;
        match queue.dequeue(&mut Cx { now, rng: &mut rng }, &mut ()) {
            Some((_, circuit)) => {
                sent += 1;
                now += time;
                arrive(&mut queue, now, circuit as u16, &mut rng);
            }
            None => now = queue.ready_at().unwrap_or(now + time),
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{circuits} circuits: {:.2} million packets a second, {:.0} ns each; asked {asked} times",
        PACKETS as f64 / seconds / 1e6,
        seconds * 1e9 / PACKETS as f64
    );
}

/// The link, ten sites and the circuits of each: what they are sure of is half of the link.
fn tree(circuits: u16) -> Result<Htb<Leaf>, TreeError> {
    let rate = |share: u64| Rate::new(RATE / share).unwrap_or(Rate::from_mbit(1));
    let mut classes = vec![Class::new(None, rate(1))];
    let site = Class { ceil: rate(1), ..Class::new(Some(0), rate(10)) };
    classes.extend((0..10).map(|_| site.clone()));
    let mut rules = Vec::new();
    for circuit in 0..circuits {
        let parent = 1 + usize::from(circuit % 10);
        let own = Class::new(Some(parent), rate(2 * u64::from(circuits)));
        rules.push((Rule { peer: Some(circuit..=circuit), ..Rule::default() }, classes.len()));
        classes.push(Class { ceil: rate(10), ..own });
    }
    let env = Env::new(Limit::packets(100).unwrap_or_else(|| unreachable!()), rate(1));
    let mut rng = Rng::new(1, 0);
    Htb::new(
        &classes,
        Sorting::Rules(&rules),
        &env,
        |e| e,
        |_, env| {
            let mut config = (FlowQueueConfig::default(), Default::default());
            config.0.queues = 64;
            Ok(Leaf::new(&config, env, &mut rng).unwrap_or_else(|e| panic!("{e:?}")))
        },
    )
}
