//! Fabrics, patterns of traffic over them, and the shortest routes of any network.

use std::collections::HashSet;

use aqm::Rng;

use super::*;
use crate::network::{Ecmp, Routing};
use crate::routes::{Route, Routes};

const FABRIC: &str = r#"
duration = "10ms"
[network]
preset = "fat-tree"
[[queue]]
aqm = "droptail"
buffer = "100p"
[[traffic]]
transport = "cubic"
pattern = "permutation"
"#;

fn read(text: &str) -> Scenario {
    let scenario = Scenario::from_toml(text, "x").unwrap_or_else(|e| panic!("{e}"));
    let echo = scenario.to_toml();
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario, "{echo}");
    scenario
}

fn topology(network: &str) -> Topology {
    let network = Network::deserialize(Deserializer::parse(network).unwrap()).unwrap();
    Topology::new(&network, &[]).unwrap()
}

fn node(topology: &Topology, name: &str) -> usize {
    topology.ends(Some(&[name.into()]), true, "").unwrap()[0]
}

/// All shortest routes between two nodes, as the names of their nodes behind the first.
fn routes(topology: &Topology, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (node(topology, from), node(topology, to));
    let all = Routes::new(topology).all(from, to, 1000).unwrap();
    let sum: f64 = all.iter().map(|(_, share)| share).sum();
    assert!((sum - 1.0).abs() < 1e-12);
    let behind = |&link: &u32| topology.link_name(link as usize).split_once("->").unwrap().1.into();
    let named = |route: &Route| route.iter().map(behind).collect::<Vec<String>>().join(" ");
    all.iter().map(|(route, _)| named(route)).collect()
}

/// Of k = 4, Fig. 3 of Al-Fares, Loukissas and Vahdat: 16 hosts, 8 + 8 + 4 switches of four ports.
#[test]
fn a_fat_tree_has_its_switches_and_routes() {
    let scenario = read(FABRIC);
    let topology = scenario.topology().unwrap();
    assert_eq!((topology.links.len(), scenario.queue.len()), (2 * 48, 20 * 4));
    assert_eq!(scenario.traffic[0].group.flows, 16);
    assert_eq!(scenario.network.ecmp, Some(Ecmp::Flow));
    let at_hosts = |queue: &QueueSpec| queue.link.as_deref().is_some_and(|l| l.starts_with('h'));
    assert!(!scenario.queue.iter().any(at_hosts), "a host is no switch");
    assert_eq!(routes(&topology, "h0", "h1"), ["e0 h1"]);
    assert_eq!(routes(&topology, "h0", "h2"), ["e0 a0 e1 h2", "e0 a1 e1 h2"]);
    let between_pods =
        ["e0 a0 c0 a6 e7 h15", "e0 a0 c1 a6 e7 h15", "e0 a1 c2 a7 e7 h15", "e0 a1 c3 a7 e7 h15"];
    assert_eq!(routes(&topology, "h0", "h15"), between_pods);
    assert_eq!(routes(&topology, "h15", "c2"), ["e7 a7 c2"]);
}

/// k³/4 hosts, and (k/2)² routes between pods.
#[test]
fn fat_trees_grow_as_their_formulas_say() {
    for k in [4, 6, 8, 16, 32] {
        let topology = topology(&format!("preset = \"fat-tree\"\nk = {k}"));
        assert_eq!(topology.links.len(), 2 * 3 * k * k * k / 4);
        let last = format!("h{}", k * k * k / 4 - 1);
        assert_eq!(routes(&topology, "h0", &last).len(), k * k / 4);
    }
}

#[test]
fn a_leaf_spine_has_a_route_over_each_spine() {
    let sized =
        "preset = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts = 5\naccess_delay = \"2us\"";
    let topology = topology(sized);
    assert_eq!(topology.links.len(), 2 * (15 + 6));
    assert_eq!(routes(&topology, "h0", "h4"), ["l0 h4"]);
    assert_eq!(routes(&topology, "h4", "h14"), ["l0 s0 l2 h14", "l0 s1 l2 h14"]);
    let link = |name: &str| &topology.links[topology.find_link(name, "").unwrap()];
    assert_eq!(
        (link("h0->l0").delay, link("l0->h0").delay),
        (Duration::from_micros(2), Duration::from_micros(2))
    );
    assert_eq!(
        (link("l0->s1").delay, link("l0->s1").rate),
        (Duration::from_micros(1), aqm::Rate::from_mbit(40_000))
    );
}

#[test]
fn what_a_fabric_cannot_be_is_said() {
    let leaf_spine = "preset = \"leaf-spine\"";
    for (old, new, key, part) in [
        ("\"fat-tree\"", "\"fat-tree\"\nk = 5", "network.k", "an even number, 4 … 32"),
        ("\"fat-tree\"", "\"fat-tree\"\nk = 34", "network.k", "an even number, 4 … 32"),
        ("\"fat-tree\"", "\"fat-tree\"\nleft = 3", "network.left", "for networks with sides"),
        ("\"fat-tree\"", "\"fat-tree\"\nspines = 3", "network.spines", "for leaf-spine only"),
        (
            "\"fat-tree\"",
            "\"fat-tree\"\nrouting = \"delay\"",
            "network.routing",
            "for links of your own",
        ),
        (
            "\"fat-tree\"",
            "\"dumbbell\"\necmp = \"flow\"",
            "network.ecmp",
            "for fat-tree, leaf-spine",
        ),
        ("\"fat-tree\"", "\"fat-tree\"\necmp = \"flows\"", "network.ecmp", "`flow`"),
        (
            "\"fat-tree\"",
            "\"fat-tree\"\naccess_delay = [\"1us\"]",
            "network.access_delay",
            "one delay",
        ),
        ("\"fat-tree\"", "\"fat-tree\"\nrate = \"1bit\"", "network.rate", "1kbit"),
        ("\"fat-tree\"", "\"fattree\"", "network.preset", "did you mean `fat-tree`?"),
        ("\"fat-tree\"", "\"clos\"", "network.preset", "did you mean `leaf-spine`?"),
        (
            "preset = \"fat-tree\"",
            &format!("{leaf_spine}\nhosts = 0"),
            "network.hosts",
            "1 … 10000",
        ),
        (
            "preset = \"fat-tree\"",
            &format!("{leaf_spine}\nleaves = 200\nhosts = 600"),
            "network.hosts",
            "at most 100000 in all",
        ),
        ("\"100p\"", "\"1bdp\"", "queue[0].buffer", "bdp"),
        (
            "\"permutation\"",
            "\"permutation\"\nto = [\"h1\"]",
            "traffic[0].to",
            "as many nodes as in `from`, 16",
        ),
        (
            "\"permutation\"",
            "\"permutation\"\nfrom = [\"h1\", \"h1\"]",
            "traffic[0].from",
            "each node once",
        ),
        ("\"permutation\"", "\"permutation\"\nfrom = [\"h16\"]", "traffic[0].from", "did you mean"),
        ("\"permutation\"", "\"permute\"", "traffic[0].pattern", "permutation, incast"),
        (
            "pattern = \"permutation\"",
            "from = [\"h1\"]\nto = [\"h1\"]",
            "traffic[0].to",
            "from h1 to itself",
        ),
    ] {
        assert!(FABRIC.contains(old), "{old}");
        let e = fails(&FABRIC.replace(old, new));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
}

#[test]
fn a_pattern_has_as_many_flows_as_senders_unless_it_says_how_many() {
    for (keys, flows) in [
        ("pattern = \"permutation\"", 16),
        ("pattern = \"permutation\"\nflows = 40", 40),
        ("pattern = \"incast\"", 15),
        ("pattern = \"incast\"\nto = [\"h3\"]\nfrom = [\"h0\", \"h1\"]", 2),
    ] {
        let scenario = read(&FABRIC.replace("pattern = \"permutation\"", keys));
        assert_eq!(scenario.traffic[0].group.flows, flows, "{keys}");
    }
    let many = FABRIC.replace("pattern = \"permutation\"", "pattern = \"incast\"\nflows = 0");
    assert_eq!(fails(&many).key, "traffic[0].flows");
}

/// A `*` in the name of a queue's link stands for any text.
#[test]
fn a_queue_may_be_for_many_links() {
    let count = |link: &str| {
        let text = FABRIC.replace("[[queue]]", &format!("[[queue]]\nlink = \"{link}\""));
        Scenario::from_toml(&text, "x").map(|scenario| scenario.queue.len())
    };
    let counts =
        ["*", "c*->*", "*->h*", "e1->*", "e1->a*", "h1*->e*"].map(|link| count(link).unwrap());
    assert_eq!(counts, [96, 16, 16, 4, 2, 7]);
    let e = count("x*->*").unwrap_err();
    assert_eq!((e.key.as_str(), e.value.as_str()), ("queue[0].link", "\"x*->*\""));
    let twice = format!("{FABRIC}\n[[queue]]\nlink = \"*->h0\"\naqm = \"red\"\nbuffer = \"9p\"\n");
    assert!(fails(&twice).hint.contains("e0->h0 has a queue already"));
}

/// Links with any delays between some nodes, each pair at most once.
fn random(rng: &mut Rng, nodes: usize, links: usize, duplex: bool) -> String {
    let mut taken = HashSet::new();
    let mut text = String::new();
    while taken.len() < links {
        let (a, b) = (rng.below(nodes), rng.below(nodes));
        let clear = !taken.contains(&(a, b)) && (!duplex || !taken.contains(&(b, a)));
        if a != b && clear {
            taken.insert((a, b));
            let delay = [0, 1, 1, 2, 5][rng.below(5)];
            text += &format!(
                "[[link]]\nfrom = \"v{a}\"\nto = \"v{b}\"\nrate = \"1mbit\"\ndelay = \"{delay}ms\"\nduplex = {duplex}\n"
            );
        }
    }
    text
}

/// All shortest routes between two nodes by trying every one, in the order of their links.
fn naive(topology: &Topology, from: usize, to: usize) -> Vec<Route> {
    fn go(
        topology: &Topology,
        route: &mut Route,
        node: usize,
        to: usize,
        seen: &mut Vec<usize>,
        all: &mut Vec<Route>,
    ) {
        if node == to {
            all.push(route.clone());
            return;
        }
        for &link in &topology.out[node] {
            let next = topology.links[link].to;
            if !seen.contains(&next) {
                route.push(link as u32);
                seen.push(next);
                go(topology, route, next, to, seen, all);
                route.pop();
                seen.pop();
            }
        }
    }
    let mut all = Vec::new();
    go(topology, &mut Vec::new(), from, to, &mut vec![from], &mut all);
    let cost = |route: &Route| {
        let delays = route.iter().map(|&link| topology.links[link as usize].delay.as_nanos());
        let delay: u64 = if topology.routing == Routing::Delay { delays.sum() } else { 0 };
        (delay, route.len())
    };
    let least = all.iter().map(cost).min();
    all.retain(|route| Some(cost(route)) == least);
    all
}

#[test]
fn routes_are_those_that_trying_every_one_finds() {
    let mut rng = Rng::new(3, 0);
    let (mut several, mut none) = (0, 0);
    for case in 0..60 {
        let (duplex, nodes) = (case % 2 == 0, 4 + rng.below(4));
        let links = nodes + rng.below(nodes);
        let scenario = Scenario::deserialize(
            Deserializer::parse(&format!(
                "duration = \"1s\"\n{}",
                random(&mut rng, nodes, links.min(nodes * (nodes - 1) / 2), duplex)
            ))
            .unwrap(),
        )
        .unwrap();
        for routing in [Routing::Hops, Routing::Delay] {
            let topology = scenario.topology().unwrap().routed(routing, Ecmp::None);
            let count = topology.out.len();
            // One for all pairs: what an earlier search left must not matter.
            let mut routes = Routes::new(&topology);
            for (from, to) in
                (0..count).flat_map(|a| (0..count).map(move |b| (a, b))).filter(|(a, b)| a != b)
            {
                let all = naive(&topology, from, to);
                let found = routes.all(from, to, 1000).unwrap_or_default();
                let found: Vec<Route> = found.into_iter().map(|(route, _)| route).collect();
                assert_eq!(found, all, "{from} to {to}");
                assert_eq!(routes.route(from, to, |_, _| 0).as_ref(), all.first());
                assert_eq!(routes.route(from, to, |_, n| n - 1).as_ref(), all.last());
                several += usize::from(all.len() > 1);
                none += usize::from(all.is_empty());
            }
        }
    }
    assert!(several > 100 && none > 100, "{several} {none}");
}

/// Four routes over two stages of two switches each, each way; a smaller bound refuses them.
#[test]
fn more_routes_than_asked_for_are_none() {
    let topology = topology("preset = \"fat-tree\"\nk = 8");
    let (from, to) = (node(&topology, "h0"), node(&topology, "h127"));
    let mut routes = Routes::new(&topology);
    assert_eq!(routes.all(from, to, 16).map(|all| all.len()), Some(16));
    assert_eq!(routes.all(from, to, 15), None);
}

#[test]
fn own_links_may_have_several_routes_and_be_routed_by_delay() {
    let link = |from, to, delay| {
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1gbit\"\ndelay = \"{delay}\"\n"
        )
    };
    let text = |network: &str| {
        let links = [link("a", "b", "9ms"), link("a", "r", "1ms"), link("r", "b", "1ms")].concat();
        format!(
            "duration = \"1s\"\n{network}{links}[[queue]]\nlink = \"*\"\naqm = \"droptail\"\nbuffer = \"9p\"\n[[traffic]]\ntransport = \"cubic\"\nfrom = [\"a\"]\nto = [\"b\"]\n"
        )
    };
    let hops = |network: &str| {
        let topology = read(&text(network)).topology().unwrap();
        routes(&topology, "a", "b")
    };
    assert_eq!(hops(""), ["b"]);
    assert_eq!(hops("[network]\nrouting = \"delay\"\necmp = \"packet\"\n"), ["r b"]);
    assert_eq!(fails(&text("[network]\nrate = \"1mbit\"\n")).key, "network.rate");
}

#[test]
fn switches_share_a_buffer_if_they_have_queues() {
    let with = |switch: &str| format!("{FABRIC}[[switch]]\n{switch}\n");
    let pools = |switch: &str| {
        let scenario = read(&with(switch));
        let topology = scenario.topology().unwrap();
        let managed = scenario.managed(&topology).unwrap();
        switch::shared(&scenario.switch, &topology, &managed).unwrap()
    };
    let all = pools("buffer = \"2MB\"");
    assert_eq!(all.len(), 20);
    assert!(
        all.iter()
            .all(|pool| (pool.links.len(), pool.bytes) == (4, 2_000_000) && pool.alpha == 1.0)
    );
    assert_eq!(pools("name = \"c*\"\nbuffer = \"2MB\"\nalpha = 8").len(), 4);
    assert_eq!(pools("name = \"e1\"\nbuffer = \"2MB\"").len(), 1);
    for (switch, key, part) in [
        ("buffer = \"20p\"", "switch[0].buffer", "bytes (2MB)"),
        ("buffer = \"9B\"", "switch[0].buffer", "at least 28B"),
        ("buffer = \"2MB\"\nalpha = 0", "switch[0].alpha", "above 0 … 1000"),
        ("buffer = \"2MB\"\nalpha = nan", "switch[0].alpha", "above 0 … 1000"),
        ("buffer = \"2MB\"\nname = \"x*\"", "switch[0].name", "h0, h1"),
        ("buffer = \"2MB\"\nname = \"h1\"", "switch[0].name", "add [[queue]]"),
        (
            "buffer = \"2MB\"\n[[switch]]\nname = \"c1\"\nbuffer = \"1MB\"",
            "switch[1].name",
            "c1 has a shared buffer already",
        ),
        ("bufer = \"2MB\"", "switch[0].bufer", "did you mean `buffer`?"),
    ] {
        let e = fails(&with(switch));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
}

/// A queue of bytes has room for the shortest packets: in a large fabric that is more than a machine has.
#[test]
fn buffers_that_no_machine_has_are_refused() {
    let text = |buffer: &str| {
        FABRIC.replace("\"fat-tree\"", "\"fat-tree\"\nk = 16").replace("100p", buffer)
    };
    let e = fails(&text("16MB"));
    assert_eq!(e.key, "queue", "{e}");
    assert!(e.problem.contains("5120 queues") && e.hint.contains("in packets"), "{e}");
    assert!(Scenario::from_toml(&text("1000p"), "x").is_ok());
}
