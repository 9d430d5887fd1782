//! Stories of one connection over a path that the test controls: each round trip everything sent
//! arrives (but what the test drops or marks), and every acknowledgement comes back.

mod accecn;
mod board;
mod bursts;
mod ecn;
mod handshake;
mod losses;
mod rack;
mod sack1;
mod windows;

use aqm::Ecn;
use scenario::traffic::{Conduct, TcpName};

use super::options::{self, AfterIdle, Echo, Options, Variant};
use super::receiver::Receiver;
use super::rtt::RtoBounds;
use super::sender::Sender;

use crate::packet::{Packet, Payload};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;

pub(super) fn options(variant: Variant) -> Options {
    let rto =
        RtoBounds { initial: 1000 * MS, min: 200 * MS, max: 60_000 * MS, granularity: MS, tick: 0 };
    Options {
        control: options::Control {
            name: TcpName::Sack,
            has_model: false,
            rfc8312: false,
            old_rounds: false,
            reference_rtt: 25 * MS,
            reference_after: 0,
            packet: 1500.0,
            least_rate: 0.0,
            marks: options::MarkRule::AsLosses,
        },
        recovery: options::Recovery {
            variant,
            limited_transmit: 2,
            past_timeout: 0,
            timestamps: false,
            at_once: false,
        },
        window: options::Window {
            initial: 2.0,
            receiver: 1000,
            count_packets: false,
            whole_packets: false,
            whole_threshold: false,
            after_idle: AfterIdle::Restart,
            loose: false,
        },
        timer: options::Timer { rto, forget_rtt: false },
        ecn: options::Ecn {
            on: true,
            codepoint: Ecn::Ect0,
            again: Ecn::NotEct,
            control: Ecn::NotEct,
            syn_ack: Ecn::NotEct,
            echo: Echo::UntilAnswered,
            least_window: 1.0,
            waits_at_one: false,
        },
        pacing: options::Pacing::None,
        bursts: options::Bursts { quantum: 0, least: 2, most: 43, tso: false },
        acks: options::Acks {
            delay: 0,
            quick: false,
            look_closer: false,
            conduct: Conduct::Honest,
            plain: true,
        },
        handshake: options::Handshake { syn: false, restart_after_loss: true, ecn_fallback: false },
        stamps: false,
        notes_sending: false,
        later: false,
    }
}

impl Options {
    /// These, with a `change`.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl options::Ecn {
    /// An echo at a window of one packet makes the sender wait for its timer.
    pub(super) fn waits(&mut self) {
        (self.least_window, self.waits_at_one) = (0.0, true);
    }
}

struct Path {
    sender: Sender,
    receiver: Receiver,
    o: Options,
    now: u64,
    /// The timestamp of each packet's last sending.
    ticks: std::collections::BTreeMap<u32, u32>,
    /// What arrives is what was sent first.
    late: bool,
}

/// What was sent in a round: numbers in order.
type Round = Vec<u32>;

impl Path {
    fn new(o: Options) -> Self {
        let mut sender = Sender::default();
        sender.start(0, &o);
        sender.offer(u32::MAX);
        Self { sender, receiver: Receiver::default(), o, now: 0, ticks: [].into(), late: false }
    }

    fn send(&mut self) -> Option<Packet> {
        let mut packet = Packet::default();
        let sent = self.sender.next(self.now, &self.o, &mut packet).then_some(packet)?;
        if let Payload::Data { tick, .. } = sent.payload
            && !(self.late && self.ticks.contains_key(&sent.seq))
        {
            self.ticks.insert(sent.seq, tick);
        }
        Some(sent)
    }

    fn send_all(&mut self) -> Vec<(u32, bool, bool)> {
        std::iter::from_fn(|| self.send())
            .filter_map(|p| match p.payload {
                Payload::Data { cwr, .. } => Some((p.seq, cwr, p.ecn.capable())),
                _ => None,
            })
            .collect()
    }

    /// Delivers `sent` but for `drop`, marking `mark`, half a round trip later; the
    /// acknowledgements another half later. Returns what they made the sender send.
    fn deliver(
        &mut self,
        sent: &[(u32, bool, bool)],
        drop: &[u32],
        mark: &[u32],
    ) -> Vec<(u32, bool, bool)> {
        let acks = self.receive(sent, drop, mark);
        self.now += RTT;
        let mut next = Vec::new();
        for ack in acks {
            self.sender.on_ack(self.now, &ack, &self.o);
            next.extend(self.send_all());
        }
        next
    }

    /// What the receiver answers to `sent` but for `drop`, marking `mark`.
    fn receive(&mut self, sent: &[(u32, bool, bool)], drop: &[u32], mark: &[u32]) -> Vec<Packet> {
        let mut acks: Vec<Packet> = Vec::new();
        for &(seq, reduced, ecn) in sent {
            if !drop.contains(&seq) {
                self.receiver.on_timestamp(seq, self.ticks.get(&seq).copied().unwrap_or(0));
                self.receiver.on_data(seq, ecn && mark.contains(&seq), reduced, false);
                let mut ack = Packet::default();
                self.receiver.acknowledge(self.o.recovery.has_sack(), &mut ack);
                self.receiver.tell_more(&mut ack, &self.o.with(|o| o.recovery.timestamps = true));
                acks.push(ack);
            }
        }
        acks
    }

    /// Whether the receiver's acknowledgements carry an echo.
    fn echoes(&mut self) -> bool {
        let mut ack = Packet::default();
        self.receiver.acknowledge(false, &mut ack);
        ack.echoes()
    }

    /// Lets the timer run out.
    fn time_out(&mut self) -> Vec<(u32, bool, bool)> {
        self.now = self.sender.deadline();
        self.sender.on_timer(self.now, &self.o);
        self.send_all()
    }
}

fn numbers(sent: &[(u32, bool, bool)]) -> Round {
    sent.iter().map(|s| s.0).collect()
}

/// A window of seven is lost as a whole, and of four packets sent behind its timeout the one that is `lost`: how many
/// repairs their duplicates begin.
fn repairs_past_a_timeout(o: Options, lost: u32) -> u32 {
    let mut p = Path::new(o.with(|o| o.window.initial = 7.0));
    p.send_all();
    let mut sent = p.time_out();
    while !numbers(&sent).contains(&7) {
        sent = p.deliver(&sent, &[], &[]);
    }
    sent.retain(|s| s.0 >= 7);
    assert_eq!(sent.len(), 4);
    let before = p.sender.counts().retransmits;
    let next = p.deliver(&sent, &[7 + lost], &[]);
    p.deliver(&next, &[], &[]);
    p.sender.counts().retransmits - before
}

fn with_rack() -> Options {
    options(Variant::Sack).with(|o| {
        o.recovery.variant = Variant::Rack;
        o.notes_sending = true;
        o.window.count_packets = true;
    })
}

/// A path on which a window of 16 packets has just been sent.
fn sixteen(o: Options) -> (Path, Vec<(u32, bool, bool)>) {
    let mut p = Path::new(o);
    let mut sent = p.send_all();
    for _ in 0..3 {
        sent = p.deliver(&sent, &[], &[]);
    }
    assert_eq!(sent.len(), 16);
    (p, sent)
}
