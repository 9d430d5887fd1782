//! What disciplines say that they remember, with a buffer of 100 packets.

use crate::counting::counted;
use aqm::policy::drop_tail::DropTail;
use aqm::{AnyQdisc, CATALOG, Env, Fifo, Limit, Qdisc, Rate, Rng, State};

fn state(name: &str) -> State {
    let limit = Limit::packets(100).unwrap();
    let env = Env::new(limit, Rate::from_mbit(45));
    AnyQdisc::<()>::build(name, &[], &env, &mut Rng::new(0, 0)).unwrap().state()
}

/// Flows that are told apart, and bytes for each queued packet: a place in a table (4), the places of
/// the packets before and behind and the packet's queue (12), a place in each of SFB's bins (24).
#[test]
fn who_tells_flows_apart_and_tags_packets() {
    let tells = [
        ("fred", 100, 4),
        ("sfb", 0, 24),
        ("sfred", 0, 24),
        ("red-penalty-box", 100, 0),
        ("sfq", 128, 8),
        ("drr", 101, 8),
        ("fq-codel", 1024, 8),
        ("fq-pie", 1024, 8),
        ("fq", 2049, 8),
        ("cake", 3072, 8),
        ("red-pd", 2048, 0),
        ("csfq", 1024, 0),
    ];
    for name in CATALOG.iter().map(|entry| entry.name) {
        let told = state(name);
        let (flows, per_packet) =
            tells.iter().find(|each| each.0 == name).map_or((0, 0), |each| (each.1, each.2));
        assert_eq!((told.flows, told.per_packet), (flows, per_packet), "{name}");
        assert_eq!(told.per_flow > 0, flows > 0, "{name}: {told:?}");
        let nothing = ["droptail", "drop-front", "random-drop"].contains(&name);
        assert_eq!(told.queue > 0, !nothing, "{name}: {told:?}");
    }
}

/// What a discipline says that it remembers is what it takes beyond a queue that drops at its tail, but
/// for the lengths of its lists. A ring of 128 slots holds 127 packets; two coupled queues have one each.
#[test]
fn what_is_told_is_what_is_taken() {
    const SLOTS: u64 = 128;
    let limit = Limit::packets(SLOTS - 1).unwrap();
    let env = Env::new(limit, Rate::from_mbit(45));
    let build = |name| {
        let build = || AnyQdisc::<()>::build(name, &[], &env, &mut Rng::new(0, 0)).unwrap();
        let (queue, [_, bytes]) = counted(build);
        (queue.state(), bytes)
    };
    let plain = build("droptail").1;
    let ring = plain - size_of::<Fifo<DropTail, ()>>() as u64;
    for name in CATALOG.iter().map(|entry| entry.name) {
        let (State { queue, per_flow, flows, per_packet }, taken) = build(name);
        let told = queue + per_flow * flows + per_packet * SLOTS;
        let coupled = ["dualpi2", "curvy-red"].contains(&name);
        let beside = if coupled { 2 * ring } else { plain };
        let difference = (told + beside).abs_diff(taken);
        assert!(difference <= told / 50, "{name}: {told} told, {difference} amiss");
    }
}
