//! What happened, as JSON lines while it does and as a table at the end. The names of numbers are
//! those of the simulator's tables.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::net::IpAddr;

use aqm::any::canonical;
use aqm::fair::htb::ClassCount;
use aqm::{Cause, Counters, Duration, Framing, Measure, Rate};
use link::columns::Value as Number;
use link::impair::Loss;
use link::varying::mean;
use link::{Impairments, QueueSummary};
use scenario::classes::ClassSpec;
use serde_json::{Map, Value, json};
use sim::results::registry::measured;
use sim::results::table::{Column, Table};

use crate::direction::DIRECTIONS;
use crate::io::port::Ports;
use crate::link::classes::ClassCounts;
use crate::link::flows::Tally;
use crate::link::{Bucket, Classes, Link, Spec};

/// What the links were like at the end, and what happened.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The links, up and down.
    pub specs: [Spec; 2],
    /// The summaries.
    pub summaries: [Value; 2],
    /// Whether every packet is accounted for.
    pub conserved: bool,
    /// What could not be written.
    pub unwritten: Vec<Unwritten>,
}

/// What is missing in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwritten {
    /// What the file is: `log`, `recording`, `capture`.
    pub file: &'static str,
    /// Records that are not in it.
    pub records: u64,
    /// The first reason.
    pub why: String,
}

/// The version of the log's format.
const FORMAT: u32 = 1;

/// The first line of a log: what the links are, how their packets come and go, and whether the
/// forwarding thread goes before others.
pub fn head(specs: &[Spec; 2], ports: &Ports, realtime: bool) -> Value {
    json!({
        "log": "bluewater-gateway", "format": FORMAT, "version": env!("CARGO_PKG_VERSION"),
        "plane": ports.ends[0].plane(), "fallback": ports.fallback, "realtime": realtime,
        "queues": settings(specs.each_ref()),
    })
}

/// The settings of both links.
pub fn settings(specs: [&Spec; 2]) -> Value {
    DIRECTIONS.iter().zip(specs).map(|(name, spec)| setting(name, spec)).collect()
}

/// A link as it is at `now` (ns): its settings, all counts since its beginning, and the `top` flows that send most.
/// The rest as for [`summary`].
pub fn state(
    direction: usize,
    link: &mut Link,
    now: u64,
    (lost, refused): (u64, u64),
    top: usize,
) -> Value {
    let (counters, backlog, beside) = (link.counters(), link.backlog(), link.beside());
    let by_cause = |counts: &[aqm::Tally; Cause::COUNT]| -> Map<String, Value> {
        Cause::ALL.iter().map(|&c| (c.name().into(), counts[c as usize].packets.into())).collect()
    };
    let flows: Vec<Value> = link.top(now, top).iter().map(flow).collect();
    let mut signals = Map::new();
    link.observe(now, &mut |name, value| _ = signals.insert(name.into(), json!(value)));
    let mut all = setting(DIRECTIONS[direction], link.spec());
    let counts = json!({
        "backlog_packets": backlog.packets,
        "backlog_bytes": backlog.bytes,
        "delay_s": link.queued_time(now).map(Duration::as_secs_f64),
        "arrivals": counters.arrived.packets,
        "arrivals_bytes": counters.arrived.bytes,
        "departures": counters.departed.packets,
        "departures_bytes": counters.departed.bytes,
        "drops": by_cause(&counters.dropped),
        "marks": by_cause(&counters.marked),
        "refused": beside.refused + refused,
        "lost_before": lost,
        "lateness_p99_s": link.lateness().quantile(0.99) as f64 / 1e9,
        "conserved": link.check(),
        "signals": signals,
        "flows": flows,
        "sojourn": sojourn(link),
    });
    if let (Value::Object(all), Value::Object(counts)) = (&mut all, counts) {
        all.extend(counts);
        all.extend(wire(link).map(|wire| ("wire".into(), wire)));
        all.extend(link.tins().map(|tins| ("tins".into(), tins)));
    }
    if let Some(rate) = link.rate_now(now) {
        all["rate_trace"]["now_bps"] = rate.into();
    }
    all
}

/// How long packets that were sent had been in the queue: the sum, and how many up to each bound and
/// beyond the bound before, the last without one. The bounds are those of the histogram's own buckets,
/// so that the counts are exact.
fn sojourn(link: &Link) -> Value {
    let (times, sum) = link.sojourn();
    let mut buckets: Vec<(Option<u64>, u64)> =
        BOUNDS.map(|power| (Some((1 << power) - 1), 0)).chain([(None, 0)]).collect();
    for (most, count) in times.buckets() {
        let place = buckets.iter_mut().find(|(bound, _)| bound.is_none_or(|bound| most <= bound));
        place.into_iter().for_each(|bucket| bucket.1 += count);
    }
    let seconds =
        |(bound, count): (Option<u64>, u64)| json!([bound.map(|ns| ns as f64 / 1e9), count]);
    let buckets: Vec<_> = buckets.into_iter().map(seconds).collect();
    json!({"sum_s": sum as f64 / 1e9, "buckets": buckets})
}

/// How many packets that were sent had been in the queue for how long, each bucket by its longest time:
/// s and packets since the beginning, not added up.
pub fn delays(link: &Link) -> Value {
    let (times, _) = link.sojourn();
    times.buckets().map(|(most, count)| json!([most as f64 / 1e9, count])).collect()
}

/// Powers of two of ns: from 16 µs to 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 14..=34;

/// How many flows and classes a report usually lists.
pub const TOP: usize = 10;

/// Counts of the `most` classes that sent most, by class.
pub fn classes(counts: &ClassCounts, most: usize) -> Value {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_by_key(|(_, count)| Reverse(count.counters.departed.bytes));
    all.truncate(most);
    let of = |number: fn(&ClassCount) -> u64| -> Map<String, Value> {
        all.iter().map(|(class, count)| (class.name.clone(), number(count).into())).collect()
    };
    let rates = |rate: fn(&ClassSpec) -> Rate| -> Map<String, Value> {
        let rate = |class| rate(class).bits_per_second().into();
        all.iter().map(|(class, _)| (class.name.clone(), rate(class))).collect()
    };
    json!({
        "rate_bps": rates(|class| class.rate.0),
        "ceil_bps": rates(|class| class.ceil.unwrap_or(class.rate).0),
        "departures": of(|c| c.counters.departed.packets),
        "departures_bytes": of(|c| c.counters.departed.bytes),
        "drops": of(|c| c.counters.all_dropped().packets),
        "marks": of(|c| c.counters.all_marked().packets),
        "backlog_packets": of(|c| c.backlog.packets.into()),
        "backlog_bytes": of(|c| c.backlog.bytes),
        "borrowed": of(|c| c.borrowed.packets),
        "borrowed_bytes": of(|c| c.borrowed.bytes),
    })
}

/// A flow's last second.
fn flow(tally: &Tally) -> Value {
    let address = |bytes: [u8; 16]| IpAddr::from(bytes).to_canonical().to_string();
    let flow = &tally.flow;
    json!({
        "source": address(flow.source), "destination": address(flow.destination),
        "protocol": flow.protocol, "ports": flow.ports, "packets": tally.packets,
        "bytes": tally.bytes, "drops": tally.drops, "marks": tally.marks,
    })
}

/// All of a link's settings, in canonical text.
pub fn setting(name: &str, spec: &Spec) -> Value {
    let params: Vec<_> = spec.params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let params: Map<String, Value> = canonical(&spec.aqm, &params)
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let buffer = match spec.limit.measure() {
        Measure::Packets => format!("{}p", spec.limit.max_packets()),
        Measure::Bytes => format!("{}B", spec.limit.max_bytes()),
    };
    let mut all = json!({
        "queue": name, "rate": spec.rate.to_string(), "delay": spec.delay.to_string(),
        "buffer": buffer, "aqm": spec.aqm, "params": params,
        "mean_packet": spec.mean_packet, "seed": spec.seed,
    });
    varying(&mut all, spec);
    if let Some(Classes { tree, .. }) = spec.classes.as_deref() {
        all["tree"] = json!({"classes": tree.class.len(), "default": tree.default});
    }
    let buckets = [("policer", spec.policer), ("shaper", spec.shaper), ("shaper_peak", spec.peak)];
    for (name, bucket) in buckets {
        if let Some(Bucket { rate, burst }) = bucket {
            all[name] = json!({"rate": rate.to_string(), "burst": burst.to_string()});
        }
    }
    all
}

/// Some packets of a queue's journal: each column's name and its list, in their order, which is part of what
/// they say.
pub fn packets(queue: &str, rows: &Table) -> Value {
    let list = |column: &Column| match column {
        Column::Count(values) => json!(values),
        Column::Real(values) => json!(values),
        Column::Text(values) => json!(values),
    };
    let columns: Vec<(&str, Value)> =
        rows.columns().map(|(name, column)| (name, list(column))).collect();
    json!({"queue": queue, "packets": columns})
}

/// Adds how a link varies and what its wire does, where that is something.
fn varying(all: &mut Value, spec: &Spec) {
    let Impairments { delay, jitter, reorder, loss, losses, duplicate, corrupt } =
        &spec.impairments;
    let framing = spec.sending.framing;
    let jitter = Duration::from_nanos(*jitter);
    for (key, is_default, value) in [
        ("framing", framing == Framing::default(), json!(framing.to_string())),
        ("jitter", jitter == Duration::ZERO, json!(jitter.to_string())),
        ("reorder", !reorder, json!(reorder)),
        ("loss", *loss == Loss::None, json!(loss.to_string())),
        ("duplicate", *duplicate == 0.0, json!(duplicate.to_string())),
        ("corrupt", *corrupt == 0.0, json!(corrupt.to_string())),
        ("told_rate", !spec.told_rate, json!(spec.told_rate)),
        ("wash", !spec.wash, json!(spec.wash)),
    ] {
        if !is_default {
            all[key] = value;
        }
    }
    if let Some(rates) = &spec.sending.rates {
        all["rate_trace"] = json!({"steps": rates.steps().len(), "mean_bps": mean(rates)});
    }
    for (key, steps) in [
        ("delay_trace", delay.as_ref().map(|delay| delay.steps().len())),
        ("loss_trace", losses.as_ref().map(|losses| losses.steps().len())),
    ] {
        if let Some(steps) = steps {
            all[key] = json!({"steps": steps});
        }
    }
}

/// What a wire that impairs packets did to them since the beginning.
fn wire(link: &Link) -> Option<Value> {
    let count = link.impaired()?;
    Some(json!({
        "lost": count.lost.packets, "duplicated": count.duplicated.packets,
        "corrupted": count.corrupted.packets, "reordered": count.reordered.packets,
    }))
}

/// What was counted up to a line of the log.
#[derive(Clone, Copy, Default)]
pub struct Logged {
    counters: Counters,
    /// The sum of the times in the queue of what had departed, ns.
    waited: u128,
}

/// A line of the log: the queue of a direction at `now` (ns), and what happened since `before`.
pub fn sample(direction: usize, link: &Link, now: u64, before: &mut Logged) -> Value {
    let (counters, backlog, waited) = (link.counters(), link.backlog(), link.sojourn().1);
    let Logged { counters: last, waited: waited_before } = *before;
    let departed = counters.departed.since(last.departed).packets;
    // A new window of measurement starts its sum anew.
    let waited_since = waited.checked_sub(waited_before).filter(|_| departed > 0);
    let mut line = json!({
        "time_s": now as f64 / 1e9,
        "queue": DIRECTIONS[direction],
        "backlog_packets": backlog.packets,
        "backlog_bytes": backlog.bytes,
        "arrivals": counters.arrived.since(last.arrived).packets,
        "departures": departed,
        "departures_bytes": counters.departed.since(last.departed).bytes,
        "drops": counters.all_dropped().since(last.all_dropped()).packets,
        "marks": counters.all_marked().since(last.all_marked()).packets,
        "delay_mean_s": waited_since.map(|sum| sum as f64 / 1e9 / departed as f64),
    });
    link.observe(now, &mut |name, value| line[name] = json!(value));
    *before = Logged { counters, waited };
    line
}

/// Everything about a direction up to `now` (ns). `lost` are packets that the system dropped before
/// the gateway could read them, `refused` those that it did not take back.
pub fn summary(name: &str, link: &Link, now: u64, (lost, refused): (u64, u64)) -> Value {
    let late = |q| link.lateness().quantile(q) as f64 / 1e9;
    let mut all = queue(name, &link.spec().aqm, &link.summary(now));
    all["lateness_p50_s"] = late(0.5).into();
    all["lateness_p99_s"] = late(0.99).into();
    all["lateness_max_s"] = (link.lateness().max() as f64 / 1e9).into();
    all["refused"] = (link.beside().refused + refused).into();
    all["lost_before"] = lost.into();
    all["conserved"] = link.check().into();
    if let Some(wire) = wire(link) {
        all["wire"] = wire;
    }
    all["decision_hash"] = link.decision_hash().to_string().into();
    all
}

/// What was measured at a queue, in the gateway or in the simulator.
pub fn queue(name: &str, aqm: &str, s: &QueueSummary) -> Value {
    let mut all = json!({"queue": name, "aqm": aqm, "measured_s": s.window_s});
    for (column, value) in measured(s) {
        all[column] = match value {
            Number::Count(n) => n.into(),
            Number::Real(x) => x.into(),
        };
    }
    all
}

/// A summary for people, a line a direction.
pub fn table(finished: &Finished) -> String {
    let mut text = String::new();
    if !finished.conserved {
        text += "error: packets are not accounted for: a fault of this program, please report it\n";
    }
    for Unwritten { file, records, why } in &finished.unwritten {
        _ = writeln!(text, "{file}: {records} records are lost: {why}");
    }
    for (spec, s) in finished.specs.iter().zip(&finished.summaries) {
        let number = |key: &str| s[key].as_f64().unwrap_or_default();
        let count = |key: &str| s[key].as_u64().unwrap_or_default();
        _ = writeln!(
            text,
            "{:<5}{} {} {}: {:.3} Mb/s, {} packets, {} dropped ({:.2} %), {} marked ({:.2} %), \
             queue {:.1} packets, delay {:.2} ms (p99 {:.2} ms)",
            s["queue"].as_str().unwrap_or_default(),
            spec.rate,
            spec.delay,
            spec.aqm,
            number("throughput_bps") / 1e6,
            count("departures"),
            count("drops"),
            100.0 * number("loss"),
            count("marks"),
            100.0 * number("mark_rate"),
            number("queue_mean_packets"),
            1e3 * number("delay_mean_s"),
            1e3 * number("delay_p99_s"),
        );
        text += &under_each_setting(s);
        for (key, what) in [
            ("lost_before", "lost before the gateway could read them: this machine is too slow"),
            (
                "refused",
                "not carried: longer than the MTU, the interface took no more, or super-packets \
                 that cannot be cut (at their sender: ethtool -K NAME tso off gso off; of what came \
                 over a wire: gro off)",
            ),
        ] {
            if count(key) > 0 {
                _ = writeln!(text, "     {} packets {what}", count(key));
            }
        }
        let wire = |key: &str| s["wire"][key].as_u64().unwrap_or_default();
        let [gone, twice, wrong] = ["lost", "duplicated", "corrupted"].map(wire);
        if gone + twice + wrong > 0 {
            _ = writeln!(
                text,
                "     on the wire, since the start: {gone} lost, {twice} duplicated, {wrong} corrupted"
            );
        }
        if number("lateness_p99_s") > LATE {
            let late = 1e3 * number("lateness_p99_s");
            _ = writeln!(
                text,
                "     1 % of the packets left {late:.1} ms late or more: this machine is busy"
            );
        }
    }
    text
}

/// What a link carried under each of its settings, if they changed: the means above are of all.
fn under_each_setting(summary: &Value) -> String {
    let Some(settings) = summary["settings"].as_array() else { return String::new() };
    let mut text =
        String::from("     settings changed, and the numbers above are of the whole time:\n");
    let before = summary["settings_before"].as_u64().unwrap_or_default();
    if before > 0 {
        _ = writeln!(text, "       {before} settings before these");
    }
    for era in settings {
        let number = |key: &str| era[key].as_f64().unwrap_or_default();
        let word = |key: &str| era[key].as_str().unwrap_or_default();
        _ = writeln!(
            text,
            "       {:.1} s to {:.1} s, {} {} {}: {:.3} Mb/s",
            number("from_s"),
            number("until_s"),
            word("rate"),
            word("delay"),
            word("aqm"),
            number("throughput_bps") / 1e6,
        );
    }
    text
}

/// Lateness worth a word, s.
const LATE: f64 = 0.002;
