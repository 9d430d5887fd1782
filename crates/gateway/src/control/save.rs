//! The options that a gateway's links have now, as a file for `run --config`.

use serde_json::Value;
use toml::{Table, Value as Item};

use crate::direction::DIRECTIONS;

/// Options of a link by their names, each with the key of the state that has it and the value that is none.
const OPTIONS: [(&str, &str, &str); 15] = [
    ("rate", "rate", ""),
    ("delay", "delay", ""),
    ("buffer", "buffer", ""),
    ("aqm", "aqm", ""),
    ("overhead", "framing", "raw"),
    ("jitter", "jitter", "0s"),
    ("loss", "loss", "0"),
    ("duplicate", "duplicate", "0"),
    ("corrupt", "corrupt", "0"),
    ("policer", "policer/rate", "none"),
    ("policer-burst", "policer/burst", ""),
    ("shaper", "shaper/rate", "none"),
    ("shaper-burst", "shaper/burst", ""),
    ("shaper-peak", "shaper_peak/rate", "none"),
    ("shaper-peak-burst", "shaper_peak/burst", ""),
];
/// Those that both ways have together.
const COMMON: [(&str, &str); 3] =
    [("reorder", "reorder"), ("told-rate", "told_rate"), ("wash", "wash")];
/// What is a file, of which the state has no name.
const FILES: [(&str, &str); 4] = [
    ("classes", "tree"),
    ("rate-trace", "rate_trace"),
    ("delay-trace", "delay_trace"),
    ("loss-trace", "loss_trace"),
];

/// The file, from what `show` tells.
pub fn file(state: &Value) -> String {
    let queues = [0, 1].map(|way| &state["queues"][way]);
    let at = |queue: &Value, key: &str| {
        let value = key.split('/').fold(queue, |value, key| &value[key]);
        value.as_str().map(String::from)
    };
    let mut table = Table::new();
    let mut notes = String::new();
    for (option, key, none) in OPTIONS {
        let values = queues.map(|queue| at(queue, key));
        if values.iter().all(Option::is_none) {
            continue;
        }
        for (prefix, value) in ["", "down-"].into_iter().zip(values) {
            let value = value.unwrap_or_else(|| none.into());
            if !value.is_empty() {
                table.insert(format!("{prefix}{option}"), Item::String(value));
            }
        }
    }
    if let Some(bytes) = queues[0]["mean_packet"].as_i64() {
        table.insert("mean-packet".into(), Item::Integer(bytes));
    }
    for (option, key) in COMMON {
        let [up, down] = queues.map(|queue| queue[key].as_bool().unwrap_or_default());
        if up || down {
            table.insert(option.into(), Item::Boolean(true));
        }
        if up != down {
            let way = DIRECTIONS[usize::from(down)];
            notes +=
                &format!("# {option} is set for the way {way} alone; a file has it for both.\n");
        }
    }
    for (queue, way) in queues.into_iter().zip(DIRECTIONS) {
        for (option, _) in FILES.into_iter().filter(|(_, key)| queue[*key].is_object()) {
            notes +=
                &format!("# The way {way} has a file for {option}, which is not named here.\n");
        }
    }
    for (key, queue) in ["param", "down-param"].into_iter().zip(queues) {
        let params: Table = queue["params"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), Item::String(value.as_str()?.into()))))
            .collect();
        if !params.is_empty() {
            table.insert(key.into(), Item::Table(params));
        }
    }
    format!("{notes}{}", toml::to_string(&table).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Args as _, Command, FromArgMatches as _};
    use serde_json::json;

    use super::*;
    use crate::config::expand;
    use crate::link::Spec;
    use crate::options::LinkOptions;
    use crate::report::settings;

    fn program() -> Command {
        let run = Command::new("run").args_override_self(true);
        let config = clap::Arg::new("config").long("config");
        Command::new("gateway").subcommand(LinkOptions::augment_args(run).arg(config))
    }

    fn specs(args: Vec<OsString>) -> [Spec; 2] {
        let matches = program().try_get_matches_from(args).unwrap();
        let run = matches.subcommand_matches("run").unwrap();
        LinkOptions::from_arg_matches(run).unwrap().specs().unwrap()
    }

    fn state(specs: &[Spec; 2]) -> Value {
        json!({ "queues": settings(specs.each_ref()) })
    }

    /// What a file makes has the state from which the file was made.
    #[test]
    fn a_saved_file_makes_the_links_again() {
        for args in [
            "--rate=10mbit",
            "--rate=10mbit --down-rate=50mbit --delay=5ms --buffer=1bdp --aqm=red --param=max_p=0.2",
            "--rate=10mbit --aqm=cake --param=rtt=50ms --down-aqm=fq-codel --down-param=queues=64",
            "--rate=10mbit --overhead=pppoe-ptm --jitter=2ms --loss=gemodel,1%,20% --corrupt=1%",
            "--rate=10mbit --overhead=0 --down-overhead=44 --mpu=64 --down-loss=1% --reorder --down-jitter=3ms",
            "--rate=10mbit --policer=5mbit --policer-burst=9kB --down-policer=none --wash",
            "--rate=10mbit --down-shaper=5mbit --down-shaper-burst=30kB --mean-packet=500",
            "--rate=10mbit --shaper=5mbit --shaper-peak=7mbit --down-shaper-peak-burst=9kB",
        ] {
            let first = ["gateway", "run"].into_iter().chain(args.split(' '));
            let made = specs(first.map(OsString::from).collect());
            let mut before = state(&made);
            let saved = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(saved.path(), file(&before)).unwrap();
            let config = format!("--config={}", saved.path().display());
            let args = ["gateway", "run", &config].map(OsString::from).to_vec();
            let again = expand(args, &program(), "run").unwrap();
            let mut after = state(&specs(again));
            for queues in [&mut before, &mut after] {
                for queue in queues["queues"].as_array_mut().unwrap() {
                    queue["seed"] = Value::Null;
                }
            }
            assert_eq!(after, before, "{}", file(&before));
        }
    }

    /// An option that is added is saved, or left out on purpose.
    #[test]
    fn each_option_has_a_place() {
        let saved = OPTIONS.map(|(option, ..)| option).into_iter();
        let others = COMMON.into_iter().chain(FILES).map(|(option, _)| option);
        // `mpu` is part of `overhead`, and `once` of traces.
        let by_name = ["param", "mean-packet", "mpu", "once", "seed"];
        let known: Vec<_> = saved.chain(others).chain(by_name).collect();
        let command = LinkOptions::augment_args(Command::new("x"));
        let all = command.get_arguments().filter_map(clap::Arg::get_long);
        let both = all.filter(|option| !option.starts_with("up-") && !option.starts_with("down-"));
        let missing: Vec<_> = both.filter(|option| !known.contains(option)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn what_no_file_can_say_is_said() {
        let queue = |reorder: bool, trace: Value| json!({"rate": "1mbit", "reorder": reorder, "rate_trace": trace});
        let state =
            json!({"queues": [queue(false, Value::Null), queue(true, json!({"steps": 3}))]});
        let text = file(&state);
        assert!(text.contains("# reorder is set for the way down alone"), "{text}");
        assert!(text.contains("# The way down has a file for rate-trace"), "{text}");
        assert!(text.contains("reorder = true"), "{text}");
    }
}
