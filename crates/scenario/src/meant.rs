//! Guesses the key that was meant by one that does not exist.

use aqm::any::FILTERS;
use aqm::{About, CATALOG};

use crate::error::{ScenarioError, UNKNOWN_KEY, did_you_mean};

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

/// The key that other programs call `word`.
pub fn called(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    CALLED.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, ours)| *ours)
}

const ROUND_TRIP: &str = "a round trip follows from the network: under [network] `delay` (there and back) and \
     `access_delay` (of both ends, there and back), or `delay` of each [[link]]";

/// The error with a hint, if it is of a key that is not there.
pub(crate) fn hinted(mut error: ScenarioError, places: fn() -> Places) -> ScenarioError {
    if error.problem == UNKNOWN_KEY && error.hint.is_empty() {
        let (table, word) = error.key.rsplit_once('.').unwrap_or(("", &error.key));
        let known: Vec<_> = error.allowed.split(", ").collect();
        error.hint = key(table, word, &known, &places());
    }
    error
}

/// A hint for a key of `table` (`queue[0]`, `network`; empty for the top) that has others.
fn key(table: &str, word: &str, known: &[&str], places: &Places) -> String {
    let place_of = |word: &str| {
        let has = |(_, keys): &&(_, Vec<String>)| keys.iter().any(|key| key == word);
        places.iter().find(has).map(|(name, _)| *name)
    };
    if let "rtt" | "base_rtt" | "round_trip" | "rtts" = word {
        return ROUND_TRIP.into();
    }
    if let Some(ours) = called(word) {
        if known.contains(&ours) {
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
        let of_filter =
            |e: &About| has((e.parameters)().iter().map(|p| p.name).collect::<Vec<_>>());
        if place_of(word).is_none() && FILTERS.iter().any(of_filter) {
            return format!("parameters of the filter: prefilter_params = {{ {word} = … }}");
        }
    }
    place_of(word).map_or(near, |place| format!("`{word}` is a key of {place}"))
}

/// The tables of a file, by what they are called, each with its keys.
pub(crate) type Places = Vec<(&'static str, Vec<String>)>;
