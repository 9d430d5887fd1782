//! Presets of TCP, and what gives way of them beside other keys.

use aqm::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, Error};

use super::{Tcp, TcpName};
use crate::defaults::one;
use crate::traffic::GroupSpec;
use crate::traffic::app::AppName;
use crate::traffic::owner::{Table, read};

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
pub(super) fn is_idle_at_times(app: AppName) -> bool {
    matches!(app, AppName::Pareto | AppName::Exponential | AppName::Schedule)
}

impl Tcp {
    /// The keys of TCP, with those of its preset, and what its congestion control has anyway, where they
    /// are not given. A rule of the preset that has no effect beside the given keys gives way.
    pub(in crate::traffic::transport) fn read_as(
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
}
