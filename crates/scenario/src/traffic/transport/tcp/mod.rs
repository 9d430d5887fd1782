//! TCP: its variants, what each asks of a connection, keys, presets.

mod check;
mod preset;

use std::collections::BTreeMap;

use aqm::units::Size;
use aqm::{Duration, Ecn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use preset::TcpPreset;

use super::{Keys, TcpName, second};
use crate::defaults::{one, yes, zero};
use crate::error::Complaint;
use crate::limits::LARGEST_WINDOW;
use crate::parameter::Parameter;
use crate::text::Text;
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

impl TcpName {
    /// Whether `rack` and the presets are for it: it has selective acknowledgements.
    const fn may_have_rack(self) -> bool {
        !matches!(self, Self::Tahoe | Self::Reno | Self::NewReno)
    }

    /// Whether `rfc9002` is for it: the sender lowers its window.
    const fn may_be_at_once(self) -> bool {
        matches!(self, Self::Sack | Self::Cubic | Self::Dctcp)
    }

    /// What it asks of the connection.
    pub const fn needs(self) -> Needs {
        match self {
            Self::Dctcp => Needs { exact_echo: true, ..Needs::NONE },
            Self::Prague => Needs {
                exact_echo: true,
                codepoint: Ecn::Ect1,
                ecn_on_retransmit: true,
                paced: true,
                least_window: 2,
                ..Needs::NONE
            },
            Self::Bbr | Self::Bbr1 => {
                Needs { has_model: true, paced: true, least_window: 4, ..Needs::NONE }
            }
            Self::Own => Needs { has_model: true, paced: true, ..Needs::NONE },
            _ => Needs::NONE,
        }
    }
}

/// What a variant of TCP asks of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The window follows the share of marks: it is nothing without ECN, and an acknowledgement has to
    /// echo just the marks of what it acknowledges (RFC 8257 §3.2, RFC 9331 §4.2), not one until the
    /// sender has answered.
    pub exact_echo: bool,
    /// What data packets carry, where ECN is on.
    pub codepoint: Ecn,
    /// Retransmissions carry it, too.
    pub ecn_on_retransmit: bool,
    /// It is paced, unless `pacing` says no.
    pub paced: bool,
    /// The least window that an echo leaves, in packets.
    pub least_window: u32,
    /// The control sets the window itself, packet by packet: it always has `rack`.
    pub has_model: bool,
}

impl Needs {
    /// What Reno asks.
    const NONE: Self = Self {
        exact_echo: false,
        codepoint: Ecn::Ect0,
        ecn_on_retransmit: false,
        paced: false,
        least_window: 0,
        has_model: false,
    };
}

/// Keys of TCP in all its variants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "tcp")]
pub struct Tcp {
    /// Which of them.
    #[serde(skip)]
    pub name: TcpName,
    /// Other defaults for several of these keys at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<TcpPreset>,
    /// If the window is one packet, an ECN echo makes the sender wait for its retransmission timer.
    #[serde(default)]
    pub ecn_timeout: bool,
    /// The least window that an ECN echo leaves, 1 … 1000 packets; Linux has 2. With `rack`, and with
    /// `prague` that is not paced, it is 2 anyway. An echo leaves a paced `prague` 100 kbit/s instead,
    /// unless this is more than 1. For a controller of your own it is the least window at any time.
    /// Leave it at 1 with `ecn_timeout`. Leave it at 1 also with `bbr` and `bbr1`, whose window is
    /// never below 4.
    #[serde(default = "one")]
    pub min_window: u32,
    /// Retransmissions are ECN-capable, too (RFC 2481; RFC 3168 forbids it).
    #[serde(default)]
    pub ecn_on_retransmit: bool,
    /// SYN-ACKs are ECN-capable, too. With `dctcp` and `prague`, so are SYNs and acknowledgements.
    /// Together with `ecn_on_retransmit` this is ECN++ (draft-ietf-tcpm-generalized-ecn; for `dctcp`
    /// RFC 8257 §3.6). If a SYN or SYN-ACK was marked, the sender of the data begins with a window of
    /// one packet. With `dctcp` and `prague` the sender learns of the mark only if `accecn` is on.
    #[serde(default)]
    pub ecn_on_control: bool,
    /// Connections begin with a SYN, which is not ECN-capable unless `ecn_on_control` makes it so.
    #[serde(default)]
    pub handshake: bool,
    /// After a lost SYN the initial window is one packet and the first timeout 3 s (RFC 5681 §3.1, RFC
    /// 6298 §5.7). In ns-2 the timeout stays doubled instead; the window of one packet comes with
    /// `recovery = "ns-2"`.
    #[serde(default = "yes")]
    pub restart_after_lost_syn: bool,
    /// A retransmitted SYN does not ask for ECN, and the connection goes on without it (RFC 3168
    /// §6.1.1.1 allows it, Linux does it).
    #[serde(default)]
    pub ecn_fallback: bool,
    /// Every second packet is acknowledged at once, a single one after this time. `0s`: each packet is
    /// acknowledged at once.
    #[serde(default = "zero")]
    pub delayed_ack: Text<Duration>,
    /// Packets wait for a random time, uniform between 0 and this, and then leave together, in order
    /// (ns-2's `overhead_`).
    #[serde(default = "zero")]
    pub send_jitter: Text<Duration>,
    /// Packets are spaced by the window and the round trip, once that is measured. `prague` is paced
    /// unless this is false, even before the first measurement. `bbr` and `bbr1` pace at rates of their
    /// own, as does your own controller if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Length of a paced sender's bursts, as a time at its rate, above 0 … 1 h (the send quantum of
    /// BBR). A burst has at least two packets (`prague` one) and at most 64 KB (43 packets of 1500
    /// bytes). If not given: 1 ms with `tso`, else each packet leaves by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_quantum: Option<Text<Duration>>,
    /// The network interface cuts up what the host sends, as in Linux. Packets leave in bursts of what
    /// the rate sends in a millisecond (`send_quantum`), in longer ones if the round trip is below 3
    /// ms. A sender that is not paced holds back less than a burst, up to a third of its window, until
    /// acknowledgements fill it, but for at most a millisecond. The preset `linux` leaves this out.
    /// With `rack` only.
    #[serde(default)]
    pub tso: bool,
    /// Initial window in packets, 1 … 1000.
    #[serde(default = "two")]
    pub initial_window: u32,
    /// The receiver's window, in packets or bytes, 1 … 1 048 575 packets.
    #[serde(default = "wide")]
    pub window: Text<Size>,
    /// Least retransmission timeout.
    #[serde(default = "min_rto")]
    pub min_rto: Text<Duration>,
    /// Retransmission timeout before the first measurement.
    #[serde(default = "second")]
    pub initial_rto: Text<Duration>,
    /// Largest retransmission timeout.
    #[serde(default = "minute")]
    pub max_rto: Text<Duration>,
    /// Granularity of the retransmission timer (RFC 6298's G).
    #[serde(default = "granularity")]
    pub rto_granularity: Text<Duration>,
    /// After four doublings of the timeout the next measured round trip restarts the average (RFC 6298 §5
    /// allows it, ns-2 does it).
    #[serde(default)]
    pub forget_rtt: bool,
    /// Round trips are measured in whole ticks of a clock with period `rto_granularity` (BSD, ns-2). Not with
    /// `rack`.
    #[serde(default)]
    pub rtt_ticks: bool,
    /// After a timeout, duplicates start no repair until a packet is acknowledged that was first sent
    /// after it (RFC 6582 §3.2 step 2, ns-2). With `tahoe`, `reno` and `newreno` this also holds after
    /// a repair. If false, it is enough that all packets sent before are acknowledged (RFC 6675 §5.1).
    /// By default `tahoe` and `newreno` have it. Not with `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_past_timeout: Option<bool>,
    /// How `sack` repairs losses: as RFC 6675 has it, or as ns-2's Sack1. Sack1 counts packets in
    /// flight by a rule of its own and waits for its timer more often. It begins with one packet after
    /// a lost SYN or a pause. `ns-2` includes `repair_past_timeout`.
    #[serde(default)]
    pub recovery: Recovery,
    /// The timeout is srtt + max(`min_rto`, 4·rttvar), as in Linux, instead of max(`min_rto`, srtt
    /// + 4·rttvar).
    #[serde(default)]
    pub min_rto_above_srtt: bool,
    /// Losses are found by time, also those of retransmissions (RACK-TLP, RFC 8985). After a loss or an
    /// ECN echo the window goes down in proportion to what arrives (PRR, RFC 9937), and does not grow
    /// meanwhile. A loss leaves a share of the window, as in Linux, not of what is in flight (RFC 5681
    /// eq. 4). Every acknowledgement gives a sample of the round trip, and a sample ends a backoff.
    /// Without `timestamps` those of retransmitted packets give none (Karn). Each sample weighs less
    /// than in RFC 6298: a window of samples moves the averages as one sample does there (RFC 7323
    /// §4.2). So the timeout can come close to srtt; `min_rto_above_srtt`, as in Linux, keeps it away.
    /// Not for `tahoe`, `reno` and `newreno`. `bbr` and `bbr1` always have it, with their own windows
    /// in place of PRR. `prague` answers echoes as without it.
    #[serde(default)]
    pub rack: bool,
    /// Acknowledgements echo timestamps of about a millisecond (RFC 7323, RFC 3522). They show the
    /// round trip of a retransmitted packet, and whether it had been lost. If it had not, the repair is
    /// undone: the window is restored (RFC 4015, Linux). With `rack` only.
    #[serde(default)]
    pub timestamps: bool,
    /// Acknowledgements carry a counter of marks modulo eight (AccECN, RFC 9768, without its options),
    /// and with `delayed_ack` they wait more often. For `dctcp`, `prague`, `bbr` and your own
    /// controllers; with `rack` only. Without it, acknowledgements of `dctcp` and `prague` report the
    /// marks of the packets that they acknowledge: a lost acknowledgement loses its marks. Those of the
    /// others repeat an echo until the sender answers (RFC 3168).
    #[serde(default)]
    pub accecn: bool,
    /// How `bbr` reacts to marks. `as-losses`: a mark ends Startup or a probe, as losses above the
    /// draft's 2 % do; at other times it counts as a loss. The draft leaves this open. `low-latency`,
    /// as Google's kernel: `bbr` follows the share of marks, with `accecn` and after a round trip of 5
    /// ms or less; otherwise it ignores marks.
    #[serde(default)]
    pub ecn_rule: EcnRule,
    /// The window grows by packets acknowledged, not by acknowledgements, without a limit for one
    /// acknowledgement. (RFC 3465 and HyStart++, RFC 9406, have one, L.) Not for `bbr`, `bbr1` and your
    /// own controllers.
    #[serde(default)]
    pub count_packets: bool,
    /// Some packets are acknowledged at once even with delayed acknowledgements (Linux): the first 16,
    /// those with CWR, and with `accecn` the first packet without a mark. If the receiver repeats echoes
    /// (RFC 3168), so are the first packet with a mark and the next one.
    #[serde(default)]
    pub quick_acks: bool,
    /// `cubic` follows RFC 8312, with HyStart, not RFC 9438, with HyStart++ (Linux). Where it grows
    /// like Reno, the window grows by half a packet a round trip, even above the window of the last
    /// loss. With `count_packets` and `whole_packets` its target and its window are whole packets, as
    /// Linux counts them.
    #[serde(default)]
    pub rfc8312: bool,
    /// The least round trip by which `prague` grows, 0 … 1 h: shorter ones count as this one. 25 ms if
    /// not given. `0s`: each round trip counts as it is, as in Linux's Prague before 2021.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_rtt: Option<Text<Duration>>,
    /// With `prague`, `reference_rtt` applies after this many round trips, 0 … 1,000,000. Above 0, a
    /// mark too soon after a reduction also postpones the next reduction by a round trip. Linux's
    /// Prague of 2024 has 500.
    #[serde(default)]
    pub reference_after: u32,
    /// Limited transmit (RFC 3042); `bbr` and `bbr1` have it anyway, by the bytes in flight.
    #[serde(default = "yes")]
    pub limited_transmit: bool,
    /// A reduction of the window leaves whole packets, as in Linux.
    #[serde(default)]
    pub whole_packets: bool,
    /// The slow-start threshold is a whole number of packets, as in ns-2. After a loss the window may
    /// exceed it by a fraction of a packet.
    #[serde(default)]
    pub whole_threshold: bool,
    /// Start again from the initial window after an idle timeout (RFC 5681 §4.1); `bbr` and `bbr1`
    /// never do.
    #[serde(default = "yes")]
    pub restart_after_idle: bool,
    /// After idleness the window is halved once for each timeout that the idleness lasted, but not
    /// below the initial window. Slow start then goes on to three quarters of the old window (RFC 2861,
    /// Linux). With `restart_after_idle` only.
    #[serde(default)]
    pub decay_after_idle: bool,
    /// The window follows RFC 9002 §7: a loss or an ECN echo lowers it at once, not in proportion to
    /// what arrives. It also grows by packets that are acknowledged out of order. With `rack` only, and
    /// not for `prague`, `bbr` and `bbr1`.
    #[serde(default)]
    pub rfc9002: bool,
    /// Whether the receiver follows the rules (`honest`) or makes its sender send more (Savage et al.,
    /// *TCP Congestion Control with a Misbehaving Receiver*, 1999). `ack-division` acknowledges each
    /// packet at once, after ten acknowledgements of parts of it. `optimistic` acknowledges lost
    /// packets as well. `no-echo` conceals marks.
    #[serde(default)]
    pub receiver: Conduct,
    /// The text of your own controller's file, in place of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The parameters of a controller of your own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Parameter>,
}

/// How losses are repaired.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Recovery {
    /// As RFCs have it.
    #[default]
    #[serde(rename = "standard")]
    Standard,
    /// As ns-2.35 has it.
    #[serde(rename = "ns-2")]
    Ns2,
}

/// What BBR makes of marks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnRule {
    /// A mark counts as a loss, and while it probes as too many.
    #[default]
    AsLosses,
    /// Marks of low latency count by their share, others do not.
    LowLatency,
}

/// Whether the receiver follows the rules.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Conduct {
    /// It does.
    #[default]
    Honest,
    /// It acknowledges packets in parts.
    AckDivision,
    /// It acknowledges what was lost.
    Optimistic,
    /// It conceals marks.
    NoEcho,
}

fn two() -> u32 {
    2
}
fn minute() -> Text<Duration> {
    Text(Duration::from_secs(60))
}
fn min_rto() -> Text<Duration> {
    Text(Duration::from_millis(200))
}
fn granularity() -> Text<Duration> {
    Text(Duration::from_millis(1))
}
fn wide() -> Text<Size> {
    Text(Size::Packets(65_535))
}

impl Keys for Tcp {
    const CARRIES: &'static [AppName] =
        &[AppName::Finite, AppName::Pareto, AppName::Exponential, AppName::Schedule, AppName::Web];
    const CARRIES_ONLY: &'static str = "for cbr only; TCP has pareto, exponential and schedule";
    const IS_GREEDY: bool = true;
    const ANSWERS: bool = true;

    fn check(&self, group: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        self.check_alone(group, at)?;
        self.check_idle(group, at)
    }
}

impl Tcp {
    /// The receiver's window in packets of `bytes`, if allowed.
    pub fn window_packets(&self, bytes: u16) -> Option<u32> {
        let packets = match self.window.0 {
            Size::Packets(n) => n,
            Size::Bytes(n) => n / u64::from(bytes),
            _ => return None,
        };
        u32::try_from(packets).ok().filter(|n| (1..=LARGEST_WINDOW).contains(n))
    }

    /// Whether, after a timeout, repairs wait until more is acknowledged than had been sent by then.
    pub fn repairs_past_timeout(&self) -> bool {
        self.repair_past_timeout.unwrap_or(matches!(self.name, TcpName::Tahoe | TcpName::NewReno))
    }

    /// Whether it sends by rate, and its window bounds only what is under way while nothing comes back.
    pub fn has_loose_window(&self) -> bool {
        self.name == TcpName::Prague && self.is_paced()
    }

    /// Whether packets are sent apart.
    pub fn is_paced(&self) -> bool {
        self.pacing.unwrap_or(self.name.needs().paced)
    }
}
