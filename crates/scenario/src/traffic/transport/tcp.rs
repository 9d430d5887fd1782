//! TCP: its variants, what each asks of a connection, keys, presets.

use std::collections::BTreeMap;

use aqm::units::Size;
use aqm::{Duration, Ecn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, Error};

use super::{Keys, SHORTEST_RTO, second};
use crate::defaults::{one, yes, zero};
use crate::error::Complaint;
use crate::limits::{LARGEST_WINDOW, LONGEST};
use crate::parameter::Parameter;
use crate::text::Text;
use crate::traffic::app::{App, AppName};
use crate::traffic::owner::{Table, read};
use crate::traffic::{GroupSpec, Place};

/// The variants of TCP: how losses are repaired, and the congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TcpName {
    /// No fast recovery: from the lost packet on again, in slow start.
    Tahoe,
    /// Fast recovery of one loss a window.
    Reno,
    /// Partial acknowledgements.
    NewReno,
    /// Selective acknowledgements and Reno.
    #[default]
    Sack,
    /// Selective acknowledgements and CUBIC.
    Cubic,
    /// Selective acknowledgements and DCTCP.
    Dctcp,
    /// Selective acknowledgements and Prague.
    Prague,
    /// Selective acknowledgements and BBR version 3.
    Bbr,
    /// Selective acknowledgements and BBR version 1.
    Bbr1,
    /// Selective acknowledgements and a controller of the user's own.
    Own,
}

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
            Self::Tahoe | Self::Reno | Self::NewReno | Self::Sack | Self::Cubic => Needs::NONE,
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
    /// An ECN echo with a window of one packet makes the sender wait for its timer.
    #[serde(default)]
    pub ecn_timeout: bool,
    /// The least window that an ECN echo leaves, 1 … 1000 packets; Linux has 2. With `rack`, and with
    /// `prague` that is not paced, it is 2 anyway. An echo leaves a paced `prague` 100 kbit/s instead, unless
    /// this is more than 1. Leave it at 1 with `ecn_timeout`, `bbr` and `bbr1` (their window is never below
    /// 4). For a controller of your own it is the least window at any time.
    #[serde(default = "one")]
    pub min_window: u32,
    /// Retransmissions are ECN-capable, too (RFC 2481; RFC 3168 forbids it).
    #[serde(default)]
    pub ecn_on_retransmit: bool,
    /// SYN-ACKs are ECN-capable, too. With `dctcp` and `prague`, so are SYNs and acknowledgements. Together
    /// with `ecn_on_retransmit` this is ECN++ (draft-ietf-tcpm-generalized-ecn; for `dctcp` RFC 8257 §3.6).
    /// If a SYN or SYN-ACK was marked, the sender of the data begins with a window of one packet; with
    /// `dctcp` and `prague` it learns of this with `accecn` only.
    #[serde(default)]
    pub ecn_on_control: bool,
    /// Connections begin with a SYN, which is not ECN-capable unless `ecn_on_control` makes it so.
    #[serde(default)]
    pub handshake: bool,
    /// After a lost SYN the initial window is one packet and the first timeout 3 s (RFC 5681 §3.1, RFC 6298
    /// §5.7; in ns-2 the backoff stays, and `recovery` sets the rest).
    #[serde(default = "yes")]
    pub restart_after_lost_syn: bool,
    /// A retransmitted SYN asks for no ECN, and the connection goes on without (RFC 3168 §6.1.1.1 allows it,
    /// Linux does it).
    #[serde(default)]
    pub ecn_fallback: bool,
    /// Every second packet is acknowledged, or one packet after this time; `0s`: each packet at
    /// once.
    #[serde(default = "zero")]
    pub delayed_ack: Text<Duration>,
    /// Packets wait for a random time, uniform in 0 … this, and then leave together, in order
    /// (ns-2's `overhead_`).
    #[serde(default = "zero")]
    pub send_jitter: Text<Duration>,
    /// Packets are spaced by the window and the round trip, once that is measured. `prague` is paced
    /// unless this is false, even before the first measurement. `bbr`, `bbr1` and a controller of your own
    /// that gives a rate are paced at their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Length of a paced sender's bursts, as a time at its rate, above 0 … 1 h: at least two packets
    /// (`prague` one), at most 64 KB (43 packets of 1500 bytes). The send quantum of BBR. If not given 1 ms with
    /// `tso`, else each packet leaves by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_quantum: Option<Text<Duration>>,
    /// The network interface cuts up what the host sends, as in Linux: packets leave in bursts of what the
    /// rate sends in a millisecond (`send_quantum`), in longer ones where the round trip is below 3 ms. A
    /// sender that is not paced holds back less than a burst, up to a third of its window and at most for a
    /// millisecond, until acknowledgements fill it; the preset `linux` leaves that out. With `rack` only.
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
    /// After a timeout, and with `tahoe`, `reno` and `newreno` after a repair, duplicates start no repair until
    /// *more* is acknowledged than had been sent by then (RFC 6582 §3.2 step 2, ns-2), not just that much
    /// (RFC 6675 §5.1). By default `tahoe` and `newreno` have it. Not with `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_past_timeout: Option<bool>,
    /// How `sack` repairs losses: as RFC 6675 has it, or as ns-2's Sack1. The latter counts packets in flight
    /// by a rule of its own, waits for its timer more often, and begins with one packet after a lost SYN or a
    /// pause; it includes `repair_past_timeout`.
    #[serde(default)]
    pub recovery: Recovery,
    /// The timeout is srtt + max(`min_rto`, 4·rttvar), as in Linux, instead of max(`min_rto`, srtt
    /// + 4·rttvar).
    #[serde(default)]
    pub min_rto_above_srtt: bool,
    /// Losses are found by time, also those of retransmissions (RACK-TLP, RFC 8985). The window goes down in
    /// proportion to what arrives (PRR, RFC 9937), also after an ECN echo, and does not grow meanwhile. A
    /// loss leaves a share of the window, as in Linux, not of what is in flight (RFC 5681 eq. 4). Every
    /// acknowledgement gives a sample of the round trip, which ends a backoff; without `timestamps` those of
    /// retransmitted packets give none (Karn). The averages forget in one window as much as those of RFC 6298
    /// in as many round trips (RFC 7323 §4.2). The timeout can therefore be close above srtt;
    /// `min_rto_above_srtt`, as in Linux, keeps it away. Not for `tahoe`, `reno` and `newreno`. `bbr` and
    /// `bbr1` always have it, with their own windows in place of PRR; `prague` answers echoes as without it.
    #[serde(default)]
    pub rack: bool,
    /// Acknowledgements echo timestamps of about a millisecond, which show whether a retransmitted packet had
    /// been lost, and its round trip (RFC 7323, RFC 3522). If it had not been lost, the repair is undone: the
    /// window is restored (RFC 4015, Linux). With `rack` only.
    #[serde(default)]
    pub timestamps: bool,
    /// Acknowledgements of `dctcp`, `prague`, `bbr` and your own controllers carry a counter of marks modulo eight
    /// (AccECN, RFC 9768, without its options), and with `delayed_ack` wait more often. Without it those of `dctcp`
    /// and `prague` report only the marks of their own packets, so a lost one loses them. Those of the others
    /// repeat an echo until it is answered (RFC 3168). With `rack` only.
    #[serde(default)]
    pub accecn: bool,
    /// What `bbr` makes of marks. `as-losses`: a mark ends Startup or a probe, as losses above the draft's 2
    /// % do, and counts as a loss otherwise; the draft leaves this open. `low-latency`, as Google's kernel:
    /// marks count by their share, with `accecn` and after a round trip of 5 ms or less; otherwise the model
    /// ignores them.
    #[serde(default)]
    pub ecn_rule: EcnRule,
    /// The window grows by packets acknowledged, not by acknowledgements, however many arrive at once (RFC 3465
    /// and HyStart++, RFC 9406, have a limit L). Not for `bbr`, `bbr1` and a controller of your own.
    #[serde(default)]
    pub count_packets: bool,
    /// Even with delayed acknowledgements, the first 16 packets and those with CWR are acknowledged at once, as
    /// are a first mark and the packet behind it where echoes are repeated, and with `accecn` the first packet
    /// without a mark (Linux).
    #[serde(default)]
    pub quick_acks: bool,
    /// `cubic` is that of RFC 8312, with HyStart, not of RFC 9438, with HyStart++ (Linux): where it grows
    /// like Reno it stays at half a packet a round trip, also above the window of the last loss. With
    /// `count_packets` and `whole_packets` its target and its window are whole packets, as Linux counts them.
    #[serde(default)]
    pub rfc8312: bool,
    /// At round trips below this, `prague` grows as if they were this long, 0 … 1 h; 25 ms if not
    /// given. `0s`: each round trip counts as it is, as in Linux's Prague before 2021.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_rtt: Option<Text<Duration>>,
    /// Before `reference_rtt` holds, so many round trips of `prague` count as they are, 0 … 1,000,000. If it is
    /// above 0, a mark that comes too early for a reduction also keeps the next away for a round trip. Linux's
    /// Prague of 2024: 500.
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
    /// After idleness the window is halved once for each timeout that it lasted, but not below the
    /// initial window. Slow start then goes on to three quarters of the old window (RFC 2861,
    /// Linux). With `restart_after_idle` only.
    #[serde(default)]
    pub decay_after_idle: bool,
    /// The window as in RFC 9002 §7: a loss or an ECN echo lowers it at once, not in proportion to what
    /// arrives, and packets that are acknowledged out of order open it as well. With `rack` only, and not
    /// for `prague`, `bbr` and `bbr1`.
    #[serde(default)]
    pub rfc9002: bool,
    /// A receiver that follows the rules, `honest`, or one that cheats so that its sender sends more (Savage
    /// et al., *TCP Congestion Control with a Misbehaving Receiver*, 1999). `ack-division` acknowledges each
    /// packet at once, and in ten parts before that. `optimistic` acknowledges lost packets as well. `no-echo`
    /// conceals marks.
    #[serde(default)]
    pub receiver: Conduct,
    /// The text of the file of a controller of your own, in its place.
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

/// Sets of defaults for the keys of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpPreset {
    /// What Linux 6.1 does; `sack` is its Reno.
    Linux,
    /// What RFCs recommend today, paced as Linux paces.
    Modern,
}

impl TcpPreset {
    /// The keys that it sets, as in files; those of ECN, of a congestion control and of sources that
    /// are idle at times where the group has them.
    fn keys(self, name: TcpName, group: &GroupSpec) -> [&'static str; 7] {
        let common = match self {
            Self::Linux => {
                "handshake = true\ninitial_window = 10\nrack = true\ntimestamps = true\n\
                 quick_acks = true\nmin_rto_above_srtt = true\nrestart_after_lost_syn = false\n"
            }
            Self::Modern => {
                "handshake = true\ninitial_window = 10\nrack = true\ntimestamps = true\n\
                 pacing = true\n"
            }
        };
        // Prague's receiver does not leave a paced packet to the timer.
        let of_acks = match self {
            Self::Linux if name == TcpName::Prague => "",
            _ => "delayed_ack = \"40ms\"\n",
        };
        // A control with a model has windows of its own; Prague's have fractions and are two packets at
        // least.
        let needs = name.needs();
        let of_window = match self {
            _ if needs.has_model => "",
            _ if name == TcpName::Prague => "count_packets = true\n",
            Self::Linux => "count_packets = true\nwhole_packets = true\n",
            Self::Modern => "count_packets = true\n",
        };
        let own = name == TcpName::Own;
        let least = if own || needs.least_window > 1 { "" } else { "min_window = 2\n" };
        let of_losses = match self {
            _ if name == TcpName::Dctcp => "ecn_on_retransmit = true\necn_on_control = true\n",
            Self::Linux if !needs.ecn_on_retransmit => "ecn_fallback = true\n",
            _ => "",
        };
        let of_control = match name {
            TcpName::Cubic if self == Self::Linux => "rfc8312 = true\n",
            TcpName::Bbr if self == Self::Linux && group.ecn => {
                "tso = true\necn_rule = \"low-latency\"\n"
            }
            TcpName::Bbr | TcpName::Bbr1 if self == Self::Linux => "tso = true\n",
            TcpName::Prague if self == Self::Linux => "send_quantum = \"250us\"\n",
            _ => "",
        };
        let of_pauses = match self {
            Self::Linux if is_idle_at_times(group.app) && !needs.has_model => {
                "decay_after_idle = true\n"
            }
            _ => "",
        };
        let of_ecn = if group.ecn { [least, of_losses] } else { [""; 2] };
        [common, of_acks, of_window, of_control, of_pauses, of_ecn[0], of_ecn[1]]
    }
}

/// Whether a sender of it has nothing to send at times, and something later.
fn is_idle_at_times(app: AppName) -> bool {
    matches!(app, AppName::Pareto | AppName::Exponential | AppName::Schedule)
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

/// Round trips before `reference_rtt` holds, at most.
const MOST_ROUNDS: u32 = 1_000_000;
/// The transports that may have RACK, for errors.
const WITH_RACK: &str = "\"sack\", \"cubic\", \"dctcp\", \"prague\", \"bbr\" or \"bbr1\"";

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

    /// The keys of TCP, with those of its preset, and what its congestion control has anyway, where they
    /// are not given. What the preset has that nothing comes of beside what is given gives way.
    pub(super) fn read_as(
        mut table: Table<'_>,
        name: TcpName,
        group: &GroupSpec,
    ) -> Result<Self, Error> {
        let given: Self = read(table.clone())?;
        let preset = given.preset.map(|preset| preset.keys(name, group));
        let own = if name.needs().has_model { "rack = true" } else { "" };
        let said: Vec<String> =
            table.get_ref().keys().map(|key| key.get_ref().to_string()).collect();
        for keys in preset.into_iter().flatten().chain([own]) {
            for (key, value) in DeTable::parse(keys)?.into_inner() {
                if !table.get_ref().contains_key(key.get_ref().as_ref()) {
                    table.get_mut().insert(key, value);
                }
            }
        }
        let mut tcp = Self { name, ..read(table)? };
        tcp.give_way(|key| said.iter().any(|given| given == key));
        Ok(tcp)
    }

    /// Resets defaults that have no effect beside the other keys, unless the scenario has `said` them.
    fn give_way(&mut self, said: impl Fn(&str) -> bool) {
        self.quick_acks &= said("quick_acks") || self.delayed_ack.0 > Duration::ZERO;
        self.restart_after_lost_syn |= !said("restart_after_lost_syn") && !self.handshake;
        let asked_to_fall_back = self.ecn_fallback && said("ecn_fallback");
        self.ecn_on_retransmit &= said("ecn_on_retransmit") || !asked_to_fall_back;
        self.ecn_on_control &= said("ecn_on_control") || !asked_to_fall_back;
        let may_fall_back = self.handshake && !self.ecn_on_retransmit && !self.ecn_on_control;
        self.ecn_fallback &= said("ecn_fallback") || may_fall_back;
        self.timestamps &= said("timestamps") || self.rack;
        self.tso &= said("tso") || self.rack && self.send_jitter.0 == Duration::ZERO;
        if !self.is_paced() && !said("send_quantum") {
            self.send_quantum = None;
        }
        self.decay_after_idle &= said("decay_after_idle") || self.restart_after_idle;
        if self.rack && !said("min_window") {
            self.min_window = one();
        }
    }

    fn check_alone(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        self.check_windows(group, at)?;
        self.check_rack(at)?;
        self.check_times(at)?;
        if self.name.needs().has_model {
            self.check_model(at)?;
        }
        if self.name.needs().exact_echo && !group.ecn {
            return at.refuse("ecn", "true: dctcp and prague follow marks");
        }
        self.check_pacing(at)
    }

    fn check_windows(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        if self.window_packets(group.packet_bytes().unwrap_or(1)).is_none() {
            return at.refuse("window", &format!("1p … {LARGEST_WINDOW}p"));
        }
        if !(1..=1000).contains(&self.initial_window) {
            return at.refuse("initial_window", "1 … 1000 packets");
        }
        if !(1..=if self.ecn_timeout { 1 } else { 1000 }).contains(&self.min_window) {
            return at.refuse("min_window", "1 … 1000 packets; with ecn_timeout 1");
        }
        Ok(())
    }

    /// Refuses RACK and presets where they cannot be, and what RACK does not go with.
    fn check_rack(&self, at: &Place) -> Result<(), Complaint> {
        let able = self.name.may_have_rack();
        if self.preset.is_some() && !able {
            return at.refuse("preset", &format!("nothing, or transport = {WITH_RACK}"));
        }
        if self.rack && !able {
            return at.refuse("rack", &format!("false, or transport = {WITH_RACK}"));
        }
        if self.rack && self.ecn_timeout {
            return at.refuse("ecn_timeout", "false: with rack the window is two packets at least");
        }
        if self.timestamps && !self.rack {
            return at.refuse("timestamps", "false, or rack = true beside it");
        }
        let own = self.name == TcpName::Own;
        let counts = self.name.needs().exact_echo || self.name == TcpName::Bbr || own;
        if self.accecn && !(self.rack && counts) {
            let allowed = "false, or rack = true beside it and transport = \"dctcp\", \"prague\", \"bbr\" or \
                           one of your own";
            return at.refuse("accecn", allowed);
        }
        if self.tso && !self.rack {
            return at.refuse("tso", "false, or rack = true beside it");
        }
        if self.rfc9002 && !(self.rack && self.name.may_be_at_once()) {
            let allowed = "false, or rack = true beside it and transport = \"sack\", \"cubic\" or \
                           \"dctcp\"";
            return at.refuse("rfc9002", allowed);
        }
        if self.rack && self.whole_threshold {
            return at.refuse("whole_threshold", "false with rack: ns-2's TCP has none");
        }
        if self.rack && self.rtt_ticks {
            return at.refuse("rtt_ticks", "false: rack measures to the nanosecond");
        }
        if self.rack && self.repair_past_timeout == Some(true) {
            return at.refuse("repair_past_timeout", "false: with rack time tells losses");
        }
        self.check_recovery(at)
    }

    /// Refuses ns-2's recovery where it is impossible, and keys that it already implies.
    fn check_recovery(&self, at: &Place) -> Result<(), Complaint> {
        if self.recovery == Recovery::Standard {
            return Ok(());
        }
        if self.name != TcpName::Sack || self.rack {
            let allowed = "\"standard\", or transport = \"sack\" without rack";
            return at.refuse("recovery", allowed);
        }
        if self.repair_past_timeout == Some(true) {
            return at.refuse("repair_past_timeout", "false: ns-2's recovery has it anyway");
        }
        if self.decay_after_idle {
            return at.refuse("decay_after_idle", "false: ns-2's recovery begins with one packet");
        }
        Ok(())
    }

    fn check_times(&self, at: &Place) -> Result<(), Complaint> {
        for (key, time, least) in [
            ("initial_rto", self.initial_rto, SHORTEST_RTO),
            ("max_rto", self.max_rto, SHORTEST_RTO),
            ("rto_granularity", self.rto_granularity, Duration::ZERO),
            ("delayed_ack", self.delayed_ack, Duration::ZERO),
            ("send_jitter", self.send_jitter, Duration::ZERO),
        ] {
            if !(least..=LONGEST).contains(&time.0) {
                return at.refuse(key, &format!("{least} … {LONGEST}"));
            }
        }
        if self.reference_rtt.is_some_and(|time| time.0 > LONGEST) {
            return at.refuse("reference_rtt", &format!("0s … {LONGEST}"));
        }
        if self.reference_after > MOST_ROUNDS {
            return at.refuse("reference_after", &format!("0 … {MOST_ROUNDS}"));
        }
        for (key, time) in [("min_rto", self.min_rto), ("initial_rto", self.initial_rto)] {
            if time.0 > self.max_rto.0 {
                return at.refuse(key, "at most max_rto");
            }
        }
        Ok(())
    }

    fn check_pacing(&self, at: &Place) -> Result<(), Complaint> {
        let paced = self.is_paced();
        if self.send_quantum.is_some() && !paced {
            return at.refuse("send_quantum", "with pacing = true only");
        }
        let no_quantum = |time: Text<Duration>| time.0 == Duration::ZERO || time.0 > LONGEST;
        if self.send_quantum.is_some_and(no_quantum) {
            return at.refuse("send_quantum", &format!("above 0s … {LONGEST}"));
        }
        if self.tso && self.send_jitter.0 > Duration::ZERO {
            return at.refuse("send_jitter", "0s, or tso = false beside it");
        }
        if paced && self.send_jitter.0 > Duration::ZERO {
            return at.refuse("send_jitter", "0s: a paced sender has times of its own");
        }
        Ok(())
    }

    /// Refuses what a model of the path does not go with.
    fn check_model(&self, at: &Place) -> Result<(), Complaint> {
        let own = self.name == TcpName::Own;
        let who = if own { "a controller of your own" } else { "bbr" };
        if !self.rack {
            return at.refuse("rack", &format!("true: {who} tells losses by time"));
        }
        if self.pacing == Some(false) && !own {
            return at.refuse("pacing", "true: bbr has a rate");
        }
        if self.min_window > 1 && !own {
            return at.refuse("min_window", "1: the window of bbr is 4 packets at least");
        }
        for (key, set) in
            [("count_packets", self.count_packets), ("whole_packets", self.whole_packets)]
        {
            if set && own {
                return at.refuse(key, "false: a controller of your own sets the window itself");
            }
            if set {
                return at.refuse(key, "false: the windows of bbr are its model's");
            }
        }
        if own && (self.tso || self.send_quantum.is_some()) {
            let key = if self.tso { "tso" } else { "send_quantum" };
            return at.refuse(
                key,
                "not with a controller of your own: its burst is what leaves together",
            );
        }
        if !self.restart_after_idle {
            let allowed = format!("true: the window of {who} survives idleness");
            return at.refuse("restart_after_idle", &allowed);
        }
        // Its window does not count what was acknowledged, in order or not.
        if !self.limited_transmit {
            let allowed = format!("true: {who} sends for each packet that arrives");
            return at.refuse("limited_transmit", &allowed);
        }
        Ok(())
    }

    /// Refuses what has no effect beside the group's other keys. What has none in some queue, network or
    /// duration is left alone: these are varied apart from the traffic.
    fn check_idle(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        if self.rfc8312 && self.name != TcpName::Cubic {
            return at.refuse("rfc8312", "with transport = \"cubic\" only");
        }
        if self.reference_rtt.is_some() && self.name != TcpName::Prague {
            return at.refuse("reference_rtt", "with transport = \"prague\" only");
        }
        if self.reference_after > 0 {
            if self.name != TcpName::Prague {
                return at.refuse("reference_after", "with transport = \"prague\" only");
            }
            if self.reference_rtt.is_some_and(|time| time.0 == Duration::ZERO) {
                return at.refuse("reference_after", "0, or a reference_rtt above 0s");
            }
        }
        if self.ecn_rule != EcnRule::default() && self.name != TcpName::Bbr {
            return at.refuse("ecn_rule", "with transport = \"bbr\" only");
        }
        if self.quick_acks && self.delayed_ack.0 == Duration::ZERO {
            return at.refuse("quick_acks", "false, or a delayed_ack beside it");
        }
        if !self.restart_after_lost_syn && !self.handshake {
            return at.refuse("restart_after_lost_syn", "true, or handshake = true beside it");
        }
        if self.ecn_fallback && !self.handshake {
            return at.refuse("ecn_fallback", "false, or handshake = true beside it");
        }
        if self.receiver == Conduct::Optimistic && group.app == AppName::Web {
            let allowed = "honest, ack-division or no-echo: a page waits for all its packets";
            return at.refuse("receiver", allowed);
        }
        self.check_idle_ecn(group, at)?;
        let whence = "a sender that is never idle:";
        if !self.restart_after_idle && !is_idle_at_times(group.app) {
            let allowed = "true, or app = \"pareto\", \"exponential\" or \"schedule\" beside it";
            return idle(at, "restart_after_idle", allowed, whence);
        }
        if self.decay_after_idle && !is_idle_at_times(group.app) {
            let allowed = "false, or app = \"pareto\", \"exponential\" or \"schedule\" beside it";
            return idle(at, "decay_after_idle", allowed, whence);
        }
        if self.decay_after_idle && (!self.restart_after_idle || self.name.needs().has_model) {
            let allowed = "false where the window survives idleness";
            return at.refuse("decay_after_idle", allowed);
        }
        Ok(())
    }

    /// Refuses keys of ECN without an effect.
    fn check_idle_ecn(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        let needs = self.name.needs();
        let on_others = self.ecn_on_retransmit || needs.ecn_on_retransmit || self.ecn_on_control;
        if self.ecn_fallback && on_others {
            return at.refuse("ecn_fallback", "false where more than new data is ECN-capable");
        }
        for (key, set) in [
            ("ecn_timeout", self.ecn_timeout),
            ("ecn_on_retransmit", self.ecn_on_retransmit),
            ("ecn_on_control", self.ecn_on_control),
            ("min_window", self.min_window > 1 && self.name != TcpName::Own),
            ("ecn_fallback", self.ecn_fallback),
            ("ecn_rule", self.ecn_rule != EcnRule::default()),
            ("accecn", self.accecn),
            ("receiver", self.receiver == Conduct::NoEcho),
        ] {
            if set && !group.ecn {
                return idle(at, key, "with ecn = true only", "without ECN");
            }
        }
        if self.ecn_on_retransmit && needs.ecn_on_retransmit {
            return idle(at, "ecn_on_retransmit", "false: prague does it anyway", "with prague");
        }
        if self.ecn_on_control && !self.handshake && !needs.exact_echo {
            let allowed = "false, or handshake = true, or transport = \"dctcp\" or \"prague\"";
            return idle(at, "ecn_on_control", allowed, "where no SYN is answered");
        }
        if self.name == TcpName::Own {
            return Ok(());
        }
        let (least, whence) = match (needs.least_window, self.rack) {
            (2, _) if self.has_loose_window() => {
                if self.ecn_timeout {
                    let allowed = "false: prague is paced below a window of one packet";
                    return idle(at, "ecn_timeout", allowed, "with prague");
                }
                return Ok(());
            }
            (2, _) => ("prague's window is two packets at least", "with prague"),
            (_, true) => ("with rack the window is two packets at least", "with rack"),
            _ => return Ok(()),
        };
        if self.min_window == 2 {
            return idle(at, "min_window", &format!("1: {least}"), whence);
        }
        if self.ecn_timeout {
            return idle(at, "ecn_timeout", &format!("false: {least}"), whence);
        }
        Ok(())
    }
}

/// Refuses a key that has no effect, and says where.
fn idle(at: &Place, key: &str, allowed: &str, whence: &str) -> Result<(), Complaint> {
    let hint = format!("{whence} it would have no effect: leave it out");
    Err(Complaint::new(at.key(key), allowed).hint(hint))
}
