//! QUIC stacks of others over the simulator's links, in virtual time: quinn-proto as the transport `quinn`,
//! noq-proto as `noq`.
//!
//! Both are made for this: they learn the time and the datagrams that come, and say which ones leave and when
//! they want to be asked again. Their code is theirs alone. Ours is what they leave to their users: in place of
//! TLS, packets that hide nothing and are as long (`plain`); in place of the system's random numbers, those of
//! the flow's own stream; and connection ids that count.
//!
//! `config.rs` and `pair.rs` are compiled once for each stack. `quinn.rs` and `noq.rs` have what differs
//! between the two.

#![expect(clippy::duplicate_mod, reason = "two stacks with nearly the same interface")]

mod noq;
mod plain;
mod quinn;
mod seen;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// From now on scenarios may have the transports `quinn` and `noq`.
pub fn register() {
    sim::stack::register("quinn", quinn::connection);
    sim::stack::register("noq", noq::connection);
}

/// The instant of time 0. The stacks' times are the system's, which cannot be made from numbers; they only
/// take differences.
#[expect(clippy::disallowed_methods, reason = "any instant would do")]
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn instant(ns: u64) -> Instant {
    *BEGIN + Duration::from_nanos(ns)
}

fn nanos(instant: Instant) -> u64 {
    u64::try_from(instant.saturating_duration_since(*BEGIN).as_nanos()).unwrap_or(u64::MAX)
}
