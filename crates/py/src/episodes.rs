//! Simulations that agents steer step by step, many at once: what `bluewater.gym` is made of.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aqm::own::Advice;
use aqm::tuned::Settings;
use aqm::{Arrival, Cause, Cx, Duration, Env, Meta, Qdisc as _, Rng, View};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::Parameter;
use scenario::own::{Class, parts};
use sim::control::{Ack, Congestion, Controller, Lost, Make, Out, Start};
use sim::network::Managed;
use sim::{Run, Scenario, ScenarioError};

use crate::{error, own};

/// How errors name what was given.
const ORIGIN: &str = "<environment>";
/// How many numbers an agent sees of a step.
const SEEN: usize = 7;

/// What an agent at a queue sees of a step, with units.
const OF_QUEUE: [(&str, &str); SEEN] = [
    ("backlog", "bytes queued at the end of the step"),
    ("sojourn", "mean time in the queue of the packets that left, ns; 0 if none left"),
    ("sent", "bytes that left the queue"),
    ("busy", "share of the step in which the link sent, 0 … 1"),
    ("arrived", "packets that arrived"),
    ("dropped", "packets dropped, for whatever cause"),
    ("marked", "packets marked"),
];
/// What an agent that sends sees of a step, with units, of all its connections together.
const OF_SENDER: [(&str, &str); SEEN] = [
    ("acked", "bytes acknowledged"),
    ("rtt", "mean round trip of the acknowledgements, ns; 0 if none came"),
    ("min_rtt", "least round trip so far, ns; 0 before the first"),
    ("lost", "bytes found to be lost"),
    ("marked", "packets acknowledged as marked"),
    ("in_flight", "bytes in flight after the last acknowledgement"),
    ("episodes", "times that the network was found to be congested"),
];

/// Between an agent and what it steers.
#[derive(Clone, Default)]
struct Strings(Arc<(AtomicU64, Mutex<Heard>)>);

/// The rate of the agent's link, and what its connections hear in a step.
#[derive(Clone, Copy, Default)]
struct Heard {
    acked: u64,
    /// Their sum, and how many.
    round_trips: (u64, u64),
    min_rtt: u64,
    lost: u64,
    marked: u64,
    in_flight: u64,
    episodes: u64,
    /// Of the link behind the queue, bit/s.
    rate: u64,
}

impl Strings {
    fn set(&self, action: f64) {
        self.0.0.store(action.to_bits(), Ordering::Relaxed);
    }

    /// What the agent chose last.
    fn action(&self) -> f64 {
        f64::from_bits(self.0.0.load(Ordering::Relaxed))
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The agents of an episode, each by the name of the class for which it stands.
#[derive(Clone)]
struct Agents(Vec<(String, Strings)>);

impl Agents {
    fn strings(&self, class: Class<'_>) -> Strings {
        let is_it = |(name, _): &&(String, Strings)| {
            parts(name).is_some_and(|(file, name)| (file, name) == (class.file, class.name))
        };
        self.0.iter().find(is_it).map(|(_, strings)| strings.clone()).unwrap_or_default()
    }
}

impl own::StandIn for Agents {
    fn advice(&self, class: Class<'_>, env: &Env) -> Box<dyn Advice> {
        let strings = self.strings(class);
        strings.heard().rate = env.rate.bits_per_second();
        Box::new(Steered(strings))
    }

    fn maker(&self, class: Class<'_>) -> Arc<dyn Make> {
        Arc::new(Steered(self.strings(class)))
    }
}

/// A queue that signals with the probability that the agent chose, or connections with the window, bytes.
#[derive(Clone)]
struct Steered(Strings);

impl Advice for Steered {
    fn on_arrival(&mut self, _: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        if cx.rng.chance(self.0.action()) { Arrival::Signal(Cause::Early) } else { Arrival::Admit }
    }

    fn duplicate(&self) -> Box<dyn Advice> {
        Box::new(self.clone())
    }
}

impl Make for Steered {
    fn make(&self, _: &Start, _: Rng) -> Box<dyn Controller> {
        Box::new(Connection { cwnd: self.0.action(), strings: self.0.clone() })
    }
}

/// A connection of the agent: it takes the window that was chosen when it next hears of the network, as the
/// class that repeats the episode does.
#[derive(Clone)]
struct Connection {
    cwnd: f64,
    strings: Strings,
}

impl Controller for Connection {
    fn on_lost(&mut self, lost: &Lost) {
        self.strings.heard().lost += lost.bytes;
    }

    fn on_congestion(&mut self, _: &Congestion) {
        self.strings.heard().episodes += 1;
        self.cwnd = self.strings.action();
    }

    fn on_ack(&mut self, ack: &Ack) {
        let mut heard = self.strings.heard();
        heard.acked += ack.acked;
        if ack.rtt > 0 {
            heard.round_trips.0 += ack.rtt;
            heard.round_trips.1 += 1;
        }
        heard.min_rtt = ack.min_rtt;
        heard.marked += ack.ce_packets;
        heard.in_flight = ack.in_flight;
        drop(heard);
        self.cwnd = self.strings.action();
    }

    fn out(&self) -> Out {
        Out { cwnd: self.cwnd, ..Out::default() }
    }
}

/// Totals of a queue.
#[derive(Clone, Copy, Default)]
struct Totals {
    departed: u64,
    /// In the window of measurement, ns.
    delay: u128,
    idle: u64,
    sent: u64,
    arrived: u64,
    dropped: u64,
    marked: u64,
}

impl Totals {
    fn of(queue: &Managed, now: u64) -> Self {
        let counters = queue.queue().counters();
        Self {
            departed: counters.departed.packets,
            delay: queue.stats().delays().1,
            idle: queue.idle(now),
            sent: counters.departed.bytes,
            arrived: counters.arrived.packets,
            dropped: counters.all_dropped().packets,
            marked: counters.all_marked().packets,
        }
    }
}

/// A parameter that an agent chooses: its name, and the unit of the agent's numbers.
type Chosen = (String, String);

/// An agent of an episode.
struct Agent {
    strings: Strings,
    /// The link of its queue; it sends if it has none.
    link: Option<usize>,
    before: Totals,
}

/// One simulation.
struct Episode {
    run: Run,
    agents: Vec<Agent>,
    /// The parameters of the first queue, of which its agent chooses some.
    settings: Settings,
    over: bool,
}

impl Episode {
    /// `names` are those of the classes for which agents stand, or of the first queue's discipline, whose
    /// parameters its agent chooses.
    fn new(scenario: Scenario, text: &str, names: &[String]) -> Result<Self, ScenarioError> {
        let agents = Agents(names.iter().map(|name| (name.clone(), Strings::default())).collect());
        let params = scenario.queue.first().map(|queue| queue.params.iter());
        let written = |(name, value): (&String, &Parameter)| (name.clone(), value.to_string());
        let settings = params.into_iter().flatten().map(written).collect();
        let build = || Run::new(scenario, text, ORIGIN);
        let mut run = own::with_stand_in(Box::new(agents.clone()), build)?;
        let steering = |(name, strings): (String, Strings)| {
            let link = run.link_of(&name);
            if let Some(tuned) = link.and_then(|link| run.tuned_mut(link)) {
                strings.heard().rate = tuned.rate().bits_per_second();
            }
            Agent { strings, link, before: Totals::default() }
        };
        let agents = agents.0.into_iter().map(steering).collect();
        Ok(Self { run, agents, settings, over: false })
    }

    /// The first queue has these parameters from now on.
    fn tune(&mut self, chosen: &[Chosen], values: &[f64]) {
        for ((name, unit), value) in chosen.iter().zip(values) {
            if let Some((_, text)) = self.settings.iter_mut().find(|(own, _)| own == name) {
                *text = format!("{value}{unit}");
            }
        }
        let now = aqm::Instant::from_nanos(self.run.now());
        let link = self.agents.first().and_then(|agent| agent.link);
        if let Some(tuned) = link.and_then(|link| self.run.tuned_mut(link)) {
            tuned.change_at(now, self.settings.clone());
        }
    }

    /// One step, and what agents see of it.
    fn step(&mut self, actions: &[f64], chosen: &[Chosen], step: Duration, seen: &mut [f64]) {
        if chosen.is_empty() {
            self.agents.iter().zip(actions).for_each(|(agent, action)| agent.strings.set(*action));
        } else {
            self.tune(chosen, actions);
        }
        let from = self.run.now();
        self.over = !self.run.advance(step);
        let Self { run, agents, .. } = self;
        for (agent, row) in agents.iter_mut().zip(seen.chunks_exact_mut(SEEN)) {
            row.copy_from_slice(&agent.look(run, from));
        }
    }
}

impl Agent {
    /// What it sees of the step that began at `from` (ns).
    fn look(&mut self, run: &Run, from: u64) -> [f64; SEEN] {
        let Some(queue) = self.link.and_then(|link| run.simulation().queue(link)) else {
            let mut heard = self.strings.heard();
            let (sum, count) = heard.round_trips;
            let Heard { acked, min_rtt, lost, marked, in_flight, episodes, .. } = *heard;
            *heard = Heard { min_rtt, in_flight, ..Heard::default() };
            let rtt = sum.checked_div(count).unwrap_or(0);
            return [acked, rtt, min_rtt, lost, marked, in_flight, episodes].map(|n| n as f64);
        };
        let now = run.now();
        let total = Totals::of(queue, now);
        let then = std::mem::replace(&mut self.before, total);
        let left = total.departed - then.departed;
        let delay = total.delay.saturating_sub(then.delay) as f64;
        [
            queue.queue().backlog().bytes as f64,
            if left == 0 { 0.0 } else { delay / left as f64 },
            (total.sent - then.sent) as f64,
            1.0 - (total.idle - then.idle) as f64 / (now - from).max(1) as f64,
            (total.arrived - then.arrived) as f64,
            (total.dropped - then.dropped) as f64,
            (total.marked - then.marked) as f64,
        ]
    }
}

/// Simulations that agents steer, side by side.
#[pyclass(module = "bluewater._core", unsendable)]
pub(crate) struct Episodes {
    /// What an episode may be of, with its text and the rates of the agents' links, bit/s.
    scenarios: Vec<(Scenario, String, Vec<u64>)>,
    episodes: Vec<Option<Episode>>,
    step: Duration,
    /// The classes for which agents stand, as scenarios name them.
    names: Vec<String>,
    /// What the agent of the first queue chooses, if parameters.
    chosen: Vec<Chosen>,
}

#[pymethods]
impl Episodes {
    /// `count` places for episodes of `texts`: scenarios as TOML, in which agents stand for the classes in
    /// Python called `names`, each of one queue or group. A step takes `step` ns. Where the one agent has
    /// `chosen` parameters of the first queue, `names` has its discipline.
    #[new]
    #[pyo3(signature = (texts, count, step, names, chosen = Vec::new()))]
    fn new(
        py: Python<'_>,
        texts: Vec<String>,
        count: usize,
        step: u64,
        names: Vec<String>,
        chosen: Vec<Chosen>,
    ) -> PyResult<Self> {
        let read = |text: String| -> Result<(Scenario, String, Vec<u64>), ScenarioError> {
            let scenario = sim::capture::scenario(&text, ORIGIN)?;
            // What does not fit shows as it is built.
            let episode = Episode::new(scenario.clone(), &text, &names)?;
            let rates = episode.agents.iter().map(|agent| agent.strings.heard().rate).collect();
            Ok((scenario, text, rates))
        };
        let scenarios = texts.into_iter().map(read).collect::<Result<_, _>>();
        Ok(Self {
            scenarios: scenarios.map_err(|e| error::raise(py, e))?,
            episodes: (0..count).map(|_| None).collect(),
            step: Duration::from_nanos(step.max(1)),
            names,
            chosen,
        })
    }

    /// The names of what is observed, in order, with what they are.
    #[staticmethod]
    fn observed(sends: bool) -> [(&'static str, &'static str); SEEN] {
        if sends { OF_SENDER } else { OF_QUEUE }
    }

    /// The rate of the link of each agent's queue in scenario `which`, bit/s; 0 if it sends.
    fn rates(&self, which: usize) -> Vec<u64> {
        self.scenarios.get(which).map(|(.., rates)| rates.clone()).unwrap_or_default()
    }

    /// Begins an episode of scenario `which` with a `seed` in `place`.
    fn reset(&mut self, py: Python<'_>, place: usize, which: usize, seed: u64) -> PyResult<()> {
        let none = || PyValueError::new_err("no such place or scenario");
        let (scenario, text, _) = self.scenarios.get(which).ok_or_else(none)?;
        let place = self.episodes.get_mut(place).ok_or_else(none)?;
        let episode = Episode::new(Scenario { seed, ..scenario.clone() }, text, &self.names);
        *place = Some(episode.map_err(|e| error::raise(py, e))?);
        Ok(())
    }

    /// A step of every episode. `actions` has a number for each agent or parameter of each place; `observed` gets a row of
    /// [`Episodes::observed`] for each, and `over` whether the episode has come to its end. A place
    /// without an episode, with one that is over, or with an action that is no number is left alone.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyBuffer<f64>,
        observed: PyBuffer<f64>,
        over: PyBuffer<u8>,
    ) -> PyResult<()> {
        let actions = actions.to_vec(py)?;
        let mut rows = observed.to_vec(py)?;
        let Self { episodes, step, names, chosen, .. } = self;
        let (count, agents) = (episodes.len(), names.len().max(1));
        let all = count * agents;
        let width = chosen.len().max(agents);
        if [actions.len(), rows.len(), over.item_count()] != [count * width, SEEN * all, count] {
            return Err(PyValueError::new_err(
                "an action and a row for each agent, an end for each place",
            ));
        }
        let rows_of_each = rows.chunks_exact_mut(SEEN * agents);
        for ((episode, rows), actions) in
            episodes.iter_mut().zip(rows_of_each).zip(actions.chunks_exact(width))
        {
            let runs = |episode: &&mut Episode| {
                !episode.over && !actions.iter().any(|action| action.is_nan())
            };
            if let Some(episode) = episode.as_mut().filter(runs) {
                episode.step(actions, chosen, *step, rows);
            }
        }
        own::failure().map_or(Ok(()), Err)?;
        let ends: Vec<u8> =
            episodes.iter().map(|each| each.as_ref().is_some_and(|e| e.over).into()).collect();
        observed.copy_from_slice(py, &rows)?;
        over.copy_from_slice(py, &ends)
    }

    /// The hash over the decisions of the episode in `place` so far.
    fn decision_hash(&self, place: usize) -> Option<String> {
        let episode = self.episodes.get(place)?.as_ref()?;
        Some(episode.run.simulation().decision_hash().to_string())
    }
}
