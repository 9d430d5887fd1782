//! Choice by name: the one list of all algorithms.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::about::{About, Preset};
use crate::context::{Backlog, Cx, Env, State};
use crate::docsis::Docsis;
use crate::dual::{Dual, curvy_red, dualpi2};
use crate::fair::cake::{self, Cakes};
use crate::fair::fq::{self, Fq};
use crate::fair::htb::Htb;
use crate::fair::wifi::Wifi;
use crate::fair::{Fair, drr, flow_queue, sfq};
use crate::fifo::Fifo;
use crate::filter::gate::Gate;
use crate::filter::policer::{self, Policer};
use crate::filter::red_pd::{self, RedPd};
use crate::filter::{Filter, Prefilter};
use crate::own::{Advice, Own};
use crate::packet::{Carried, Meta};
use crate::param::{ConfigError, Param, ParamError, Params, idle};
use crate::policy::*;
use crate::qdisc::{Aggregate, Counters, Discipline, Outlet, Qdisc};
use crate::rng::Rng;
use crate::shaper::{self, Shaped, ShaperConfig};
use crate::time::Instant;
use crate::told::{Rates, Told};
use crate::tuned::{Settings, Tunable, Tuned};

/// The setting that chooses a [`Preset`].
pub const PRESET: &str = "preset";

impl About {
    /// What the algorithm, or the filter, `name` tells of itself.
    pub fn of(name: &str) -> Option<&'static Self> {
        CATALOG.iter().chain(FILTERS).chain([&SHAPER]).find(|about| about.name == name)
    }
}

/// The shaper that can stand around any queue, see [`AnyQdisc::shaped`].
pub const SHAPER: About = About { parameters: <ShaperConfig as Params>::table, ..shaper::ABOUT };

/// All parameters of the shaper with `settings` over its defaults, as canonical text.
///
/// # Errors
/// Unknown names and values that cannot be taken; see [`BuildError`].
pub fn canonical_shaper(
    settings: &[(&str, &str)],
) -> Result<Vec<(&'static str, String)>, BuildError> {
    texts::<ShaperConfig>(&[], settings)
}

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

/// Reads `(name, text)` pairs over the defaults, or over one of the `presets` that they name.
pub(crate) fn configure<C: Params + Default>(
    presets: &[Preset],
    settings: &[(&str, &str)],
) -> Result<C, BuildError> {
    let mut config = C::default();
    read(&mut config, &C::default(), &C::table(), presets, settings)?;
    Ok(config)
}

/// Without the configuration's type, so that it is compiled once for all.
fn read(
    config: &mut dyn Params,
    defaults: &dyn Params,
    table: &[Param],
    presets: &[Preset],
    settings: &[(&str, &str)],
) -> Result<(), BuildError> {
    for &(_, wanted) in settings.iter().filter(|(name, _)| *name == PRESET) {
        let Some((_, preset)) = presets.iter().find(|(name, _)| *name == wanted) else {
            let names: Vec<_> = presets.iter().map(|(name, _)| *name).collect();
            let allowed = if names.is_empty() { "none here".into() } else { names.join(" | ") };
            let error = ParamError { allowed, hint: String::new() };
            return Err(BuildError::Parameter(PRESET.into(), error));
        };
        set_all(config, preset)?;
    }
    let own: Vec<_> = settings.iter().filter(|(name, _)| *name != PRESET).copied().collect();
    set_all(config, &own)?;
    // None of the parameters that were set is without effect. Those that a preset set, and others
    // beside it took the effect from, are as if nobody had.
    for param in table {
        let Some(error) = idle(param, config, defaults) else { continue };
        if own.iter().any(|(name, _)| *name == param.name) {
            return Err(BuildError::Parameter(param.name.into(), error));
        }
        set_all(config, &[(param.name, &defaults.get(param.name).unwrap_or_default())])?;
    }
    Ok(())
}

fn set_all(config: &mut dyn Params, settings: &[(&str, &str)]) -> Result<(), BuildError> {
    settings.iter().try_for_each(|&(name, text)| {
        config.set(name, text).map_err(|e| match e {
            None => BuildError::UnknownParameter(name.into()),
            Some(e) => BuildError::Parameter(name.into(), e),
        })
    })
}

/// All parameters as canonical text, after [`configure`].
fn texts<C: Params + Default>(
    presets: &[Preset],
    settings: &[(&str, &str)],
) -> Result<Vec<(&'static str, String)>, BuildError> {
    let config: C = configure(presets, settings)?;
    Ok(C::table().iter().map(|p| (p.name, config.get(p.name).unwrap_or_default())).collect())
}

/// `queue` behind a filter with these `settings`.
fn behind<F: Filter, Q>(
    queue: Q,
    settings: &[(&str, &str)],
    env: &Env,
    rng: &mut Rng,
) -> Result<Box<Prefilter<F, Q>>, BuildError> {
    let config = configure(&[], settings)?;
    Prefilter::before(queue, &config, env, rng).map(Box::new).map_err(BuildError::Config)
}

impl<P: Carried> AnyQdisc<P> {
    /// A queue that an algorithm advises which was brought along, with the room of `env`.
    #[must_use]
    pub fn own(advice: Box<dyn Advice>, env: &Env) -> Self {
        Self::Own(Box::new(Fifo::advised_by(Own(advice), env.limit)))
    }

    /// This queue, which must be empty, behind which a token bucket holds packets back.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn shaped(self, settings: &[(&str, &str)], env: &Env) -> Result<Self, BuildError> {
        let config = configure(&[], settings)?;
        let shaped = Shaped::around(self, &config, env).map_err(BuildError::Config)?;
        Ok(Self::Shaped(Box::new(shaped)))
    }

    /// A tree of classes with such queues.
    #[must_use]
    pub fn tree(tree: Htb<Self>) -> Self {
        Self::Tree(Box::new(tree.with_timers()))
    }

    /// This queue, which was built with `env`, told the rates of its link from now on.
    #[must_use]
    pub fn with_rates(self, env: &Env, rates: Rates) -> Self {
        Self::Told(Box::new(Told::new(self, env, rates)))
    }

    /// This queue of the algorithm `name`, which was built with `env`, with other parameters from given instants on.
    ///
    /// # Errors
    /// The number of a change that is not possible, and why.
    pub fn tuned(
        self,
        name: &str,
        env: &Env,
        changes: Vec<(Instant, Settings)>,
    ) -> Result<Self, (usize, BuildError)> {
        Tuned::new(self, name, env, changes).map(|tuned| Self::Tuned(Box::new(tuned)))
    }

    /// This queue, which must be empty, behind a gate.
    #[must_use]
    pub fn gated(self) -> Self {
        Self::Gated(Box::new(Prefilter::open(self)))
    }

    /// The policer before this queue, if it has one.
    pub fn policer_mut(&mut self) -> Option<&mut Policer> {
        match self {
            Self::Policed(queue) => Some(queue.filter_mut()),
            Self::Told(queue) => queue.behind_mut().policer_mut(),
            Self::Shaped(queue) => queue.behind_mut().policer_mut(),
            _ => None,
        }
    }

    /// Whether a queue behind a gate drops the next packet, as if it had no room.
    pub fn close(&mut self, closed: bool) {
        if let Self::Gated(gated) = self {
            gated.filter_mut().close(closed);
        }
    }

    /// A queue that follows its link's rate takes these from `env.now` on, when that of `env` holds.
    pub fn set_rates(&mut self, env: &Env, rates: Rates) {
        if let Self::Told(told) = self {
            told.follow(env, rates);
        }
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

/// What stands for every type of queue, and in brackets for every filter before one. The first token is a
/// `$`, for the macro within.
macro_rules! any_qdisc {
    ($d:tt $($variant:ident = $about:path, $queue:ident $(<$policy:ty>)?;)*
    [$($behind:ident = $about_filter:path, $filter:ty;)*]) => {
        /// Any queue discipline of the library, chosen by name. One predictable branch a call.
        #[derive(Clone)]
        pub enum AnyQdisc<P: Carried> {
            $(#[doc = concat!("See [`", stringify!($about), "`].")] $variant(Box<$queue<$($policy,)? P>>),)*
            $(#[doc = concat!("Any of these behind a filter: see [`", stringify!($about_filter), "`].")]
            $behind(Box<Prefilter<$filter, Self>>),)*
            /// Any of these, with each new rate of its link.
            Told(Box<Told<Self>>),
            /// Any of these, whose parameters change.
            Tuned(Box<Tuned<Self>>),
            /// Any of these behind a gate that its owner closes.
            Gated(Box<Prefilter<Gate, Self>>),
            /// Any of these behind which a token bucket holds packets back.
            Shaped(Box<Shaped<Self, P>>),
            /// A tree of classes with any of these.
            Tree(Box<Htb<Self>>),
            /// A cable modem with any of these.
            Docsis(Box<Docsis<Self, P>>),
            /// An access point with any of these.
            Wifi(Box<Wifi<Self, P>>),
            /// One that was brought along.
            Own(Box<Fifo<Own, P>>),
        }

        /// What is done with the queue, `act`, whatever its type is.
        macro_rules! each {
            ($d queue:expr, $d q:ident => $d act:expr) => {
                match $d queue {
                    $(AnyQdisc::$variant($d q) => $d act,)*
                    $(AnyQdisc::$behind($d q) => $d act,)*
                    AnyQdisc::Told($d q) => $d act,
                    AnyQdisc::Tuned($d q) => $d act,
                    AnyQdisc::Gated($d q) => $d act,
                    AnyQdisc::Shaped($d q) => $d act,
                    AnyQdisc::Tree($d q) => $d act,
                    AnyQdisc::Docsis($d q) => $d act,
                    AnyQdisc::Wifi($d q) => $d act,
                    AnyQdisc::Own($d q) => $d act,
                }
            };
        }

        /// All algorithms, in the order of the documentation.
        pub const CATALOG: &[About] = &[$(About {
            parameters:
                <<$queue<$($policy,)? ()> as Discipline<()>>::Config as Params>::table,
            ..$about
        }),*];

        /// The filters that can stand before any queue, see [`AnyQdisc::filtered`].
        pub const FILTERS: &[About] = &[$(About {
            parameters: <<$filter as Filter>::Config as Params>::table,
            ..$about_filter
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
                $(if name == $about.name {
                    type Queue<P> = $queue<$($policy,)? P>;
                    let config = configure($about.presets, settings)?;
                    let queue = Queue::new(&config, env, rng).map_err(BuildError::Config)?;
                    return Ok(Self::$variant(Box::new(queue)));
                })*
                Err(BuildError::UnknownAqm)
            }

            /// The queue in this one whose parameters change ([`AnyQdisc::tuned`]).
            pub fn tuned_mut(&mut self) -> Option<&mut Tuned<Self>> {
                match self {
                    Self::Tuned(queue) => Some(queue),
                    $(Self::$behind(queue) => queue.behind_mut().tuned_mut(),)*
                    Self::Told(queue) => queue.behind_mut().tuned_mut(),
                    Self::Gated(queue) => queue.behind_mut().tuned_mut(),
                    Self::Shaped(queue) => queue.behind_mut().tuned_mut(),
                    _ => None,
                }
            }

            /// The tree of classes in this one, for other rates.
            pub fn tree_mut(&mut self) -> Option<&mut Htb<Self>> {
                match self {
                    Self::Tree(tree) => Some(tree),
                    $(Self::$behind(queue) => queue.behind_mut().tree_mut(),)*
                    Self::Told(queue) => queue.behind_mut().tree_mut(),
                    Self::Gated(queue) => queue.behind_mut().tree_mut(),
                    Self::Shaped(queue) => queue.behind_mut().tree_mut(),
                    _ => None,
                }
            }

            /// The tree of classes in this one ([`AnyQdisc::tree`]).
            pub fn as_tree(&self) -> Option<&Htb<Self>> {
                match self {
                    Self::Tree(tree) => Some(tree),
                    $(Self::$behind(queue) => queue.behind().as_tree(),)*
                    Self::Told(queue) => queue.behind().as_tree(),
                    Self::Gated(queue) => queue.behind().as_tree(),
                    Self::Shaped(queue) => queue.behind().as_tree(),
                    Self::Wifi(wifi) => wifi.shared()?.as_tree(),
                    _ => None,
                }
            }

            /// This one as an access point, if it is one.
            pub fn as_wifi(&self) -> Option<&Wifi<Self, P>> {
                if let Self::Wifi(wifi) = self { Some(wifi) } else { None }
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
                $(if name == $about_filter.name {
                    return behind(self, settings, env, rng).map(Self::$behind);
                })*
                Err(BuildError::UnknownAqm)
            }
        }

        impl<P: Carried> Tunable for AnyQdisc<P> {
            type Error = BuildError;

            fn retune(
                &mut self,
                name: &str,
                settings: &[(&str, &str)],
                env: &Env,
            ) -> Result<(), BuildError> {
                match self {
                    $(Self::$variant(queue) if name == $about.name => {
                        let config = configure($about.presets, settings)?;
                        queue.retune(&config, env).map_err(BuildError::Config)
                    })*
                    $(Self::$behind(queue) => queue.behind_mut().retune(name, settings, env),)*
                    Self::Told(queue) => queue.behind_mut().retune(name, settings, env),
                    Self::Shaped(queue) => queue.behind_mut().retune(name, settings, env),
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
            $(if name == $about.name {
                type Config = <$queue<$($policy,)? ()> as Discipline<()>>::Config;
                return texts::<Config>($about.presets, settings);
            })*
            Err(BuildError::UnknownAqm)
        }

        /// Whether the algorithm `name` with `settings`, which has been built at another rate, could be built at
        /// that of `env`, too; see [`Discipline::fits`].
        ///
        /// # Errors
        /// See [`BuildError`].
        pub fn fits(name: &str, settings: &[(&str, &str)], env: &Env) -> Result<(), BuildError> {
            $(if name == $about.name {
                type Queue<P> = $queue<$($policy,)? P>;
                let config = configure($about.presets, settings)?;
                return Queue::<()>::fits(&config, env).map_err(BuildError::Config);
            })*
            Err(BuildError::UnknownAqm)
        }

        /// All parameters of the filter `name` with `settings` over its defaults, as canonical
        /// text.
        ///
        /// # Errors
        /// Unknown names and values that cannot be taken; see [`BuildError`].
        pub fn canonical_filter(
            name: &str,
            settings: &[(&str, &str)],
        ) -> Result<Vec<(&'static str, String)>, BuildError> {
            $(if name == $about_filter.name {
                type Config = <$filter as Filter>::Config;
                return texts::<Config>(&[], settings);
            })*
            Err(BuildError::UnknownAqm)
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

            fn ready_at(&self) -> Option<Instant> {
                each!(self, q => q.ready_at())
            }

            fn aggregate(&self) -> Option<Aggregate> {
                each!(self, q => q.aggregate())
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
    DropTail = drop_tail::ABOUT, Fifo<drop_tail::DropTail>;
    RandomDrop = random_drop::ABOUT, Fifo<random_drop::RandomDrop>;
    DropFront = drop_front::ABOUT, Fifo<drop_front::DropFront>;
    Blue = blue::ABOUT, Fifo<blue::Blue>;
    Red = red::ABOUT, Fifo<red::Red>;
    AredFeng = ared_feng::ABOUT, Fifo<ared_feng::AredFeng>;
    Ared = ared::ABOUT, Fifo<ared::Ared>;
    Wred = wred::ABOUT, Fifo<wred::Wred>;
    Choke = choke::CHOKE, Fifo<choke::Choke<choke::ChokeConfig>>;
    MChoke = choke::M_CHOKE, Fifo<choke::Choke<choke::MChokeConfig>>;
    AChoke = choke::A_CHOKE, Fifo<choke::Choke<choke::AChokeConfig>>;
    Codel = codel::ABOUT, Fifo<codel::Codel>;
    Pie = pie::ABOUT, Fifo<pie::Pie>;
    DocsisPie = docsis_pie::ABOUT, Fifo<docsis_pie::DocsisPie>;
    Pi2 = pi2::ABOUT, Fifo<pi2::Pi2>;
    Cobalt = cobalt::ABOUT, Fifo<cobalt::Cobalt>;
    DualPi2 = dualpi2::ABOUT, Dual<dualpi2::DualPi2>;
    CurvyRed = curvy_red::ABOUT, Dual<curvy_red::CurvyRed>;
    Fred = fred::ABOUT, Fifo<fred::Fred>;
    Sfb = sfb::ABOUT, Fifo<sfb::Sfb>;
    Sfred = sfred::ABOUT, Fifo<sfred::Sfred>;
    Sred = sred::ABOUT, Fifo<sred::Sred>;
    RedPenaltyBox = red_penalty_box::ABOUT, Fifo<red_penalty_box::RedPenaltyBox>;
    Sfq = sfq::ABOUT, Fair<sfq::Sfq>;
    Drr = drr::ABOUT, Fair<drr::Drr>;
    Fq = fq::ABOUT, Fq;
    FqCodel = flow_queue::FQ_CODEL, Fair<flow_queue::FlowQueue<codel::Codel>>;
    FqPie = flow_queue::FQ_PIE, Fair<flow_queue::FlowQueue<pie::Pie>>;
    Cake = cake::ABOUT, Cakes;
    RedPd = red_pd::ABOUT, RedPdQueue;
    Csfq = csfq::ABOUT, Fifo<csfq::Csfq>;
    Rem = rem::ABOUT, Fifo<rem::Rem>;
    Pi = pi::ABOUT, Fifo<pi::Pi>;
    Avq = avq::ABOUT, Fifo<avq::Avq>;
    Gsp = gsp::ABOUT, Fifo<gsp::Gsp>;
    Bernoulli = bernoulli::ABOUT, Fifo<bernoulli::Bernoulli>;
    [
        Filtered = red_pd::ABOUT, RedPd;
        Policed = policer::ABOUT, Policer;
    ]
}
