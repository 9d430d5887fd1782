//! Algorithms that set the rates of shapers by what they measure of the line, step by step.
//!
//! At each step an algorithm sees the echoes that came back since the last one and what its shapers sent. The
//! rates that it then decides hold at once: the link sends at the new rate, and its queue knows it.

use std::sync::{Arc, OnceLock};

use aqm::{Env, Instant, Qdisc as _, Rate, Rng};
use link::Steps;
use link::varying::bits;
use scenario::Scenario;
use scenario::autorate::{AutorateSpec, ShaperSpec, within};
use scenario::error::Complaint;
use scenario::network::Topology;
use scenario::own::Class;

use crate::results::registry;
use crate::results::table::Table;
use crate::setup;
use crate::simulation::Simulation;
pub use crate::transport::cbr::Echo;

/// What an algorithm sees of the way of a shaper.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The shaper's rate since the last step, bit/s.
    pub rate: u64,
    /// Bytes that it sent since then, and that came to it.
    pub sent: u64,
    /// Bytes that came to it since then.
    pub arrived: u64,
    /// Bytes that wait in it.
    pub backlog: u64,
}

/// What an algorithm sees at a step.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The time, ns.
    pub now: u64,
    /// Echoes since the last step, in the order of their coming back.
    pub echoes: Vec<Echo>,
    /// Whether the echoes begin with the way up.
    pub up_first: bool,
    /// When those were sent that are known to be lost since then, ns.
    pub lost: Vec<u64>,
    /// When the oldest was sent that is still under way, ns.
    pub oldest: Option<u64>,
    /// Down and up, where there are shapers.
    pub ways: [Option<Way>; 2],
}

/// The bounds of a shaper's rate, bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The first rate.
    pub base: u64,
    /// The lowest.
    pub least: u64,
    /// The highest.
    pub most: u64,
}

/// What an algorithm knows before the run.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Time between two steps, ns.
    pub period: u64,
    /// Down and up, where there are shapers.
    pub ways: [Option<Bounds>; 2],
}

/// An algorithm in a run.
pub trait Algorithm: Send {
    /// A step: the rates from now on, down and up, bit/s; nothing leaves the rate as it is. They are held
    /// within the bounds.
    fn step(&mut self, seen: &Seen) -> [Option<u64>; 2];
}

/// Runs classes of another language.
pub trait Provider: Sync {
    /// An algorithm of a class, at rest, which draws from `rng` alone.
    ///
    /// # Errors
    /// The class cannot be used.
    fn algorithm(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        start: &Start,
        rng: Rng,
    ) -> Result<Box<dyn Algorithm>, Complaint>;
}

static PROVIDER: OnceLock<&'static dyn Provider> = OnceLock::new();

/// From now on classes are run by this; only the first call has an effect.
pub fn provide(provider: &'static dyn Provider) {
    let _ = PROVIDER.set(provider);
}

/// An algorithm with its shapers, in a run.
pub(crate) struct Autorate {
    number: usize,
    period: u64,
    /// When its next step is due, ns.
    pub(crate) next: u64,
    /// The flows of its probes.
    flows: Vec<usize>,
    up_first: bool,
    shapers: [Option<Shaper>; 2],
    algorithm: Box<dyn Algorithm>,
}

/// A shaper, and the line that it is for.
struct Shaper {
    link: usize,
    name: String,
    env: Env,
    bounds: Bounds,
    /// Bytes that it had sent at the last step, and that had come to it.
    before: [u64; 2],
    /// The other links of its way: their rates.
    line: Vec<(u64, Option<Arc<Steps<u64>>>)>,
}

impl Shaper {
    /// The shaper of `spec`, which the probes of `flow` cross; `key` names it.
    fn new(
        spec: &ShaperSpec,
        key: &str,
        scenario: &Scenario,
        topology: &Topology,
        simulation: &Simulation,
        flow: usize,
    ) -> Result<(Self, bool), Complaint> {
        let link = topology.find_link(&spec.link, &format!("{key}.link"))?;
        let (out, way) = simulation
            .way_over(flow, link)
            .ok_or_else(|| Complaint::new(format!("{key}.link"), "a link that the probes cross"))?;
        let others = way.into_iter().filter(|&other| other != link);
        let edges = others.filter_map(|other| topology.links.get(other));
        let line = edges.map(|edge| (edge.rate.bits_per_second(), edge.sending.rates.clone()));
        let bounds = Bounds {
            base: topology.links[link].rate.bits_per_second(),
            least: spec.least.0.bits_per_second(),
            most: spec.most.0.bits_per_second(),
        };
        let env = setup::env_of(scenario, topology, link)?;
        let (name, line) = (spec.link.clone(), line.collect());
        Ok((Self { link, name, env, bounds, before: [0; 2], line }, out))
    }

    /// What its line could carry from `from` to `to` (ns), bit/s.
    fn capacity(&self, from: u64, to: u64) -> f64 {
        let mean = |(rate, rates): &(u64, Option<Arc<Steps<u64>>>)| match rates {
            Some(rates) => bits(rates, from, to) * 1e9 / (to - from) as f64,
            None => *rate as f64,
        };
        self.line.iter().map(mean).fold(f64::INFINITY, f64::min)
    }
}

impl Autorate {
    /// Those of a scenario. `groups` has the group of each flow.
    pub(crate) fn all(
        scenario: &Scenario,
        topology: &Topology,
        groups: &[u16],
        simulation: &mut Simulation,
    ) -> Result<Vec<Self>, Complaint> {
        let specs = scenario.autorate.iter().enumerate();
        specs.map(|(i, spec)| Self::new(i, spec, scenario, topology, groups, simulation)).collect()
    }

    fn new(
        i: usize,
        spec: &AutorateSpec,
        scenario: &Scenario,
        topology: &Topology,
        groups: &[u16],
        simulation: &mut Simulation,
    ) -> Result<Self, Complaint> {
        let key = |field: &str| format!("autorate[{i}].{field}");
        let group = spec.group(&scenario.traffic).map(|group| group as u16);
        let flows: Vec<usize> =
            (0..groups.len()).filter(|&flow| Some(groups[flow]) == group).collect();
        let Some(&first) = flows.first() else {
            return Err(Complaint::new(key("probes"), "a group with flows"));
        };
        flows.iter().for_each(|&flow| simulation.hear_echoes(flow));
        let mut up_first = true;
        let mut shapers = [None, None];
        for (way, name) in ["down", "up"].into_iter().enumerate() {
            if let Some(shaper) = spec.shapers()[way] {
                let (shaper, out) =
                    Shaper::new(shaper, &key(name), scenario, topology, simulation, first)?;
                let found = out == (name == "up");
                if shapers[0].is_some() && found != up_first {
                    let allowed = "a link on the way against that of `down`";
                    return Err(Complaint::new(key("up.link"), allowed));
                }
                (shapers[way], up_first) = (Some(shaper), found);
            }
        }
        let period = spec.period.0.as_nanos();
        let bounds = |shaper: &Option<Shaper>| shaper.as_ref().map(|shaper| shaper.bounds);
        let start = Start { period, ways: [bounds(&shapers[0]), bounds(&shapers[1])] };
        let settings = spec.settings();
        let settings: Vec<_> = settings.iter().map(|(key, text)| (*key, &text[..])).collect();
        let nobody = || Complaint::wrong("algorithm", "a class in Python, which nobody runs here");
        let class = spec.class().ok_or_else(nobody);
        let rng = setup::autorate_stream(scenario.seed, i);
        let algorithm = class
            .and_then(|class| {
                PROVIDER.get().ok_or_else(nobody)?.algorithm(class, &settings, &start, rng)
            })
            .map_err(|c| within(i, c))?;
        Ok(Self { number: i, period, next: period, flows, up_first, shapers, algorithm })
    }

    /// The step that is due at `now` (ns), which the simulation has come to.
    pub(crate) fn step(&mut self, now: u64, simulation: &mut Simulation, rows: &mut Table) {
        let mut seen = Seen {
            now,
            echoes: Vec::new(),
            up_first: self.up_first,
            lost: Vec::new(),
            oldest: None,
            ways: [None, None],
        };
        for &flow in &self.flows {
            let Some(echoes) = simulation.echoes(flow) else { continue };
            seen.echoes.append(&mut echoes.back);
            seen.lost.append(&mut echoes.lost);
            seen.oldest = seen.oldest.into_iter().chain(echoes.oldest()).min();
        }
        seen.echoes.sort_by_key(|echo| echo.back);
        seen.lost.sort_unstable();
        for (shaper, way) in self.shapers.iter_mut().zip(&mut seen.ways) {
            if let Some(shaper) = shaper
                && let Some(queue) = simulation.queue(shaper.link)
            {
                let counters = queue.queue().counters();
                let now = [counters.departed.bytes, counters.arrived.bytes];
                let [sent, arrived] = [0, 1].map(|kind| now[kind] - shaper.before[kind]);
                shaper.before = now;
                let rate = shaper.env.rate.bits_per_second();
                *way = Some(Way { rate, sent, arrived, backlog: queue.queue().backlog().bytes });
            }
        }
        self.note(&seen, rows);
        for (shaper, decided) in self.shapers.iter_mut().zip(self.algorithm.step(&seen)) {
            let (Some(shaper), Some(rate)) = (shaper, decided) else { continue };
            let rate = Rate::new(rate.clamp(shaper.bounds.least, shaper.bounds.most));
            if let Some(rate) = rate.filter(|rate| *rate != shaper.env.rate) {
                shaper.env = Env { rate, now: Instant::from_nanos(now), ..shaper.env };
                simulation.shape(shaper.link, &shaper.env);
            }
        }
        self.next = now.saturating_add(self.period);
    }

    /// Writes down what a step sees.
    fn note(&self, seen: &Seen, rows: &mut Table) {
        let from = seen.now - self.period;
        let of = seen.echoes.len();
        for (shaper, (is_up, way)) in
            self.shapers.iter().zip([false, true].into_iter().zip(seen.ways))
        {
            let (Some(shaper), Some(way)) = (shaper, way) else { continue };
            let first = is_up == self.up_first;
            let took =
                |echo: &Echo| if first { echo.turned - echo.sent } else { echo.back - echo.turned };
            let delay: u64 = seen.echoes.iter().map(took).sum();
            let mut row = rows.row();
            row.real(Some(seen.now as f64 / 1e9));
            row.count(self.number as u64);
            row.text(if is_up { "up" } else { "down" });
            row.text(&shaper.name);
            row.real(Some(way.rate as f64));
            row.real(Some(shaper.capacity(from, seen.now)));
            row.real(Some(way.sent as f64 * 8e9 / self.period as f64));
            row.count(way.backlog);
            row.count(of as u64);
            row.count(seen.lost.len() as u64);
            row.real((of > 0).then(|| delay as f64 / 1e9 / of as f64));
        }
    }
}

/// The table without rows.
pub(crate) fn rows() -> Table {
    registry::AUTORATE.empty()
}
