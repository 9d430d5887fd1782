//! Parameters of the bins, of the hash that moves, and of the penalty.

use crate::param::{Mode, choice, params};
use crate::time::Duration;
use crate::units::{Rate, Size};

params! {
    /// Parameters of the bins, of the hash that moves, and of the penalty.
    pub struct BinsConfig {
        /// Levels (L), each with a hash of its own.
        levels: u32 = 2, in 1..=MAX_LEVELS, "Feng02 §IV.B";
        /// Bins in a level (N).
        bins: u32 = 23, in 1..=4096, "Feng02 §IV.B";
        /// A bin that holds more than this is too full; `none`: 1.5/N of the buffer.
        bin_size: Option<Size> = None, "Feng02 Fig. 14, §IV.B; HRC §3";
        /// A packet whose bin holds more than this is dropped; `none`: bin_size.
        bin_limit: Option<Size> = None, "Feng02 Fig. 14; apart from bin_size: Linux";
        /// Whether one bin above bin_limit drops a packet or only all its bins together.
        overflow: Overflow = Overflow::Any, "Feng02 Fig. 14; all: Linux";
        /// Whether bins count packets or bytes.
        mode: Mode = Mode::Packets, "Feng02 §IV.B";
        /// Whether a packet that finds the buffer full changes its bins like any other.
        full_teaches: bool = true, "ours; `false`: Linux";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "Feng02 Fig. 14";
        /// Beyond this probability a share of the signals are drops for all packets, which grows from
        /// 0 here to 1 at probability 1.
        mark_up_to: f64 = 1.0, in 0.0..=1.0, "Feng02 Fig. 14; less: Linux", with ecn = "true";
        /// How flows are assigned to the Nᴸ buckets that L bins of N make.
        assignment: Assignment = Assignment::Hash, "Feng02 §IV.A; distinct: Feng02 §IV.C, ours";
        /// How the hash changes.
        hash: Hash = Hash::Static, "Feng02 §IV.D";
        /// How long a hash is used, if it moves.
        hash_interval: Duration = Duration::from_secs(2), in Duration::from_millis(1)..=Duration::from_secs(86_400), "Feng02 §IV.D", with hash = "moving" | "double-buffered";
        /// What the bins know after a change of the hash.
        hash_change: HashChange = HashChange::Afresh, "Feng02 §IV.D; kept: Linux", with hash = "double-buffered";
        /// How long before its turn the second set of bins learns; `none`: all the time.
        warm_up: Option<Duration> = None, "Feng02 §IV.D; less: Linux", with hash = "double-buffered";
        /// By what a nonresponsive packet changes the second set's bins.
        warm_up_by: WarmUpBy = WarmUpBy::Verdict, "Feng02 §IV.D; length: Linux", with hash = "double-buffered";
        /// What limits nonresponsive flows, all together.
        penalty: Penalty = Penalty::Rate, "Feng02 §IV.B; others: HRC §5";
        /// Rate that they may have together (`rate`; `fair-share` until it has an estimate).
        penalty_rate: Rate = PENALTY_RATE, "Feng02 §IV.B", with penalty = "rate" | "fair-share";
        /// What may pass at once after a pause, beyond one packet (`rate`, `tokens`, `fair-share`).
        penalty_burst: Size = Size::Bytes(0), "value ours", with penalty = "rate" | "tokens" | "fair-share";
        /// Time after a nonresponsive packet in which no other passes (`boxtime`, `boxtime-random`), or in
        /// which a packet's token comes (`tokens`).
        boxtime: Duration = Duration::from_millis(50), "HRC §3", with penalty = "tokens" | "boxtime" | "boxtime-random";
        /// Each Boxtime is drawn uniformly from (1 ± this) · boxtime (`boxtime-random`).
        boxtime_jitter: f64 = 0.5, in 0.0..=1.0, "HRC §5; value ours", with penalty = "boxtime-random";
        /// How long flows are counted for an estimate (`fair-share`).
        share_interval: Duration = Duration::from_secs(1), in Duration::from_millis(1)..=Duration::from_secs(3600), "value ours", with penalty = "fair-share";
    }
}

/// More levels than any table needs.
pub const MAX_LEVELS: u32 = 16;
const PENALTY_RATE: Rate = Rate::new(160_000).unwrap();

choice! {
    /// When full bins drop a packet.
    pub enum Overflow {
        /// One of its bins is above bin_limit.
        Any = "any",
        /// All of its bins are.
        All = "all",
    }
}

choice! {
    /// How flows are assigned to the buckets that one bin of each level makes.
    pub enum Assignment {
        /// By a keyed hash: two flows meet in a bucket by chance.
        Hash = "hash",
        /// By a shuffled table: flows with consecutive numbers, as in a simulation, meet only if
        /// there are more of them than buckets. Needs no more than 65 536 buckets.
        Distinct = "distinct",
    }
}

choice! {
    /// How the hash changes.
    pub enum Hash {
        /// Never.
        Static = "static",
        /// Each hash_interval; the bins start afresh.
        Moving = "moving",
        /// Each hash_interval; the bins have learnt from nonresponsive packets beforehand.
        DoubleBuffered = "double-buffered",
    }
}

choice! {
    /// What the bins know after a change of the hash.
    pub enum HashChange {
        /// Those that will judge next know nothing. The hash changes at multiples of its interval.
        Afresh = "afresh",
        /// They keep their packets and probabilities, as in Linux: each flow has those of others. The
        /// hash changes an interval after the last change.
        Kept = "kept",
    }
}

choice! {
    /// What a nonresponsive packet teaches the second set of bins.
    pub enum WarmUpBy {
        /// What it would if it found them too full, whatever they hold. They hold all packets.
        Verdict = "verdict",
        /// What it would if they judged it. They hold nonresponsive packets only, and a packet that full
        /// bins drop teaches them nothing.
        Length = "length",
    }
}

choice! {
    /// What limits nonresponsive flows, all together.
    pub enum Penalty {
        /// A rate.
        Rate = "rate",
        /// A token for each packet, as in Linux: tokens are counted where none is left, and time too short
        /// for one is lost. Packets closer to each other than a Boxtime get none.
        Tokens = "tokens",
        /// One packet in more than a Boxtime.
        Boxtime = "boxtime",
        /// One packet in more than a Boxtime that is drawn anew for each: fairer among the flows.
        BoxtimeRandom = "boxtime-random",
        /// As many fair shares of the link as there are nonresponsive flows.
        FairShare = "fair-share",
    }
}
