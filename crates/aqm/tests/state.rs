//! What disciplines say that they remember, with a buffer of 100 packets.

use aqm::{AnyQdisc, CATALOG, Env, Instant, Limit, Qdisc, Rate, Rng, State};

fn state(name: &str) -> State {
    let limit = Limit::packets(100).unwrap();
    let env = Env { now: Instant::ZERO, limit, rate: Rate::from_mbit(45), mean_packet: 1000 };
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
        ("sfq", 128, 12),
        ("drr", 101, 12),
        ("fq-codel", 1024, 12),
        ("fq-pie", 1024, 12),
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
