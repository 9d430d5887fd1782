//! What a link is to be like, and whether there can be such a link.

use std::iter;
use std::sync::Arc;

use aqm::About;
use aqm::any::{BuildError, canonical, fits};
use aqm::filter::Filter as _;
use aqm::filter::policer::{self, Policer, PolicerConfig};
use aqm::param::ConfigError;
use aqm::told::Rates;
use aqm::{AnyQdisc, Carried, Duration, Env, Framing, Instant, Limit, Rate, Rng, Size};
use link::varying::{LEAST_TOLD, told, told_at};
use link::{Impair, Impairments, Sending, Transmitter};

use super::classes::{Classes, of_leaves};
use super::refused::SpecError;
use crate::frame::Layer;
use crate::trouble::Trouble;

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
    /// Seed of the random numbers of queue and wire.
    pub seed: u64,
    /// How the transmitter sends beside that. An overhead counts on IP packets.
    pub sending: Sending,
    /// Bytes of a frame before the IP packet, for which an overhead stands.
    pub header: u8,
    /// What the wire does to packets.
    pub impairments: Impairments,
    /// Whether the queue learns each new rate.
    pub told_rate: bool,
    /// Whether the codepoints of packets are cleared behind it.
    pub wash: bool,
    /// What limits the rate at which packets may come to the queue.
    pub policer: Option<Bucket>,
    /// What limits the rate at which packets leave it.
    pub shaper: Option<Bucket>,
    /// What limits the rate at which a burst of the shaper leaves.
    pub peak: Option<Bucket>,
    /// A tree of classes, of which each leaf has a queue like this.
    pub classes: Option<Arc<Classes>>,
    /// How often the algorithm was named while the link ran: each time it begins anew.
    pub named: u32,
}

/// What a policer before a queue, or a shaper behind it, lets pass, and the peak of a shaper.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bucket {
    /// Rate.
    pub rate: Rate,
    /// At once, after a pause.
    pub burst: Size,
}

impl Bucket {
    /// As parameters of these names.
    fn settings(&self, [rate, burst]: [&'static str; 2]) -> [(&'static str, String); 2] {
        [(rate, self.rate.to_string()), (burst, self.burst.to_string())]
    }
}

impl Spec {
    /// A link with `aqm` at its defaults for packets of 1000 bytes, and a wire that only delays.
    pub fn new(rate: Rate, delay: Duration, limit: Limit, aqm: &str) -> Self {
        Self {
            rate,
            delay,
            limit,
            aqm: aqm.into(),
            params: Vec::new(),
            mean_packet: 1000,
            seed: 1,
            sending: Sending::default(),
            header: 0,
            impairments: Impairments::default(),
            told_rate: false,
            wash: false,
            policer: None,
            shaper: None,
            peak: None,
            classes: None,
            named: 0,
        }
    }

    /// The parameters as pairs.
    pub(super) fn settings(&self) -> Vec<(&str, &str)> {
        self.params.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }

    /// Whether its queue may become that of `next` with all that it has learned: only parameters are others that
    /// may change meanwhile.
    pub(super) fn tunes_to(&self, next: &Self) -> bool {
        if *next != (Self { params: next.params.clone(), ..self.clone() }) {
            return false;
        }
        let live = About::of(&self.aqm).map_or(&[][..], |about| about.live);
        let texts = |spec: &Self| canonical(&spec.aqm, &spec.settings()).unwrap_or_default();
        let mut all = iter::zip(texts(self), texts(next));
        all.all(|(old, new)| old == new || live.contains(&new.0))
    }

    /// Whether its queue asks for codepoints and hosts.
    pub fn asks_for_labels(&self) -> bool {
        let asks = |(aqm, params): &(&str, Vec<(&str, String)>)| {
            let given = |name: &str| {
                params.iter().find(|(key, _)| *key == name).map(|(_, text)| text.clone())
            };
            About::of(aqm).is_some_and(|about| about.reads_labels(given))
        };
        self.disciplines().iter().any(asks)
    }

    /// Whether its queue asks for what packets acknowledge.
    pub fn asks_for_acks(&self) -> bool {
        let asks = |(key, value): &(&str, String)| *key == "ack_filter" && value != "off";
        self.disciplines().iter().any(|(_, params)| params.iter().any(asks))
    }

    /// The disciplines of its queues with their parameters: one, or that of each class.
    pub(crate) fn disciplines(&self) -> Vec<(&str, Vec<(&str, String)>)> {
        of_leaves(self.classes.as_deref(), (&self.aqm, &self.params))
    }

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
        self.slots(self.longest().as_nanos(), 0).map(drop)
    }

    /// The highest rate.
    fn fastest(&self) -> u64 {
        let rates = self.sending.rates.iter().flat_map(|rates| rates.steps());
        rates.map(|step| step.1).max().unwrap_or(self.rate.bits_per_second())
    }

    /// The lowest rate, bit/s; 0 with outages.
    fn slowest(&self) -> u64 {
        let rates = self.sending.rates.iter().flat_map(|rates| rates.steps());
        rates.map(|step| step.1).min().unwrap_or(self.rate.bits_per_second())
    }

    /// The longest time that a packet is on the wire.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(self.impairments.delays(self.delay.as_nanos()).1)
    }

    /// The shortest time that a packet is on the wire.
    pub(crate) fn shortest(&self) -> Duration {
        Duration::from_nanos(self.impairments.delays(self.delay.as_nanos()).0)
    }

    /// The transmitter.
    pub(super) fn transmitter(&self) -> Transmitter {
        Transmitter::new(self.rate, self.shortest()).with(&self.counted())
    }

    /// The wire's impairments, if there are any.
    pub(crate) fn impair(&self) -> Option<Impair> {
        let new = || Impair::new(&self.impairments, self.delay.as_nanos(), self.seed, 0);
        self.impairments.any().then(new)
    }

    /// This link between ports of `layer`.
    #[must_use]
    pub fn between(self, layer: Layer) -> Self {
        Self { header: if layer == Layer::Ethernet { ETHERNET_HEADER } else { 0 }, ..self }
    }

    /// The framing of whole frames.
    fn framing(&self) -> Framing {
        let framing = self.sending.framing;
        Framing {
            overhead: framing.overhead.map(|bytes| bytes - i32::from(self.header)),
            ..framing
        }
    }

    /// How the transmitter sends whole frames.
    pub(crate) fn counted(&self) -> Sending {
        Sending { framing: self.framing(), ..self.sending.clone() }
    }

    /// The queue at rest at `now`, and its stream of random numbers.
    pub(crate) fn queue<P: Carried>(
        &self,
        now: Instant,
        stream: u64,
    ) -> Result<(AnyQdisc<P>, Rng), SpecError> {
        let mut rng = Rng::new(self.seed, stream);
        let env = self.env(now, self.rate_at(now));
        let mut queue = match &self.classes {
            Some(classes) => classes.queue((&self.aqm, &self.params), &env, &mut rng)?,
            None => AnyQdisc::build(&self.aqm, &self.settings(), &env, &mut rng)
                .map_err(SpecError::Queue)?,
        };
        queue = self.behind_buckets(queue, &env, &mut rng)?;
        Ok((if self.told_rate { queue.with_rates(&env, self.rates()) } else { queue }, rng))
    }

    /// A queue behind its policer and before its shaper, if it has them.
    fn behind_buckets<P: Carried>(
        &self,
        mut queue: AnyQdisc<P>,
        env: &Env,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, SpecError> {
        // The parameter is the option's, whose name says whose burst it is.
        let named = |option: fn(&str) -> &'static str| {
            move |e| match e {
                BuildError::Config(e) => {
                    SpecError::Queue(BuildError::Config(ConfigError { key: option(e.key), ..e }))
                }
                other => SpecError::Queue(other),
            }
        };
        if let Some(bucket) = self.policer {
            let settings = bucket.settings(["rate", "burst"]);
            let settings = settings.each_ref().map(|(name, text)| (*name, text.as_str()));
            let policed = queue.filtered(policer::ABOUT.name, &settings, env, rng);
            queue = policed.map_err(named(|_| POLICER_BURST))?;
        }
        if let Some(bucket) = self.shaper {
            let peak = self.peak.map(|peak| peak.settings(["peakrate", "minburst"]));
            let settings = bucket.settings(["rate", "burst"]).into_iter();
            let settings: Vec<_> = settings.chain(peak.into_iter().flatten()).collect();
            let settings: Vec<_> =
                settings.iter().map(|(name, text)| (*name, text.as_str())).collect();
            queue = queue.shaped(&settings, env).map_err(named(|key| match key {
                "peakrate" => "shaper-peak",
                "minburst" => "shaper-peak-burst",
                _ => "shaper-burst",
            }))?;
        }
        Ok(queue)
    }

    /// Whether its queue, which was built for another rate and framing, could be built for these at `now`, too; or
    /// with other parameters, if it is `tuned`.
    pub(super) fn fits(&self, now: Instant, tuned: bool) -> Result<(), SpecError> {
        let env = self.env(now, self.rate_at(now));
        let mut rng = Rng::new(self.seed, 0);
        // A mistake in the options has the same message as without classes.
        if tuned {
            AnyQdisc::<()>::build(&self.aqm, &self.settings(), &env, &mut rng)
                .map_err(SpecError::Queue)?;
        }
        match &self.classes {
            Some(classes) => classes.fits((&self.aqm, &self.params), &env, tuned)?,
            None => fits(&self.aqm, &self.settings(), &env).map_err(SpecError::Queue)?,
        }
        let small = Limit::packets(1).unwrap_or(self.limit);
        let bare = AnyQdisc::<()>::build("droptail", &[], &Env { limit: small, ..env }, &mut rng)
            .map_err(SpecError::Queue)?;
        self.behind_buckets(bare, &env, &mut rng).map(drop)
    }

    /// The policer at rest at `now`, if there is one.
    pub(super) fn policer(&self, now: Instant) -> Result<Option<Policer>, SpecError> {
        let new = |Bucket { rate, burst }| {
            let mut config = PolicerConfig::default();
            (config.rate, config.burst) = (Some(rate), burst);
            let env = self.env(now, self.rate_at(now));
            Policer::new(&config, &env, &mut Rng::new(self.seed, 0)).map_err(|e| {
                SpecError::Queue(BuildError::Config(ConfigError { key: POLICER_BURST, ..e }))
            })
        };
        self.policer.map(new).transpose()
    }

    /// What a queue may know at `now`, while the rate is `rate`.
    pub(super) fn env(&self, now: Instant, rate: Rate) -> Env {
        Env { now, limit: self.limit, rate, mean_packet: self.mean_packet, framing: self.framing() }
    }

    /// The rate that a queue knows at `now`.
    pub(super) fn rate_at(&self, now: Instant) -> Rate {
        let rates = self.sending.rates.as_ref().filter(|_| self.told_rate);
        rates.and_then(|rates| told_at(rates, now.as_nanos())).unwrap_or(self.rate)
    }

    /// The rates that its queue learns.
    pub(super) fn rates(&self) -> Rates {
        let constant = || Rates { steps: [(Duration::ZERO, Some(self.rate))].into(), period: None };
        self.sending.rates.as_ref().map_or_else(constant, |rates| told(rates))
    }

    /// The most packets on a wire that takes `delay` (ns): the shortest ones, back to back.
    pub(super) fn on_wire(&self, delay: u64) -> u64 {
        let bits = u128::from(self.fastest()) * u128::from(delay);
        let least = self.framing().on_wire(Limit::MIN_PACKET as u32).max(1);
        u64::try_from(bits / (8_000_000_000 * u128::from(least))).unwrap_or(u64::MAX - 2) + 2
    }

    /// Room for packets that such a link needs beside `others`, if it can be emulated; its wire
    /// takes `delay` (ns).
    pub(super) fn slots(&self, delay: u64, others: u64) -> Result<u32, SpecError> {
        let beyond = |what: String| Err(SpecError::Beyond(what));
        if self.rate.bits_per_second().max(self.fastest()) > Self::MAX_RATE {
            let fastest = self.rate.bits_per_second().max(self.fastest()) / 1_000_000_000;
            return beyond(format!("a rate of {fastest}gbit; allowed: at most 100gbit"));
        }
        if self.delay.max(self.longest()) > Self::MAX_DELAY {
            let longest = self.delay.max(self.longest());
            let most = Self::MAX_DELAY;
            return beyond(format!("a delay of {longest}, with jitter; allowed: at most {most}"));
        }
        let gap = self.sending.rates.as_ref().filter(|_| self.told_rate).map(|r| r.least_gap());
        if gap.is_some_and(|gap| gap < LEAST_TOLD) {
            return beyond("with told_rate, rates that hold for at least 1ms".into());
        }
        let own = |(_, params): &(&str, Vec<(&str, String)>)| {
            params.iter().any(|(key, value)| *key == "shared_rate" && value != "none")
        };
        if self.told_rate && self.disciplines().iter().any(own) {
            let allowed =
                "none with told-rate: queues without one follow the rate of the link".into();
            let wrong = ConfigError { key: "shared_rate", allowed };
            return Err(SpecError::Queue(BuildError::Config(wrong)));
        }
        let mut queues = 1;
        if let Some(classes) = &self.classes {
            classes.below(self.slowest())?;
            let (told, shaped) = (self.told_rate, self.shaper.is_some());
            if told || shaped {
                let option = if told { "told_rate" } else { "shaper" };
                let hint = "the rates of classes are those of their file";
                let what = format!("{option} beside classes");
                return Err(SpecError::Classes(Trouble::new(what, hint)));
            }
            queues = classes.tree.leaves().count() as u64;
        }
        // A shaper holds one that is not in the queue any more.
        let beside = 1 + u64::from(self.shaper.is_some());
        let room = queues.saturating_mul(u64::from(self.limit.max_packets()));
        let own = (room + beside).saturating_add(self.on_wire(delay));
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

/// Bytes.
const ETHERNET_HEADER: u8 = 14;

/// The option that a policer's burst comes from.
const POLICER_BURST: &str = "policer-burst";
