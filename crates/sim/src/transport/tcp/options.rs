//! What all connections of a group of traffic share: the keys of `[[traffic]]`, in packets and ns.

use aqm::Ecn as Codepoint;
use scenario::traffic::{self as keys, Conduct, TcpName, TrafficSpec};

use super::rtt::RtoBounds;

/// A burst of a paced sender has no more than 64 KB (Linux, BBR).
const MOST_IN_A_BURST: f64 = 65_536.0;
/// A burst has as many packets as the pacing rate sends in this time, ns, by default.
const TSO_QUANTUM: u64 = 1_000_000;
/// Each of these in the least round trip halves what a burst may have beside that, ns.
const SHORT_RTT: u64 = 512_000;
/// Prague treats shorter round trips as this one, ns, by default.
pub(super) const REFERENCE_RTT: u64 = 25_000_000;
/// The rate that marks leave Prague, bytes a ns: 100 kbit/s.
const LEAST_RATE: f64 = 12.5e-6;

/// What all connections of a group of traffic share.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The congestion control.
    pub control: Control,
    /// How losses are found and repaired.
    pub recovery: Recovery,
    /// The congestion window and the receiver's.
    pub window: Window,
    /// The retransmission timer.
    pub timer: Timer,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// When what may be sent is sent.
    pub pacing: Pacing,
    /// How many packets leave together.
    pub bursts: Bursts,
    /// When the receiver acknowledges.
    pub acks: Acks,
    /// How a connection begins.
    pub handshake: Handshake,
    /// Data packets say when they were sent.
    pub stamps: bool,
    /// Each data packet that is sent is noted: for RACK, or with a stamp.
    pub notes_sending: bool,
    /// The flow asks apart for what may be sent: it is paced, waits, sends in bursts, or its data comes and goes.
    pub later: bool,
}

/// The congestion control, and the keys that belong to one of them.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Which one.
    pub name: TcpName,
    /// The control sets the window from a model of the path; then there is RACK.
    pub has_model: bool,
    /// CUBIC as in RFC 8312, with `HyStart`, not as in RFC 9438, with `HyStart`++. With `count_packets` and
    /// `whole_packets` it counts as Linux does.
    pub rfc8312: bool,
    /// `HyStart` begins its first round at its least window, as Linux did before January 2025. No key of files.
    pub old_rounds: bool,
    /// Prague treats shorter round trips as this one, ns.
    pub reference_rtt: u64,
    /// But so many round trips before count as they are; if above 0, a mark that comes too early for a reduction
    /// keeps the next away for a round trip.
    pub reference_after: u32,
    /// A packet has so many bytes, of those on the wire.
    pub packet: f64,
    /// Marks leave Prague this rate, packets a ns.
    pub least_rate: f64,
    /// What BBR makes of marks.
    pub marks: MarkRule,
}

/// What BBR makes of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkRule {
    /// A mark counts as a loss, and while it probes as too many.
    AsLosses,
    /// Nothing.
    Ignored,
    /// They count by their share where round trips are short.
    LowLatency,
}

/// Which rules find and repair losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// No fast recovery: three duplicates are what a timeout is, without its wait (Jacobson 1988).
    Tahoe,
    /// Fast retransmit and fast recovery of one loss a window (RFC 5681).
    Reno,
    /// Partial acknowledgements repair further losses (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 2018, RFC 6675).
    Sack,
    /// RACK-TLP (RFC 8985), with proportional rate reduction (RFC 9937) and a sample of the round trip from every
    /// acknowledgement (RFC 7323).
    Rack,
    /// ns-2's Sack1.
    Ns2,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// By which rules.
    pub variant: Variant,
    /// This many duplicates let a packet out each: two (RFC 3042) or none; with RACK all, as what has arrived is
    /// not under way, as in Linux.
    pub limited_transmit: u32,
    /// Behind a timeout, and without selective acknowledgements behind a fast recovery, a repair begins when
    /// this many packets more than all that had been sent by then are acknowledged: none (RFC 6675 §5.1) or
    /// one (RFC 6582 §3.2 step 2).
    pub past_timeout: u32,
    /// Acknowledgements echo timestamps (RFC 7323), and a repair of what was not lost is undone.
    pub timestamps: bool,
    /// With RACK: the window goes down at once, and grows by what arrives out of order (RFC 9002).
    pub at_once: bool,
}

/// The congestion window and the receiver's.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The initial congestion window in packets.
    pub initial: f64,
    /// The receiver's window in packets.
    pub receiver: u32,
    /// The congestion window grows by packets acknowledged, not by acknowledgements (RFC 3465, without a limit).
    pub count_packets: bool,
    /// A reduction leaves whole packets, as in Linux.
    pub whole_packets: bool,
    /// The slow-start threshold has whole packets, as in ns-2.
    pub whole_threshold: bool,
    /// What idleness leaves of the window.
    pub after_idle: AfterIdle,
    /// Pacing bounds what is sent, by a window that has fractions: somewhat more may be under way.
    pub loose: bool,
}

/// What idleness that lasts longer than a timeout leaves of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterIdle {
    /// All.
    Keep,
    /// The initial window (RFC 5681 §4.1).
    Restart,
    /// Half for each timeout that it lasted (RFC 2861).
    Decay,
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// Its bounds.
    pub rto: RtoBounds,
    /// After four doublings of the timeout the round-trip time is measured anew (RFC 6298 §5).
    pub forget_rtt: bool,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug)]
pub struct Ecn {
    /// Data packets are ECN-capable.
    pub on: bool,
    /// What new data packets carry.
    pub codepoint: Codepoint,
    /// What retransmissions carry (the same in RFC 2481; RFC 3168 §6.1.5 forbids it).
    pub again: Codepoint,
    /// The codepoint of SYNs and acknowledgements: that of data if each mark is echoed (ECN++; RFC 3168
    /// §6.1.1 and §6.1.4 forbid it). No window gives way to a marked acknowledgement: its receiver sent no
    /// data.
    pub control: Codepoint,
    /// What SYN-ACKs carry.
    pub syn_ack: Codepoint,
    /// How acknowledgements tell of marks.
    pub echo: Echo,
    /// The least window that an echo leaves, in packets.
    pub least_window: f64,
    /// An echo at a window of one packet makes the sender wait for its timer.
    pub waits_at_one: bool,
}

/// How acknowledgements tell of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    /// All that follow a mark, until the sender has answered (RFC 3168 §6.1.3).
    UntilAnswered,
    /// Each the marks of just what it acknowledges (RFC 8257 §3.2).
    Exact,
    /// By a counter of marks (`AccECN`, RFC 9768).
    Counted,
}

/// When what may be sent is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// At once.
    None,
    /// Spaced by the window and the round trip.
    Paced,
    /// After a wait that is uniform (ns-2's `overhead_`).
    Jitter {
        /// The longest wait, ns.
        most: u64,
    },
}

/// How many packets leave together.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    /// What a paced sender sends in this time, ns; 0: each packet by itself.
    pub quantum: u64,
    /// At least so many, where it is not 0.
    pub least: u64,
    /// At most so many: 64 KB.
    pub most: u64,
    /// As Linux sizes and fills what it leaves to the interface to cut up, paced or not.
    pub tso: bool,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug)]
pub struct Acks {
    /// Delay of acknowledgements in ns; 0 acknowledges each packet.
    pub delay: u64,
    /// Some are not delayed: at the start, after a first mark and for CWR.
    pub quick: bool,
    /// The receiver looks at more of a packet than its number and its mark. Only then is it asked what: for RACK,
    /// `quick`, an echo that is not [`Echo::UntilAnswered`], or a receiver that cheats.
    pub look_closer: bool,
    /// Whether the receiver cheats, and how.
    pub conduct: Conduct,
    /// Nothing but a packet's number, its mark and its timestamp matters: the receiver is honest, and counts
    /// no marks.
    pub plain: bool,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// With a SYN.
    pub syn: bool,
    /// A SYN that is lost leaves a window of one packet and a timeout of 3 s.
    pub restart_after_loss: bool,
    /// A connection whose SYN is sent again does without ECN.
    pub ecn_fallback: bool,
}

impl Options {
    /// Those of a group's connections, for who drives [`sender`](super::sender) and [`receiver`](super::receiver)
    /// without a simulation; nothing for other transports.
    pub fn of(spec: &TrafficSpec) -> Option<Self> {
        match &spec.transport {
            keys::Transport::Tcp(tcp) => Some(Self::new(spec, tcp, 0)),
            _ => None,
        }
    }

    /// Those of a group of traffic. A `web` session begins its connections itself.
    pub(crate) fn new(spec: &TrafficSpec, tcp: &keys::Tcp, _: u32) -> Self {
        let web = matches!(spec.app, keys::App::Web(_));
        let comes_and_goes = matches!(
            spec.app,
            keys::App::Pareto(_) | keys::App::Exponential(_) | keys::App::Schedule(_)
        );
        let needs = tcp.name.needs();
        let recovery = Recovery::new(tcp);
        let pacing = Pacing::new(tcp);
        let ecn = Ecn::new(spec.group.ecn, tcp);
        let honest = tcp.receiver == Conduct::Honest;
        let packet = f64::from(spec.group.packet_bytes().unwrap_or(1500));
        Self {
            control: Control {
                name: tcp.name,
                has_model: needs.has_model,
                rfc8312: tcp.rfc8312,
                old_rounds: false,
                reference_rtt: tcp.reference_rtt.map_or(REFERENCE_RTT, |time| time.0.as_nanos()),
                reference_after: tcp.reference_after,
                packet,
                least_rate: LEAST_RATE / packet,
                marks: match tcp.ecn_rule {
                    keys::EcnRule::AsLosses => MarkRule::AsLosses,
                    keys::EcnRule::LowLatency if tcp.accecn => MarkRule::LowLatency,
                    keys::EcnRule::LowLatency => MarkRule::Ignored,
                },
            },
            recovery,
            window: Window::new(spec, tcp),
            timer: Timer::new(tcp),
            ecn,
            pacing,
            bursts: Bursts::new(tcp, packet),
            acks: Acks {
                delay: match tcp.receiver {
                    Conduct::AckDivision => 0,
                    _ => tcp.delayed_ack.0.as_nanos(),
                },
                quick: tcp.quick_acks,
                look_closer: recovery.variant == Variant::Rack
                    || tcp.quick_acks
                    || needs.exact_echo
                    || !honest,
                conduct: tcp.receiver,
                plain: honest && ecn.echo != Echo::Counted,
            },
            handshake: Handshake {
                syn: tcp.handshake && !web,
                restart_after_loss: tcp.restart_after_lost_syn,
                ecn_fallback: tcp.ecn_fallback,
            },
            stamps: false,
            notes_sending: recovery.variant == Variant::Rack,
            later: pacing != Pacing::None || tcp.tso || comes_and_goes,
        }
    }

    /// Has data packets say when they were sent.
    pub(crate) fn stamp(&mut self) {
        (self.stamps, self.notes_sending) = (true, true);
    }
}

impl Recovery {
    fn new(tcp: &keys::Tcp) -> Self {
        let rack = tcp.rack || tcp.name.needs().has_model;
        let variant = match tcp.name {
            TcpName::Tahoe => Variant::Tahoe,
            TcpName::Reno => Variant::Reno,
            TcpName::NewReno => Variant::NewReno,
            _ if rack => Variant::Rack,
            _ if tcp.recovery == keys::Recovery::Ns2 => Variant::Ns2,
            _ => Variant::Sack,
        };
        Self {
            variant,
            limited_transmit: match tcp.limited_transmit {
                false => 0,
                true if rack => u32::MAX,
                true => 2,
            },
            past_timeout: tcp.repairs_past_timeout().into(),
            timestamps: tcp.timestamps,
            at_once: tcp.rfc9002,
        }
    }

    /// Whether acknowledgements tell what arrived out of order.
    pub fn has_sack(&self) -> bool {
        !matches!(self.variant, Variant::Tahoe | Variant::Reno | Variant::NewReno)
    }
}

impl Window {
    fn new(spec: &TrafficSpec, tcp: &keys::Tcp) -> Self {
        let receiver = spec.group.packet_bytes().and_then(|bytes| tcp.window_packets(bytes));
        Self {
            initial: f64::from(tcp.initial_window),
            receiver: receiver.unwrap_or(u32::from(u16::MAX)),
            count_packets: tcp.count_packets,
            whole_packets: tcp.whole_packets,
            whole_threshold: tcp.whole_threshold,
            after_idle: match tcp.restart_after_idle && !tcp.name.needs().has_model {
                false => AfterIdle::Keep,
                true if tcp.decay_after_idle => AfterIdle::Decay,
                true => AfterIdle::Restart,
            },
            loose: tcp.has_loose_window(),
        }
    }

    /// The window that a reduction to `window` leaves.
    pub(super) fn whole(&self, window: f64) -> f64 {
        if self.whole_packets { floor(window) } else { window }
    }

    /// The slow-start threshold after a reduction to `window` packets.
    pub(super) fn threshold(&self, window: f64) -> f64 {
        let least = if self.loose { 0.0 } else { LEAST_SSTHRESH };
        if self.whole_threshold { floor(window) } else { window }.max(least)
    }

    /// The largest congestion window: a packet more than the receiver takes.
    pub(super) fn most(&self) -> f64 {
        f64::from(self.receiver) + 1.0
    }
}

/// The least slow-start threshold in packets (RFC 5681 eq. 4).
pub(super) const LEAST_SSTHRESH: f64 = 2.0;

/// As [`f64::floor`], which on many machines is a call, and one that is made before it is asked whether
/// it is wanted. Few connections want it.
#[cold]
#[inline(never)]
fn floor(window: f64) -> f64 {
    window.floor()
}

impl Timer {
    fn new(tcp: &keys::Tcp) -> Self {
        let granularity = tcp.rto_granularity.0.as_nanos();
        let rto = RtoBounds {
            initial: tcp.initial_rto.0.as_nanos(),
            min: tcp.min_rto.0.as_nanos(),
            max: tcp.max_rto.0.as_nanos(),
            granularity,
            tick: if tcp.rtt_ticks { granularity } else { 0 },
        };
        let rto = if tcp.min_rto_above_srtt { rto.above_srtt(rto.min) } else { rto };
        Self { rto, forget_rtt: tcp.forget_rtt }
    }
}

impl Ecn {
    fn new(on: bool, tcp: &keys::Tcp) -> Self {
        let needs = tcp.name.needs();
        let codepoint = if on { needs.codepoint } else { Codepoint::NotEct };
        let if_also = |kind: bool| if kind { codepoint } else { Codepoint::NotEct };
        // Google's kernel: all that a connection of low latency sends.
        let all =
            tcp.name == TcpName::Bbr && tcp.accecn && tcp.ecn_rule == keys::EcnRule::LowLatency;
        let least = match tcp.min_window {
            // What marks leave is a rate then.
            1 if tcp.has_loose_window() => 0.0,
            window => f64::from(window.max(needs.least_window)),
        };
        Self {
            on,
            codepoint,
            again: if_also(tcp.ecn_on_retransmit || needs.ecn_on_retransmit || all),
            control: if_also(tcp.ecn_on_control && needs.exact_echo || all),
            syn_ack: if_also(tcp.ecn_on_control),
            echo: match needs.exact_echo {
                _ if tcp.accecn => Echo::Counted,
                true if tcp.receiver != Conduct::NoEcho => Echo::Exact,
                _ => Echo::UntilAnswered,
            },
            least_window: if tcp.ecn_timeout { 0.0 } else { least },
            waits_at_one: tcp.ecn_timeout,
        }
    }
}

/// Packets of so many bytes in the largest burst.
pub(super) fn most_in_a_burst(packet: f64) -> f64 {
    MOST_IN_A_BURST / packet
}

impl Bursts {
    fn new(tcp: &keys::Tcp, packet: f64) -> Self {
        let unsaid = if tcp.tso { TSO_QUANTUM } else { 0 };
        let least = if tcp.name == TcpName::Prague { 1 } else { 2 };
        Self {
            quantum: tcp.send_quantum.map_or(unsaid, |time| time.0.as_nanos()),
            least,
            most: (most_in_a_burst(packet) as u64).max(least),
            tso: tcp.tso,
        }
    }

    /// How many packets leave together that would be `gap` ns apart, where the least round trip is `min_rtt` ns, or
    /// 0 if it is not known. Short round trips allow for more: 64 KB, halved for each 512 µs (Linux,
    /// `tcp_tso_autosize`).
    pub(super) fn size(&self, gap: u64, min_rtt: u64) -> u64 {
        if self.quantum == 0 {
            return 1;
        }
        let most = self.most;
        let halvings = min_rtt / SHORT_RTT;
        let more = if self.tso && min_rtt > 0 && halvings < 32 { most >> halvings } else { 0 };
        (self.quantum / gap.max(1)).saturating_add(more).clamp(self.least, most)
    }
}

impl Pacing {
    fn new(tcp: &keys::Tcp) -> Self {
        let most = tcp.send_jitter.0.as_nanos();
        if tcp.is_paced() {
            Self::Paced
        } else if most > 0 {
            Self::Jitter { most }
        } else {
            Self::None
        }
    }
}
