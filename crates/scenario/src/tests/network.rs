//! Nodes, links and the ways between them.

use super::*;
use crate::routes::Routes;

#[test]
fn a_network_without_a_way_back_is_refused() {
    let e = fails(
        r#"
        duration = "1s"
        [[link]]
        from = "a"
        to = "b"
        rate = "1mbit"
        delay = "1ms"
        duplex = false
        [[traffic]]
        transport = "sack"
        from = ["a"]
        to = ["b"]
        "#,
    );
    assert!(e.problem.contains("no route from b to a"), "{e}");
}

/// Which of two links packets would take hung on their order in the file.
#[test]
fn between_two_nodes_there_is_one_link_each_way() {
    let link = |from: &str, to: &str, more: &str| {
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n{more}\n"
        )
    };
    let with = |links: &str| {
        format!(
            "duration = \"1s\"\n{links}[[traffic]]\ntransport = \"sack\"\nfrom = [\"a\"]\nto = [\"b\"]\n"
        )
    };
    let one = "duplex = false";
    for second in [link("a", "b", ""), link("b", "a", ""), link("a", "b", one), link("b", "a", one)]
    {
        let e = fails(&with(&(link("a", "b", "") + &second)));
        assert_eq!(e.key, "link[1].to", "{e}");
        assert!(e.hint.contains("duplex = false"));
    }
    let queue = "[[queue]]\nlink = \"a->b\"\naqm = \"red\"\nbuffer = \"9p\"\n";
    let apart = with(&(link("a", "b", one) + &link("b", "a", one) + queue));
    Scenario::from_toml(&apart, "x").unwrap();
    assert_eq!(fails(&with(&link("a", "a", ""))).key, "link[0].to");
    for (from, to, key) in [("a->b", "b", "link[0].from"), ("a", "", "link[0].to")] {
        assert_eq!(fails(&with(&link(from, to, ""))).key, key);
    }
}

/// Routes are looked for from each node of one side, not for each pair.
#[test]
fn thousands_of_nodes_are_soon_checked() {
    let text = GOOD.replace("\"feng\"", "\"feng\"\nleft = 500\nright = 500");
    assert!(Scenario::from_toml(&text, "x").is_ok());
    let text = text.replace("500", "1000").replace("200kB", "1bdp");
    let topology = Scenario::from_toml(&text, "x").unwrap().topology().unwrap();
    assert_eq!(topology.base_rtt(), Some(Duration::from_millis(100)));
}

#[test]
fn base_rtt_is_the_mean_over_pairs() {
    let delays = r#""feng"
        left = 2
        right = 3
        access_delay = ["1ms", "2ms", "6ms"]"#;
    let text = GOOD.replace("\"feng\"", delays);
    let topology = Scenario::from_toml(&text, "x").unwrap().topology().unwrap();
    // 2·((1 + 2)/2 + 10 + (1 + 2 + 6)/3) = 29 ms.
    assert_eq!(topology.base_rtt(), Some(Duration::from_millis(29)));
}

/// Two bottlenecks with two pairs of nodes at each.
const CHAIN: &str = r#"
duration = "2s"
[network]
preset = "chain"
bottlenecks = 2
cross = 2
cross_delay = ["1ms", "4ms"]
[[queue]]
aqm = "droptail"
buffer = "1bdp"
[[traffic]]
name = "long"
transport = "cbr"
rate = "1mbit"
[[traffic]]
name = "cross"
flows = 3
transport = "cbr"
rate = "1mbit"
from = ["s*.1"]
to = ["d*.1"]
"#;

#[test]
fn a_chain_has_a_queue_and_cross_traffic_at_each_bottleneck() {
    let scenario = Scenario::from_toml(CHAIN, "x").unwrap();
    let echo = scenario.to_toml();
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario);
    let links: Vec<&str> = scenario.queue.iter().flat_map(|q| q.link.as_deref()).collect();
    assert_eq!(links, ["A->B", "B->C"]);
    let from: Vec<_> =
        scenario.traffic.iter().flat_map(|t| t.group.from.iter().flatten()).collect();
    assert_eq!(from, ["s1.1", "s2.1"]);
    let topology = scenario.topology().unwrap();
    let node = |name: &str| topology.ends(Some(&[name.into()]), true, "").unwrap()[0];
    let links = |from, to| Routes::new(&topology).route(node(from), node(to), |_, _| 0).unwrap();
    let route = |from, to| -> Vec<String> {
        links(from, to).iter().map(|&link| topology.link_name(link as usize)).collect()
    };
    assert_eq!(route("n0", "n1"), ["n0->A", "A->B", "B->C", "C->n1"]);
    assert_eq!(route("s2.1", "d2.1"), ["s2.1->B", "B->C", "C->d2.1"]);
    assert_eq!(topology.links[links("s2.1", "B")[0] as usize].delay, Duration::from_millis(4));
    // From end to end: 2·(2 + 2·5 + 2) ms.
    assert_eq!(topology.base_rtt(), Some(Duration::from_millis(28)));
}

/// Routers go on behind `Z` as columns of a sheet do.
#[test]
fn a_chain_can_be_long() {
    let text = CHAIN.replace("bottlenecks = 2", "bottlenecks = 1000");
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let topology = scenario.topology().unwrap();
    assert_eq!(scenario.queue.len(), 1000);
    for (link, name) in
        [(0, "A->B"), (25, "Z->AA"), (51, "AZ->BA"), (701, "ZZ->AAA"), (999, "ALL->ALM")]
    {
        assert_eq!(topology.link_name(2 * link), name);
        assert_eq!(topology.find_link(name, "").unwrap(), 2 * link);
        assert_eq!(scenario.queue[link].link.as_deref(), Some(name));
    }
    let said = topology.find_link("AZ->BB", "queue[0].link").unwrap_err();
    assert!(said.hint.contains("AZ->BA"), "{}", said.hint);
}

#[test]
fn what_a_chain_cannot_be_is_said() {
    for (old, new, key, part) in [
        ("bottlenecks = 2", "bottlenecks = 0", "network.bottlenecks", "1 … 10000"),
        ("bottlenecks = 2", "bottlenecks = 10001", "network.bottlenecks", "1 … 10000"),
        ("cross = 2", "cross = 500", "network.cross", "0 … 400"),
        ("cross = 2", "cross = 3", "network.cross_delay", "one delay, or 3"),
        ("\"4ms\"", "\"5000000h\"", "network.cross_delay", "3600s"),
        ("s*.1", "s*.2", "traffic[1].from", "did you mean `s1."),
        ("d*.1", "s*.1", "traffic[1].to", "no route"),
        ("aqm = \"droptail\"", "aqm = \"drptail\"", "queue[0].aqm", "did you mean `droptail`?"),
    ] {
        assert!(CHAIN.contains(old), "{old}");
        let e = fails(&CHAIN.replace(old, new));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
    let e =
        fails(&format!("{CHAIN}\n[[queue]]\nlink = \"B->C\"\naqm = \"red\"\nbuffer = \"9p\"\n"));
    assert!(e.key == "queue[1].link" && e.hint.contains("B->C"), "{e}");
}

#[test]
fn bdp_is_rate_times_base_round_trip() {
    let text = GOOD.replace("200kB", "1bdp");
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let topology = scenario.topology().unwrap();
    // 45 Mb/s · 100 ms = 562 500 bytes.
    let limit = scenario.queue[0].limit(&topology, 0).unwrap();
    assert_eq!(limit.max_bytes(), 562_500);
}
