//! Queue protection (RFC 9957, the algorithm of DOCSIS): keeps flows that build a queue out of the L
//! queue, which serves all of its flows well only while none does.
//!
//! Each flow has a score, in seconds: how long its packets' share of the blame takes to be forgiven.
//!
//! ```text
//! a packet of a flow comes to L, whose packets take d to be sent:
//!     p := what L's ramp marks at d
//!     score := max(score, 0) + p · length/aging,  `max_score` at most;  it falls by a second a second
//!     d > critical_delay and d · score > critical_delay · critical_score:  the packet goes to C
//! ```
//!
//! Scores stand in `buckets`, as the time at which they will be over (RFC 9957 §4.2). A flow has two
//! places in the table. It takes the first that has its score, else the first whose score is over; if
//! there is neither it shares one further bucket with all others that find none.
//!
//! Against the RFC: whose score a bucket has is compared by the whole key, and the places come of a
//! keyed hash; d is the time of what is queued in L at the link's rate, without the packet itself. Under framing that
//! is what the link is busy for, packets being taken for as long as their mean; the length that is blamed is a
//! packet's own.

use alloc::boxed::Box;
use alloc::vec;

use crate::context::{Backlog, Env};
use crate::framing::Framing;
use crate::hash::{Cuts, FlowHash};
use crate::packet::{FlowKey, Meta};
use crate::param::{choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Rate;

params! {
    /// Parameters of queue protection.
    pub struct ProtectionConfig {
        /// What keeps flows that build a queue out of L.
        protection: Guard = Guard::None, "RFC 9957";
        /// Rate of signalled bytes that is forgiven a flow.
        aging: Rate = Rate::new(8 << 19).unwrap(), "RFC 9957 §4.1: 2^19 B/s", with protection = "queue";
        /// Delay up to which nobody is to blame; `none`: where L's ramp ends.
        critical_delay: Option<Duration> = None, in Duration::ZERO..=Duration::from_secs(3600), "RFC 9957 §4.1: maxTH", with protection = "queue";
        /// Score above which a flow's packets go to C at the critical delay; at more delay less will do.
        critical_score: Duration = Duration::from_millis(4), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9957 §4.1", with protection = "queue";
        /// The highest score.
        max_score: Duration = Duration::from_secs(5), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9957 §4.1", with protection = "queue";
        /// Flows whose score is remembered.
        buckets: u32 = 32, in 1..=65_536, "RFC 9957 §4.1", with protection = "queue";
    }
}

choice! {
    /// What keeps flows that build a queue out of L.
    pub enum Guard {
        /// Nothing.
        None = "none",
        /// Queue protection: their packets go to C.
        Queue = "queue",
    }
}

/// Scores of flows.
#[derive(Clone, Debug)]
pub struct Protection {
    hash: FlowHash,
    places: Cuts,
    /// The last is that of all who find no other.
    buckets: Box<[Bucket]>,
    /// Nanoseconds a byte.
    per_byte: f64,
    max_score: Duration,
    critical_delay: Duration,
    /// Of delay and score, ns².
    critical_product: u128,
    rate: Rate,
    framing: Framing,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    flow: FlowKey,
    /// When its score is over.
    over: Instant,
}

impl Protection {
    /// Without scores, if there is to be any; L's ramp ends at `ramp_end`.
    pub(super) fn new(
        config: &ProtectionConfig,
        ramp_end: Duration,
        env: &Env,
        rng: &mut Rng,
    ) -> Option<Self> {
        if config.protection == Guard::None {
            return None;
        }
        let critical_delay = config.critical_delay.unwrap_or(ramp_end);
        let free = Bucket { flow: FlowKey::default(), over: env.now };
        Some(Self {
            hash: FlowHash::new(rng),
            places: Cuts::new(config.buckets),
            buckets: vec![free; config.buckets as usize + 1].into(),
            per_byte: 8e9 / config.aging.bits_per_second() as f64,
            max_score: config.max_score,
            critical_delay,
            critical_product: product(critical_delay, config.critical_score),
            rate: env.rate,
            framing: env.framing,
        })
    }

    /// What its table takes, in bytes.
    pub(super) fn heap(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// The link has another rate.
    pub(super) fn rate_changed(&mut self, env: &Env) {
        (self.rate, self.framing) = (env.rate, env.framing);
    }

    /// The critical delay is that of `with`: by default L's ramp ends there.
    pub(super) fn retune(&mut self, with: &Self) {
        (self.critical_delay, self.critical_product) = (with.critical_delay, with.critical_product);
    }

    /// Whether a packet that comes to L, in which so much waits, has to go to C; `ramp` gives the
    /// probability of L's ramp at a delay.
    pub(super) fn sanctions(
        &mut self,
        pkt: &Meta,
        queued: Backlog,
        now: Instant,
        ramp: impl Fn(Duration) -> f64,
    ) -> bool {
        let delay = self.rate.transmission(queued.on_wire(self.framing));
        let bucket = self.bucket_of(pkt.flow, now);
        let added = ramp(delay) * f64::from(pkt.len) * self.per_byte;
        let over = self.buckets[bucket].over.max(now) + Duration::from_nanos(added as u64);
        let over = over.min(now + self.max_score);
        self.buckets[bucket] = Bucket { flow: pkt.flow, over };
        delay > self.critical_delay && product(delay, over.since(now)) > self.critical_product
    }

    fn bucket_of(&self, flow: FlowKey, now: Instant) -> usize {
        let word = self.hash.word(flow);
        let mut places = self.places.of(word).take(2);
        let mut free = None;
        let own = places.find(|&place| {
            let bucket = &self.buckets[place];
            if free.is_none() && bucket.over <= now {
                free = Some(place);
            }
            bucket.flow == flow
        });
        own.or(free).unwrap_or(self.buckets.len() - 1)
    }
}

fn product(delay: Duration, score: Duration) -> u128 {
    u128::from(delay.as_nanos()) * u128::from(score.as_nanos())
}
