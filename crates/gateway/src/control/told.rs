//! What a gateway answers, for a person: the JSON is for programs.

use std::cmp::Reverse;
use std::fmt::Write as _;

use aqm::Rate;
use serde_json::Value;

use crate::options::Change;

/// Settings, a line a queue, with the parameters that were changed; `None` for a question: then
/// all parameters, and what happened so far.
pub fn told(answer: &Value, change: Option<&Change>) -> String {
    let mut text = String::new();
    for queue in answer["queues"].as_array().into_iter().flatten() {
        if change.is_some_and(|change| !concerns(change, queue)) {
            continue;
        }
        let word = |key: &str| queue[key].as_str().unwrap_or_default();
        let [name, rate, delay, buffer, aqm] =
            ["queue", "rate", "delay", "buffer", "aqm"].map(word);
        _ = write!(text, "{name:<5}{rate} {delay} {buffer} {aqm}");
        for key in ["jitter", "loss", "duplicate", "corrupt", "framing"] {
            if let Some(value) = queue[key].as_str() {
                _ = write!(text, ", {key} {value}");
            }
        }
        if let Some(classes) = queue["tree"]["classes"].as_u64() {
            _ = write!(text, ", {classes} classes");
        }
        for name in ["policer", "shaper", "shaper_peak"] {
            let bucket = ["rate", "burst"].map(|key| queue[name][key].as_str());
            if let [Some(rate), Some(burst)] = bucket {
                _ = write!(text, ", {} {rate} (burst {burst})", name.replace('_', "-"));
            }
        }
        for (key, value) in queue["params"].as_object().into_iter().flatten() {
            let asked = |change: &Change| change.params.iter().any(|(name, _)| name == key);
            if change.is_none_or(asked) {
                _ = write!(text, ", {key}={}", value.as_str().unwrap_or_default());
            }
        }
        text.push('\n');
        if change.is_none() {
            counts(&mut text, queue);
        }
    }
    if let (None, Some(pid), Some(version)) =
        (change, answer["pid"].as_u64(), answer["version"].as_str())
    {
        _ = writeln!(text, "process {pid}, version {version}");
    }
    if let Some(from) = answer["handover"]["from"].as_u64() {
        _ = writeln!(
            text,
            "process {from} still sends what came before the last upgrade, which is not counted here and which \
             `ctl set` does not change"
        );
    }
    text.truncate(text.trim_end().len());
    text
}

fn concerns(change: &Change, queue: &Value) -> bool {
    change.way.as_deref().is_none_or(|way| queue["queue"] == way)
}

fn counts(text: &mut String, queue: &Value) {
    let count = |key: &str| queue[key].as_u64().unwrap_or_default();
    _ = write!(text, "     {} packets wait", count("backlog_packets"));
    if let Some(delay) = queue["delay_s"].as_f64() {
        _ = write!(text, ", for {:.1} ms", 1e3 * delay);
    }
    _ = write!(text, "; {} came, {} left", count("arrivals"), count("departures"));
    for (key, what) in [("drops", "dropped"), ("marks", "marked")] {
        for (cause, packets) in queue[key].as_object().into_iter().flatten() {
            if packets.as_u64() > Some(0) {
                _ = write!(text, ", {packets} {what} ({cause})");
            }
        }
    }
    for (name, value) in queue["signals"].as_object().into_iter().flatten() {
        _ = write!(text, ", {name}={value}");
    }
    text.push('\n');
    let tins = &queue["tins"];
    for (name, packets) in tins["packets"].as_object().into_iter().flatten() {
        let [packets, drops, marks] =
            [packets, &tins["drops"][name], &tins["marks"][name]].map(|n| n.as_u64().unwrap_or(0));
        let seconds = tins["sojourn_s"][name].as_f64().unwrap_or_default();
        _ = writeln!(
            text,
            "     tin {name}: {packets} left, {drops} dropped, {marks} marked, {:.1} ms in the queue",
            1e3 * seconds / packets.max(1) as f64
        );
    }
    classes(text, queue);
}

/// A line for each class of the answer, the one that sent most first.
fn classes(text: &mut String, queue: &Value) {
    let of = |name: &str, key: &str| queue["classes"][key][name].as_u64().unwrap_or_default();
    let names = queue["classes"]["departures"].as_object().into_iter().flatten();
    let mut names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    names.sort_by_key(|name| Reverse(of(name, "departures_bytes")));
    for name in &names {
        let [left, bytes, borrowed, drops, marks, waits] =
            ["departures", "departures_bytes", "borrowed", "drops", "marks", "backlog_packets"]
                .map(|key| of(name, key));
        let [rate, ceil] = ["rate_bps", "ceil_bps"].map(|key| Rate::new(of(name, key)));
        let rate = match (rate, ceil) {
            (Some(rate), Some(ceil)) if ceil > rate => format!("{rate} … {ceil}"),
            (rate, _) => rate.map(|rate| rate.to_string()).unwrap_or_default(),
        };
        _ = writeln!(
            text,
            "     class {name} ({rate}): {left} left ({:.1} MB), {borrowed} of them borrowed, {drops} dropped, {marks} \
             marked, {waits} wait",
            bytes as f64 / 1e6
        );
    }
    let all = queue["tree"]["classes"].as_u64().unwrap_or_default();
    if all > names.len() as u64 {
        let others = all - names.len() as u64;
        _ = writeln!(text, "     {others} more classes sent less: `show --classes` has all");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        let queue = |name: &str| {
            json!({
                "queue": name, "rate": "20mbit", "delay": "10ms", "buffer": "50000B", "aqm": "pie",
                "params": {"target": "15ms", "tupdate": "15ms"}, "delay_s": 0.0123,
                "backlog_packets": 7, "arrivals": 30, "departures": 20,
                "drops": {"overflow": 0, "early": 3}, "marks": {"early": 4}, "signals": {"p": 0.25},
                "loss": "1%", "flows": [{"packets": 1}],
            })
        };
        json!({"time_s": 1.0, "queues": [queue("up"), queue("down")]})
    }

    #[test]
    fn of_a_change_what_changed_is_told() {
        let params = vec![("target".into(), "15ms".into())];
        let change = Change { way: Some("up".into()), params, ..Change::default() };
        let text = told(&answer(), Some(&change));
        assert_eq!(text, "up   20mbit 10ms 50000B pie, loss 1%, target=15ms");
        assert_eq!(told(&answer(), Some(&Change::default())).lines().count(), 2);
    }

    #[test]
    fn of_a_question_a_line_of_settings_and_one_of_counts() {
        let text = told(&answer(), None);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], "up   20mbit 10ms 50000B pie, loss 1%, target=15ms, tupdate=15ms");
        assert_eq!(
            lines[1],
            "     7 packets wait, for 12.3 ms; 30 came, 20 left, 3 dropped (early), \
             4 marked (early), p=0.25"
        );
    }
}
