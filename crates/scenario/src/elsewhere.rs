//! Words of other programs, such as `tc`, ns-2, ns-3 and iperf, for what has another name or another place here.

/// Words, one of the names among which they were looked for, and what to say there: nothing if that name
/// is meant. The first row that fits counts.
type Row = (&'static [&'static str], &'static str, &'static str);

const NOT_BUILT_IN: &str =
    "not built in; a scenario may bring a controller of yours: transport = \"python:FILE:CLASS\"";

const NAMES: &[Row] = &[
    // Queue disciplines.
    (&["fifo", "pfifo", "bfifo", "taildrop", "pfifofast"], "droptail", "it is `droptail` here"),
    (&["headdrop", "pfifoheaddrop"], "drop-front", ""),
    (&["fairqueue"], "fq", ""),
    (&["l4s", "dualq", "dualpi", "coupled"], "dualpi2", ""),
    (&["tbf"], "policer", "it drops; a shaper is a key of a queue: `shaper = { rate = … }`"),
    (&["police", "tokenbucket"], "policer", ""),
    (
        &["tbf"],
        "droptail",
        "a link shapes by itself, to its rate; a token bucket is a key of a queue: `shaper`",
    ),
    (
        &["htb"],
        "droptail",
        "a link shapes by itself, to its rate; a tree of classes is a key of a queue: `[[queue.class]]`",
    ),
    (
        &["hfsc", "cbs", "cbq", "etf"],
        "droptail",
        "a link shapes by itself, to its rate; its discipline may be `fq-codel` or `cake`",
    ),
    (
        &["netem"],
        "droptail",
        "delay, loss and jitter are keys of a link, beside any discipline: `delay`, `loss`, `jitter`",
    ),
    (
        &["mq", "mqprio", "taprio", "multiq", "noqueue", "noop"],
        "droptail",
        "each link has one queue: name the discipline of that one",
    ),
    (
        &["prio", "ets", "drrprio", "priority"],
        "cake",
        "priority by DSCP has `cake`, with its `diffserv`",
    ),
    (&["sqm", "fqcobalt"], "cake", ""),
    (&["wfq", "wf2q", "stfq", "wrr"], "drr", ""),
    (&["adaptivered"], "ared", ""),
    (&["gred"], "wred", ""),
    (&["rio", "rioc"], "wred", "RIO is `wred` with average = \"coupled\""),
    // Transports.
    (
        &["bbr2", "bbr3", "bbrv1", "bbrv2", "bbrv3"],
        "bbr",
        "`bbr` is version 3, `bbr1` version 1, which Linux has",
    ),
    (&["tcp"], "sack", "TCP is `sack`, `cubic`, or another of these"),
    (&["udp", "datagram", "datagrams"], "cbr", "datagrams at a rate are `cbr`"),
    (&["linuxreno"], "reno", ""),
    (&["quic"], "quinn", "QUIC is `quinn` or `noq`, by the code of these stacks"),
    (&["quic"], "cubic", "QUIC controls congestion as TCP does: `cubic` or `bbr`"),
    (&["dccp"], "tfrc", "CCID 3 of DCCP is `tfrc`, CCID 2 is near `sack`"),
    (
        &[
            "vegas",
            "westwood",
            "westwoodplus",
            "veno",
            "yeah",
            "nv",
            "lp",
            "illinois",
            "hybla",
            "htcp",
            "highspeed",
            "scalable",
            "bic",
            "compound",
            "ctcp",
            "cdg",
            "copa",
            "pcc",
            "vivace",
            "sctp",
            "mptcp",
        ],
        "sack",
        NOT_BUILT_IN,
    ),
    (&["http", "https", "browsing", "www"], "web", ""),
    (
        &["http", "https", "web", "browsing", "www"],
        "sack",
        "pages are app = \"web\" over a TCP such as `cubic`",
    ),
    (
        &["iperf", "iperf3", "netperf", "flent", "ftp", "bulk"],
        "sack",
        "a download is a TCP such as `cubic`, with app \"infinite\" or \"finite\"; datagrams at a rate are `cbr`",
    ),
    (&["voip", "voice", "calls"], "call", ""),
    (&["voip", "voice", "rtp", "call", "poisson"], "cbr", ""),
    (&["video", "zoom", "webrtc", "gcc"], "scream", ""),
    (&["gaming", "games"], "game", ""),
    // Applications.
    (
        &["ftp", "bulk", "greedy", "backlogged", "iperf", "iperf3", "download"],
        "infinite",
        "a download is `infinite`, or `finite` of a size",
    ),
    (
        &["onoff", "bursty", "burst"],
        "exponential",
        "`exponential`, `pareto` and `periodic` go on and off",
    ),
    (
        &["cbr", "udp", "voip", "video", "call", "trace", "scream"],
        "infinite",
        "that is the key `transport`: `cbr`, `scream`, `trace`",
    ),
    // Networks, boxes.
    (&["parkinglot"], "chain", ""),
    (&["clos", "leafspine", "spineleaf"], "leaf-spine", ""),
    (&["router"], "openwrt", ""),
    // Parameters.
    (&["min", "minth"], "min_th", ""),
    (&["max", "maxth"], "max_th", ""),
    (&["probability", "linterm"], "max_p", "`max_p`: what tc calls probability, ns-2 1/linterm"),
    (&["qw", "weight"], "w_q", ""),
    (&["tupdate"], "t_update", ""),
    (&["flows", "divisor", "buckets"], "queues", ""),
    (&["rehash", "db"], "hash_interval", ""),
    (&["couplingfactor"], "k", ""),
    (&["stepthresh"], "min_th", ""),
    (&["minqlenstep"], "th_len", ""),
    (&["bytemode"], "mode", "mode = \"bytes\""),
    (&["dqrateestimator"], "delay", "delay = \"departure-rate\""),
];

/// Parameters elsewhere that are none of a discipline here.
const PARAMETERS: &[(&[&str], &str)] = &[
    (
        &["limit", "memorylimit", "memlimit", "maxsize", "queuelimit", "qlen"],
        "the room of a queue is its `buffer`, whatever the discipline",
    ),
    (&["bandwidth", "rate", "linkbandwidth"], "the rate is the link's: `rate`"),
    (&["delay", "loss", "latency"], "delay and loss are the link's"),
    (&["avpkt", "meanpktsize", "burst"], "RED averages with `w_q` and has no such parameter"),
    (&["overhead", "mpu", "atm", "ptm", "noatm", "docsis"], "what a wire adds is the link's"),
    (&["wash", "nowash"], "codepoints are cleared by the queue's `wash`"),
    (
        &["nat", "nonat"],
        "hosts behind an address translator are told apart, unless their queue is `translated`; the gateway \
         asks no translator, and sees them on its inner side alone",
    ),
    (
        &["pacing", "nopacing", "horizon"],
        "senders pace themselves; `maxrate` of `fq` paces each flow",
    ),
    (&["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"], "a value of `diffserv`"),
];

/// A hint for `word`, which is none of `names`: what it is called here, or where it is.
pub fn hint(word: &str, names: &[&str]) -> Option<String> {
    let plain = plain(word)?;
    let bare = [plain.strip_suffix("queue"), plain.strip_prefix("tcp")];
    let bare = bare.into_iter().flatten().filter(|bare| !bare.is_empty());
    let mut words = [plain.as_str()].into_iter().chain(bare);
    words.find_map(|word| {
        let same = |name: &&&str| name.replace('-', "") == word;
        let row = |(words, name, _): &&Row| words.contains(&word) && names.contains(name);
        match (names.iter().find(same), NAMES.iter().find(row)) {
            (Some(name), _) | (None, Some((_, name, ""))) => {
                Some(format!("did you mean `{name}`?"))
            }
            (None, row) => row.map(|(.., told)| (*told).into()),
        }
    })
}

/// A hint for a parameter that `names` do not contain.
pub fn parameter(word: &str, names: &[&str]) -> Option<String> {
    hint(word, names).or_else(|| {
        let plain = plain(word)?;
        let row = PARAMETERS.iter().find(|(words, _)| words.contains(&plain.as_str()));
        row.map(|(_, told)| (*told).into())
    })
}

/// A hint for an incomplete name of a class in Python.
pub(crate) fn class(word: &str) -> Option<String> {
    let rest = word.strip_prefix("python:").unwrap_or(word);
    match rest.rsplit_once(".py") {
        Some((_, "" | ":")) => {
            Some(format!("name the class, too: `python:{}:CLASS`", rest.trim_end_matches(':')))
        }
        Some((_, class)) if class.starts_with(':') => {
            Some(format!("did you mean `python:{rest}`?"))
        }
        _ => None,
    }
}

/// Without capitals and dashes, and without what the kernel and ns-3 put around their names.
fn plain(word: &str) -> Option<String> {
    if word.len() > 100 {
        return None;
    }
    let word = word.to_lowercase();
    let word = word.strip_prefix("ns3::").or_else(|| word.strip_prefix("sch_")).unwrap_or(&word);
    let word = word.replace(['-', '_', ' '], "");
    Some(word.strip_suffix("disc").unwrap_or(&word).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISCIPLINES: [&str; 6] = ["droptail", "red", "codel", "fq-codel", "dualpi2", "cake"];
    const TRANSPORTS: [&str; 5] = ["reno", "sack", "cubic", "bbr", "cbr"];
    const APPS: [&str; 4] = ["infinite", "finite", "exponential", "web"];

    #[test]
    fn names_of_the_kernel_and_of_ns3_are_understood() {
        let meant = |word| hint(word, &DISCIPLINES).unwrap();
        for word in ["FqCoDelQueueDisc", "ns3::FqCoDelQueueDisc", "sch_fq_codel", "fqcodel"] {
            assert_eq!(meant(word), "did you mean `fq-codel`?");
        }
        assert_eq!(meant("RedQueueDisc"), "did you mean `red`?");
        assert_eq!(meant("FifoQueueDisc"), "it is `droptail` here");
        assert_eq!(meant("DropTailQueue"), "did you mean `droptail`?");
        assert_eq!(hint("ns3::TcpCubic", &TRANSPORTS).unwrap(), "did you mean `cubic`?");
        assert_eq!(hint("TcpVegas", &TRANSPORTS).unwrap(), NOT_BUILT_IN);
    }

    #[test]
    fn a_word_means_something_only_beside_such_names() {
        assert!(hint("http", &APPS).unwrap().contains("`web`"));
        assert!(hint("http", &TRANSPORTS).unwrap().contains("app = \"web\""));
        assert_eq!(
            [hint("http", &DISCIPLINES), hint("tbf", &TRANSPORTS), hint("tcp", &[])],
            [None, None, None]
        );
        assert_eq!(hint("redd", &DISCIPLINES), None, "a mistake of spelling");
    }

    #[test]
    fn parameters_of_tc_are_understood() {
        assert_eq!(parameter("flows", &["queues", "target"]).unwrap(), "did you mean `queues`?");
        assert!(parameter("limit", &["target"]).unwrap().contains("`buffer`"));
        assert_eq!(parameter("flows", &["target"]), None);
    }

    #[test]
    fn a_class_needs_its_language_and_its_name() {
        let meant = |word| class(word).unwrap();
        assert_eq!(meant("own.py:X"), "did you mean `python:own.py:X`?");
        for word in ["own.py", "python:own.py", "python:own.py:"] {
            assert_eq!(meant(word), "name the class, too: `python:own.py:CLASS`");
        }
        assert_eq!([class("red"), class("own.python")], [None, None]);
    }
}
