//! A policer: a token bucket before a queue, which drops what comes faster than its rate.
//!
//! The bucket holds at most `burst` bytes, all of them at the start, and gains `rate`:
//!
//! ```text
//! a packet of len bytes arrives at t, and the one before at u:
//!     tokens := min(burst, tokens + rate · (t − u))
//!     len ≤ tokens: tokens := tokens − len, and the queue has it;  else drop it
//! ```
//!
//! Nothing waits, so that flows see losses without a delay before them. Mahajan01 §5 has such a filter in
//! mind for a flow; here it is one for all that arrive, as a provider polices an access link (RFC 2697 with
//! one bucket and two colours).
//!
//! Choices:
//! - A dropped packet takes no tokens.
//! - Lengths are those of packets, without what they take on the wire beside.
//! - Tokens are counted exactly (`bucket.rs`).

use super::Filter;
use crate::about::{About, Family, Signal};
use crate::bucket::Bucket;
use crate::context::{Cause, Cx, Env, State};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::{Rate, Size};

/// What policer tells of itself.
pub const ABOUT: About = About {
    name: "policer",
    family: Family::Filter,
    summary: "Drops what arrives faster than a rate, beyond a burst.",
    source: "RFC 2697; Mahajan01 §5",
    rule: "The policer drops a packet for which its token bucket holds too few bytes (RFC 2697)",
    causes: &[(Cause::Policed, "the policer's bucket held fewer bytes than the packet has")],
    signals: &[Signal { name: "tokens", unit: "bytes", doc: "what may pass at once" }],
    ..About::NEW
};

params! {
    /// Parameters of the policer.
    pub struct PolicerConfig {
        /// The rate that may pass; it has to be given.
        rate: Option<Rate> = None, "RFC 2697 (CIR)";
        /// What may pass at once after a pause.
        burst: Size = Size::Bytes(15_140), "RFC 2697 (CBS); ten packets, ours";
    }
}

/// A token bucket.
#[derive(Clone, Debug)]
pub struct Policer(Bucket);

impl Filter for Policer {
    type Config = PolicerConfig;
    const CAUSE: Cause = Cause::Policed;

    fn new(config: &PolicerConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let missing = || ConfigError { key: "rate", allowed: "a rate such as 10mbit".into() };
        let rate = config.rate.ok_or_else(missing)?;
        let bucket =
            Bucket::new(("burst", config.burst), rate, (env.mean_packet, "a packet"), env)?;
        Ok(Self(bucket))
    }

    #[inline]
    fn drops(&mut self, pkt: &Meta, _: impl FnOnce(u32) -> bool, cx: &mut Cx<'_>) -> bool {
        self.0.fill(cx.now);
        !self.0.take(pkt.len)
    }

    fn state(&self) -> State {
        State { queue: size_of::<Self>() as u64, ..State::default() }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("tokens", self.0.bytes_at(now) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowKey};
    use crate::policy::lab::{config, env};
    use crate::time::Duration;

    /// Whether a packet of `len` bytes is dropped, `ms` after the start.
    fn drops(policer: &mut Policer, ms: u64, len: u32) -> bool {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let meta = Meta { len, ecn: Ecn::Ect0, flow: FlowKey(1), arrived: now };
        policer.drops(&meta, |_| true, &mut Cx { now, rng: &mut Rng::new(1, 0) })
    }

    fn policer(settings: &[(&str, &str)]) -> Result<Policer, ConfigError> {
        Policer::new(&config(settings), &env(100), &mut Rng::new(1, 0))
    }

    /// 1 Mbit/s is 125 bytes a millisecond; the bucket holds three packets.
    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut policer = policer(&[("rate", "1mbit"), ("burst", "3kB")]).unwrap();
        let at_once: [bool; 4] = core::array::from_fn(|_| drops(&mut policer, 0, 1000));
        assert_eq!(at_once, [false, false, false, true]);
        assert!(drops(&mut policer, 7, 1000), "875 bytes are there");
        assert!(!drops(&mut policer, 7, 875), "a dropped packet took none of them");
        assert!(!drops(&mut policer, 15, 1000));
        assert!(!drops(&mut policer, 10_000, 3000), "full again, and no more than full");
        assert!(drops(&mut policer, 10_000, 1));
    }

    /// Of twice the rate half passes, exactly: 125 000 bytes and the burst in the first second.
    #[test]
    fn the_rate_is_exact() {
        let mut policer = policer(&[("rate", "1mbit"), ("burst", "1kB")]).unwrap();
        let passed = (0..=1000).filter(|&ms| !drops(&mut policer, ms, 250)).count();
        assert_eq!(passed * 250, 125_000 + 1000);
    }

    #[test]
    fn a_rate_and_room_for_a_packet_are_needed() {
        assert_eq!(policer(&[]).unwrap_err().key, "rate");
        for burst in ["999B", "2GB"] {
            let error = policer(&[("rate", "1mbit"), ("burst", burst)]).unwrap_err();
            assert_eq!(error.key, "burst", "{burst}");
        }
    }
}
