//! Reads packetdrill's scripts, as far as the simulator has what they are about.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::{Comparison, Field, Script, Setup, Step, Timed};

/// What packetdrill allows if a script does not say it, µs.
const TOLERANCE: u64 = 4_000;
/// Without an option in a SYN (RFC 9293 §3.7.1).
const DEFAULT_MSS: u64 = 536;
/// What timestamps take of each segment.
const TIMESTAMPS: u64 = 12;
/// The widest window of the simulator, packets.
const WIDEST: u64 = 65_535;

/// Why a script has nothing that can be compared.
type Unfit = String;

/// A line of a script.
#[derive(Clone, Debug)]
struct Event<'a> {
    /// From and until, µs, both from the event before or from the beginning.
    from: u64,
    until: u64,
    absolute: bool,
    what: What<'a>,
}

#[derive(Clone, Debug)]
enum What<'a> {
    Packet(Box<Segment>),
    Code(&'a str),
    Call(&'a str),
    Shell(&'a str),
    /// A packet that is not of TCP.
    Other,
}

/// A segment that comes, or is expected.
#[derive(Clone, Default, Debug)]
struct Segment {
    comes: bool,
    ecn: Option<String>,
    flags: String,
    first: u64,
    end: u64,
    ack: Option<u64>,
    window: Option<u64>,
    options: String,
}

impl Segment {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// The number behind the name of an option.
    fn option(&self, name: &str) -> Option<i64> {
        let mut words = self.options.split([' ', ',']).filter(|word| !word.is_empty());
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    }

    fn has_option(&self, name: &str) -> bool {
        self.options.split([' ', ',']).any(|word| word == name)
    }

    /// The echo of its timestamp.
    fn echo(&self) -> Option<i64> {
        self.has_option("TS").then(|| self.option("ecr")).flatten()
    }

    fn blocks(&self) -> Vec<(u64, u64)> {
        let Some((_, rest)) = self.options.split_once("sack ") else { return Vec::new() };
        let words = rest.split([' ', ',']);
        let block = |word: &str| {
            let (first, end) = word.split_once(':')?;
            Some((first.parse().ok()?, end.parse().ok()?))
        };
        words.map_while(block).collect()
    }
}

/// The text without comments, which may stand wherever no code and no command does.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '`', '%']) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let (whole, keep) = match rest {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            _ if rest.starts_with("/*") => (rest.find("*/").map_or(rest.len(), |n| n + 2), false),
            _ if rest.starts_with('`') => (rest[1..].find('`').map_or(rest.len(), |n| n + 2), true),
            _ if rest.starts_with("%{") => (rest.find("}%").map_or(rest.len(), |n| n + 2), true),
            _ => (1, true),
        };
        if keep {
            kept.push_str(&rest[..whole]);
        }
        rest = &rest[whole..];
    }
    kept + rest
}

/// A time in s as µs, and what follows it.
fn time(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    // `0...0.010` is a range, not a number.
    let number = &text[..end];
    let number = number.split("...").next().unwrap_or(number);
    let seconds: f64 = number.parse().ok()?;
    Some(((seconds * 1e6).round() as u64, &text[number.len()..]))
}

/// When an event is.
fn when(text: &str) -> Option<(bool, u64, u64, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((false, 0, 3_600_000_000, rest));
    }
    let absolute = !text.starts_with('+');
    let (from, rest) = time(text.trim_start_matches('+'))?;
    let blank = rest.trim_start();
    let range = blank.strip_prefix('~').or_else(|| blank.strip_prefix("..."));
    let Some(range) = range else { return Some((absolute, from, from, rest)) };
    let (until, rest) = time(range.trim_start().trim_start_matches('+'))?;
    Some((absolute, from, until, rest))
}

/// The lines of a script.
fn events(text: &str) -> Result<(Vec<String>, Vec<Event<'_>>), Unfit> {
    let (mut options, mut events) = (Vec::new(), Vec::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let line = rest.lines().next().unwrap_or_default();
        if rest.starts_with("--") {
            options.extend(line.split_whitespace().map(str::to_string));
            rest = rest[line.len()..].trim_start();
            continue;
        }
        let timed = if rest.starts_with(['`', '%']) { None } else { when(rest) };
        let (absolute, from, until, after) = timed.unwrap_or((false, 0, 0, rest));
        if timed.is_none() && !rest.starts_with(['`', '%']) {
            return Err(format!("unread: {}", line.trim()).replace(',', ";"));
        }
        let body = after.trim_start();
        let first = body.lines().next().unwrap_or_default();
        let (what, length) = match body {
            _ if body.starts_with('`') => {
                let end = body[1..].find('`').map_or(body.len(), |n| n + 2);
                (What::Shell(&body[..end]), end)
            }
            _ if body.starts_with("%{") => {
                let end = body.find("}%").map_or(body.len(), |n| n + 2);
                (What::Code(body[2..end].trim_end_matches("}%")), end)
            }
            _ if body.starts_with(['<', '>']) => {
                (segment(first).map_or(What::Other, |s| What::Packet(Box::new(s))), first.len())
            }
            _ => {
                let end = call_end(body);
                (What::Call(&body[..end]), end)
            }
        };
        events.push(Event { from, until, absolute, what });
        rest = body[length..].trim_start();
    }
    Ok((options, events))
}

/// Where a call ends: at the end of the line behind its closing bracket.
fn call_end(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            '\n' if depth <= 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// A segment of TCP.
fn segment(line: &str) -> Option<Segment> {
    let mut s = Segment { comes: line.starts_with('<'), ..Segment::default() };
    let (head, options) = line[1..].split_once('<').unwrap_or((&line[1..], ""));
    s.options = options.trim_end().trim_end_matches('>').to_string();
    let mut words = head.split_whitespace().peekable();
    if let Some(ecn) = words.peek().and_then(|word| word.strip_prefix(['[', '('])) {
        s.ecn = Some(ecn.trim_end_matches([']', ')', ',']).to_string());
        words.next();
    }
    s.flags = words.next()?.to_string();
    if !s.flags.chars().all(|c| "SFRPEWAU.0123456789".contains(c)) {
        return None;
    }
    let (first, rest) = words.next()?.split_once(':')?;
    s.first = first.parse().ok()?;
    s.end = rest.split('(').next()?.parse().ok()?;
    while let Some(word) = words.next() {
        match word {
            "ack" => s.ack = words.next()?.parse().ok(),
            "win" => s.window = words.next()?.parse().ok(),
            _ => {}
        }
    }
    Some(s)
}

/// What a call of a write gave away, bytes.
fn written(call: &str) -> Option<u64> {
    let name = call.split('(').next()?.trim();
    let writes = ["write", "writev", "send", "sendto", "sendmsg", "sendfile", "splice"];
    let result = call.rsplit(')').next()?.trim_start().strip_prefix('=')?;
    let result = result.split_whitespace().next()?.parse().ok()?;
    writes.contains(&name).then_some(result)
}

/// Reads the events of a script one after another.
struct Reader {
    steps: Vec<Timed>,
    setup: Setup,
    /// Waited since the last step, µs: from, until.
    waited: [u64; 2],
    /// The time of the last event, µs from the beginning.
    at: u64,
    /// Of what is sent, bytes.
    mss: u64,
    /// The other side's window is in units of so many powers of two.
    scale: u32,
    /// The unit of data that comes.
    unit: u64,
    /// By the application: bytes, and the packets of them.
    written: u64,
    given: u32,
    /// Something came that is to be acknowledged.
    heard: bool,
    opened: bool,
    established: bool,
    over: bool,
    /// The first timestamp that was expected, and what was echoed last, ms from there.
    stamp: i64,
    last_stamp: i64,
    /// The other side's window, packets.
    window: u32,
    variables: BTreeMap<String, i64>,
}

impl Reader {
    fn push(&mut self, step: Step) {
        let [after, until] = std::mem::take(&mut self.waited);
        self.steps.push(Timed { after, until, step });
    }

    fn skip(&mut self, why: &str) {
        self.push(Step::Skipped(why.replace(',', ";")));
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), Unfit> {
        let wait = |n: u64| if event.absolute { n.saturating_sub(self.at) } else { n };
        let (from, until) = (wait(event.from), wait(event.until));
        self.at = if event.absolute { event.from } else { self.at + event.from };
        self.waited = [self.waited[0] + from, self.waited[0] + until.max(from)];
        match &event.what {
            What::Shell(text) => self.shell(text)?,
            What::Code(text) => self.code(text),
            What::Other if self.established => self.skip("not a segment of TCP"),
            What::Other => {}
            What::Call(call) if ["TCP_CORK", "MSG_MORE"].iter().any(|word| call.contains(word)) => {
                return Err("data is held back until more of it is written".into());
            }
            What::Call(call) => self.call(call),
            What::Packet(segment) => self.segment(segment)?,
        }
        Ok(())
    }

    /// What a command sets.
    fn shell(&mut self, text: &str) -> Result<(), Unfit> {
        let text = text.replace('/', ".");
        let set = |name: &str| {
            let (_, value) = text.rsplit_once(&format!("{name}="))?;
            let value: String = value.trim_start_matches('"').chars().collect();
            value.split(|c: char| !c.is_ascii_alphanumeric()).next().map(str::to_string)
        };
        if let Some(control) = set("tcp_congestion_control") {
            self.setup.control = match control.as_str() {
                "reno" => "sack".into(),
                "cubic" | "dctcp" | "bbr" | "prague" => control,
                _ => return Err(format!("congestion control {control}")),
            };
        }
        if let Some(idle) = set("tcp_slow_start_after_idle") {
            self.setup.idle = idle == "1";
        }
        self.setup.paced |= text.contains("root fq");
        Ok(())
    }

    /// What an application does.
    fn call(&mut self, call: &str) {
        if let Some(bytes) = written(call) {
            self.written += bytes;
            let packets = self.written.div_ceil(self.mss) as u32;
            if packets > self.given && self.established && !self.over {
                let more = packets - self.given;
                self.given = packets;
                self.push(Step::Write(more));
            }
        }
        // The rest takes time only.
    }

    fn segment(&mut self, s: &Segment) -> Result<(), Unfit> {
        if s.has('S') {
            return self.handshake(s);
        }
        if !self.opened {
            // Nothing is known of it yet.
        } else if s.comes {
            self.comes(s);
        } else {
            self.expected(s);
        }
        Ok(())
    }

    fn handshake(&mut self, s: &Segment) -> Result<(), Unfit> {
        if self.established {
            return Err("more than one connection".into());
        }
        if s.end > s.first || s.has_option("FO") || s.has_option("FOEXP") {
            return Err("TCP Fast Open".into());
        }
        if s.flags.chars().any(|c| c == 'A' || c.is_ascii_digit()) || s.has_option("ECN") {
            return Err("the handshake of AccECN".into());
        }
        if s.comes {
            self.mss = s.option("mss").map_or(DEFAULT_MSS, |mss| mss as u64);
            self.scale = s.option("wscale").unwrap_or(0) as u32;
            self.setup.sack = s.has_option("sackOK");
        }
        let both = if s.has('.') { self.setup.timestamps } else { true };
        // What the answer says holds.
        self.setup.timestamps = both && s.has_option("TS");
        let asks = s.has('E') && (s.has('W') || s.has('.'));
        self.setup.ecn = if s.has('.') { self.setup.ecn && asks } else { asks };
        if !s.comes
            && let Some(value) = s.option("val")
        {
            self.stamp = value;
        }
        match (s.comes, s.has('.'), self.opened) {
            (_, false, false) => {
                self.opened = true;
                self.push(Step::Open);
            }
            (_, false, true) => self.skip("a SYN that is sent again"),
            (true, true, _) => self.establish(s),
            (false, true, _) => {
                if self.heard {
                    self.skip("a SYN-ACK that is sent again");
                }
                self.heard = true;
            }
        }
        Ok(())
    }

    fn establish(&mut self, s: &Segment) {
        self.established = true;
        self.heard = false;
        if self.setup.timestamps {
            self.mss -= TIMESTAMPS;
        }
        self.window = self.window_of(s, s.has('S'));
        self.push(Step::Opened(self.window));
        // What was written before goes now.
        let packets = self.written.div_ceil(self.mss) as u32;
        if packets > self.given {
            self.push(Step::Write(packets - self.given));
            self.given = packets;
        }
    }

    /// The window of a segment in packets.
    fn window_of(&self, s: &Segment, syn: bool) -> u32 {
        let scale = if syn { 0 } else { self.scale };
        let bytes = s.window.map(|window| window << scale);
        bytes.map_or(self.window, |bytes| (bytes / self.mss).min(WIDEST) as u32)
    }

    /// Packets that are whole below a sequence number of ours.
    fn below(&self, number: u64) -> u32 {
        let bytes = number.saturating_sub(1);
        if bytes >= self.written { self.given } else { (bytes / self.mss) as u32 }
    }

    fn comes(&mut self, s: &Segment) {
        if !self.established {
            self.establish(s);
            if s.end == s.first && s.ack.is_none_or(|ack| ack <= 1) {
                return;
            }
        }
        if s.has('F') || s.has('R') {
            self.over = true;
        }
        if self.over {
            return;
        }
        if s.end > s.first {
            self.unit = if self.unit == 0 { s.end - s.first } else { self.unit };
            let packets = |bytes: u64| (bytes / self.unit) as u32;
            let (first, end) = (s.first.saturating_sub(1), s.end.saturating_sub(1));
            if first.is_multiple_of(self.unit) && end.is_multiple_of(self.unit) {
                let ce = s.ecn.as_deref() == Some("ce");
                self.heard = true;
                let step = Step::Data(packets(first), packets(end), ce);
                self.push(step);
            } else {
                self.over = true;
                self.skip("data that comes is not whole packets");
            }
        }
        let Some(number) = s.ack else { return };
        self.window = self.window_of(s, false);
        let ack = self.below(number);
        let mut blocks = s.blocks();
        let is_duplicate = |blocks: &[(u64, u64)]| {
            blocks.first().is_some_and(|&(first, end)| {
                let within = |&(a, b): &(u64, u64)| a <= first && end <= b;
                end <= number || blocks.get(1).is_some_and(within)
            })
        };
        let duplicate = is_duplicate(&blocks);
        if duplicate {
            blocks.remove(0);
        }
        let whole = |(first, end): (u64, u64)| {
            let first = (first.saturating_sub(1)).div_ceil(self.mss) as u32;
            (first.max(ack), self.below(end))
        };
        let blocks: Vec<(u32, u32)> =
            blocks.into_iter().map(whole).filter(|(first, end)| first < end).collect();
        if let Some(echo) = s.echo() {
            self.last_stamp = echo - self.stamp;
        }
        // The third segment of a handshake, or data alone, tells nothing of what was sent.
        if s.end > s.first && ack == 0 && blocks.is_empty() && self.given == 0 {
            return;
        }
        let (window, stamp) = (self.window, self.last_stamp);
        let echo = s.has('E') && self.setup.ecn;
        self.push(Step::Ack { ack, window, echo, duplicate, stamp, blocks });
    }

    fn expected(&mut self, s: &Segment) {
        if s.has('F') || s.has('R') || self.over {
            self.over = true;
            return self.skip("the end of a connection");
        }
        if s.end > s.first {
            let (from, to) = (s.first.saturating_sub(1), s.end.saturating_sub(1));
            let is_whole = |n: u64| n.is_multiple_of(self.mss) || n == self.written;
            if !is_whole(from) || !is_whole(to) || from >= self.written {
                return self.skip("not whole packets");
            }
            let capable = match s.ecn.as_deref() {
                Some("ect0" | "ect1" | "ect01") => 1,
                Some("noecn") => 0,
                _ => 2,
            };
            let (first, end) = ((from / self.mss) as u32, self.below(s.end));
            return self.push(Step::Sent(first, end, capable));
        }
        let Some(ack) = s.ack else { return };
        if !self.heard {
            // The last of a handshake; or a probe of a window that is closed.
            if s.first.saturating_sub(1) < self.written || self.window == 0 {
                self.skip("a probe of a closed window");
            }
            return;
        }
        let mut blocks = s.blocks();
        let duplicate = blocks.first().is_some_and(|&(first, end)| {
            let within = |&(a, b): &(u64, u64)| a <= first && end <= b;
            end <= ack || blocks.get(1).is_some_and(within)
        });
        if duplicate {
            blocks.remove(0);
        }
        let packets = |n: u64| (n.saturating_sub(1) / self.unit) as u32;
        let step = Step::Answer {
            ack: packets(ack),
            echo: s.has('E'),
            duplicate,
            blocks: blocks.into_iter().map(|(a, b)| (packets(a), packets(b))).collect(),
        };
        self.push(step);
    }

    /// Assertions and assignments.
    fn code(&mut self, text: &str) {
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            for statement in line.split(';') {
                self.statement(statement.trim());
            }
        }
    }

    fn statement(&mut self, statement: &str) {
        if let Some(assertion) = statement.strip_prefix("assert") {
            // What follows a comma is what is printed.
            let condition = assertion.split(',').next().unwrap_or_default();
            for part in condition.trim().trim_matches(['(', ')']).split(" and ") {
                match self.condition(part) {
                    Some(step) => self.push(step),
                    None => self.skip(&format!("{} is not modelled", part.trim())),
                }
            }
        } else if let Some((name, value)) = statement.split_once('=') {
            let added = name.strip_suffix('+');
            let name = added.unwrap_or(name).trim().to_string();
            let old = added.map_or(0, |_| self.variables.get(&name).copied().unwrap_or(0));
            if let Some(value) = self.value(value) {
                self.variables.insert(name, old + value);
            }
        }
    }

    fn condition(&self, text: &str) -> Option<Step> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[left, comparison, right] = &words[..] else { return None };
        let field = Field::of(left.strip_prefix("tcpi_")?)?;
        Some(Step::Info(field, Comparison::of(comparison)?, self.value(right)?))
    }

    fn value(&self, text: &str) -> Option<i64> {
        let states = ["Open", "Disorder", "CWR", "Recovery", "Loss"];
        let text = text.trim();
        if let Some(state) = text.strip_prefix("TCP_CA_") {
            return states.iter().position(|s| *s == state).map(|n| n as i64);
        }
        let hexadecimal = text.strip_prefix("0x").map(|digits| i64::from_str_radix(digits, 16));
        let number = hexadecimal.unwrap_or_else(|| text.parse()).ok();
        number.or_else(|| self.variables.get(text).copied())
    }
}

/// Scripts whose windows are those of `HyStart` before January 2025: slow start ends at 48 packets.
const OLD_ROUNDS: [&str; 2] =
    ["google/cubic/cubic-bulk-166k", "google/cubic/cubic-bulk-166k-idle-restart"];

/// Reads the `text` of a script.
///
/// # Errors
/// Why there is nothing in it that can be compared.
pub fn read(name: &str, text: &str) -> Result<Script, Unfit> {
    let text = without_comments(text);
    let (options, events) = events(&text)?;
    let tolerance = options.iter().find_map(|o| o.strip_prefix("--tolerance_usecs=")?.parse().ok());
    let setup = Setup {
        control: "cubic".into(),
        sack: true,
        timestamps: false,
        ecn: false,
        idle: false,
        paced: false,
        old_rounds: OLD_ROUNDS.contains(&name),
        tolerance: tolerance.unwrap_or(TOLERANCE),
    };
    let mut reader = Reader {
        steps: Vec::new(),
        setup,
        waited: [0; 2],
        at: 0,
        mss: DEFAULT_MSS,
        scale: 0,
        unit: 0,
        written: 0,
        given: 0,
        heard: false,
        opened: false,
        established: false,
        over: false,
        stamp: 0,
        last_stamp: 0,
        window: WIDEST as u32,
        variables: BTreeMap::new(),
    };
    for event in &events {
        reader.event(event)?;
    }
    let Reader { setup, mut steps, .. } = reader;
    if !steps.iter().any(|timed| timed.step.is_expected()) {
        return Err("nothing is expected that the simulator has".into());
    }
    steps.insert(0, Timed { after: 0, until: 0, step: Step::Setup(setup) });
    Ok(Script { name: name.into(), steps, kept: Vec::new() })
}

/// What was read of a folder: the scripts, and the names of those that have nothing to compare, with the reason.
#[derive(Default, Debug)]
pub struct Folder {
    /// The scripts, by name.
    pub scripts: Vec<Script>,
    /// Those left out.
    pub unfit: Vec<(String, String)>,
}

/// Reads all scripts of a folder and of those in it.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn folder(path: &Path) -> io::Result<Folder> {
    let mut found = Folder::default();
    visit(path, path, &mut found)?;
    found.scripts.sort_by(|a, b| a.name.cmp(&b.name));
    found.unfit.sort();
    Ok(found)
}

fn visit(root: &Path, path: &Path, found: &mut Folder) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            visit(root, &path, found)?;
        } else if path.extension().is_some_and(|end| end == "pkt") {
            let inside = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            let name = inside.to_string_lossy().replace(',', ";");
            match read(&name, &fs::read_to_string(&path)?) {
                Ok(script) => found.scripts.push(script),
                Err(why) => found.unfit.push((name, why)),
            }
        }
    }
    Ok(())
}
