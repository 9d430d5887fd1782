//! What a link is to be like, and whether there can be such a link.

use aqm::any::BuildError;
use aqm::{AnyQdisc, Duration, Env, Instant, Limit, Rate, Rng};

/// What a link is to be like.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    /// Rate of the transmitter, at most [`Spec::MAX_RATE`].
    pub rate: Rate,
    /// Propagation delay of the wire, at most [`Spec::MAX_DELAY`].
    pub delay: Duration,
    /// Room of the queue, without the packet in transmission.
    pub limit: Limit,
    /// Name of the algorithm.
    pub aqm: String,
    /// Its parameters, as text.
    pub params: Vec<(String, String)>,
    /// Typical length of a packet in bytes, for the algorithm ([`Env::mean_packet`]).
    pub mean_packet: u32,
    /// Seed of the queue's random numbers.
    pub seed: u64,
}

/// Why there can be no such link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// The queue cannot be built.
    Queue(BuildError),
    /// Rate, delay or buffer are beyond what can be emulated; what is allowed.
    Beyond(String),
}

impl Spec {
    /// No link is faster.
    pub const MAX_RATE: u64 = 100_000_000_000;
    /// No wire is longer.
    pub const MAX_DELAY: Duration = Duration::from_secs(60);
    /// The most packets on the way through one link.
    pub const MAX_PACKETS: u64 = 1 << 22;

    /// Whether such a link can be emulated.
    ///
    /// # Errors
    /// What is beyond reach.
    pub(crate) fn possible(&self) -> Result<(), SpecError> {
        self.slots(self.delay.as_nanos(), 0).map(drop)
    }

    /// The queue at rest at `now`, and its stream of random numbers.
    pub(crate) fn queue<P: Copy + Default>(
        &self,
        now: Instant,
        stream: u64,
    ) -> Result<(AnyQdisc<P>, Rng), BuildError> {
        let mut rng = Rng::new(self.seed, stream);
        let env = Env { now, limit: self.limit, rate: self.rate, mean_packet: self.mean_packet };
        let params: Vec<_> = self.params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        Ok((AnyQdisc::build(&self.aqm, &params, &env, &mut rng)?, rng))
    }

    /// The most packets on a wire that takes `delay` (ns): the shortest ones, back to back.
    pub(super) fn on_wire(&self, delay: u64) -> u64 {
        let bits = u128::from(self.rate.bits_per_second()) * u128::from(delay);
        (bits / (8_000_000_000 * u128::from(Limit::MIN_PACKET))) as u64 + 2
    }

    /// Room for packets that such a link needs beside `others`, if it can be emulated; its wire
    /// takes `delay` (ns).
    pub(super) fn slots(&self, delay: u64, others: u64) -> Result<u32, SpecError> {
        let beyond = |what: String| Err(SpecError::Beyond(what));
        if self.rate.bits_per_second() > Self::MAX_RATE {
            return beyond("a rate of at most 100gbit".into());
        }
        if self.delay > Self::MAX_DELAY {
            return beyond(format!("a delay of at most {}", Self::MAX_DELAY));
        }
        let own = u64::from(self.limit.max_packets()) + 1 + self.on_wire(delay);
        let slots = own.saturating_add(others);
        if slots > Self::MAX_PACKETS {
            return beyond(format!(
                "a buffer and a wire that hold at most {} packets of {} bytes, not {slots}",
                Self::MAX_PACKETS,
                Limit::MIN_PACKET
            ));
        }
        Ok(slots as u32)
    }
}

pub(super) fn too_large(slots: u32) -> SpecError {
    SpecError::Beyond(format!("memory for the {slots} packets that buffer and wire can hold"))
}
