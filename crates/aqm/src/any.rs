//! Choice by name: the one list of all algorithms.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fifo::Fifo;
use crate::packet::Meta;
use crate::param::{ConfigError, Param, ParamError, Params};
use crate::policy::{
    Cx, Env, Policy, ared, ared_feng, bernoulli, blue, drop_front, drop_tail, random_drop, red,
};
use crate::qdisc::{Backlog, Counters, Outlet, Qdisc};
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
}

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

/// Reads `(name, text)` pairs over an algorithm's defaults.
fn configure<C: Params>(settings: &[(&str, &str)]) -> Result<C, BuildError> {
    let mut config = C::default();
    for &(name, text) in settings {
        config.set(name, text).map_err(|e| match e {
            None => BuildError::UnknownParameter(name.into()),
            Some(e) => BuildError::Parameter(name.into(), e),
        })?;
    }
    Ok(config)
}

macro_rules! any_qdisc {
    ($($variant:ident = $name:literal, $policy:ty, $summary:literal, $source:literal,
       [$($signal:literal: $meaning:literal),*];)*) => {
        /// Any queue discipline of the library, chosen by name. One predictable branch a call.
        #[derive(Clone)]
        pub enum AnyQdisc<P: Copy + Default> {
            $(#[doc = $summary] $variant(Box<Fifo<$policy, P>>),)*
        }

        /// All algorithms, in the order of the documentation.
        pub const CATALOG: &[Entry] = &[$(Entry {
            name: $name,
            summary: $summary,
            source: $source,
            parameters: <<$policy as Policy>::Config as Params>::table,
            signals: &[$(($signal, $meaning)),*],
        }),*];

        impl<P: Copy + Default> AnyQdisc<P> {
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
                        let config = configure::<<$policy as Policy>::Config>(settings)?;
                        let queue = Fifo::new(&config, env, rng).map_err(BuildError::Config)?;
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
                    type Config = <$policy as Policy>::Config;
                    let config = configure::<Config>(settings)?;
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
        }
    };
}

any_qdisc! {
    DropTail = "droptail", drop_tail::DropTail,
        "Drops the arriving packet when the buffer is full.", "004 §1", [];
    RandomDrop = "random-drop", random_drop::RandomDrop,
        "Drops a random packet, queued or arriving, when the buffer is full.", "004 §1", [];
    DropFront = "drop-front", drop_front::DropFront,
        "Drops the packet at the head when the buffer is full.", "004 §1", [];
    Blue = "blue", blue::Blue,
        "Signals with a probability that losses raise and idle times lower.", "000 Fig. 3",
        ["p_m": "marking probability"];
    Red = "red", red::Red,
        "Signals with a probability that grows with the average queue length.", "FJ93; 000 §III.B",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th"];
    AredFeng = "ared-feng", ared_feng::AredFeng,
        "RED whose max_p moves by a factor when the average crosses a threshold.", "Feng 1999",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th"];
    Ared = "ared", ared::Ared,
        "RED whose max_p keeps the average at the middle of its thresholds.", "FGS01",
        ["avg": "average queue length, in the measure of mode", "p_b": "probability by the average",
         "p_a": "probability with spacing, next packet", "max_p": "p_b at max_th"];
    Bernoulli = "bernoulli", bernoulli::Bernoulli,
        "Signals every packet with one fixed probability: a lossy link.", "003 §5.2", [];
}
