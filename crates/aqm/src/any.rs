//! Choice by name: the one list of all algorithms.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::context::{Backlog, Cx, Env, State};
use crate::dual::{Dual, curvy_red, dualpi2};
use crate::fair::{Fair, cake::Cake, drr, flow_queue::FlowQueue, sfq};
use crate::fifo::Fifo;
use crate::filter::Prefilter;
use crate::filter::red_pd::{RedPd, RedPdConfig};
use crate::own::{Advice, Own};
use crate::packet::{Carried, Meta};
use crate::param::{ConfigError, Param, ParamError, Params, idle};
use crate::policy::{
    ared, ared_feng, avq, bernoulli, blue, choke, cobalt, codel, csfq, docsis_pie, drop_front,
    drop_tail, fred, gsp, pi, pi2, pie, random_drop, red, red_penalty_box, rem, sfb, sfred, sred,
    wred,
};
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc};
use crate::rng::Rng;
use crate::time::Instant;
use crate::told::{Rates, Told};

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
    pub parameters: Table,
    /// The signals that it reports while it runs.
    pub signals: &'static [Signal],
    /// Named sets of parameters: the name, and pairs of parameter and text.
    pub presets: &'static [Preset],
}

/// A number that an algorithm reports while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// The unit, or the range of a probability or share; empty for a number.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// Gives the table of an algorithm's parameters.
pub type Table = fn() -> Vec<Param>;

/// A named set of parameters, chosen by the setting `preset`; settings beside it go before it.
pub type Preset = (&'static str, Settings);

/// Pairs of parameter and text.
type Settings = &'static [(&'static str, &'static str)];

/// The setting that chooses a [`Preset`].
pub const PRESET: &str = "preset";

/// The filters that can stand before any queue, see [`AnyQdisc::filtered`]: name and parameters.
pub const FILTERS: &[(&str, Table)] = &[("red-pd", RedPdConfig::table)];

/// The algorithms to which the codepoint of a packet's [`Label`](crate::Label) means something, and
/// those to which its hosts do.
pub const LABELS: [&[&str]; 2] = [&["cake", "wred"], &["cake"]];

/// Why a queue cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// No algorithm, or no filter, has this name.
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
    for &(_, wanted) in settings.iter().filter(|(name, _)| *name == PRESET) {
        let presets = CATALOG.iter().find(|e| e.name == aqm).map_or(&[][..], |e| e.presets);
        let Some((_, preset)) = presets.iter().find(|(name, _)| *name == wanted) else {
            let names: Vec<_> = presets.iter().map(|(name, _)| *name).collect();
            let allowed = if names.is_empty() { "none here".into() } else { names.join(" | ") };
            let error = ParamError { allowed, hint: String::new() };
            return Err(BuildError::Parameter(PRESET.into(), error));
        };
        set_all(&mut config, preset)?;
    }
    let own: Vec<_> = settings.iter().filter(|(name, _)| *name != PRESET).copied().collect();
    set_all(&mut config, &own)?;
    without_idle(config, &own)
}

/// The configuration, if none of the parameters that were set is without effect. Those that a preset
/// set, and others beside it took the effect from, are as if nobody had.
fn without_idle<C: Params>(mut config: C, set: &[(&str, &str)]) -> Result<C, BuildError> {
    let defaults = C::default();
    for param in C::table() {
        let Some(error) = idle(&param, &config) else { continue };
        if set.iter().any(|(name, _)| *name == param.name) {
            return Err(BuildError::Parameter(param.name.into(), error));
        }
        set_all(&mut config, &[(param.name, &defaults.get(param.name).unwrap_or_default())])?;
    }
    Ok(config)
}

fn set_all<C: Params>(config: &mut C, settings: &[(&str, &str)]) -> Result<(), BuildError> {
    settings.iter().try_for_each(|&(name, text)| {
        config.set(name, text).map_err(|e| match e {
            None => BuildError::UnknownParameter(name.into()),
            Some(e) => BuildError::Parameter(name.into(), e),
        })
    })
}

/// All parameters as canonical text.
fn texts<C: Params>(config: &C) -> Vec<(&'static str, String)> {
    let table = C::table();
    table.iter().map(|p| (p.name, config.get(p.name).unwrap_or_default())).collect()
}

/// RED-PD's parameters, as a filter's.
fn configure_filter(name: &str, settings: &[(&str, &str)]) -> Result<RedPdConfig, BuildError> {
    if !FILTERS.iter().any(|(known, _)| *known == name) {
        return Err(BuildError::UnknownAqm);
    }
    let mut config = RedPdConfig::default();
    set_all(&mut config, settings)?;
    without_idle(config, settings)
}

/// All parameters of the filter `name` with `settings` over its defaults, as canonical text.
///
/// # Errors
/// Unknown names and values that cannot be taken; see [`BuildError`].
pub fn canonical_filter(
    name: &str,
    settings: &[(&str, &str)],
) -> Result<Vec<(&'static str, String)>, BuildError> {
    configure_filter(name, settings).map(|config| texts(&config))
}

impl<P: Carried> AnyQdisc<P> {
    /// A queue that an algorithm advises which was brought along, with the room of `env`.
    #[must_use]
    pub fn own(advice: Box<dyn Advice>, env: &Env) -> Self {
        Self::Own(Box::new(Fifo::advised_by(Own(advice), env.limit)))
    }

    /// This queue, which was built with `env`, told the rates of its link from now on.
    #[must_use]
    pub fn with_rates(self, env: &Env, rates: Rates) -> Self {
        Self::Told(Box::new(Told::new(self, env, rates)))
    }

    /// A queue that is told rates is told these from `env.now` on, where that of `env` holds.
    pub fn set_rates(&mut self, env: &Env, rates: Rates) {
        if let Self::Told(told) = self {
            told.follow(env, rates);
        }
    }

    /// This queue, which must be empty, behind the filter `name`.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn filtered(
        self,
        name: &str,
        settings: &[(&str, &str)],
        env: &Env,
        rng: &mut Rng,
    ) -> Result<Self, BuildError> {
        let config = configure_filter(name, settings)?;
        let filtered = Prefilter::before(self, &config, env, rng).map_err(BuildError::Config)?;
        Ok(Self::Filtered(Box::new(filtered)))
    }
}

/// RED-PD as in its paper: before a RED.
type RedPdQueue<P> = Prefilter<RedPd, Fifo<red::Red, P>>;

/// Work on a queue of any type. The choice among the types is made once for all of it, where
/// [`AnyQdisc`]'s own methods choose at each call.
pub trait Visitor<P: Copy> {
    /// Does the work.
    fn visit(self, queue: &mut impl Qdisc<P>);
}

/// The settings of a preset: listed, or the name of a list that several have.
macro_rules! settings {
    ([$($key:ident = $value:literal),*]) => { &[$((stringify!($key), $value)),*] };
    ($shared:ident) => { $shared };
}

/// What stands for every type of queue. The first token is a `$`, for the macro within.
macro_rules! any_qdisc {
    ($d:tt $($variant:ident = $name:literal, $queue:ident $(<$policy:ty>)?, $summary:literal,
       $source:literal, [$($signal:literal [$unit:literal]: $meaning:literal),*]
       $(, $preset:literal: $settings:tt)*;)*) => {
        /// Any queue discipline of the library, chosen by name. One predictable branch a call.
        #[derive(Clone)]
        pub enum AnyQdisc<P: Carried> {
            $(#[doc = $summary] $variant(Box<$queue<$($policy,)? P>>),)*
            /// Any of these behind a filter.
            Filtered(Box<Prefilter<RedPd, Self>>),
            /// Any of these that is told the rates of its link.
            Told(Box<Told<Self>>),
            /// One that was brought along.
            Own(Box<Fifo<Own, P>>),
        }

        /// What is done with the queue, `act`, whatever its type is.
        macro_rules! each {
            ($d queue:expr, $d q:ident => $d act:expr) => {
                match $d queue {
                    $(AnyQdisc::$variant($d q) => $d act,)*
                    AnyQdisc::Filtered($d q) => $d act,
                    AnyQdisc::Told($d q) => $d act,
                    AnyQdisc::Own($d q) => $d act,
                }
            };
        }

        /// All algorithms, in the order of the documentation.
        pub const CATALOG: &[Entry] = &[$(Entry {
            name: $name,
            summary: $summary,
            source: $source,
            parameters:
                <<$queue<$($policy,)? ()> as Discipline<()>>::Config as Params>::table,
            signals: &[$(Signal { name: $signal, unit: $unit, doc: $meaning }),*],
            presets: &[$(($preset, settings!($settings))),*],
        }),*];

        impl<P: Carried> AnyQdisc<P> {
            /// Shows the queue as what it is.
            #[inline]
            pub fn visit(&mut self, visitor: impl Visitor<P>) {
                each!(self, q => visitor.visit(&mut **q))
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
                    configure::<Config>(name, settings).map(|config| texts(&config))
                })*
                _ => Err(BuildError::UnknownAqm),
            }
        }

        impl<P: Carried> Qdisc<P> for AnyQdisc<P> {
            #[inline]
            fn enqueue(
                &mut self,
                meta: Meta,
                packet: P,
                cx: &mut Cx<'_>,
                out: &mut impl Outlet<P>,
            ) {
                each!(self, q => q.enqueue(meta, packet, cx, out))
            }

            #[inline]
            fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
                each!(self, q => q.dequeue(cx, out))
            }

            fn backlog(&self) -> Backlog {
                each!(self, q => q.backlog())
            }

            fn counters(&self) -> &Counters {
                each!(self, q => q.counters())
            }

            fn congested(&self, now: Instant) -> bool {
                each!(self, q => q.congested(now))
            }

            fn poll_at(&self) -> Option<Instant> {
                each!(self, q => q.poll_at())
            }

            fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
                each!(self, q => q.on_timer(cx, out))
            }

            fn rate_changed(&mut self, env: &Env) {
                each!(self, q => q.rate_changed(env))
            }

            fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
                each!(self, q => q.observe(now, sink))
            }

            fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
                each!(self, q => q.observe_flow(packet, now, sink))
            }

            fn state(&self) -> State {
                each!(self, q => q.state())
            }
        }
    };
}

any_qdisc! { $
    DropTail = "droptail", Fifo<drop_tail::DropTail>,
        "Drops the arriving packet when the buffer is full.", "BLUE report §1", [];
    RandomDrop = "random-drop", Fifo<random_drop::RandomDrop>,
        "Drops a random packet, queued or arriving, when the buffer is full.", "BLUE report §1", [];
    DropFront = "drop-front", Fifo<drop_front::DropFront>,
        "Drops the packet at the head when the buffer is full.", "BLUE report §1", [];
    Blue = "blue", Fifo<blue::Blue>,
        "Signals with a probability that losses raise and idle times lower.", "Feng02 Fig. 3",
        ["p_m" ["0 … 1"]: "marking probability"];
    Red = "red", Fifo<red::Red>,
        "Signals with a probability that grows with the average queue length.", "FJ93; Feng02 §III.B",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th"],
        "feng": [min_th = "20%", max_th = "80%", max_p = "1", gentle = "false"],
        "linux": [mode = "bytes", lengths = "average", min_th = "10%", max_th = "30%", gentle = "false",
            w_q = "0.0625", spacing = "ahead"];
    AredFeng = "ared-feng", Fifo<ared_feng::AredFeng>,
        "RED whose max_p moves by a factor when the average crosses a threshold.", "Feng99",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th"];
    Ared = "ared", Fifo<ared::Ared>,
        "RED whose max_p keeps the average at the middle of its thresholds.", "FGS01",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th"];
    Wred = "wred", Fifo<wred::Wred>,
        "RED with thresholds for each class of traffic, by the codepoint of its packets.",
        "Cisco WRED; RFC 2597",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode",
         "p_low" ["0 … 1"]: "p_b of the lowest class", "p_high" ["0 … 1"]: "p_b of the highest"];
    Choke = "choke", Fifo<choke::Choke<red::RedConfig>>,
        "RED that draws a queued packet at each arrival, and drops both if they are of one flow.",
        "PPP00; HRC §2",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th",
         "candidates" ["packets"]: "queued packets that the next one is compared with"],
        "cmu": [min_th = "50p", max_th = "100p", gentle = "false", ecn = "false"],
        "linux": [min_th = "15p", max_th = "45p", gentle = "false", w_q = "0.0625",
                  spacing = "ahead"];
    MChoke = "m-choke", Fifo<choke::Choke<choke::MChokeConfig>>,
        "CHOKe that draws several queued packets.", "PPP00 §2; HRC §2",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th",
         "candidates" ["packets"]: "queued packets that the next one is compared with"],
        "cmu": [min_th = "50p", max_th = "100p", gentle = "false", ecn = "false"];
    AChoke = "a-choke", Fifo<choke::Choke<choke::AChokeConfig>>,
        "CHOKe that draws more packets, the longer the average queue.", "PPP00 §2; HRC §2",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th",
         "candidates" ["packets"]: "queued packets that the next one is compared with"],
        "cmu": [min_th = "50p", max_th = "100p", gentle = "false", ecn = "false"];
    Codel = "codel", Fifo<codel::Codel>,
        "Signals at departure, ever faster while every packet has waited too long.", "RFC 8289",
        ["sojourn" ["s"]: "delay of the last packet at the head",
         "count" [""]: "signals in the present or last dropping state",
         "dropping" [""]: "1 in the dropping state, else 0"],
        "linux": [mtu = "1514"];
    Pie = "pie", Fifo<pie::Pie>,
        "Signals with a probability that a controller moves by delay and its growth.", "RFC 8033",
        ["p_d" ["0 … 1"]: "drop probability", "delay" ["s"]: "queueing delay at the last update",
         "burst" ["s"]: "burst allowance left"],
        "linux": [delay = "last-departure", burst_runs = "departures", derandomise = "true",
                  spared_by = "last-departure", steep_above = "250ms", p_max = "256", decay = "0.984375"];
    DocsisPie = "docsis-pie", Fifo<docsis_pie::DocsisPie>,
        "PIE as cable modems have it: by bytes, with protection of a burst after the first drop.",
        "RFC 8034",
        ["drop_prob" ["0 … 13.6"]: "drop probability of a packet of 1024 bytes",
         "delay" ["s"]: "queueing delay at the last update",
         "burst" ["s"]: "protection of a burst left",
         "active" [""]: "0 inactive, 0.5 quiescent, 1 active"];
    Pi2 = "pi2", Fifo<pi2::Pi2>,
        "Signals classic packets with the square of a controller's output, scalable ones with its double.",
        "DBTB16; RFC 9332",
        ["p" ["0 … 1"]: "base probability, the controller's output", "p_c" ["0 … 1"]: "probability of a classic signal",
         "p_cl" ["0 … 1"]: "probability of a scalable mark by coupling",
         "delay" ["s"]: "queueing delay at the last update"],
        "linux": [t_update = "16ms", alpha = "0.16", beta = "3.2", signals = "random"];
    Cobalt = "cobalt", Fifo<cobalt::Cobalt>,
        "CoDel for flows that respond, and a BLUE beside it for those that do not.", "HTM18",
        ["sojourn" ["s"]: "delay of the packet that left last",
         "count" [""]: "signals that the present frequency stands for",
         "dropping" [""]: "1 in the dropping state, else 0", "p_drop" ["0 … 1"]: "drop probability of BLUE"];
    DualPi2 = "dualpi2", Dual<dualpi2::DualPi2>,
        "PI2 with a queue of little delay for scalable traffic beside the classic one.",
        "RFC 9332 appendix A",
        ["p" ["0 … 1"]: "base probability, the controller's output", "p_c" ["0 … 1"]: "probability of a classic signal",
         "p_cl" ["0 … 1"]: "probability of a mark in L by coupling",
         "delay" ["s"]: "longer delay of the two heads at the last update",
         "l_queue" ["packets"]: "length of the L queue", "c_queue" ["packets"]: "length of the C queue"],
        "linux": [t_update = "16ms", alpha = "0.160071067511", beta = "3.197783371434",
                  signals = "random-twice", spare = "3028", min_th = "1ms", range = "0s", th_len = "0",
                  scheduler = "wrr-kept", classic_share = "0.1"];
    CurvyRed = "curvy-red", Dual<curvy_red::CurvyRed>,
        "Signals on a curve over the smoothed delay of a classic queue, with one of little delay beside it.",
        "RFC 9332 appendix B",
        ["q_c" ["s"]: "smoothed delay of the C queue", "p_c" ["0 … 1"]: "probability of a classic signal",
         "p_cl" ["0 … 1"]: "probability of a mark in L by coupling",
         "l_queue" ["packets"]: "length of the L queue", "c_queue" ["packets"]: "length of the C queue"];
    Fred = "fred", Fifo<fred::Fred>,
        "RED that counts the packets of each flow in the queue, and is fair to those with few.",
        "LM97; HRC §2",
        ["avg" ["packets"]: "average queue length", "avgcq" ["packets"]: "average queue of a flow that is present",
         "maxq" ["packets"]: "most packets that a flow may have queued", "flows" [""]: "flows with packets queued"],
        "cmu": [min_q = "2", min_th = "50p", max_th = "100p", ecn = "false"];
    Sfb = "sfb", Fifo<sfb::Sfb>,
        "Accounts for flows in a few bins; a BLUE in each limits flows that ignore signals.",
        "Feng02 §IV",
        ["p_mean" ["0 … 1"]: "mean marking probability of the bins", "p_max" ["0 … 1"]: "largest of them",
         "saturated" ["0 … 1"]: "share of bins whose probability is 1",
         "hash_age_s" ["s"]: "time since the hash changed"],
        "feng": [bin_size = "13p", penalty_rate = "160kbit"],
        "feng-boxtime": [bin_size = "13p", penalty = "boxtime", boxtime = "50ms"],
        "cmu": [bin_limit = "150p", freeze_time = "1ms", hash = "double-buffered", hash_interval = "5s",
                penalty = "boxtime", boxtime = "50ms"],
        "linux": [levels = "8", bins = "16", bin_size = "19p", bin_limit = "24p", overflow = "all",
                  increment = "0.0005", decrement = "0.00005", mark_up_to = "0.5",
                  hash = "double-buffered", hash_interval = "600s", warm_up = "60s", warm_up_by = "length",
                  penalty_rate = "80kbit", penalty_burst = "19p"];
    Sfred = "sfred", Fifo<sfred::Sfred>,
        "Accounts for flows in a few bins, with adaptive RED in each.", "Feng02 §IV.A",
        ["p_mean" ["0 … 1"]: "mean signalling probability of the bins", "p_max" ["0 … 1"]: "largest of them",
         "saturated" ["0 … 1"]: "share of bins with max_p = 1 and an average above max_th",
         "hash_age_s" ["s"]: "time since the hash changed"],
        "feng": [bin_size = "13p", penalty_rate = "160kbit"];
    Sred = "sred", Fifo<sred::Sred>,
        "Signals by the queue and by an estimate of the number of flows.", "OLW99; Feng02 §V.B",
        ["hits" ["0 … 1"]: "frequency of hits among the zombies; 1/hits estimates the number of flows",
         "p_zap" ["0 … 1"]: "signalling probability of a packet that does not hit"];
    RedPenaltyBox = "red-penalty-box", Fifo<red_penalty_box::RedPenaltyBox>,
        "RED that limits flows which send more than TCP would, found in a log of its signals.",
        "FF97; Feng02 §V.A",
        ["avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th",
         "boxed" [""]: "flows in the box", "friendly" ["bit/s"]: "TCP-friendly rate at the last test"];
    Sfq = "sfq", Fair<sfq::Sfq>,
        "Sorts flows into queues by a hash and sends a packet of each in turn.",
        "McK90; Feng02 §IV.B",
        ["queues" [""]: "queues with packets", "longest" ["bytes"]: "length of the longest queue"],
        "feng": [queues = "46", queue_limit = "9kB", aqm = "red", mode = "bytes", min_th = "2kB",
                 max_th = "8kB"],
        "linux": [queues = "1024", quantum = "1514", queue_limit = "127p"];
    Drr = "drr", Fair<drr::Drr>,
        "Gives each flow a queue and sends a quantum of each in turn.", "SV95; Mahajan01 §2",
        ["queues" [""]: "queues with packets", "longest" ["bytes"]: "length of the longest queue"];
    FqCodel = "fq-codel", Fair<FlowQueue<codel::Codel>>,
        "Sorts flows into queues with a CoDel each and sends of each in turn, new ones first.",
        "RFC 8290",
        ["queues" [""]: "queues with packets", "longest" ["bytes"]: "length of the longest queue"],
        "linux": [mtu = "1514", backlog = "all", emptied = "old-if-any", drop_half = "bytes",
                  overflow_counts = "true"];
    FqPie = "fq-pie", Fair<FlowQueue<pie::Pie>>,
        "Sorts flows into queues with a PIE each and sends of each in turn, new ones first.",
        "RFC 8290; RFC 8033",
        ["queues" [""]: "queues with packets", "longest" ["bytes"]: "length of the longest queue"],
        "linux": [delay = "last-departure", burst_runs = "departures", derandomise = "true",
                  spared_by = "last-departure", steep_above = "250ms", p_max = "256", decay = "0.984375",
                  emptied = "old-if-any", overflow = "arriving"];
    Cake = "cake", Cake,
        "Sorts packets by class, host and flow into queues with a COBALT each, and shares the link among them.",
        "HTM18; tc-cake(8)",
        ["sparse" [""]: "flows that came lately", "bulk" [""]: "flows that take turns",
         "decaying" [""]: "flows without packets whose COBALT is not at rest",
         "filtered" [""]: "acknowledgements that the filter has dropped"],
        "internet": [rtt = "100ms"], "regional": [rtt = "30ms"], "metro": [rtt = "10ms"],
        "lan": [rtt = "1ms"], "oceanic": [rtt = "300ms"], "satellite": [rtt = "1s"];
    RedPd = "red-pd", RedPdQueue,
        "RED behind a filter that drops packets of the flows that RED dropped most often.",
        "Mahajan01",
        ["identified" [""]: "flows with drops in enough lists when the last one ended",
         "monitored" [""]: "flows with a probability in the filter",
         "unresponsive" [""]: "of these, found not to respond",
         "found_last" [""]: "number of the flow that was found so last, -1 for none",
         "p_ambient" ["0 … 1"]: "smoothed drop rate of the queue behind the filter",
         "target_rtt" ["s"]: "R", "target_rate" ["packets/s"]: "f(R, p)",
         "list_interval" ["s"]: "length of the next list",
         "avg" ["packets or bytes"]: "average queue length, in the measure of mode", "p_b" ["0 … 1"]: "probability by the average",
         "p_a" ["0 … 1"]: "probability with spacing, next packet", "max_p" ["0 … 1"]: "p_b at max_th"],
        "authors": [interval_bounds = "true", filter_spacing = "uniform-exact",
            increment_rate = "least", increment_cap = "probability", last_list = "true",
            least_pause = "400ms", least_backlog = "2", unresponsive_rule = "pairs", unresponsive_always = "true",
            ns2_rules = "true", min_th = "20%", max_th = "66%", max_p = "0.1", gentle = "true"];
    Csfq = "csfq", Fifo<csfq::Csfq>,
        "Drops of each flow what it sends above the fair rate.", "SSZ98; Mahajan01 §2",
        ["fair_rate" ["bit/s"]: "fair rate of a flow", "arrival_rate" ["bit/s"]: "arriving traffic",
         "accepted_rate" ["bit/s"]: "traffic not dropped by probability"];
    Rem = "rem", Fifo<rem::Rem>,
        "Signals with the exponential of a price that asks for the link's rate and a short queue.",
        "ALLY01", ["price" [""]: "price of the link", "p_m" ["0 … 1"]: "marking probability"];
    Pi = "pi", Fifo<pi::Pi>,
        "Signals with a probability that a PI controller sets to hold the queue at a reference.",
        "HMTG01", ["p_m" ["0 … 1"]: "marking probability"],
        "hollot": [q_ref = "200p", a = "0.00001822", b = "0.00001816"];
    Avq = "avq", Fifo<avq::Avq>,
        "Signals what would overflow a virtual queue, whose rate follows the arrivals.", "KS01",
        ["virtual_rate" ["bit/s"]: "rate of the virtual link",
         "virtual_queue" ["bytes"]: "length of the virtual queue"];
    Gsp = "gsp", Fifo<gsp::Gsp>,
        "Signals one packet when the queue passes a threshold, then none until that had its effect.",
        "LF15", ["interval" ["s"]: "wait after a signal that comes now",
         "excess" ["s"]: "by how much the weighted time above the threshold was longer"];
    Bernoulli = "bernoulli", Fifo<bernoulli::Bernoulli>,
        "Signals every packet with one fixed probability: a lossy link.", "Mahajan01 §5.2", [];
}
