//! The upstream of a cable modem (DOCSIS 3.1): packets wait for a request, and for the grant that answers it.
//!
//! Time is cut into intervals of `map`. The CMTS decides in advance, by a MAP for each interval, what the modem
//! sends there:
//!
//! ```text
//! an interval begins:
//!     asked   := all requests of `turnaround` ago and before, less what was granted for them
//!     grant   := min(max(asked, guaranteed · map), tokens in each bucket, most)
//!     request for what is queued and neither requested nor granted:
//!         with the grant, if there is one; else at an opportunity for all modems, after a random backoff
//!     the grant's bytes leave at the rate of the channel; what finds no packet is lost
//! ```
//!
//! A packet that does not fit is cut: its rest leaves first in the next grant. It arrives when its last byte has
//! been sent.
//!
//! Choices:
//! - A packet has [`OVERHEAD`] bytes beside its own, which the buckets and the grants count.
//! - A bucket holds its burst and what the interval brings, and pays for the bytes that are sent.
//! - The modem requests all that it has, and may do so before earlier requests are answered.

use alloc::boxed::Box;
use alloc::vec;

use crate::bucket::Bucket;
use crate::context::{Backlog, Cx, Env, State};
use crate::packet::Meta;
use crate::param::ConfigError;
use crate::qdisc::{Aggregate, Counters, Outlet, Qdisc, Through};
use crate::time::{Duration, Instant};
use crate::units::{Rate, Size};

/// Header and checksum of Ethernet.
pub const OVERHEAD: u64 = 18;
/// What leaves at once with a peak rate: the longest frame of Ethernet with a tag.
const FRAME: u64 = 1522;
const BYTE: u128 = 8_000_000_000;

/// How the CMTS grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upstream {
    /// The rate at which bytes of a grant leave.
    pub channel: Rate,
    /// The interval that a MAP describes.
    pub map: Duration,
    /// From a request to the first interval that may have its grant.
    pub turnaround: Duration,
    /// The most bytes of a grant, if the channel sends more in an interval.
    pub most: Option<u64>,
    /// What leaves beyond the sustained rate, bytes.
    pub burst: u32,
    /// The rate at which that leaves, if not that of the channel.
    pub peak: Option<Rate>,
    /// A request without a grant waits for one of so many opportunities, one in each interval; 1: the next one.
    pub backoff: u32,
    /// What is granted without a request.
    pub guaranteed: Option<Rate>,
}

impl Upstream {
    /// What a rate is in an interval, bytes, rounded down.
    pub fn bytes_of(&self, rate: Rate) -> u64 {
        self.bytes_until(rate, 1)
    }

    /// What a rate is from time 0 until the end of so many intervals, bytes, rounded down.
    fn bytes_until(&self, rate: Rate, intervals: u64) -> u64 {
        let time = u128::from(self.map.as_nanos()) * u128::from(intervals);
        (u128::from(rate.bits_per_second()) * time / BYTE) as u64
    }

    /// After how many intervals a request may have its grant.
    fn intervals(&self) -> u64 {
        self.turnaround.as_nanos().div_ceil(self.map.as_nanos()).max(1)
    }
}

/// A modem with a queue `Q`, whose rate is that of its service flow.
#[derive(Clone, Debug)]
pub struct Docsis<Q, P> {
    queue: Q,
    upstream: Upstream,
    most: u64,
    sustained: Bucket,
    peak: Option<Bucket>,
    /// The requests of the last intervals, bytes, which no MAP has seen.
    coming: Box<[u64]>,
    /// All bytes that were requested and not granted, and those of them that a MAP has seen.
    requested: u64,
    asked: u64,
    /// The opportunities that the next request lets pass.
    backoff: Option<usize>,
    /// When the next interval begins.
    next: Instant,
    /// The grant: since when, how many bytes, and how many of them have been used.
    start: Instant,
    granted: u64,
    sent: u64,
    /// The packet that is being sent, and how many bytes of it are left.
    held: Option<(Meta, P)>,
    rest: u64,
    until: Instant,
    counters: Counters,
}

impl<Q, P> Docsis<Q, P> {
    /// A modem around `queue`, which must be empty; `env` has the sustained rate.
    ///
    /// # Errors
    /// When a bucket is too large.
    pub fn around(queue: Q, upstream: Upstream, env: &Env) -> Result<Self, ConfigError> {
        let bucket = |key, rate, burst: u64| {
            let size = Size::Bytes(burst + upstream.bytes_of(rate) + 1);
            Bucket::new((key, size), rate, (1, "a byte"), env)
        };
        let whole = upstream.bytes_of(upstream.channel);
        Ok(Self {
            queue,
            upstream,
            most: upstream.most.map_or(whole, |most| most.min(whole)),
            sustained: bucket("burst", env.rate, upstream.burst.into())?,
            peak: upstream.peak.map(|peak| bucket("peak", peak, FRAME)).transpose()?,
            coming: vec![0; upstream.intervals() as usize].into(),
            requested: 0,
            asked: 0,
            backoff: None,
            next: env.now,
            start: env.now,
            granted: 0,
            sent: 0,
            held: None,
            rest: 0,
            until: env.now,
            counters: Counters::default(),
        })
    }
}

impl<P: Copy, Q: Qdisc<P>> Docsis<Q, P> {
    /// The next interval begins: what its MAP grants, and what the modem requests.
    fn begin(&mut self, cx: &mut Cx<'_>) {
        let number = self.next.as_nanos() / self.upstream.map.as_nanos();
        let slot = (number % self.coming.len() as u64) as usize;
        self.asked += core::mem::take(&mut self.coming[slot]);
        self.sustained.fill(self.next);
        let mut most = self.most.min(self.sustained.bytes_at(self.next));
        if let Some(peak) = &mut self.peak {
            peak.fill(self.next);
            most = most.min(peak.bytes_at(self.next));
        }
        let unasked = self.upstream.guaranteed.map_or(0, |rate| {
            self.upstream.bytes_until(rate, number + 1) - self.upstream.bytes_until(rate, number)
        });
        (self.start, self.granted, self.sent) = (self.next, self.asked.max(unasked).min(most), 0);
        let answered = self.asked.min(self.granted);
        self.asked -= answered;
        self.requested -= answered;
        self.next += self.upstream.map;

        let Backlog { packets, bytes } = self.queue.backlog();
        let queued = bytes + u64::from(packets) * OVERHEAD + self.rest;
        let new = queued.saturating_sub(self.granted + self.requested);
        if new > 0 && self.may_request(cx) {
            self.coming[slot] = new;
            self.requested += new;
        }
    }

    /// Whether a request leaves in this interval.
    fn may_request(&mut self, cx: &mut Cx<'_>) -> bool {
        let pass = match self.backoff {
            _ if self.granted > 0 || self.upstream.backoff == 1 => 0,
            Some(left) => left,
            None => cx.rng.below(self.upstream.backoff as usize),
        };
        self.backoff = pass.checked_sub(1);
        pass == 0
    }
}

impl<P: Copy, Q: Qdisc<P>> Qdisc<P> for Docsis<Q, P> {
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.counters.arrived.count(meta.len);
        if self.next <= cx.now {
            // Nothing was queued or requested meanwhile.
            let map = self.upstream.map.as_nanos();
            self.next = Instant::from_nanos((cx.now.as_nanos() / map + 1) * map);
        }
        self.queue.enqueue(meta, packet, cx, &mut Through::counted(out, &mut self.counters));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        if self.next <= cx.now {
            self.begin(cx);
        }
        if self.sent == self.granted {
            return None;
        }
        if self.held.is_none() {
            self.held = self.queue.dequeue(cx, &mut Through::counted(out, &mut self.counters));
            self.rest = self.held.map_or(0, |(meta, _)| u64::from(meta.len) + OVERHEAD);
        }
        if self.held.is_none() {
            self.granted = self.sent;
            return None;
        }
        let part = self.rest.min(self.granted - self.sent);
        self.rest -= part;
        self.sent += part;
        self.sustained.take(part as u32);
        self.peak.iter_mut().for_each(|peak| _ = peak.take(part as u32));
        if self.rest > 0 {
            return None;
        }
        let (meta, packet) = self.held.take()?;
        self.until = self.start + self.upstream.channel.transmission(self.sent);
        self.counters.departed.count(meta.len);
        Some((meta, packet))
    }

    fn ready_at(&self) -> Option<Instant> {
        (self.requested > 0 || self.backlog().packets > 0).then_some(self.next)
    }

    fn aggregate(&self) -> Option<Aggregate> {
        Some(Aggregate { until: self.until, more: false })
    }

    fn backlog(&self) -> Backlog {
        let mut all = self.queue.backlog();
        self.held.iter().for_each(|(meta, _)| all.add(meta.len));
        all
    }

    fn congested(&self, now: Instant) -> bool {
        self.queue.congested(now)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_at(&self) -> Option<Instant> {
        self.queue.poll_at()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.queue.on_timer(cx, &mut Through::counted(out, &mut self.counters));
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.queue.observe(now, sink);
    }

    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.queue.observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        let queue = self.queue.state();
        let own = size_of::<Self>() - size_of::<Q>() + size_of_val(&*self.coming);
        State { queue: queue.queue + own as u64, ..queue }
    }
}

#[cfg(test)]
mod tests;
