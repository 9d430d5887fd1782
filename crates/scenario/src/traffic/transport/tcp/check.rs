//! What TCP's keys may be, alone and beside one another.

use aqm::Duration;

use super::preset::is_idle_at_times;
use super::{Conduct, EcnRule, Recovery, Tcp, TcpName};
use crate::error::Complaint;
use crate::limits::{LARGEST_WINDOW, LONGEST};
use crate::text::Text;
use crate::traffic::app::AppName;
use crate::traffic::transport::{Carrier, SHORTEST_RTO, TransportName};
use crate::traffic::{GroupSpec, Place};

/// Round trips before `reference_rtt` holds, at most.
const MOST_ROUNDS: u32 = 1_000_000;
/// The transports that may have RACK, for errors.
fn with_rack() -> String {
    let able =
        |name: &&TransportName| matches!(name.kind(), Carrier::Tcp(tcp) if tcp.may_have_rack());
    let names = TransportName::ALL.iter().filter(able);
    let mut names: Vec<String> = names.map(|name| format!("\"{}\"", name.name())).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} or {last}", names.join(", "))
}

impl Tcp {
    pub(super) fn check_alone(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
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
        let (rack, able) = (self.rack, self.name.may_have_rack());
        let counts =
            self.name.needs().exact_echo || matches!(self.name, TcpName::Bbr | TcpName::Own);
        let others = with_rack();
        at.refuse_first([
            (self.preset.is_some() && !able, "preset", &format!("nothing, or transport = {others}")),
            (rack && !able, "rack", &format!("false, or transport = {others}")),
            (
                rack && self.ecn_timeout,
                "ecn_timeout",
                "false: with rack the window is two packets at least",
            ),
            (self.timestamps && !rack, "timestamps", "false, or rack = true beside it"),
            (
                self.accecn && !(rack && counts),
                "accecn",
                "false, or rack = true beside it and transport = \"dctcp\", \"prague\", \"bbr\" or one \
                 of your own",
            ),
            (self.tso && !rack, "tso", "false, or rack = true beside it"),
            (
                self.rfc9002 && !(rack && self.name.may_be_at_once()),
                "rfc9002",
                "false, or rack = true beside it and transport = \"sack\", \"cubic\" or \"dctcp\"",
            ),
            (
                rack && self.whole_threshold,
                "whole_threshold",
                "false with rack: ns-2's TCP has none",
            ),
            (rack && self.rtt_ticks, "rtt_ticks", "false: rack measures to the nanosecond"),
            (
                rack && self.repair_past_timeout == Some(true),
                "repair_past_timeout",
                "false: with rack time tells losses",
            ),
        ])?;
        if self.recovery == Recovery::Standard {
            return Ok(());
        }
        at.refuse_first([
            (
                self.name != TcpName::Sack || rack,
                "recovery",
                "\"standard\", or transport = \"sack\" without rack",
            ),
            (
                self.repair_past_timeout == Some(true),
                "repair_past_timeout",
                "false: ns-2's recovery has it anyway",
            ),
            (
                self.decay_after_idle,
                "decay_after_idle",
                "false: ns-2's recovery begins with one packet",
            ),
        ])
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
        let (paced, jitter) = (self.is_paced(), self.send_jitter.0 > Duration::ZERO);
        let no_quantum = |time: Text<Duration>| time.0 == Duration::ZERO || time.0 > LONGEST;
        at.refuse_first([
            (self.send_quantum.is_some() && !paced, "send_quantum", "with pacing = true only"),
            (
                self.send_quantum.is_some_and(no_quantum),
                "send_quantum",
                &format!("above 0s … {LONGEST}"),
            ),
            (self.tso && jitter, "send_jitter", "0s, or tso = false beside it"),
            (paced && jitter, "send_jitter", "0s: a paced sender has times of its own"),
        ])
    }

    /// Refuses what a model of the path does not go with.
    fn check_model(&self, at: &Place) -> Result<(), Complaint> {
        let own = self.name == TcpName::Own;
        let who = if own { "a controller of your own" } else { "bbr" };
        let windows = match own {
            true => "false: a controller of your own sets the window itself",
            false => "false: the windows of bbr are its model's",
        };
        let burst = "not with a controller of your own: its burst is what leaves together";
        at.refuse_first([
            (!self.rack, "rack", &format!("true: {who} tells losses by time")),
            (self.pacing == Some(false) && !own, "pacing", "true: bbr has a rate"),
            (
                self.min_window > 1 && !own,
                "min_window",
                "1: the window of bbr is 4 packets at least",
            ),
            (self.count_packets, "count_packets", windows),
            (self.whole_packets, "whole_packets", windows),
            (own && self.tso, "tso", burst),
            (own && self.send_quantum.is_some(), "send_quantum", burst),
            (
                !self.restart_after_idle,
                "restart_after_idle",
                &format!("true: the window of {who} survives idleness"),
            ),
            // Its window does not count what was acknowledged, in order or not.
            (
                !self.limited_transmit,
                "limited_transmit",
                &format!("true: {who} sends for each packet that arrives"),
            ),
        ])
    }

    /// Refuses what has no effect beside the group's other keys. What has none in some queue, network or
    /// duration is left alone: these are varied apart from the traffic.
    pub(super) fn check_idle(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        let prague = self.name == TcpName::Prague;
        let no_reference = self.reference_rtt.is_some_and(|time| time.0 == Duration::ZERO);
        at.refuse_first([
            (
                self.rfc8312 && self.name != TcpName::Cubic,
                "rfc8312",
                "with transport = \"cubic\" only",
            ),
            (
                self.reference_rtt.is_some() && !prague,
                "reference_rtt",
                "with transport = \"prague\" only",
            ),
            (
                self.reference_after > 0 && !prague,
                "reference_after",
                "with transport = \"prague\" only",
            ),
            (
                self.reference_after > 0 && no_reference,
                "reference_after",
                "0, or a reference_rtt above 0s",
            ),
            (
                self.ecn_rule != EcnRule::default() && self.name != TcpName::Bbr,
                "ecn_rule",
                "with transport = \"bbr\" only",
            ),
            (
                self.quick_acks && self.delayed_ack.0 == Duration::ZERO,
                "quick_acks",
                "false, or a delayed_ack beside it",
            ),
            (
                !self.restart_after_lost_syn && !self.handshake,
                "restart_after_lost_syn",
                "true, or handshake = true beside it",
            ),
            (
                self.ecn_fallback && !self.handshake,
                "ecn_fallback",
                "false, or handshake = true beside it",
            ),
            (
                self.receiver == Conduct::Optimistic && group.app == AppName::Web,
                "receiver",
                "honest, ack-division or no-echo: a page waits for all its packets",
            ),
        ])?;
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
