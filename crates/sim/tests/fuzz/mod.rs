//! Scenarios made from bytes, and what has to hold for each. The tests draw the bytes from
//! proptest, a bounded number of times; `fuzz/` at the root of the repository takes them from
//! libFuzzer for as long as one likes.

use std::fmt::Write as _;

use aqm::param::Kind;
use aqm::{About, CATALOG, Duration, Qdisc as _};
use scenario::traffic::{Carrier, TrafficSpec, Transport, TransportName};
use sim::results::table::Column;
use sim::{Run, Scenario};

/// Decisions read from bytes. Where there are no more it decides for 0, the plainest choice.
pub struct Draw<'a>(pub &'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: usize) -> usize {
        let wide = usize::from(self.byte()) << 8 | usize::from(self.byte());
        wide % n.max(1)
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn number<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }
}

/// A scenario that is right in form, and the rate in bit/s that all its flows share.
pub struct Generated {
    /// The scenario as TOML.
    pub text: String,
    /// The slowest link that every flow crosses.
    pub rate: u64,
}

/// Makes a scenario of at most some ten thousand packets.
pub fn scenario(d: &mut Draw<'_>) -> Generated {
    let packet = d.number(&[1000u64, 40, 41, 576, 1500, 9000, 65_535]);
    let rates = [10_000_000, 1_000, 1_000_003, 45_000_000, 1_000_000_000, 1_000_000_000_000];
    let rate: u64 = d.number(&rates);
    let packets = 1 + d.below(3000) as u64;
    let ns = (packets * packet * 8).saturating_mul(1_000_000_000) / rate;
    let ns = ns.clamp(1_000, 60_000_000_000);
    let mut text = String::new();
    let mut line = |s: String| {
        text += &s;
        text.push('\n');
    };
    line(format!("seed = {}\nduration = \"{ns}ns\"", d.below(1000)));
    if d.flag() {
        line(format!("warmup = \"{}ns\"", ns / 3));
    }
    if d.flag() {
        line(format!("[measure]\ninterval = \"{}ns\"", (ns / 7).max(1)));
        line(format!("groups = {}\ncalls = true\nflows = true", d.flag()));
    }
    let Built { links, ends, slowest, air } = network(d, rate, &mut line);
    let (mut taken, mut aqms) = (Vec::new(), Vec::new());
    for n in 0..1 + d.below(3) {
        let link = links[if n == 0 && air { 0 } else { d.below(links.len()) }].clone();
        if !taken.contains(&link) {
            aqms.push(queue(d, &link, &mut line));
            taken.push(link);
        }
    }
    // Who acknowledges what has not come keeps the slowest link full, and QUIC's stacks take longer the more is under
    // way: for so many packets it takes minutes.
    let floods =
        u128::from(ns) * u128::from(slowest) > u128::from(packet) * 8_000_000_000 * 100_000;
    for _ in 0..1 + d.below(3) {
        traffic(d, packet, ns, ends.as_ref(), &aqms, floods, &mut line);
    }
    Generated { text, rate: slowest }
}

/// A network: links that may have queues, the ends of traffic if not those of a preset, the slowest link.
struct Built {
    links: Vec<String>,
    ends: Option<(String, String)>,
    slowest: u64,
    /// Whether an access point or a cable modem sends over the first link, which has a queue.
    air: bool,
}

fn delay(d: &mut Draw<'_>) -> &'static str {
    d.pick(&["1ms", "0s", "1ns", "333us", "20ms", "1s", "1h"])
}

fn network(d: &mut Draw<'_>, rate: u64, line: &mut impl FnMut(String)) -> Built {
    if d.below(4) == 0 {
        let access = rate.saturating_mul(d.number(&[1, 10, 1000]));
        let (ecmp, delay, access_delay) = (d.pick(&["flow", "packet", "none"]), delay(d), delay(d));
        line(format!(
            "[network]\npreset = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts = 1\n\
             rate = \"{rate}bit\"\naccess_rate = \"{access}bit\"\ndelay = \"{delay}\"\n\
             access_delay = \"{access_delay}\"\necmp = \"{ecmp}\""
        ));
        let links = ["l0->s0", "l0->s1", "s1->l1", "l1->h1"].map(String::from).to_vec();
        let ends = Some(("h0".into(), "h1".into()));
        return Built { links, ends, slowest: rate.saturating_mul(2), air: false };
    }
    if d.flag() {
        let presets = ["dumbbell", "feng", "feng-10ms", "cmu", "redpd", "report", "chain"];
        let preset = d.pick(&presets);
        let access = rate.saturating_mul(d.number(&[10, 1, 1000]));
        let (delay, access_delay) = (delay(d), delay(d));
        let (left, right) = (1 + d.below(3), 1 + d.below(3));
        line(format!(
            "[network]\npreset = \"{preset}\"\nrate = \"{rate}bit\"\naccess_rate = \"{access}bit\"\n\
             delay = \"{delay}\"\naccess_delay = \"{access_delay}\"\nleft = {left}\nright = {right}"
        ));
        if d.flag() {
            line(format!("bottlenecks = {}\ncross = {}", 1 + d.below(5), d.below(3)));
        }
        let links = ["A->B", "B->A", "n0->A", "A->n0"].map(String::from).to_vec();
        return Built { links, ends: None, slowest: rate, air: false };
    }
    let nodes = 2 + d.below(3);
    let mut links = Vec::new();
    let mut slowest = u64::MAX;
    let air = d.below(3) == 0;
    for i in 1..nodes {
        let rate = rate.saturating_mul(d.number(&[1, 1, 2, 10, 1000])).max(1);
        slowest = slowest.min(rate);
        let there = delay(d);
        line(format!(
            "[[link]]\nfrom = \"v{}\"\nto = \"v{i}\"\nrate = \"{rate}bit\"\ndelay = \"{there}\"",
            i - 1,
        ));
        if air && i == 1 {
            let modem = rate <= 10_000_000_000 && !["1s", "1h"].contains(&there) && d.flag();
            let schedule = d.pick(&[
                "\"turns\"",
                "\"airtime\"",
                "\"airtime\", quantum = \"10us\"",
                "\"fifo\"",
                "\"fifo\", driver = 50",
            ]);
            let limits = d.pick(&["", ", frames = 1", ", bytes = 1", ", overhead = \"0s\""]);
            let slow = if rate < 2_000_000 { 0 } else { rate / 2 };
            let station = match slow {
                0 => String::new(),
                _ => format!(", station = [{{ peer = \"8190\", rate = \"{slow}bit\" }}]"),
            };
            let grants = d.pick(&[
                "",
                ", backoff = 9",
                ", grant = \"64B\"",
                ", map = \"20ms\", lead = \"0s\"",
            ]);
            line(match modem {
                true => format!("duplex = false\ndocsis = {{ channel = \"{rate}bit\"{grants} }}"),
                false => {
                    format!("duplex = false\nwifi = {{ schedule = {schedule}{limits}{station} }}")
                }
            });
            let back = delay(d);
            line(format!(
                "[[link]]\nfrom = \"v1\"\nto = \"v0\"\nrate = \"{rate}bit\"\ndelay = \"{back}\"\nduplex = false"
            ));
        }
        links.push(format!("v{}->v{i}", i - 1));
        links.push(format!("v{i}->v{}", i - 1));
    }
    Built { links, ends: Some(("v0".into(), format!("v{}", nodes - 1))), slowest, air }
}

/// A queue; the name of its algorithm.
fn queue(d: &mut Draw<'_>, link: &str, line: &mut impl FnMut(String)) -> &'static str {
    let entry = &CATALOG[d.below(CATALOG.len())];
    let buffers = ["100p", "1p", "2p", "10p", "1000p", "40B", "1kB", "64KiB", "1bdp", "0.1bdp"];
    let mut params = String::new();
    let table = (entry.parameters)();
    let mut seen = Vec::new();
    for _ in 0..d.number(&[0, 1, 0, 2]) {
        let Some(p) = table.get(d.below(table.len())) else { continue };
        let value = match p.kind {
            Kind::Duration => d.pick(&["0s", "1ns", "1ms", "100ms", "1h", "none"]),
            Kind::Rate => d.pick(&["1mbit", "1bit", "1tbit"]),
            Kind::Size => d.pick(&["50%", "0p", "1p", "100%", "1kB", "none"]),
            Kind::Number => d.pick(&["0.5", "0", "1", "1e-9", "2"]),
            Kind::Integer => d.pick(&["1", "0", "50", "4294967295"]),
            Kind::Flag => d.pick(&["true", "false"]),
            Kind::DsField => d.pick(&["0x1/0x3", "0xb8/0xfc", "1/2", "none"]),
            Kind::Choice(words) => d.pick(words),
        };
        if !seen.contains(&p.name) {
            let _ = write!(params, "{} = \"{value}\", ", p.name);
            seen.push(p.name);
        }
    }
    line(format!(
        "[[queue]]\nlink = \"{link}\"\naqm = \"{}\"\nbuffer = \"{}\"\nparams = {{ {} }}",
        entry.name,
        d.pick(&buffers),
        params.trim_end_matches(", ")
    ));
    if d.flag() {
        let rtt = d.pick(&["40ms", "1ms", "60s"]);
        let limits = d.pick(&["", ", history = 1", ", monitored = 1", ", k = 6"]);
        line(format!(
            "prefilter = \"red-pd\"\nprefilter_params = {{ target_rtt = \"{rtt}\"{limits} }}"
        ));
    }
    entry.name
}

fn traffic(
    d: &mut Draw<'_>,
    packet: u64,
    ns: u64,
    ends: Option<&(String, String)>,
    aqms: &[&str],
    floods: bool,
    line: &mut impl FnMut(String),
) {
    // A rate at which so many packets are sent in the whole run.
    let rate = |d: &mut Draw<'_>| {
        let wanted = d.number(&[100u128, 1, 3000, 20_000]);
        (wanted * u128::from(packet) * 8_000_000_000 / u128::from(ns)).max(1)
    };
    let back = d.flag();
    // All that read no file, the plainest first.
    let all = TransportName::ALL.iter().filter(|name| !matches!(name.kind(), Carrier::Trace));
    let others = all.map(|name| name.name()).filter(|name| *name != "sack");
    let names: Vec<&str> = ["sack"].into_iter().chain(others).collect();
    let transport = match d.pick(&names) {
        "quinn" | "noq" if floods => "sack",
        other => other,
    };
    let quic = ["quinn", "noq"].contains(&transport);
    let packet = if quic { packet.max(1228) } else { packet };
    let name = if back { "back" } else { "out" };
    let flows = 1 + d.below(if transport == "cbr" { 3 } else { 20 });
    let ecn = d.flag() || ["dctcp", "prague"].contains(&transport);
    line(format!(
        "[[traffic]]\nname = \"{name}\"\ntransport = \"{transport}\"\nflows = {flows}\n\
         packet = \"{packet}B\"\nstart = \"{}\"\necn = {ecn}",
        d.pick(&["0s", &format!("0s..{}ns", ns / 2), &format!("{}ns", ns * 2)]),
    ));
    match (ends, back) {
        (Some((a, b)), false) => line(format!("from = [\"{a}\"]\nto = [\"{b}\"]")),
        (Some((a, b)), true) => line(format!("from = [\"{b}\"]\nto = [\"{a}\"]")),
        (None, false) => {}
        // In a dumbbell the left side is numbered first, and n0 is always there.
        (None, true) => line("from = [\"B\"]\nto = [\"n0\"]".into()),
    }
    if d.flag() {
        line(format!("stop = \"{}ns\"", ns / 2));
    }
    if d.flag() {
        line(format!(
            "step = {{ flows = {}, every = \"{}ns\" }}",
            1 + d.below(3).min(flows - 1),
            ns / 5
        ));
    }
    let labels = || aqms.iter().filter_map(|aqm| About::of(aqm)).map(|about| about.labels);
    if labels().any(|read| read.codepoints) {
        line(format!("dscp = \"{}\"", d.pick(&["EF", "0", "CS1", "AF42", "63"])));
    }
    if labels().any(|read| read.hosts) {
        line(format!("host = {}\npeer = {}", d.below(3), 8190 + d.below(2)));
    }
    if d.flag() {
        line("identity = \"shared\"".into());
    }
    if d.flag() {
        line(format!("rekey = \"{}ns\"", (ns / d.number(&[10, 1, 1000])).max(1)));
    }
    if transport == "tfrc" {
        line(format!("discounting = {}", d.flag()));
        if d.flag() {
            line(format!("equation_timeout = \"{}ms\"", d.number(&[0, 1, 300])));
        } else if d.flag() {
            line(format!("equation_clock = \"{}\"", d.pick(&["1ns", "100ms", "1h"])));
        }
        return;
    }
    if transport == "scream" {
        let rates = ["1kbit", "150kbit", "300kbit", "1gbit"];
        let [least, first, greatest] = d.number(&[[0, 0, 0], [0, 1, 3], [1, 2, 2], [3, 3, 3]]);
        line(format!("min_rate = \"{}\"\nstart_rate = \"{}\"", rates[least], rates[first]));
        line(format!("max_rate = \"{}\"\ncompete = {}", rates[greatest], d.flag()));
        line(format!("frames = {}", d.number(&[1, 25, 1000])));
        if d.flag() {
            line(format!("pause = {}", d.pick(&["[\"0s\", \"1ns\"]", "[\"0s\", \"1h\"]"])));
        }
        return;
    }
    if transport == "ledbat" {
        line(format!("target = \"{}\"", d.pick(&["100ms", "1us", "5ms"])));
        line(format!("gain = {}", d.pick(&["1", "0.001", "1000"])));
        return;
    }
    if transport == "window" {
        line(format!(
            "window = {}\ntimeout = \"{}ms\"",
            d.number(&[1, 7, 200]),
            d.number(&[1, 1000])
        ));
        return;
    }
    if transport == "cbr" {
        if d.flag() {
            let [on, off] = [0, 1].map(|_| (ns / d.number(&[10, 1, 1000])).max(1));
            line(format!("app = \"periodic\"\non = \"{on}ns\"\noff = \"{off}ns\""));
        }
        let gaps = d.pick(&["constant", "uniform", "poisson"]);
        let (first, jitter) = (rate(d), d.pick(&["1.0", "0.001"]));
        line(format!("rate = \"{first}bit\"\ngaps = \"{gaps}\""));
        if gaps == "uniform" {
            line(format!("jitter = {jitter}"));
        }
        if d.flag() {
            line(format!("rates = [[\"{}ns\", \"{}bit\"]]", ns / 3, rate(d)));
        }
        return;
    }
    let app = d.below(6);
    match app {
        4 if !quic => {
            let objects = 1 + d.below(5);
            let connections = 1 + d.below(objects);
            let size = d.pick(&["10p", "1B", "1p", "100kB"]);
            let shape = d.pick(&["", "shape = 1.2\n", "shape = 1.0001\n"]);
            let think = (ns / d.number(&[10, 1, 1000])).max(1);
            line(format!(
                "app = \"web\"\nsize = \"{size}\"\n{shape}objects = {objects}\n\
                 connections = {connections}\noff = \"{think}ns\""
            ));
        }
        1 => line(format!(
            "app = \"finite\"\n{}",
            d.pick(&[
                "size = \"10kB\"",
                "size = \"1B\"",
                "size = \"1p\"",
                "size = \"100p\"",
                "size = \"2147483647p\"",
                "sizes = \"web-search\"",
                "sizes = \"data-mining\"",
                "size = \"1B\"\nsizes = \"pareto 1.0001\"",
                "size = \"1GB\"\nsizes = \"lognormal 10\"",
            ])
        )),
        on_off @ 2..4 => {
            let app = if on_off == 2 { "pareto" } else { "exponential" };
            let mean = |d: &mut Draw<'_>| (ns / d.number(&[10, 1, 1000])).max(1);
            let (on, off) = (mean(d), mean(d));
            let shape = d.pick(&["1.5", "1.0001", "100.0"]);
            line(format!("app = \"{app}\"\non = \"{on}ns\"\noff = \"{off}ns\""));
            if app == "pareto" {
                line(format!("shape = {shape}"));
            }
            if d.flag() {
                let unsent = d.pick(&["withdraw", "backlog"]);
                line(format!("rate = \"{}bit\"\nunsent = \"{unsent}\"", rate(d)));
            }
        }
        5 => {
            let (first, second) = (d.pick(&["max", "0bit", "1mbit"]), d.pick(&["max", "0bit"]));
            let at = d.number(&[1, (ns / 3).max(1), 3_600_000_000_000]);
            line(format!(
                "app = \"schedule\"\nsteps = [[\"0s\", \"{first}\"], [\"{at}ns\", \"{second}\"]]"
            ));
        }
        _ => {}
    }
    if quic {
        line(format!("control = \"{}\"", d.pick(&["cubic", "newreno"])));
        return;
    }
    let paced = d.flag();
    let models = ["bbr", "bbr1"].contains(&transport);
    let paced = paced || models;
    line(format!("pacing = {paced}"));
    if paced && d.flag() {
        line(format!("send_quantum = \"{}\"", d.pick(&["1ms", "1ns", "1h"])));
    }
    let (wait, least) = d.number(&[("false", 1), ("true", 1), ("false", 2), ("false", 1000)]);
    let (shakes, careful) = d.number(&[(true, true), (true, false), (false, true)]);
    if ecn {
        let prague = transport == "prague";
        let again = d.flag() && !prague;
        let fallback = shakes && !again && !prague && d.flag();
        let wait = if prague || models { "false" } else { wait };
        line(format!("ecn_timeout = {wait}\necn_on_retransmit = {again}"));
        line(format!("ecn_fallback = {fallback}"));
        let counts = ["dctcp", "prague"].contains(&transport);
        let control = !fallback && (shakes || counts) && d.flag();
        line(format!("ecn_on_control = {control}"));
    }
    let (mut rack, mut as_ns2) = (models, false);
    if wait == "false" && ["sack", "cubic", "dctcp", "prague"].contains(&transport) {
        rack = d.flag();
        line(format!("rack = {rack}\nmin_rto_above_srtt = {}", d.flag()));
        line(format!("whole_threshold = {}", !rack && d.flag()));
        as_ns2 = transport == "sack" && !rack && d.flag();
        line(format!("recovery = \"{}\"", if as_ns2 { "ns-2" } else { "standard" }));
        line(format!("repair_past_timeout = {}", !rack && !as_ns2 && d.flag()));
        line(format!("rtt_ticks = {}", !rack && d.flag()));
        line(format!("timestamps = {}", rack && d.flag()));
        let counts = ["dctcp", "prague"].contains(&transport);
        line(format!("accecn = {}", rack && counts && d.flag()));
    }
    if models {
        line(format!("timestamps = {}", d.flag()));
        line(format!("rack = true\nmin_rto_above_srtt = {}", d.flag()));
    }
    if transport == "bbr" && ecn {
        let rule = d.pick(&["as-losses", "low-latency"]);
        line(format!("ecn_rule = \"{rule}\"\naccecn = {}", d.flag()));
    }
    let bursts = rack && d.flag();
    line(format!("tso = {bursts}"));
    if ecn {
        let has_two = rack && transport != "prague" || transport == "prague" && !paced;
        let least = if models || has_two && least == 2 { 1 } else { least };
        line(format!("min_window = {least}"));
    }
    if transport == "cubic" {
        line(format!("rfc8312 = {}", d.flag()));
    }
    if transport == "prague" {
        let reference = d.pick(&["0s", "25ms", "1h"]);
        let after = if reference == "0s" { "0" } else { d.pick(&["0", "1", "1000000"]) };
        line(format!("reference_rtt = \"{reference}\"\nreference_after = {after}"));
    }
    let conceals = if ecn { "no-echo" } else { "honest" };
    let guesses = if app == 4 || floods { "honest" } else { "optimistic" };
    line(format!("receiver = \"{}\"", d.pick(&["honest", "ack-division", conceals, guesses])));
    let late = d.pick(&["0s", "1ns", "40ms", "1h"]);
    let quick = late != "0s" && d.flag();
    line(format!("count_packets = {}\nquick_acks = {quick}", d.flag() && !models));
    let restarts = d.flag() || ![2, 3].contains(&app) || models;
    line(format!("restart_after_idle = {restarts}"));
    if [2, 3].contains(&app) && restarts && !models && !as_ns2 {
        line(format!("decay_after_idle = {}", d.flag()));
    }
    line(format!(
        "forget_rtt = {}\nhandshake = {shakes}\nrestart_after_lost_syn = {careful}\nlimited_transmit = {}\n\
         whole_packets = {}\ndelayed_ack = \"{}\"\nsend_jitter = \"{}\"\ninitial_window = {}\nwindow = \"{}\"\n\
         min_rto = \"{}\"\ninitial_rto = \"{}\"\nrto_granularity = \"{}\"",
        d.flag(),
        d.flag() || models,
        d.flag() && !models,
        late,
        if paced || bursts { "0s" } else { d.pick(&["0s", "0s", "1ns", "300us", "1h"]) },
        d.pick(&["2", "1", "10", "1000"]),
        d.pick(&["65535p", "1p", "2p", "100kB"]),
        d.pick(&["200ms", "0s", "1ns", "1ms", "1s"]),
        d.pick(&["1s", "1ms", "3s", "1h"]),
        d.pick(&["1ms", "0s", "1ns", "500ms"]),
    ));
}

/// Words that a reader of numbers, units and tables may not expect.
const HOSTILE: &[&str] = &[
    "0",
    "-1",
    "nan",
    "-inf",
    "1e400",
    "\"0s\"",
    "\"1bit\"",
    "18446744073709551616",
    "9223372036854775807",
    "4294967295",
    "\"NaNmbit\"",
    "\"99999999999999999999999h\"",
    "\"5000000h\"",
    "\"0.0000000000000000000001ns\"",
    "\"1e9s\"",
    "\"-5ms\"",
    "\"99999999tbit\"",
    "\"18446744073709551615B\"",
    "\"1e308bdp\"",
    "\"100000000000%\"",
    "\"٣mbit\"",
    "\"10\u{202e}ms\"",
    "\"µ\"",
    "\"\"",
    "\"\\u0000\"",
    "\"A->A\"",
    "\"n0->B->n1\"",
    "[]",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    "{}",
    "{ a = { b = { c = { d = {} } } } }",
    "1979-05-27T07:32:00Z",
    "true",
    "'''",
    "\"\"\"",
    "\u{feff}",
    "= =",
    "[[queue]]\n",
    "[network]\n",
    "\0",
    "\r",
    "\u{1f}",
    "\u{10ffff}",
];

/// Spoils a text: bytes swapped, put in, taken out; values and keys replaced by [`HOSTILE`] ones;
/// lines doubled, taken out, nested deeply.
pub fn spoil(d: &mut Draw<'_>, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + d.below(4) {
        let n = bytes.len().max(1);
        let at = d.below(n).min(bytes.len());
        match d.below(9) {
            0 if !bytes.is_empty() => {
                let other = d.below(n);
                bytes.swap(at.min(n - 1), other);
            }
            1 => bytes.insert(at, d.byte()),
            2 => drop(bytes.drain(at..(at + d.below(40)).min(bytes.len()))),
            3 => drop(bytes.splice(at..at, d.pick(HOSTILE).bytes())),
            4 | 5 => {
                // The value behind some equals sign, up to the end of its line.
                let signs: Vec<usize> =
                    (0..bytes.len()).filter(|&i| bytes[i..].starts_with(b" = ")).collect();
                if let Some(&sign) = signs.get(d.below(signs.len())) {
                    let end = bytes[sign..].iter().position(|&b| b == b'\n');
                    let end = end.map_or(bytes.len(), |e| sign + e);
                    drop(bytes.splice(sign + 3..end, d.pick(HOSTILE).bytes()));
                }
            }
            6 => {
                let copy = bytes[at..(at + d.below(120)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            7 => {
                let deep = d.number(&[10, 200, 5000]);
                let (open, close) = d.number(&[("[", "]"), ("{a=", "}"), ("a.", "b")]);
                let nest = format!("\nx = {}1{}\n", open.repeat(deep), close.repeat(deep));
                drop(bytes.splice(at..at, nest.bytes()));
            }
            _ => {
                let long = d.pick(&["ü", "9", " ", "#", "\"", "\n"]).repeat(d.below(3000));
                drop(bytes.splice(at..at, long.bytes()));
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shows the scenario at hand if a check fails.
struct Shown<'a>(&'a str);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- it fails for\n{}\n---", self.0);
        }
    }
}

/// Reads a text as a scenario: it is one, and its echo is the same scenario; or what is wrong is
/// said with the name of the file. Gives the scenario if it is one.
pub fn check_read(text: &str) -> Option<Scenario> {
    let _shown = Shown(text);
    match Scenario::from_toml(text, "fuzz.toml") {
        Ok(scenario) => {
            let echo = scenario.to_toml();
            match Scenario::from_toml(&echo, "echo.toml") {
                Ok(again) => assert_eq!(again.to_toml(), echo),
                Err(e) => panic!("the echo is refused: {e}\n{echo}"),
            }
            Some(scenario)
        }
        Err(e) => {
            let said = e.to_string();
            assert_eq!(e.file, "fuzz.toml");
            assert!(said.starts_with("fuzz.toml") && !e.problem.trim().is_empty(), "{said:?}");
            assert!(e.line.is_none_or(|line| line <= text.lines().count() + 1), "{said:?}");
            None
        }
    }
}

/// Runs a scenario to its end and looks at it on the way. False if it is none.
pub fn check_run(Generated { text, rate }: &Generated) -> bool {
    let Some(scenario) = check_read(text) else { return false };
    let Ok(mut run) = Run::new(scenario.clone(), text, "fuzz.toml") else { return false };
    let _shown = Shown(text);
    let slice = scenario.duration.0 / 16;
    while run.advance(Duration::from_nanos(slice.as_nanos().max(1))) {
        accounts_balance(&run, &scenario);
    }
    accounts_balance(&run, &scenario);
    let handled = run.simulation().events_handled();
    assert!(!run.advance(Duration::MAX), "a run goes on after its end");
    assert_eq!(run.simulation().events_handled(), handled, "an event after the end");
    delivered_is_possible(&run, &scenario, *rate);
    let outcome = run.finish();
    let end = scenario.duration.0.as_secs_f64();
    for table in [
        &outcome.summary,
        &outcome.queues,
        &outcome.flows,
        &outcome.series,
        &outcome.groups,
        &outcome.transfers,
        &outcome.completions,
        &outcome.slowdowns,
        &outcome.calls,
    ] {
        for (name, column) in table.columns() {
            if let Column::Real(values) = column {
                for value in values.iter().flatten() {
                    assert!(value.is_finite(), "{name} = {value}");
                    // A clock that ticks measures one tick at least.
                    let is_time = matches!(name, "completed_s" | "time_s")
                        || name == "srtt_s" && !text.contains("rtt_ticks = true");
                    assert!(!is_time || (0.0..=end).contains(value), "{name} = {value}, end {end}");
                    let is_share = matches!(name, "utilisation" | "idle_fraction" | "jain");
                    assert!(!is_share || (-1e-9..1.0 + 1e-9).contains(value), "{name} = {value}");
                }
            }
        }
    }
    for folding in [true, false] {
        let again = Run::new(scenario.clone(), text, "fuzz.toml").map(|r| r.with_folding(folding));
        let again = again.map(|run| run.finish().decision_hash);
        assert_eq!(again.as_ref(), Ok(&outcome.decision_hash), "two runs, folding {folding}");
    }
    true
}

/// Arrivals = departures + drops + queued, at each queue and for each flow; marks only of packets
/// that are ECN-capable.
fn accounts_balance(run: &Run, scenario: &Scenario) {
    let flows = |group: &TrafficSpec| group.group.flows as usize * usize::from(group.slots());
    let ecn: Vec<bool> =
        scenario.traffic.iter().flat_map(|group| vec![group.group.ecn; flows(group)]).collect();
    let mut by_flow = 0;
    for queue in run.simulation().queues() {
        let (counters, backlog) = (queue.queue().counters(), queue.queue().backlog());
        let (dropped, marked) = (counters.all_dropped(), counters.all_marked());
        assert_eq!(
            counters.arrived.packets,
            counters.departed.packets + dropped.packets + u64::from(backlog.packets)
        );
        assert_eq!(counters.arrived.bytes, counters.departed.bytes + dropped.bytes + backlog.bytes);
        let (mut packets, mut bytes, mut marks, mut arrived) = (0, 0, 0, 0);
        for (flow, capable) in queue.stats().flows().iter().zip(&ecn) {
            packets += flow.arrived - flow.departed - flow.all_dropped();
            bytes += flow.arrived_bytes - flow.departed_bytes - flow.dropped_bytes;
            marks += u64::from(flow.marked);
            arrived += u64::from(flow.arrived);
            assert!(*capable || flow.marked == 0, "a mark on a packet that is not ECN-capable");
        }
        // The first queue of the scenario counts each flow.
        if !queue.stats().flows().is_empty() {
            assert_eq!(
                (packets, bytes),
                (backlog.packets, backlog.bytes),
                "the flows' packets queued"
            );
            assert_eq!((marks, arrived), (marked.packets, counters.arrived.packets));
            by_flow += 1;
        }
        if scenario.measure.groups {
            let queued = queue.stats().groups().iter().map(|group| group.queued());
            let [packets, bytes] = queued.fold([0, 0], |a, q| [a[0] + q.packets, a[1] + q.bytes]);
            assert_eq!((packets, bytes), (u64::from(backlog.packets), backlog.bytes), "groups");
        }
    }
    assert_eq!(by_flow, 1);
}

/// What the receivers have got went through the link that all flows of a direction share.
fn delivered_is_possible(run: &Run, scenario: &Scenario, rate: u64) {
    let most = rate as f64 * scenario.duration.0.as_secs_f64();
    let mut bits = [0.0, 0.0];
    let mut flow = 0;
    for group in &scenario.traffic {
        let packet = match group.group.packet.0 {
            aqm::units::Size::Bytes(n) => n as f64,
            _ => 0.0,
        };
        for _ in 0..group.group.flows * u32::from(group.slots()) {
            let report = run.simulation().flow(flow);
            bits[usize::from(group.group.name == "back")] +=
                f64::from(report.delivered) * packet * 8.0;
            assert!(!matches!(group.transport, Transport::Cbr(_)) || report.retransmits == 0);
            flow += 1;
        }
    }
    for sum in bits {
        assert!(sum <= most * (1.0 + 1e-9) + 8.0, "{sum} bits where {most} fit");
    }
}
