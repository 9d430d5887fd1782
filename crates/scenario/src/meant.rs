//! Guesses the key that was meant by one that does not exist.

use aqm::any::FILTERS;
use aqm::{About, CATALOG};

use crate::error::{ScenarioError, UNKNOWN_KEY, did_you_mean, value_of};

/// Other programs' names of keys: the words, and the key.
const CALLED: [(&[&str], &str); 13] = [
    (&["bandwidth", "bw", "capacity", "speed", "datarate", "data_rate", "bitrate"], "rate"),
    (&["latency", "propagation", "prop_delay", "owd"], "delay"),
    (&["qdisc", "algorithm", "algo", "discipline", "queue_type", "type", "kind"], "aqm"),
    (&["limit", "queue_size", "buffer_size", "qlen", "queue_limit", "size"], "buffer"),
    (&["congestion_control", "cc", "cca", "protocol", "tcp", "type", "kind"], "transport"),
    (&["name", "description", "comment"], "title"),
    (&["count", "number", "n", "num", "num_flows", "nflows", "connections"], "flows"),
    (&["time", "length", "sim_time", "runtime", "simulation_time"], "duration"),
    (&["begin", "start_time", "begins"], "start"),
    (&["end", "stop_time", "until", "ends"], "stop"),
    (&["mss", "packet_size", "pktsize", "mtu", "segment"], "packet"),
    (&["src", "source", "sender"], "from"),
    (&["dst", "dest", "destination", "receiver", "sink"], "to"),
];

/// The keys that other programs call `word`.
pub fn called(word: &str) -> impl Iterator<Item = &'static str> {
    let word = word.to_lowercase();
    CALLED.iter().filter(move |(words, _)| words.contains(&word.as_str())).map(|(_, ours)| *ours)
}

const ROUND_TRIP: &str = "a round trip follows from the network: under [network] `delay` (there and back) and \
     `access_delay` (of both ends, there and back), or `delay` of each [[link]]";

const NAME: &str = "a queue goes by the name of its link: `link`";

/// The error with a hint, if it is of a key of `text` that is not there.
pub(crate) fn hinted(
    mut error: ScenarioError,
    text: &str,
    places: fn() -> Places,
) -> ScenarioError {
    if error.problem == UNKNOWN_KEY && error.hint.is_empty() {
        let (table, word) = error.key.rsplit_once('.').unwrap_or(("", &error.key));
        let known: Vec<_> = error.allowed.split(", ").collect();
        let aqm = value_of(text, &format!("{table}.aqm"));
        error.hint = key((table, aqm), word, &known, &places());
    }
    error
}

/// A hint for a key of `table` (`queue[0]`, `network`; empty for the top) that has others, and perhaps an
/// `aqm`.
fn key((table, aqm): (&str, &str), word: &str, known: &[&str], places: &Places) -> String {
    let place_of = |word: &str| {
        let has = |(_, keys): &&(_, Vec<String>)| keys.iter().any(|key| key == word);
        places.iter().find(has).map(|(name, _)| *name)
    };
    if let "rtt" | "base_rtt" | "round_trip" | "rtts" = word {
        return ROUND_TRIP.into();
    }
    if table.starts_with("queue") && word == "name" {
        return NAME.into();
    }
    if let Some(ours) = called(word).find(|ours| known.contains(ours)) {
        return format!("did you mean `{ours}`?");
    }
    if let Some((ours, place)) = called(word).find_map(|ours| Some((ours, place_of(ours)?))) {
        return format!("did you mean `{ours}` of {place}?");
    }
    let is_table = |(name, _): &&(&str, _)| name.trim_matches(['[', ']']) == word;
    if let Some((table, _)) = places.iter().find(is_table) {
        return format!("`{word}` is a table of its own: {table}");
    }
    let near = did_you_mean(word, known.iter().copied());
    let misspelt = !near.is_empty() && known.iter().any(|k| strsim::levenshtein(word, k) < 2);
    if misspelt {
        return near;
    }
    if table.starts_with("queue") {
        let has = |names: Vec<&str>| names.contains(&word);
        let of = |e: &&About| has((e.parameters)().iter().map(|p| p.name).collect());
        let owners: Vec<_> = CATALOG.iter().filter(of).map(|e| e.name).collect();
        if !owners.is_empty() {
            let table = format!(
                "parameters of an algorithm go into a table of their own: params = {{ {word} = … }}"
            );
            let foreign = CATALOG.iter().any(|e| e.name == aqm) && !owners.contains(&aqm);
            return match foreign {
                true => format!("`{word}` is a parameter of {}, not of {aqm}", owners.join(", ")),
                false => table,
            };
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
