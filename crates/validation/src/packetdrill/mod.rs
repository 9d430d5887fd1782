//! TCP against the Linux kernel's own test scripts: those of packetdrill.
//!
//! A script says when a kernel is handed data and acknowledgements, and what it sends and has for a window then. The
//! scripts stay where they are (google/packetdrill, `gtests/net/tcp`; Linux, `tools/testing/selftests/net/packetdrill`):
//! `bluewater-validate packetdrill FOLDER` reads them ([`script`]), drives the simulator's TCP with preset `linux`
//! ([`drive`]) and writes `reference/packetdrill.csv`, which has what is handed in and what is expected as numbers of
//! packets and microseconds, and whether it agrees. The test drives from that table.
//!
//! What is not the same: a kernel's packets are of bytes, ours of one MSS; what a script says of other things than
//! whole packets, or of the end of a connection, is skipped, and counted.

pub mod drive;
pub mod script;

use std::fmt::{self, Write as _};

/// What was compared, with whether it agrees and why not.
pub const TABLE: &str = include_str!("../../reference/packetdrill.csv");

/// The first line of [`TABLE`].
const COLUMNS: &str = "script,row,after_us,until_us,step,values,verdict,reason";

/// What a connection is like.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// A congestion control that goes with preset `linux`, as in scenario files.
    pub control: String,
    /// Selective acknowledgements; without them it is `newreno`.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// ECN.
    pub ecn: bool,
    /// The window decays while idle.
    pub idle: bool,
    /// Packets are paced by a queue that asks for it.
    pub paced: bool,
    /// The script expects the rounds of `HyStart` that Linux had before January 2025.
    pub old_rounds: bool,
    /// How much earlier or later something may be sent, µs; or an eighth of the time waited.
    pub tolerance: u64,
}

/// What happens or is expected.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// How the connection is: the first step.
    Setup(Setup),
    /// Its first packet is sent or comes.
    Open,
    /// It is established, with a receiver window of so many packets.
    Opened(u32),
    /// The application writes so many packets.
    Write(u32),
    /// An acknowledgement comes.
    Ack {
        /// Packets below this number have arrived.
        ack: u32,
        /// The receiver's window from there on.
        window: u32,
        /// An ECN echo.
        echo: bool,
        /// It tells of a duplicate (D-SACK).
        duplicate: bool,
        /// The time echoed, ms from the opening.
        stamp: i64,
        /// Packets beyond, as (first, past the last).
        blocks: Vec<(u32, u32)>,
    },
    /// Data comes: packets from the first to before the last, marked or not.
    Data(u32, u32, bool),
    /// Expected: packets from the first to before the last are sent. 1: ECN-capable, 0: not, 2: either.
    Sent(u32, u32, u8),
    /// Expected: data is acknowledged.
    Answer {
        /// All below this number.
        ack: u32,
        /// With an ECN echo.
        echo: bool,
        /// And a duplicate.
        duplicate: bool,
        /// Packets beyond.
        blocks: Vec<(u32, u32)>,
    },
    /// Expected: a quantity of the sender, compared.
    Info(Field, Comparison, i64),
    /// Expected, but of what the simulator does not have.
    Skipped(String),
}

/// Names and the values that they stand for.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$of])* $value,)+
        }

        impl $name {
            /// The one of that name.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$value => $word,)+
                })
            }
        }
    };
}

words! {
    /// A quantity of `tcp_info`.
    Field {
        /// The congestion window.
        Cwnd = "snd_cwnd",
        /// The slow-start threshold.
        Ssthresh = "snd_ssthresh",
        /// The state of congestion.
        State = "ca_state",
        /// Packets sent and not acknowledged.
        Unacked = "unacked",
        /// Packets selectively acknowledged.
        Sacked = "sacked",
        /// Packets lost.
        Lost = "lost",
        /// Packets sent again and not acknowledged.
        Retrans = "retrans",
        /// By how many packets some have come late.
        Reordering = "reordering",
        /// Packets sent again in all.
        TotalRetrans = "total_retrans",
        /// The smoothed round trip, µs.
        Rtt = "rtt",
    }
}

words! {
    /// How two numbers are compared.
    Comparison {
        /// Equal.
        Equal = "==",
        /// Not equal.
        Other = "!=",
        /// Less.
        Less = "<",
        /// Greater.
        Greater = ">",
        /// No greater.
        AtMost = "<=",
        /// No less.
        AtLeast = ">=",
    }
}

impl Comparison {
    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::Other => a != b,
            Self::Less => a < b,
            Self::Greater => a > b,
            Self::AtMost => a <= b,
            Self::AtLeast => a >= b,
        }
    }
}

impl Step {
    /// Whether it is an expectation that is compared.
    pub fn is_expected(&self) -> bool {
        matches!(self, Self::Sent(..) | Self::Answer { .. } | Self::Info(..))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Setup(_) => "setup",
            Self::Open => "open",
            Self::Opened(_) => "opened",
            Self::Write(_) => "write",
            Self::Ack { .. } => "ack",
            Self::Data(..) => "data",
            Self::Sent(..) => "sent",
            Self::Answer { .. } => "answer",
            Self::Info(..) => "info",
            Self::Skipped(_) => "skipped",
        }
    }

    fn values(&self) -> String {
        let one = |is: bool| u8::from(is);
        let mut text = String::new();
        let add = |text: &mut String, blocks: &[(u32, u32)]| {
            for (first, end) in blocks {
                let _ = write!(text, " {first}-{end}");
            }
        };
        match self {
            Self::Setup(s) => {
                let Setup { control, tolerance, .. } = s;
                let flags = [s.sack, s.timestamps, s.ecn, s.idle, s.paced, s.old_rounds];
                let flags = flags.map(|is| one(is).to_string()).join(" ");
                return format!("{control} {flags} {tolerance}");
            }
            Self::Open | Self::Skipped(_) => {}
            Self::Opened(n) | Self::Write(n) => return n.to_string(),
            Self::Ack { ack, window, echo, duplicate, stamp, blocks } => {
                let (echo, duplicate) = (one(*echo), one(*duplicate));
                let _ = write!(text, "{ack} {window} {echo} {duplicate} {stamp}");
                add(&mut text, blocks);
            }
            Self::Data(first, end, ce) => {
                return format!("{first} {end} {}", one(*ce));
            }
            Self::Sent(first, end, capable) => return format!("{first} {end} {capable}"),
            Self::Answer { ack, echo, duplicate, blocks } => {
                let _ = write!(text, "{ack} {} {}", one(*echo), one(*duplicate));
                add(&mut text, blocks);
            }
            Self::Info(field, comparison, value) => return format!("{field} {comparison} {value}"),
        }
        text
    }

    fn read(name: &str, values: &str, reason: &str) -> Option<Self> {
        let words: Vec<&str> = values.split(' ').collect();
        let number = |n: usize| words.get(n)?.parse::<u32>().ok();
        let flag = |n: usize| Some(number(n)? != 0);
        let blocks = |from: usize| {
            let block = |word: &&str| {
                let (first, end) = word.split_once('-')?;
                Some((first.parse().ok()?, end.parse().ok()?))
            };
            words.get(from..).unwrap_or_default().iter().map(block).collect::<Option<Vec<_>>>()
        };
        Some(match name {
            "setup" => Self::Setup(Setup {
                control: words.first()?.to_string(),
                sack: flag(1)?,
                timestamps: flag(2)?,
                ecn: flag(3)?,
                idle: flag(4)?,
                paced: flag(5)?,
                old_rounds: flag(6)?,
                tolerance: number(7)?.into(),
            }),
            "open" => Self::Open,
            "opened" => Self::Opened(number(0)?),
            "write" => Self::Write(number(0)?),
            "ack" => Self::Ack {
                ack: number(0)?,
                window: number(1)?,
                echo: flag(2)?,
                duplicate: flag(3)?,
                stamp: words.get(4)?.parse().ok()?,
                blocks: blocks(5)?,
            },
            "data" => Self::Data(number(0)?, number(1)?, flag(2)?),
            "sent" => Self::Sent(number(0)?, number(1)?, number(2)? as u8),
            "answer" => Self::Answer {
                ack: number(0)?,
                echo: flag(1)?,
                duplicate: flag(2)?,
                blocks: blocks(3)?,
            },
            "info" => Self::Info(
                Field::of(words.first()?)?,
                Comparison::of(words.get(1)?)?,
                words.get(2)?.parse().ok()?,
            ),
            "skipped" => Self::Skipped(reason.into()),
            _ => return None,
        })
    }
}

/// A step and when it is, µs after the one before: from, until.
#[derive(Clone, PartialEq, Debug)]
pub struct Timed {
    /// So long after the step before, µs.
    pub after: u64,
    /// If it is expected: at the latest so long after it.
    pub until: u64,
    /// What it is.
    pub step: Step,
}

/// A script, and how each of its steps compared as the table was written.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Script {
    /// The project, folder and file.
    pub name: String,
    /// Its steps.
    pub steps: Vec<Timed>,
    /// Of each step whether it agreed, and why not.
    pub kept: Vec<(bool, String)>,
}

impl Script {
    /// All scripts of a table like [`TABLE`].
    ///
    /// # Errors
    /// The line that is none.
    pub fn all(table: &str) -> Result<Vec<Self>, String> {
        let mut scripts: Vec<Self> = Vec::new();
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.splitn(8, ',').collect();
            let &[name, _, after, until, step, values, verdict, reason] = &cells[..] else {
                return Err(line.into());
            };
            let step = Step::read(step, values, reason);
            let (Ok(after), Ok(until), Some(step)) = (after.parse(), until.parse(), step) else {
                return Err(line.into());
            };
            if scripts.last().is_none_or(|last| last.name != name) {
                scripts.push(Self { name: name.into(), ..Self::default() });
            }
            if let Some(script) = scripts.last_mut() {
                script.steps.push(Timed { after, until, step });
                script.kept.push((verdict == "agrees", reason.into()));
            }
        }
        Ok(scripts)
    }

    /// Why its step `n` differs, as was written there.
    fn reason(&self, n: usize) -> &str {
        self.kept.get(n).map_or("", |(_, reason)| reason)
    }
}

/// The table of `scripts` as they compare now, with the reasons of `before` for what differed then.
///
/// # Errors
/// See [`drive::compare`].
pub fn table(scripts: &[Script], before: &[Script]) -> Result<String, sim::ScenarioError> {
    let mut text = format!("{COLUMNS}\n");
    for script in scripts {
        let found = drive::compare(script)?;
        let old = before.iter().find(|old| old.name == script.name);
        let old = old.filter(|old| old.steps == script.steps);
        for (n, (timed, outcome)) in script.steps.iter().zip(found).enumerate() {
            let (verdict, reason) = match (&timed.step, outcome) {
                (Step::Skipped(why), _) => ("", why.as_str()),
                (_, Some(true)) => ("agrees", ""),
                (_, Some(false)) => ("differs", old.map_or("", |old| old.reason(n))),
                (_, None) => ("", ""),
            };
            let Timed { after, until, step } = timed;
            let (name, values) = (step.name(), step.values());
            let _ = writeln!(
                text,
                "{},{n},{after},{until},{name},{values},{verdict},{reason}",
                script.name
            );
        }
    }
    Ok(text)
}

/// How much of what scripts expect agrees.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Scripts.
    pub scripts: usize,
    /// What is expected and compared.
    pub expected: usize,
    /// Of it, what agrees.
    pub agree: usize,
    /// Of what differs, what has no reason written.
    pub unexplained: usize,
    /// What is expected and not compared.
    pub skipped: usize,
}

impl Counts {
    /// Those of a table's scripts, as they were kept.
    pub fn of(scripts: &[Script]) -> Self {
        let mut counts = Self { scripts: scripts.len(), ..Self::default() };
        for script in scripts {
            for (timed, (agrees, reason)) in script.steps.iter().zip(&script.kept) {
                let expected = timed.step.is_expected();
                counts.expected += usize::from(expected);
                counts.agree += usize::from(expected && *agrees);
                counts.unexplained += usize::from(expected && !agrees && reason.is_empty());
                counts.skipped += usize::from(matches!(timed.step, Step::Skipped(_)));
            }
        }
        counts
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scripts, expected, agree, unexplained, skipped } = self;
        write!(
            f,
            "{scripts} scripts: {agree} of {expected} expectations agree, {unexplained} of the others without a \
             reason; {skipped} not compared"
        )
    }
}
