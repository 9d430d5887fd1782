//! Fabrics: every route is used, by flows and by packets as chance has it, and throughput is that of the
//! routes.

use aqm::Duration;
use sim::results::journal::Selection;
use sim::results::table::Column;
use sim::{Outcome, Run, Scenario};

fn start(text: &str) -> Run {
    Scenario::from_toml(text, "fabric")
        .and_then(|scenario| Run::new(scenario, text, "fabric"))
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A fat-tree of 16 hosts at 1 Gb/s.
pub fn fat_tree(ecmp: &str, traffic: &str) -> String {
    format!(
        r#"
        seed = 5
        duration = "120ms"
        warmup = "20ms"
        [network]
        preset = "fat-tree"
        rate = "1gbit"
        delay = "5us"
        ecmp = "{ecmp}"
        [[queue]]
        link = "*"
        aqm = "red"
        buffer = "250p"
        params = {{ min_th = "20p", max_th = "20p", w_q = 1, gentle = false }}
        [[traffic]]
        packet = "1500B"
        {traffic}
        "#
    )
}

/// What is not ECN-capable would be dropped where the rest is marked.
const PERMUTATION: &str = "transport = \"dctcp\"\necn = true\necn_on_retransmit = true\necn_on_control = true\nmin_rto = \"5ms\"\npattern = \"permutation\"";

/// Packets that left each core switch.
fn through_cores(outcome: &Outcome) -> [f64; 4] {
    let mut cores = [0.0; 4];
    let Some(Column::Text(names)) = outcome.queues.column("queue") else { panic!("no names") };
    for (row, name) in names.iter().enumerate() {
        if let Some(core) = name.strip_prefix('c') {
            let core: usize = core.split_once("->").unwrap().0.parse().unwrap();
            cores[core] += outcome.queues.number("departures", row).unwrap();
        }
    }
    cores
}

#[test]
fn a_permutation_uses_every_core_switch_unless_ecmp_is_none() {
    for (ecmp, used) in [("flow", 4), ("packet", 4), ("none", 1)] {
        let outcome = start(&fat_tree(ecmp, PERMUTATION)).finish();
        let cores = through_cores(&outcome);
        assert_eq!(cores.iter().filter(|&&packets| packets > 1000.0).count(), used, "{cores:?}");
        assert_eq!(cores.iter().filter(|&&packets| packets > 0.0).count(), used, "{cores:?}");
    }
}

/// The links out of switches that each flow crosses, by number.
fn crossed(run: &Run) -> Vec<Vec<usize>> {
    let simulation = run.simulation();
    let crossed = |i| (0..96).filter(|&link| simulation.crosses(i, link)).collect();
    (0..simulation.flow_count()).map(crossed).collect()
}

/// Max-min fair shares, by filling links up: all rates grow alike until a link is full, whose flows then
/// stay.
fn fair(flows: &[Vec<usize>], capacity: f64) -> Vec<f64> {
    let mut rates = vec![None; flows.len()];
    while rates.iter().any(Option::is_none) {
        let share = |link: usize| {
            let over = || flows.iter().zip(&rates).filter(|(links, _)| links.contains(&link));
            let taken: f64 = over().filter_map(|(_, rate)| *rate).sum();
            let open = over().filter(|(_, rate)| rate.is_none()).count();
            (open > 0).then(|| ((capacity - taken) / open as f64, link))
        };
        let (least, link) = (0..96).filter_map(share).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        for (links, rate) in flows.iter().zip(&mut rates) {
            if rate.is_none() && links.contains(&link) {
                *rate = Some(least);
            }
        }
    }
    rates.into_iter().flatten().collect()
}

/// Which flows meet on a link follows from the routes, and their rates from that.
#[test]
fn a_permutation_gets_what_its_collisions_leave() {
    for seed in 1..=4 {
        let text = fat_tree("flow", PERMUTATION).replace("seed = 5", &format!("seed = {seed}"));
        let run = start(&text);
        let shares = fair(&crossed(&run), 1e9);
        let outcome = run.finish();
        // The headers are part of the packets.
        let rates = outcome.flows.real("goodput_bps");
        let rates: Vec<f64> = rates.iter().map(|rate| rate.unwrap()).collect();
        let [sum, fair] = [&rates, &shares].map(|all| all.iter().sum::<f64>());
        assert!((sum / fair - 1.0).abs() < 0.1, "seed {seed}: {sum:e} of {fair:e}");
    }
}

/// Of 4000 flows between two hosts in different pods, each core switch gets a quarter: a binomial, within
/// four standard deviations. No two of the choices of a flow hang together.
#[test]
fn flows_are_spread_as_chance_has_it() {
    let group =
        "transport = \"cubic\"\nflows = 4000\nfrom = [\"h0\"]\nto = [\"h15\"]\nstart = \"0s..1ms\"";
    let text = fat_tree("flow", group).replace("120ms", "1ms").replace("20ms", "0s");
    let run = start(&text);
    let topology = Scenario::from_toml(&text, "fabric").unwrap().topology().unwrap();
    let link = |name: &str| topology.find_link(name, "").unwrap();
    let over = |name: &str| {
        let link = link(name);
        (0..4000).filter(|&i| run.simulation().crosses(i, link)).count() as f64
    };
    let near = |found: f64, p: f64| {
        let deviation = (4000.0 * p * (1.0 - p)).sqrt();
        assert!((found - 4000.0 * p).abs() < 4.0 * deviation, "{found} of 4000 for {p}");
    };
    for name in ["a0->c0", "a0->c1", "a1->c2", "a1->c3"] {
        near(over(name), 0.25);
    }
    for name in ["e0->a0", "e0->a1"] {
        near(over(name), 0.5);
    }
    assert_eq!(over("e0->h1"), 0.0);
}

/// Datagrams at 0.6 of the rate: two flows that meet on a link lose a sixth. No packet that draws its route
/// is lost, and each core switch gets a quarter.
#[test]
fn packets_are_spread_as_chance_has_it() {
    let group =
        "transport = \"cbr\"\nrate = \"600mbit\"\npattern = \"permutation\"\nstart = \"0s..1ms\"";
    let lost = |outcome: &Outcome| -> f64 {
        (0..96).map(|row| outcome.queues.number("drops", row).unwrap()).sum()
    };
    let [flow, packet] = ["flow", "packet"].map(|ecmp| start(&fat_tree(ecmp, group)).finish());
    assert!(lost(&flow) > 1000.0 && lost(&packet) == 0.0, "{} {}", lost(&flow), lost(&packet));
    let cores = through_cores(&packet);
    let all: f64 = cores.iter().sum();
    let deviation = (all * 0.25 * 0.75).sqrt();
    assert!(cores.iter().all(|&core| (core - all / 4.0).abs() < 4.0 * deviation), "{cores:?}");
    let again = start(&fat_tree("packet", group)).with_folding(false).finish();
    assert_eq!(again.decision_hash, packet.decision_hash);
    let other = fat_tree("packet", group).replace("seed = 5", "seed = 6");
    assert_ne!(start(&other).finish().decision_hash, packet.decision_hash);
}

/// A switch R whose ports to `n` receivers, at 100 Mb/s each, share 300 kB.
fn star(n: usize, alpha: f64, traffic: &str) -> String {
    let mut text = String::from("duration = \"500ms\"\nwarmup = \"200ms\"\n");
    for i in 0..n {
        for (from, to, rate) in
            [(format!("s{i}"), "R".into(), "1gbit"), ("R".into(), format!("d{i}"), "100mbit")]
        {
            text += &format!(
                "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"1us\"\n"
            );
        }
        text += &format!("[[traffic]]\nfrom = [\"s{i}\"]\nto = [\"d{i}\"]\n{traffic}\n");
    }
    text += "[[queue]]\nlink = \"R->d*\"\naqm = \"droptail\"\nbuffer = \"1MB\"\n";
    text + &format!("[[switch]]\nname = \"R\"\nbuffer = \"300kB\"\nalpha = {alpha}\n")
}

/// CH98: each of n saturated queues gets alpha/(1 + n alpha) of the buffer. A queue is a packet shorter at
/// most.
#[test]
fn saturated_queues_share_a_buffer_as_the_formula_says() {
    let overload = "transport = \"cbr\"\nrate = \"211mbit\"";
    for alpha in [0.25, 1.0, 2.0] {
        for n in 1..=4 {
            let outcome = start(&star(n, alpha, overload)).finish();
            let share = 300_000.0 * alpha / (1.0 + n as f64 * alpha);
            for row in 0..n {
                let bytes = outcome.queues.number("queue_mean_bytes", row).unwrap();
                let case = format!("{bytes} bytes for {share}, {n} queues, alpha {alpha}");
                assert!((share - 1500.0..=share + 1000.0).contains(&bytes), "{case}");
                assert!(outcome.queues.number("drops_overflow", row).unwrap() > 1000.0);
            }
        }
    }
}

/// A packet at a queue: when it arrives (ns), its queue, its length, and whether it was dropped.
type Arrived = (u64, usize, u64, bool);

/// All packets at the queues of a run, in the order of their arrivals.
fn arrivals(text: &str) -> Vec<Arrived> {
    let mut run = start(text);
    run.keep_journal(&Selection::default());
    while run.advance(Duration::from_millis(10)) {}
    let mut all = Vec::new();
    for (queue, (_, table)) in run.drain_journal().into_iter().enumerate() {
        let Some(Column::Text(fates)) = table.column("fate") else { panic!("no fates") };
        for (row, fate) in fates.iter().enumerate() {
            let [now, bytes] = ["arrived_ns", "bytes"].map(|name| table.number(name, row).unwrap());
            all.push((now as u64, queue, bytes as u64, fate == "dropped"));
        }
    }
    all.sort_unstable();
    all
}

/// The rule by the book: of each queue the packets with the times at which they leave it, looked through at
/// each arrival.
fn by_the_book(arrivals: &[Arrived], n: usize, alpha: f64) -> Vec<bool> {
    let mut queued: Vec<Vec<(u64, u64)>> = vec![Vec::new(); n];
    let mut free_at = vec![0; n];
    let mut dropped = Vec::new();
    for &(now, queue, bytes, _) in arrivals {
        queued.iter_mut().for_each(|queue| queue.retain(|(leaves, _)| *leaves > now));
        let held = |queue: &[(u64, u64)]| queue.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let free = 300_000 - queued.iter().map(|queue| held(queue)).sum::<u64>();
        let admitted = bytes <= free && (held(&queued[queue]) as f64) < alpha * free as f64;
        dropped.push(!admitted);
        if admitted {
            let leaves = now.max(free_at[queue]);
            free_at[queue] = leaves + bytes * 80; // at 100 Mb/s
            queued[queue].push((leaves, bytes));
        }
    }
    dropped
}

#[test]
fn a_shared_buffer_admits_what_a_naive_one_admits() {
    let bursts = "transport = \"cbr\"\nrate = \"109mbit\"\ngaps = \"poisson\"\npacket = \"1200B\"\nflows = 1\nstart = \"0s..50ms\"";
    for alpha in [0.1, 0.5, 3.0] {
        let arrived = arrivals(&star(3, alpha, bursts));
        let times = arrived.windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
        assert_eq!(times, 0, "packets at one instant have an order of their own");
        let dropped: Vec<bool> = arrived.iter().map(|each| each.3).collect();
        let count = dropped.iter().filter(|&&dropped| dropped).count();
        assert!(count > 50 && arrived.len() > 10_000, "{count} of {}", arrived.len());
        assert_eq!(dropped, by_the_book(&arrived, 3, alpha), "alpha {alpha}");
    }
}

/// What a fabric's switches share changes nothing of folding, and a run in pieces is the whole.
#[test]
fn shared_buffers_of_a_fabric_keep_the_books() {
    let group = "transport = \"cubic\"\nflows = 64\nmin_rto = \"5ms\"";
    let text = fat_tree("packet", group) + "\n[[switch]]\nbuffer = \"60kB\"\nalpha = 0.5\n";
    let whole = start(&text).finish();
    let every_hop = start(&text).with_folding(false).finish();
    let mut pieces = start(&text);
    while pieces.advance(Duration::from_micros(731)) {}
    let pieces = pieces.finish();
    assert_eq!(whole.decision_hash, every_hop.decision_hash);
    assert_eq!(whole.decision_hash, pieces.decision_hash);
    let drops: f64 = (0..96).map(|row| whole.queues.number("drops_overflow", row).unwrap()).sum();
    assert!(drops > 100.0, "{drops}");
    let other = text.replace("alpha = 0.5", "alpha = 8");
    assert_ne!(start(&other).finish().decision_hash, whole.decision_hash);
}
