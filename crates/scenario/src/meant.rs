//! What was probably meant by a key that is not there, and what a value has to be, in plain words.

use aqm::CATALOG;
use aqm::any::FILTERS;

use crate::error::did_you_mean;
use crate::network::{LinkSpec, Network};
use crate::queue::QueueSpec;
use crate::traffic::{keys_of, keys_of_traffic};
use crate::{Measure, Scenario};

/// Other programs' names of keys: the words, and the key.
const CALLED: [(&[&str], &str); 12] = [
    (&["bandwidth", "bw", "capacity", "speed", "datarate", "data_rate", "bitrate"], "rate"),
    (&["latency", "propagation", "prop_delay", "owd"], "delay"),
    (&["qdisc", "algorithm", "algo", "discipline", "queue_type"], "aqm"),
    (&["limit", "queue_size", "buffer_size", "qlen", "queue_limit", "size"], "buffer"),
    (&["congestion_control", "cc", "cca", "protocol", "tcp", "type", "kind"], "transport"),
    (&["count", "number", "n", "num", "num_flows", "nflows", "connections"], "flows"),
    (&["time", "length", "sim_time", "runtime", "simulation_time"], "duration"),
    (&["begin", "start_time", "begins"], "start"),
    (&["end", "stop_time", "until", "ends"], "stop"),
    (&["mss", "packet_size", "pktsize", "mtu", "segment"], "packet"),
    (&["src", "source", "sender"], "from"),
    (&["dst", "dest", "destination", "receiver", "sink"], "to"),
];

const ROUND_TRIP: &str = "a round trip follows from the network: under [network] `delay` (there and back) and \
     `access_delay` (of both ends, there and back), or `delay` of each [[link]]";

/// A hint for a key of `table` (`queue[0]`, `network`; empty for the top) that it does not have.
pub(crate) fn key(table: &str, word: &str, known: &[&str]) -> String {
    if let "rtt" | "base_rtt" | "round_trip" | "rtts" = word {
        return ROUND_TRIP.into();
    }
    let lower = word.to_lowercase();
    let called = CALLED.iter().find(|(words, _)| words.contains(&lower.as_str()));
    if let Some((_, ours)) = called {
        if known.contains(ours) {
            return format!("did you mean `{ours}`?");
        }
        if let Some(place) = place_of(ours) {
            return format!("did you mean `{ours}` of {place}?");
        }
    }
    let near = did_you_mean(word, known.iter().copied());
    let misspelt = !near.is_empty() && known.iter().any(|k| strsim::levenshtein(word, k) < 2);
    if misspelt {
        return near;
    }
    if table.starts_with("queue") {
        let has = |names: Vec<&str>| names.contains(&word);
        if CATALOG.iter().any(|e| has((e.parameters)().iter().map(|p| p.name).collect())) {
            return format!(
                "parameters of an algorithm go into a table of their own: params = {{ {word} = … }}"
            );
        }
        if FILTERS.iter().any(|(_, t)| has(t().iter().map(|p| p.name).collect())) {
            return format!("parameters of the filter: prefilter_params = {{ {word} = … }}");
        }
    }
    place_of(word).map_or(near, |place| format!("`{word}` is a key of {place}"))
}

/// The table that has a key of this name.
fn place_of(word: &str) -> Option<&'static str> {
    let tables: [(&str, Vec<String>); 6] = [
        ("[network]", keys_of::<Network>().0),
        ("[[queue]]", keys_of::<QueueSpec>().0),
        ("[[traffic]]", keys_of_traffic()),
        ("[measure]", keys_of::<Measure>().0),
        ("[[link]]", keys_of::<LinkSpec>().0),
        ("the file, before the first [table]", keys_of::<Scenario>().0),
    ];
    tables.into_iter().find(|(_, keys)| keys.iter().any(|k| k == word)).map(|(name, _)| name)
}

/// What serde expects, in words of the file.
pub(crate) fn value(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number, 0 … 255",
        "u16" => "a whole number, 0 … 65535",
        "u32" | "u64" | "u128" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" => "text in quotes",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}
