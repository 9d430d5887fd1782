//! A shaper around a queue: a token bucket (tc-tbf(8)) holds packets back that would leave faster than its
//! rate. Where a policer drops, a shaper lets them wait in its queue.
//!
//! A bucket holds at most `burst` bytes, all of them at the start, and gains `rate`. With `peakrate` there
//! is a second one, of `minburst` bytes:
//!
//! ```text
//! the transmitter asks at t:  the queue gives its next packet, len bytes, if none is held
//!     each bucket:            tokens := min(size, tokens + rate · (t − u));  u := t
//!     len ≤ tokens in each:   tokens := tokens − len;  the packet is sent
//!     else:                   it is held until then
//! ```
//!
//! So in any t seconds at most burst + rate · t bytes leave, and a burst that fits leaves at the link's
//! rate. As in Linux the queue decides about a packet when the shaper takes it from the queue, and the
//! packet that is held is not in the buffer any more.
//!
//! Choices:
//! - Lengths are those on the wire ([`Framing`]).
//! - A packet that is longer than a bucket would wait for ever. It is dropped as it arrives.
//! - Tokens are counted exactly (`bucket.rs`).

use crate::about::{About, Family, Signal};
use crate::bucket::Bucket;
use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::framing::Framing;
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::qdisc::{Counters, Outlet, Qdisc, Through};
use crate::time::Instant;
use crate::units::{Rate, Size};

/// What the shaper tells of itself.
pub const ABOUT: About = About {
    name: "tbf",
    family: Family::Filter,
    summary: "Holds back what would leave faster than a rate, beyond a burst.",
    source: "tc-tbf(8)",
    rule: "The shaper drops what is longer than its bucket, which would never be full enough; all \
        else waits in the queue (tc-tbf(8))",
    causes: &[(Cause::Policed, "the packet is longer than the shaper's bucket")],
    signals: &[
        Signal { name: "tokens", unit: "bytes", doc: "what may leave at once" },
        Signal {
            name: "peak_tokens",
            unit: "bytes",
            doc: "the same by `peakrate`; without one as `tokens`",
        },
    ],
    ..About::NEW
};

params! {
    /// Parameters of the shaper.
    pub struct ShaperConfig {
        /// The rate at which packets leave; it has to be given.
        rate: Option<Rate> = None, "tc-tbf(8)";
        /// What may leave at once after a pause.
        burst: Size = Size::Bytes(15_140), "tc-tbf(8); ten packets, ours";
        /// The rate at which a burst leaves; `none`: that of the link.
        peakrate: Option<Rate> = None, "tc-tbf(8)";
        /// What of a burst may leave at once.
        minburst: Size = Size::Bytes(1514), "tc-tbf(8): mtu", with peakrate != "none";
    }
}

/// A full bucket, in which a packet on the wire has room.
fn bucket(key: &'static str, rate: Rate, size: Size, env: &Env) -> Result<Bucket, ConfigError> {
    let least = env.framing.on_wire(env.mean_packet);
    Bucket::new((key, size), rate, (least, "a packet on the wire"), env)
}

/// A queue `Q` behind which a token bucket holds packets back: one discipline with one set of books.
#[derive(Clone, Debug)]
pub struct Shaped<Q, P> {
    queue: Q,
    bucket: Bucket,
    peak: Option<Bucket>,
    framing: Framing,
    /// The rate that the queue was built for.
    known: Rate,
    /// The packet that comes next, and when it may leave.
    held: Option<(Meta, P)>,
    ready: Instant,
    counters: Counters,
}

impl<Q, P> Shaped<Q, P> {
    /// The queue behind, as it is.
    pub fn behind(&self) -> &Q {
        &self.queue
    }

    /// The queue behind.
    pub fn behind_mut(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// A shaper around `queue`, which must be empty.
    ///
    /// # Errors
    /// When the rate is missing, or a bucket is too small or too large.
    pub fn around(queue: Q, config: &ShaperConfig, env: &Env) -> Result<Self, ConfigError> {
        let missing = || ConfigError { key: "rate", allowed: "a rate such as 10mbit".into() };
        let rate = config.rate.ok_or_else(missing)?;
        let peak = match config.peakrate {
            Some(peak) if peak <= rate => {
                return Err(ConfigError { key: "peakrate", allowed: "more than rate".into() });
            }
            peak => peak.map(|peak| bucket("minburst", peak, config.minburst, env)),
        };
        Ok(Self {
            queue,
            bucket: bucket("burst", rate, config.burst, env)?,
            peak: peak.transpose()?,
            framing: env.framing,
            known: env.rate,
            held: None,
            ready: env.now,
            counters: Counters::default(),
        })
    }

    fn buckets(&mut self) -> impl Iterator<Item = &mut Bucket> {
        core::iter::once(&mut self.bucket).chain(&mut self.peak)
    }
}

impl<P: Copy, Q: Qdisc<P>> Qdisc<P> for Shaped<Q, P> {
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.counters.arrived.count(meta.len);
        let len = self.framing.on_wire(meta.len);
        if self.buckets().any(|bucket| !bucket.may_hold(len)) {
            return self.counters.drop(&meta, packet, Cause::Policed, cx, out);
        }
        self.queue.enqueue(meta, packet, cx, &mut Through::counted(out, &mut self.counters));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        if self.held.is_none() {
            self.held = self.queue.dequeue(cx, &mut Through::counted(out, &mut self.counters));
        }
        let (meta, _) = self.held?;
        let len = self.framing.on_wire(meta.len);
        let mut ready = cx.now;
        for bucket in self.buckets() {
            bucket.fill(cx.now);
            ready = ready.max(bucket.holds_at(len));
        }
        self.ready = ready;
        if ready > cx.now {
            return None;
        }
        self.buckets().for_each(|bucket| _ = bucket.take(len));
        self.counters.departed.count(meta.len);
        self.held.take()
    }

    fn ready_at(&self) -> Option<Instant> {
        if self.held.is_some() { Some(self.ready) } else { self.queue.ready_at() }
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

    /// The shaper's rate stays, and so does what its queue knows of the link's.
    fn rate_changed(&mut self, env: &Env) {
        if self.framing != env.framing {
            self.framing = env.framing;
            self.queue.rate_changed(&Env { rate: self.known, ..*env });
        }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let tokens = |bucket: &Bucket| bucket.bytes_at(now) as f64;
        sink("tokens", tokens(&self.bucket));
        sink("peak_tokens", tokens(self.peak.as_ref().unwrap_or(&self.bucket)));
        self.queue.observe(now, sink);
    }

    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.queue.observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        let queue = self.queue.state();
        State { queue: queue.queue + (size_of::<Self>() - size_of::<Q>()) as u64, ..queue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::Fifo;
    use crate::packet::{Ecn, FlowKey};
    use crate::policy::codel::Codel;
    use crate::policy::drop_tail::DropTail;
    use crate::policy::lab::{config, env};
    use crate::qdisc::Discipline as _;
    use crate::rng::Rng;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
    use std::vec::Vec;

    type Fifos<A> = Shaped<Fifo<A, u32>, u32>;

    fn around<A: crate::Policy>(settings: &[(&str, &str)]) -> Result<Fifos<A>, ConfigError> {
        let queue = Fifo::new(&A::Config::default(), &env(1000), &mut Rng::new(1, 0)).unwrap();
        Shaped::around(queue, &config(settings), &env(1000))
    }

    fn arrive(q: &mut impl Qdisc<u32>, now: u64, id: u32, len: u32) {
        let now = Instant::from_nanos(now);
        let meta = Meta { len, ecn: Ecn::NotEct, flow: FlowKey(1), arrived: now };
        q.enqueue(meta, id, &mut Cx { now, rng: &mut Rng::new(1, 0) }, &mut ());
    }

    /// When each packet of `arrivals` (ns, bytes) leaves, ns, over a link of `ns_per_byte`, and its length.
    fn departures<Q: Qdisc<u32>>(
        q: &mut Q,
        arrivals: &[(u64, u32)],
        ns_per_byte: u64,
    ) -> Vec<(u64, u32)> {
        let (mut left, mut free, mut next) = (Vec::new(), 0u64, 0);
        loop {
            let coming = arrivals.get(next).map(|a| a.0);
            let asks = q.ready_at().map_or(free, |at| at.as_nanos().max(free));
            if q.backlog().packets > 0 && coming.is_none_or(|at| asks <= at) {
                let at = Instant::from_nanos(asks);
                let sent = q.dequeue(&mut Cx { now: at, rng: &mut Rng::new(1, 0) }, &mut ());
                if let Some((meta, _)) = sent {
                    left.push((asks, meta.len));
                    free = asks + u64::from(meta.len) * ns_per_byte;
                }
            } else if let Some(at) = coming {
                arrive(q, at, next as u32, arrivals[next].1);
                free = free.max(at);
                next += 1;
            } else {
                return left;
            }
        }
    }

    /// 8 Mb/s is 1 byte a µs. Three packets leave at the link's rate, then one a millisecond; after a pause
    /// three again.
    #[test]
    fn a_burst_passes_at_the_link_s_rate_and_then_the_rate() {
        let mut q = around::<DropTail>(&[("rate", "8mbit"), ("burst", "3000B")]).unwrap();
        let mut arrivals: Vec<_> = (0..6).map(|_| (0, 1000)).collect();
        arrivals.extend((0..4).map(|_| (10_000_000, 1000)));
        let at: Vec<u64> = departures(&mut q, &arrivals, 10).iter().map(|d| d.0 / 1000).collect();
        assert_eq!(at, [0, 10, 20, 1000, 2000, 3000, 10_000, 10_010, 10_020, 11_000]);
    }

    /// With a peak rate of 16 Mb/s and one packet in its bucket a burst leaves a packet each 500 µs.
    #[test]
    fn a_peak_rate_spreads_the_burst() {
        let settings =
            [("rate", "8mbit"), ("burst", "3000B"), ("peakrate", "16mbit"), ("minburst", "1000B")];
        let mut q = around::<DropTail>(&settings).unwrap();
        let arrivals: Vec<_> = (0..7).map(|_| (0, 1000)).collect();
        let at: Vec<u64> = departures(&mut q, &arrivals, 10).iter().map(|d| d.0 / 1000).collect();
        // Tokens for 3 at 0, and one more each ms: the fifth has them at 2 ms.
        assert_eq!(at, [0, 500, 1000, 1500, 2000, 3000, 4000]);
    }

    #[test]
    fn what_is_longer_than_the_bucket_is_dropped_and_settings_have_to_fit() {
        let mut q = around::<DropTail>(&[("rate", "8mbit"), ("burst", "1200B")]).unwrap();
        assert_eq!(departures(&mut q, &[(0, 1201), (0, 1200)], 1), [(0, 1200)]);
        assert_eq!(q.counters().dropped[Cause::Policed as usize].packets, 1);
        for (settings, key) in [
            (&[][..], "rate"),
            (&[("rate", "1mbit"), ("burst", "999B")], "burst"),
            (&[("rate", "2mbit"), ("peakrate", "2mbit")], "peakrate"),
            (&[("rate", "1mbit"), ("peakrate", "2mbit"), ("minburst", "2GB")], "minburst"),
        ] {
            assert_eq!(around::<DropTail>(settings).unwrap_err().key, key, "{settings:?}");
        }
    }

    proptest! {
        /// Over any interval at most burst + rate · t leaves, by both buckets; no packet is lost, and the
        /// shaper never waits when both would let a packet go.
        #[test]
        fn no_interval_has_more_than_the_burst_and_the_rate(
            arrivals in prop::collection::vec((0..3_000_000u64, 40..1500u32), 1..80),
            burst in 1500..9000u64, peak in any::<bool>(),
        ) {
            let burst_text = std::format!("{burst}B");
            let mut settings = std::vec![("rate", "8mbit"), ("burst", &burst_text[..])];
            if peak {
                settings.extend([("peakrate", "20mbit"), ("minburst", "1500B")]);
            }
            let mut q = around::<DropTail>(&settings).unwrap();
            let mut now = 0;
            let arrivals: Vec<_> = arrivals.into_iter().map(|(gap, len)| { now += gap / 3; (now, len) }).collect();
            let left = departures(&mut q, &arrivals, 1);
            prop_assert_eq!(left.len(), arrivals.len());
            for from in 0..left.len() {
                let mut bytes = 0;
                for (at, len) in &left[from..] {
                    bytes += u64::from(*len);
                    let t = at - left[from].0;
                    prop_assert!(bytes * 1000 <= burst * 1000 + t, "{bytes} bytes in {t} ns");
                    prop_assert!(!peak || bytes * 400 <= 1500 * 400 + t, "{bytes} bytes in {t} ns");
                }
            }
            // The naive bucket: when it lets each packet go at the earliest.
            let (mut free, mut tokens, mut peaks, mut before) = (0, burst as f64, 1500.0, 0);
            for ((came, len), (at, _)) in arrivals.iter().zip(&left) {
                let mut earliest = free.max(*came);
                let len = f64::from(*len);
                loop {
                    let t = (earliest - before) as f64;
                    let has = (tokens + t / 1000.0).min(burst as f64);
                    let has_peak = if peak { (peaks + t / 400.0).min(1500.0) } else { len };
                    if has + 1e-6 >= len && has_peak + 1e-6 >= len {
                        (tokens, peaks) = (has - len, has_peak - len);
                        break;
                    }
                    let wait = ((len - has) * 1000.0).max((len - has_peak) * 400.0);
                    earliest += (wait - 1e-3).ceil().max(1.0) as u64;
                }
                prop_assert!(earliest.abs_diff(*at) <= 1, "{earliest}, not {at}");
                free = at + len as u64;
                before = *at;
            }
        }

        /// Every packet that came was sent, dropped or is queued, whatever the queue within decides.
        #[test]
        fn every_packet_is_accounted_for(
            arrivals in prop::collection::vec((0..300_000u64, 40..3000u32), 1..400),
        ) {
            let mut q = around::<Codel>(&[("rate", "4mbit"), ("burst", "1500B")]).unwrap();
            let mut now = 0;
            let arrivals: Vec<_> = arrivals.into_iter().map(|(gap, len)| { now += gap; (now, len) }).collect();
            let left = departures(&mut q, &arrivals, 1);
            let c = q.counters();
            prop_assert_eq!(q.backlog(), Backlog::default());
            prop_assert_eq!(c.departed.packets, left.len() as u64);
            prop_assert_eq!(c.arrived, c.departed + c.all_dropped());
        }
    }
}
