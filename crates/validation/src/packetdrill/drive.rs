//! The simulator's TCP, driven by the steps of a script.

use std::collections::VecDeque;

use sim::packet::{DUPLICATE, Packet, Payload, Sack, tick};
use sim::transport::tcp::options::{AfterIdle, Options, Pacing};
use sim::transport::tcp::receiver::{AckWhen, Receiver};
use sim::transport::tcp::sender::{Congestion, Sender};
use sim::{Scenario, ScenarioError};

use super::{Field, Script, Setup, Step};

const NEVER: u64 = u64::MAX;
const US: u64 = 1_000;
/// What comes at one time is so far apart, ns.
const APART: u64 = US;
/// A slow-start threshold that was never lowered, as Linux tells it.
const NONE: i64 = 0x7fff_ffff;

/// The options of `setup` with preset `linux`.
fn options(setup: &Setup) -> Result<Options, ScenarioError> {
    let Setup { control, sack, timestamps, ecn, idle, .. } = setup;
    let how = if *sack {
        format!("transport = \"{control}\"\npreset = \"linux\"\ntimestamps = {timestamps}\n")
    } else {
        "transport = \"newreno\"\ninitial_window = 10\nhandshake = true\ncount_packets = true\n\
             delayed_ack = \"40ms\"\nquick_acks = true\n"
            .into()
    };
    let text = format!(
        "duration = \"1s\"\n[network]\npreset = \"dumbbell\"\n[[queue]]\naqm = \"droptail\"\n\
         buffer = \"1p\"\n[[traffic]]\necn = {ecn}\n{how}"
    );
    let scenario = Scenario::from_toml(&text, "packetdrill")?;
    let mut o = scenario.traffic.first().and_then(Options::of).unwrap_or_else(|| unreachable!());
    if setup.paced {
        o.pacing = Pacing::Paced;
    }
    o.control.old_rounds = setup.old_rounds;
    // Not for sources that are never idle, as those of files.
    o.window.after_idle = if *idle { AfterIdle::Decay } else { AfterIdle::Keep };
    Ok(o)
}

/// One end of a connection, which sends and receives.
struct Host {
    o: Options,
    sender: Sender,
    receiver: Receiver,
    now: u64,
    opened_at: u64,
    ack_at: u64,
    /// What it has sent and nobody expected yet, and when.
    sent: VecDeque<(u64, Packet)>,
    answers: VecDeque<(u64, Packet)>,
}

impl Host {
    fn new(o: Options) -> Self {
        Self {
            o,
            sender: Sender::default(),
            receiver: Receiver::default(),
            now: 0,
            opened_at: 0,
            ack_at: NEVER,
            sent: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    fn send(&mut self) {
        let mut packet = Packet::default();
        while self.sender.next(self.now, &self.o, &mut packet) {
            if matches!(packet.payload, Payload::Data { .. }) {
                self.sent.push_back((self.now, packet));
            }
        }
    }

    fn answer(&mut self) {
        self.ack_at = NEVER;
        let mut packet = Packet::default();
        self.receiver.acknowledge(self.o.recovery.has_sack(), &mut packet);
        if self.o.acks.look_closer {
            self.receiver.tell_more(&mut packet, &self.o);
        }
        self.answers.push_back((self.now, packet));
    }

    /// The earliest time at which it does something by itself.
    fn due(&self) -> u64 {
        self.sender.deadline().min(self.ack_at)
    }

    /// Lets time pass up to `until`, as long as not `done`.
    fn pass(&mut self, until: u64, done: impl Fn(&Self) -> bool) {
        while self.due() <= until && !done(self) {
            self.now = self.due().max(self.now);
            if self.ack_at <= self.now {
                self.answer();
            }
            if self.sender.deadline() <= self.now {
                self.sender.on_timer(self.now, &self.o);
                self.send();
            }
        }
    }

    fn take(&mut self, ack: Packet) {
        self.sender.on_ack(self.now, &ack, &self.o);
        self.send();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Open => {
                self.opened_at = self.now;
                self.sender.start(self.now, &self.o);
                self.send();
            }
            Step::Opened(window) => {
                self.o.window.receiver = *window;
                let echo = tick(self.opened_at) as u16;
                self.sender.on_syn_ack(self.now, echo, false, &self.o);
                self.send();
            }
            Step::Write(packets) => {
                self.sender.offer(*packets);
                self.send();
            }
            Step::Ack { ack, window, echo, duplicate, stamp, blocks } => {
                self.o.window.receiver = *window;
                let sack = Sack::new(blocks.iter().map(|(first, end)| (first - ack, end - ack)));
                let ece = u8::from(*echo) | if *duplicate { DUPLICATE } else { 0 };
                let stamped = self.opened_at.saturating_add_signed(stamp * 1_000_000);
                let echo = if self.o.recovery.timestamps { tick(stamped) as u16 } else { 0 };
                let payload = Payload::Ack { ece, echo, sack };
                self.take(Packet { seq: *ack, payload, ..Packet::default() });
            }
            Step::Data(first, end, ce) => {
                // One segment, with one answer.
                let mut at_once = false;
                for seq in *first..*end {
                    let when = self.receiver.on_watched_data(seq, *ce, false, &self.o);
                    at_once |= when == AckWhen::Now;
                }
                if at_once {
                    self.answer();
                } else {
                    self.ack_at = self.now + self.o.acks.delay;
                }
            }
            _ => {}
        }
    }

    /// Whether what is expected next was sent between `from` and `until`, and when.
    fn sends(&mut self, expected: &Step, [from, until]: [u64; 2]) -> Option<u64> {
        let (queue, many) = match expected {
            Step::Sent(first, end, _) => (&mut self.sent, end - first),
            _ => (&mut self.answers, 1),
        };
        let mut last = None;
        let agrees = (0..many).all(|n| {
            let next = queue.pop_front().filter(|(at, packet)| {
                (from..=until).contains(at) && is_expected(expected, n, packet)
            });
            last = next.map(|(at, _)| at);
            next.is_some()
        });
        if !agrees {
            queue.clear();
        }
        last.filter(|_| agrees)
    }

    fn info(&self, field: Field) -> i64 {
        let info = self.sender.info();
        match field {
            Field::Cwnd => info.cwnd.into(),
            Field::Ssthresh => info.ssthresh.map_or(NONE, i64::from),
            Field::State => match info.congestion {
                Congestion::Open => 0,
                Congestion::Disorder => 1,
                Congestion::Reduced => 2,
                Congestion::Recovery => 3,
                Congestion::Loss => 4,
            },
            Field::Unacked => info.unacked.into(),
            Field::Sacked => info.sacked.into(),
            Field::Lost => info.lost.into(),
            Field::Retrans => info.resent.into(),
            Field::Reordering => info.reordering.into(),
            Field::TotalRetrans => self.sender.counts().retransmits.into(),
            Field::Rtt => (self.sender.srtt() / US) as i64,
        }
    }
}

/// Whether the `n`-th packet of what is expected is that.
fn is_expected(expected: &Step, n: u32, packet: &Packet) -> bool {
    match (expected, packet.payload) {
        (Step::Sent(first, _, capable), _) => {
            let ecn = *capable == 2 || packet.ecn.capable() == (*capable == 1);
            packet.seq == first + n && ecn
        }
        (Step::Answer { ack, echo, duplicate, blocks }, Payload::Ack { ece, sack, .. }) => {
            let told: Vec<(u32, u32)> = sack
                .blocks()
                .into_iter()
                .take_while(|block| block.1 > 0)
                .map(|(a, b)| (packet.seq + a, packet.seq + b))
                .collect();
            packet.seq == *ack
                && (ece & 1 > 0) == *echo
                && (ece & DUPLICATE > 0) == *duplicate
                && told == *blocks
        }
        _ => false,
    }
}

/// Whether each step of `script` that is expected agrees; nothing of the others.
///
/// # Errors
/// Where the options of its setup cannot be together.
pub fn compare(script: &Script) -> Result<Vec<Option<bool>>, ScenarioError> {
    let Some(Step::Setup(setup)) = script.steps.first().map(|timed| &timed.step) else {
        return Ok(vec![None; script.steps.len()]);
    };
    let mut host = Host::new(options(setup)?);
    let mut found = Vec::new();
    // When the step before was to be, and whether the next is counted from there, or from when it was.
    let (mut before, mut anchored) = (0, true);
    for timed in &script.steps {
        let input = !matches!(timed.step, Step::Sent(..) | Step::Answer { .. });
        let base = if anchored && input { before } else { host.now.max(before) };
        let at = base + timed.after * US;
        let outcome = match &timed.step {
            Step::Sent(..) | Step::Answer { .. } => {
                let tolerance = (setup.tolerance * US).max(timed.after * US / 8);
                let from = at.saturating_sub(tolerance);
                let until = base.saturating_add(timed.until * US).saturating_add(tolerance);
                let data = matches!(timed.step, Step::Sent(..));
                host.pass(until, |host| !if data { &host.sent } else { &host.answers }.is_empty());
                let sent = host.sends(&timed.step, [from, until]);
                before = sent.map_or(at, |sent| sent.max(base));
                host.now = host.now.max(before);
                anchored = false;
                Some(sent.is_some())
            }
            step => {
                host.pass(at, |_| false);
                (before, anchored) = (at, true);
                let is_input = !matches!(step, Step::Info(..) | Step::Setup(_) | Step::Skipped(_));
                host.now = at.max(host.now + if is_input { APART } else { 0 });
                host.step(step);
                match step {
                    Step::Info(field, comparison, value) => {
                        Some(comparison.holds(host.info(*field), *value))
                    }
                    _ => None,
                }
            }
        };
        found.push(outcome);
    }
    Ok(found)
}
