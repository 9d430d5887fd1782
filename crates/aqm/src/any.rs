//! Choice by name: the one list of all algorithms.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fifo::Fifo;
use crate::packet::Meta;
use crate::param::{ConfigError, Param, ParamError, Params};
use crate::policy::{
    Cx, Env, ared, ared_feng, bernoulli, blue, choke, drop_front, drop_tail, random_drop, red,
};
use crate::qdisc::{Backlog, Counters, Discipline, Outlet, Qdisc, State};
use crate::rng::Rng;
use crate::time::Instant;

/// What the catalogue tells of an algorithm.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in configurations.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// The paper or standard that defines it.
    pub source: &'static str,
    /// The parameters with defaults, ranges, docs.
    pub parameters: fn() -> Vec<Param>,
    /// The signals that it reports while it runs: name and meaning.
    pub signals: &'static [(&'static str, &'static str)],
    /// Named sets of parameters: the name, and pairs of parameter and text.
    pub presets: &'static [Preset],
}

/// A named set of parameters, chosen by the setting `preset`; settings beside it go before it.
pub type Preset = (&'static str, &'static [(&'static str, &'static str)]);

/// The setting that chooses a [`Preset`].
pub const PRESET: &str = "preset";

/// Why a queue cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// No algorithm has this name.
    UnknownAqm,
    /// The algorithm has no such parameter.
    UnknownParameter(String),
    /// A parameter's value cannot be taken.
    Parameter(String, ParamError),
    /// Parameters do not fit together or with the buffer.
    Config(ConfigError),
}

/// Reads `(name, text)` pairs over the defaults of `aqm`, or over a preset that they name.
fn configure<C: Params>(aqm: &str, settings: &[(&str, &str)]) -> Result<C, BuildError> {
    let mut config = C::default();
    let mut set = |name: &str, text: &str| {
        config.set(name, text).map_err(|e| match e {
            None => BuildError::UnknownParameter(name.into()),
            Some(e) => BuildError::Parameter(name.into(), e),
        })
    };
    for &(_, wanted) in settings.iter().filter(|(name, _)| *name == PRESET) {
        let presets = CATALOG.iter().find(|e| e.name == aqm).map_or(&[][..], |e| e.presets);
        let Some((_, preset)) = presets.iter().find(|(name, _)| *name == wanted) else {
            let names: Vec<_> = presets.iter().map(|(name, _)| *name).collect();
            let allowed = if names.is_empty() { "none here".into() } else { names.join(" | ") };
            let error = ParamError { allowed, hint: String::new() };
            return Err(BuildError::Parameter(PRESET.into(), error));
        };
        preset.iter().try_for_each(|&(name, text)| set(name, text))?;
    }
    settings
        .iter()
        .filter(|(name, _)| *name != PRESET)
        .try_for_each(|&(name, text)| set(name, text))?;
    Ok(config)
}

/// Work on a queue of any type. The choice among the types is made once for all of it, where
/// [`AnyQdisc`]'s own methods choose at each call.
pub trait Visitor<P: Copy> {
    /// Does the work.
    fn visit(self, queue: &mut impl Qdisc<P>);
}

macro_rules! any_qdisc {
    ($($variant:ident = $name:literal, $queue:ident $(<$policy:ty>)?, $summary:literal,
       $source:literal, [$($signal:literal: $meaning:literal),*]
       $(, $preset:literal: [$($key:ident = $value:literal),*])*;)*) => {
        /// Any queue discipline of the library, chosen by name. One predictable branch a call.
        #[derive(Clone)]
        pub enum AnyQdisc<P: Copy + Default> {
            $(#[doc = $summary] $variant(Box<$queue<$($policy,)? P>>),)*
        }

        /// All algorithms, in the order of the documentation.
        pub const CATALOG: &[Entry] = &[$(Entry {
            name: $name,
            summary: $summary,
            source: $source,
            parameters:
                <<$queue<$($policy,)? ()> as Discipline<()>>::Config as Params>::table,
            signals: &[$(($signal, $meaning)),*],
            presets: &[$(($preset, &[$((stringify!($key), $value)),*])),*],
        }),*];

        impl<P: Copy + Default> AnyQdisc<P> {
            /// Shows the queue as what it is.
            #[inline]
            pub fn visit(&mut self, visitor: impl Visitor<P>) {
                match self { $(Self::$variant(q) => visitor.visit(&mut **q),)* }
            }

            /// The algorithm `name` with `settings` (pairs of parameter and text) over its
            /// defaults.
            ///
            /// # Errors
            /// See [`BuildError`].
            pub fn build(
                name: &str,
                settings: &[(&str, &str)],
                env: &Env,
                rng: &mut Rng,
            ) -> Result<Self, BuildError> {
                match name {
                    $($name => {
                        type Queue<P> = $queue<$($policy,)? P>;
                        let config = configure(name, settings)?;
                        let queue = Queue::new(&config, env, rng).map_err(BuildError::Config)?;
                        Ok(Self::$variant(Box::new(queue)))
                    })*
                    _ => Err(BuildError::UnknownAqm),
                }
            }
        }

        /// All parameters of the algorithm `name` with `settings` over its defaults, as canonical
        /// text.
        ///
        /// # Errors
        /// Unknown names and values that cannot be taken; see [`BuildError`].
        pub fn canonical(
            name: &str,
            settings: &[(&str, &str)],
        ) -> Result<Vec<(&'static str, String)>, BuildError> {
            match name {
                $($name => {
                    type Config = <$queue<$($policy,)? ()> as Discipline<()>>::Config;
                    let config = configure::<Config>(name, settings)?;
                    Ok(Config::table()
                        .iter()
                        .map(|p| (p.name, config.get(p.name).unwrap_or_default()))
                        .collect())
                })*
                _ => Err(BuildError::UnknownAqm),
            }
        }

        impl<P: Copy + Default> Qdisc<P> for AnyQdisc<P> {
            #[inline]
            fn enqueue(
                &mut self,
                meta: Meta,
                packet: P,
                cx: &mut Cx<'_>,
                out: &mut impl Outlet<P>,
            ) {
                match self { $(Self::$variant(q) => q.enqueue(meta, packet, cx, out),)* }
            }

            #[inline]
            fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
                match self { $(Self::$variant(q) => q.dequeue(cx, out),)* }
            }

            fn backlog(&self) -> Backlog {
                match self { $(Self::$variant(q) => q.backlog(),)* }
            }

            fn counters(&self) -> &Counters {
                match self { $(Self::$variant(q) => q.counters(),)* }
            }

            fn poll_at(&self) -> Option<Instant> {
                match self { $(Self::$variant(q) => q.poll_at(),)* }
            }

            fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
                match self { $(Self::$variant(q) => q.on_timer(cx, out),)* }
            }

            fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
                match self { $(Self::$variant(q) => q.observe(now, sink),)* }
            }

            fn state(&self) -> State {
                match self { $(Self::$variant(q) => q.state(),)* }
            }
        }
    };
}

any_qdisc! {
    DropTail = "droptail", Fifo<drop_tail::DropTail>,
        "Drops the arriving packet when the buffer is full.", "004 §1", [];
    RandomDrop = "random-drop", Fifo<random_drop::RandomDrop>,
        "Drops a random packet, queued or arriving, when the buffer is full.", "004 §1", [];
    DropFront = "drop-front", Fifo<drop_front::DropFront>,
        "Drops the packet at the head when the buffer is full.", "004 §1", [];
    Blue = "blue", Fifo<blue::Blue>,
        "Signals with a probability that losses raise and idle times lower.", "000 Fig. 3",
        ["p_m": "marking probability"];
    Red = "red", Fifo<red::Red>,
        "Signals with a probability that grows with the average queue length.", "FJ93; 000 §III.B",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th"],
        "linux": [mode = "bytes", min_th = "10%", max_th = "30%", max_p = "0.1", w_q = "0.0625",
            spacing = "uniform-exact"];
    AredFeng = "ared-feng", Fifo<ared_feng::AredFeng>,
        "RED whose max_p moves by a factor when the average crosses a threshold.", "Feng 1999",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th"];
    Ared = "ared", Fifo<ared::Ared>,
        "RED whose max_p keeps the average at the middle of its thresholds.", "FGS01",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th"];
    Choke = "choke", Fifo<choke::Choke<red::RedConfig>>,
        "RED that drops an arriving packet with a queued one of its flow that it draws.",
        "PPP00; 002 §2",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th",
         "candidates": "queued packets that the next one is compared with"],
        "cmu": [min_th = "50p", max_th = "100p", max_p = "0.1", ecn = "false"],
        "linux": [min_th = "15p", max_th = "45p", max_p = "0.1", w_q = "0.0625",
                  spacing = "uniform-exact"];
    MChoke = "m-choke", Fifo<choke::Choke<choke::MChokeConfig>>,
        "CHOKe that draws several queued packets.", "PPP00 §2; 002 §2",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th",
         "candidates": "queued packets that the next one is compared with"],
        "cmu": [min_th = "50p", max_th = "100p", max_p = "0.1", ecn = "false"];
    AChoke = "a-choke", Fifo<choke::Choke<choke::AChokeConfig>>,
        "CHOKe that draws more packets, the longer the average queue.", "PPP00 §2; 002 §2",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th",
         "candidates": "queued packets that the next one is compared with"],
        "cmu": [min_th = "50p", max_th = "100p", max_p = "0.1", ecn = "false"];
    Bernoulli = "bernoulli", Fifo<bernoulli::Bernoulli>,
        "Signals every packet with one fixed probability: a lossy link.", "003 §5.2", [];
}
