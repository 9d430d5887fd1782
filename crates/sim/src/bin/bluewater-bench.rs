//! The common workload of the benchmarks: the BLUE paper's dumbbell with N infinite TCP flows.
//!
//! `bluewater-bench N MODE SECONDS` prints one JSON object. MODE is `folded` (links without events
//! of their own where that changes nothing, the default of a run) or `every-hop`. With 0 seconds it
//! only sets up. A fourth argument, 1 if not given, multiplies all rates and the buffer:
//! `bluewater-bench 1000000 folded 2 1000` is a million flows over 45 Gb/s.
//!
//! `bluewater-bench N chain SECONDS` is a chain of N bottlenecks at 100 Mb/s, 5 ms apart, with CUBIC over all of
//! it and over each. A fifth argument is the number of threads, 1 if not given.
//!
//! `bluewater-bench K fat-tree MILLISECONDS` is a permutation of DCTCP over a fat-tree of K ports at 10 Gb/s,
//! every port with a managed queue.
//!
//! `bluewater-bench 0 FILE 1` runs a scenario's file.

use std::process::ExitCode;
use std::time::Instant;

use aqm::Qdisc as _;
use sim::{Run, Scenario};

fn workload(flows: u32, seconds: u32, scale: u32) -> String {
    let [rate, access, buffer] = [45, 100, 200].map(|one| one * u64::from(scale));
    format!(
        r#"
        duration = "{seconds}s"
        [network]
        preset = "feng-10ms"
        rate = "{rate}mbit"
        access_rate = "{access}mbit"
        [[queue]]
        aqm = "red"
        buffer = "{buffer}p"
        params = {{ preset = "feng" }}
        [[traffic]]
        flows = {flows}
        transport = "sack"
        start = "0s..1s"
        ecn = true
        "#
    )
}

fn chain(bottlenecks: u32, seconds: u32) -> String {
    let cross = |hop| {
        format!(
            "[[traffic]]\nname = \"c{hop}\"\nflows = 10\ntransport = \"cubic\"\nfrom = [\"s{hop}.0\"]\nto = [\"d{hop}.0\"]\n"
        )
    };
    let cross: String = (1..=bottlenecks).map(cross).collect();
    format!(
        r#"
        duration = "{seconds}s"
        [network]
        preset = "chain"
        bottlenecks = {bottlenecks}
        rate = "100mbit"
        access_rate = "1gbit"
        delay = "5ms"
        [[queue]]
        link = "*"
        aqm = "red"
        buffer = "500p"
        [[traffic]]
        flows = 10
        transport = "cubic"
        {cross}
        "#
    )
}

fn fabric(k: u32, milliseconds: u32) -> String {
    format!(
        r#"
        duration = "{milliseconds}ms"
        network = {{ preset = "fat-tree", k = {k} }}
        [[queue]]
        link = "*"
        aqm = "red"
        buffer = "250p"
        params = {{ min_th = "65p", max_th = "65p", w_q = 1, gentle = false }}
        [[traffic]]
        pattern = "permutation"
        transport = "dctcp"
        packet = "1500B"
        initial_window = 10
        min_rto = "5ms"
        ecn = true
        "#
    )
}

/// Processor time that this process has taken so far in s, where the system tells it.
fn cpu_s() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    status.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}

/// Peak resident memory of this process in MB, where the system tells it.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).map(|a| a.parse::<u32>());
    let (Some(Ok(n)), Some(mode), Some(Ok(seconds)), Ok(scale), Ok(threads)) = (
        number(0),
        args.get(1).map(String::as_str),
        number(2),
        number(3).unwrap_or(Ok(1)),
        number(4).unwrap_or(Ok(1)),
    ) else {
        eprintln!(
            "usage: bluewater-bench N folded|every-hop|chain|fat-tree|FILE SECONDS [SCALE [THREADS]]"
        );
        return ExitCode::from(2);
    };
    let text = match mode {
        "fat-tree" => fabric(n, seconds.max(1)),
        "chain" => chain(n, seconds.max(1)),
        "folded" | "every-hop" => workload(n, seconds.max(1), scale),
        file => match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(e) => {
                eprintln!("{file}: {e}");
                return ExitCode::from(2);
            }
        },
    };
    let begin = now();
    let run = Scenario::from_toml(&text, "workload").and_then(|s| Run::new(s, &text, "workload"));
    let mut run = match run {
        Ok(run) => run.with_folding(mode != "every-hop").with_threads(Some(threads as usize)),
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let setup = begin.elapsed().as_secs_f64();
    let (begin, cpu) = (now(), cpu_s());
    while seconds > 0 && run.advance(aqm::Duration::MAX) {}
    let wall = begin.elapsed().as_secs_f64();
    let cpu = cpu_s().zip(cpu).map_or(wall, |(after, before)| after - before);
    let packets = run.primary().map_or(0, |q| q.queue().counters().departed.packets);
    let events = run.simulation().events_handled();
    let rss = peak_rss_mb().map_or("null".into(), |mb| format!("{mb:.1}"));
    println!(
        "{{\"n\": {n}, \"mode\": \"{mode}\", \"threads\": {}, \"packets\": {packets}, \"events\": {events}, \"setup_s\": {setup:.6}, \"wall_s\": {wall:.4}, \"packets_per_cpu_second\": {:.0}, \"events_per_cpu_second\": {:.0}, \"peak_rss_mb\": {rss}}}",
        run.simulation().count(),
        packets as f64 / cpu,
        events as f64 / cpu
    );
    ExitCode::SUCCESS
}
