//! TCP as packets of one MSS: Reno, NewReno (RFC 6582), SACK (RFC 6675), with RTO (RFC 6298),
//! limited transmit (RFC 3042), delayed acknowledgements and ECN (RFC 3168); congestion control as
//! Reno's, CUBIC (RFC 9438), DCTCP (RFC 8257), Prague's (RFC 9331) or BBR's.

pub mod bits;
pub mod control;
mod ends;
pub mod receiver;
pub mod rtt;
pub mod sender;

use scenario::traffic::{self as keys, TcpName, TrafficSpec};

use aqm::Ecn;
use control::Algorithm;
pub(crate) use ends::Ends;
use rtt::RtoBounds;

/// A burst of a paced sender has no more than 64 kB, in packets of 1500 bytes (Linux, BBR).
const MOST_IN_A_BURST: u32 = 43;

/// How a sender repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Fast retransmit and fast recovery of one loss a window (RFC 5681).
    Reno,
    /// Partial acknowledgements repair further losses (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 2018, RFC 6675).
    Sack,
}

/// What all connections of a group of traffic share.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How losses are repaired.
    pub variant: Variant,
    /// How the window follows the signals.
    pub control: Algorithm,
    /// Initial congestion window in packets.
    pub initial_window: f64,
    /// The receiver's window in packets.
    pub window: u32,
    /// Bounds of the retransmission timeout.
    pub rto: RtoBounds,
    /// After four doublings of the timeout the round-trip time is measured anew (RFC 6298 §5).
    pub forget_rtt: bool,
    /// Behind a timeout, and without selective acknowledgements behind a fast recovery, a repair begins when
    /// so many packets more than all that had been sent by then are acknowledged: none (RFC 6675 §5.1) or
    /// one (RFC 6582 §3.2 step 2).
    pub past_timeout: u32,
    /// Losses are repaired as ns-2's Sack1 does.
    pub sack1: bool,
    /// An acknowledgement is for that, or for `rack`.
    pub tells_losses_otherwise: bool,
    /// So many duplicates let a packet out each: two (RFC 3042) or none; with RACK all, as what has
    /// arrived is not under way, as in Linux.
    pub limited_transmit: u32,
    /// RACK-TLP (RFC 8985), with proportional rate reduction (RFC 6937) and a sample of the round
    /// trip from every acknowledgement (RFC 7323).
    pub rack: bool,
    /// Acknowledgements echo timestamps (RFC 7323), and a repair of what was not lost is undone.
    pub timestamps: bool,
    /// Data packets say when they were sent.
    pub stamps: bool,
    /// Something is noted of each data packet that is sent: for RACK, or by a stamp.
    pub notes_sending: bool,
    /// The control sets the window from a model of the path; then there is RACK.
    pub has_model: bool,
    /// The receiver looks at more of a packet than its number and its mark: with `rack`, `quick_acks`,
    /// `exact_echo` or `accecn`, which are asked for one by one only then.
    pub looks_closer: bool,
    /// The window grows by packets acknowledged, not by acknowledgements (RFC 3465, without a limit).
    pub count_packets: bool,
    /// CUBIC as in RFC 8312, with `HyStart`, not as in RFC 9438, with `HyStart`++; where `count_packets` and
    /// `whole_packets` are set, as Linux counts.
    pub rfc8312: bool,
    /// The round trip that shorter ones of `prague` are treated as, ns.
    pub reference_rtt: u64,
    /// Acknowledgements are not delayed at the start and after a mark.
    pub quick_acks: bool,
    /// A reduction leaves whole packets, as in Linux.
    pub whole_packets: bool,
    /// The slow-start threshold has whole packets, as in ns-2.
    pub whole_threshold: bool,
    /// Start again from the initial window after an idle RTO (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// Not from that window: it is halved for each timeout of idleness (RFC 2861).
    pub decay_after_idle: bool,
    /// Delay of acknowledgements in ns; 0 acknowledges each packet.
    pub delayed_ack: u64,
    /// Whether a connection begins with a SYN.
    pub handshake: bool,
    /// Whether one that is lost leaves a window of one packet and a timeout of 3 s.
    pub restart_after_lost_syn: bool,
    /// Whether a connection whose SYN is sent again does without ECN.
    pub ecn_fallback: bool,
    /// Whether data packets are ECN-capable.
    pub ecn: bool,
    /// What they carry.
    pub codepoint: Ecn,
    /// An acknowledgement echoes the marks of just what it acknowledges (RFC 8257 §3.2), not one until
    /// the sender has answered.
    pub exact_echo: bool,
    /// Acknowledgements count marks instead (RFC 9768).
    pub accecn: bool,
    /// What retransmissions carry (the same in RFC 2481; RFC 3168 §6.1.5 forbids it).
    pub codepoint_again: Ecn,
    /// What SYNs and acknowledgements carry: the same where each mark is told (ECN++; RFC 3168 §6.1.1 and
    /// §6.1.4 forbid it). Who hears of marked acknowledgements sent no data, so that no window gives way.
    pub codepoint_control: Ecn,
    /// What SYN-ACKs carry.
    pub codepoint_syn_ack: Ecn,
    /// An echo with a window of one packet makes the sender wait for its timer.
    pub ecn_timeout: bool,
    /// The least window that an echo leaves, in packets; 0 where the timer slows the sender further
    /// (`ecn_timeout`).
    pub least_window: f64,
    /// It waits before it sends: at most so long, uniform, ns (ns-2's `overhead_`).
    pub send_jitter: u64,
    /// Packets are sent apart, by the window and the round trip.
    pub pacing: bool,
    /// A paced sender sends together what it would send in so long, ns; 0: a packet.
    pub send_quantum: u64,
    /// What may be sent is asked for apart: it is paced, waits, or comes and goes.
    pub later: bool,
}

impl Options {
    /// A `web` session begins its connections itself.
    pub(crate) fn new(spec: &TrafficSpec, tcp: &keys::Tcp, _: u32) -> Self {
        let group = &spec.group;
        let web = matches!(spec.app, keys::App::Web(_));
        let comes_and_goes = matches!(spec.app, keys::App::Pareto(_) | keys::App::Exponential(_));
        let (variant, control) = match tcp.name {
            TcpName::Reno => (Variant::Reno, Algorithm::Reno),
            TcpName::NewReno => (Variant::NewReno, Algorithm::Reno),
            TcpName::Sack => (Variant::Sack, Algorithm::Reno),
            TcpName::Cubic => (Variant::Sack, Algorithm::Cubic),
            TcpName::Dctcp => (Variant::Sack, Algorithm::Dctcp),
            TcpName::Prague => (Variant::Sack, Algorithm::Prague),
            TcpName::Bbr => (Variant::Sack, Algorithm::Bbr),
            TcpName::Bbr1 => (Variant::Sack, Algorithm::Bbr1),
        };
        let needs = tcp.name.needs();
        let codepoint = if group.ecn { needs.codepoint } else { Ecn::NotEct };
        let on = |kind: bool| if kind { codepoint } else { Ecn::NotEct };
        let pacing = tcp.pacing.unwrap_or(needs.paced);
        let least_window = f64::from(tcp.min_window.max(needs.least_window));
        let window = group.packet_bytes().and_then(|bytes| tcp.window_packets(bytes));
        let rto = RtoBounds {
            initial: tcp.initial_rto.0.as_nanos(),
            min: tcp.min_rto.0.as_nanos(),
            max: tcp.max_rto.0.as_nanos(),
            granularity: tcp.rto_granularity.0.as_nanos(),
            tick: if tcp.rtt_ticks { tcp.rto_granularity.0.as_nanos() } else { 0 },
        };
        let rack = tcp.rack || needs.has_model;
        let sack1 = tcp.recovery == keys::Recovery::Ns2;
        Self {
            variant,
            control,
            initial_window: f64::from(tcp.initial_window),
            window: window.unwrap_or(u32::from(u16::MAX)),
            rto: if tcp.min_rto_above_srtt { rto.above_srtt(rto.min) } else { rto },
            limited_transmit: match tcp.limited_transmit {
                false => 0,
                true if rack => u32::MAX,
                true => 2,
            },
            sack1,
            tells_losses_otherwise: rack || sack1,
            rack,
            timestamps: tcp.timestamps,
            stamps: false,
            notes_sending: rack,
            has_model: needs.has_model,
            looks_closer: rack || tcp.quick_acks || needs.exact_echo,
            count_packets: tcp.count_packets,
            rfc8312: tcp.rfc8312,
            reference_rtt: tcp
                .reference_rtt
                .map_or(control::REFERENCE_RTT, |time| time.0.as_nanos()),
            quick_acks: tcp.quick_acks,
            whole_packets: tcp.whole_packets,
            whole_threshold: tcp.whole_threshold,
            restart_after_idle: tcp.restart_after_idle && !needs.has_model,
            decay_after_idle: tcp.decay_after_idle,
            delayed_ack: tcp.delayed_ack.0.as_nanos(),
            handshake: tcp.handshake && !web,
            restart_after_lost_syn: tcp.restart_after_lost_syn,
            ecn_fallback: tcp.ecn_fallback,
            ecn: group.ecn,
            codepoint,
            exact_echo: needs.exact_echo && !tcp.accecn,
            accecn: tcp.accecn,
            codepoint_again: on(tcp.ecn_on_retransmit || needs.ecn_on_retransmit),
            codepoint_control: on(tcp.ecn_on_control && needs.exact_echo),
            codepoint_syn_ack: on(tcp.ecn_on_control),
            ecn_timeout: tcp.ecn_timeout,
            least_window: if tcp.ecn_timeout { 0.0 } else { least_window },
            forget_rtt: tcp.forget_rtt,
            past_timeout: tcp.repair_past_timeout.into(),
            send_jitter: tcp.send_jitter.0.as_nanos(),
            pacing,
            send_quantum: tcp.send_quantum.map_or(0, |time| time.0.as_nanos()),
            later: pacing || tcp.send_jitter.0.as_nanos() > 0 || comes_and_goes,
        }
    }

    /// What the connections of a group share, for who drives [`sender`] and [`receiver`] without a
    /// simulation; nothing for other transports.
    pub fn of(spec: &TrafficSpec) -> Option<Self> {
        match &spec.transport {
            keys::Transport::Tcp(tcp) => Some(Self::new(spec, tcp, 0)),
            _ => None,
        }
    }

    /// Whether acknowledgements tell what arrived out of order.
    pub fn sack(&self) -> bool {
        self.variant == Variant::Sack
    }

    /// Has data packets say when they were sent.
    pub(crate) fn stamp(&mut self) {
        (self.stamps, self.notes_sending) = (true, true);
    }

    /// How many packets a paced sender sends together, whose packets would be `gap` ns apart.
    fn burst(&self, gap: u64) -> u64 {
        if self.send_quantum == 0 {
            1
        } else {
            (self.send_quantum / gap.max(1)).clamp(2, MOST_IN_A_BURST.into())
        }
    }

    /// The window left by a reduction.
    fn whole(&self, window: f64) -> f64 {
        if self.whole_packets { floor(window) } else { window }
    }
}

/// As [`f64::floor`], which on many machines is a call, and one that is made before it is asked whether
/// it is wanted. Few connections want it.
#[cold]
#[inline(never)]
fn floor(window: f64) -> f64 {
    window.floor()
}

#[cfg(test)]
mod tests;
