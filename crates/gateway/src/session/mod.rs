//! From the first packet to the last: forwarding, the log, the recording, the summaries.

mod alarm;
mod begin;
mod confine;
mod doors;
mod eras;
mod forwarding;
mod gathering;
mod handover;
mod selftest;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use nix::sys::prctl::{set_dumpable, set_timerslack};
use serde_json::{Map, Value, json};

use crate::clock::{Clock, time_of_day};
use crate::control::place::Entry;
use crate::control::{self, Asked, Differs, Renewal, Request, Told};
use crate::direction::DIRECTIONS;
use crate::io::forward::{Forwarder, Pause};
use crate::io::port::{Port, Ports};
use crate::link::{Link, Pace, Spec};
use crate::namespace::ends::Namespaces;
use crate::options::{Change, explain};
use crate::output::capture::Capture;
use crate::output::writer::{Gaps, Lost, Writer};
use crate::record::Recorder;
use crate::renewal::{Keeper, renewed};
use crate::report::{self, Finished, Unwritten};
use crate::service::Service;
use crate::trouble::{self, Trouble, say};
use crate::upgrade::{self, Predecessor};
use alarm::Alarm;
use begin::links;
use confine::confine;
pub use doors::Doors;
use doors::warn_overbooked;
use eras::Eras;
pub use forwarding::Forwarding;
use gathering::Gathering;
use handover::Handover;

/// Processes that belong to a gateway.
pub(crate) enum Beside {
    /// A command, and the commands that join it in these namespaces.
    Commands(Namespaces),
    /// The process that opens files anew.
    Keeper(Keeper),
}

/// How many flows the live page shows.
const FLOWS_ON_PAGE: usize = 20;

/// Time between looks at whether the interfaces are there, ns.
const LOOK: u64 = 500_000_000;

/// Two ports and the links between them, from now on.
pub struct Session {
    forwarder: Forwarder<Option<Recorder<Writer>>>,
    log: Option<Writer>,
    /// The count of lost records for each file.
    lost: Vec<(&'static str, Lost)>,
    /// The counts at the last line of the log.
    before: [report::Logged; 2],
    /// The settings of the links before each change.
    eras: [Eras; 2],
    interval: u64,
    realtime: bool,
    /// When the next line is due, ns.
    next: u64,
    /// When to see whether the interfaces are still there, ns.
    look: u64,
    /// Requests that arrive while it runs.
    inbox: Option<Receiver<Asked>>,
    gathering: Gathering,
    /// The name of the control socket, which goes with it.
    entry: Option<Entry>,
    capture: Option<Capture>,
    /// What a log begins with.
    head: Value,
    /// About how many packets a second can be forwarded here.
    ceiling: Option<f64>,
    alarm: Alarm,
    service: Service,
    handover: Handover,
}

impl Session {
    /// Links between `ports`.
    ///
    /// # Errors
    /// When there are no such links, or a file cannot be written.
    pub fn new(specs: &[Spec; 2], how: &Forwarding, ports: Ports) -> Result<Self, Trouble> {
        Self::begin(specs, how, ports, None)
    }

    /// Links between `ports`. With an `old` gateway that still sends it goes on with the log and the clock of
    /// that one, and holds its packets back.
    ///
    /// # Errors
    /// When there are no such links, or a file cannot be written.
    pub(crate) fn begin(
        specs: &[Spec; 2],
        how: &Forwarding,
        ports: Ports,
        old: Option<&mut Predecessor>,
    ) -> Result<Self, Trouble> {
        let layer = ports.ends[0].layer();
        let specs = &specs.each_ref().map(|spec| spec.clone().between(layer));
        let clock = old.as_ref().map_or_else(Clock::new, |old| old.clock);
        let began = if old.is_some() { clock.now() } else { 0 };
        let mut links = links(specs, &ports, old.is_some().then_some(began))?;
        let mut capture = None;
        if let Some((path, every)) = &how.pcapng {
            let [up, down] = Capture::create(path, *every, ports.ends[0].layer(), clock.epoch())?;
            capture = Some(up.clone());
            links[0].capture(up);
            links[1].capture(down);
        }
        let file = |path: &Option<PathBuf>, room, gaps| {
            path.as_deref().map(|path| Writer::create(path, room, gaps)).transpose()
        };
        // A replay without one of the arrivals would decide otherwise.
        let recording = file(&how.record, RECORDING_ROOM, Gaps::End)?;
        let log = match old.and_then(|old| old.estate.take("log")) {
            Some(log) => Some(Writer::on(log.into(), LOG_ROOM, Gaps::Allowed)?),
            None => file(&how.log, LOG_ROOM, Gaps::Allowed)?,
        };
        let lost = [
            ("log", log.as_ref().map(Writer::lost)),
            ("recording", recording.as_ref().map(Writer::lost)),
            ("capture", capture.as_ref().map(Capture::lost)),
        ];
        let lost = lost.into_iter().filter_map(|(name, lost)| Some((name, lost?))).collect();
        let recorder = recording.map(|file| Recorder::new(file, specs)).transpose();
        let recorder = recorder.map_err(|e| Trouble::system("recording", e))?;
        let realtime = how.realtime.apply()?;
        // The default of 50 µs would delay every departure.
        set_timerslack(1).map_err(|e| Trouble::system("setting the timer slack", e))?;
        let head = report::head(specs, &ports, realtime);
        let mut new = Self {
            forwarder: Forwarder::new(links, ports.ends, clock, how.spin, recorder),
            log,
            lost,
            before: Default::default(),
            eras: Default::default(),
            interval: how.interval,
            realtime,
            next: began.saturating_add(how.interval),
            look: began + LOOK,
            inbox: None,
            gathering: Gathering::default(),
            entry: None,
            capture,
            head: head.clone(),
            ceiling: None,
            alarm: Alarm::default(),
            service: Service::default(),
            handover: Handover::default(),
        };
        if realtime {
            new.forwarder.share();
        }
        let mut first = head;
        if began > 0 {
            first["time_s"] = json!(began as f64 / 1e9);
        }
        new.line(&first);
        Ok(new)
    }

    /// Packets flow from now on: tells the manager of services that, and what comes.
    pub(crate) fn report_to(&mut self, service: Service) {
        let told = |link: &Link| {
            let spec = link.spec();
            format!("{} {}", spec.rate, spec.aqm)
        };
        let [up, down] = self.forwarder.links.each_ref().map(told);
        service.ready(&format!("up {up}, down {down}"));
        self.service = service;
    }

    /// Forwards until `ended`, which is asked whenever `waker` was written to.
    ///
    /// # Errors
    /// When an interface is gone.
    pub fn run(
        &mut self,
        waker: &UnixStream,
        mut ended: impl FnMut() -> bool,
    ) -> Result<(), Trouble> {
        loop {
            if self.forward(self.until(), waker)? == Pause::Woken {
                _ = (&*waker).read(&mut [0; 64]);
                self.answer()?;
                if ended() {
                    return Ok(());
                }
            }
            if self.has_left() {
                return Ok(());
            }
        }
    }

    /// From now on answers what comes to the `doors` and from what is `beside`; threads listen there, which
    /// write to `wake`. All threads of the process are there then, and none of them may do more than they
    /// need.
    ///
    /// # Errors
    /// When they cannot be started.
    pub(crate) fn serve(
        &mut self,
        doors: Doors,
        beside: Beside,
        wake: &UnixStream,
    ) -> Result<(), Trouble> {
        let (asking, inbox) = control::line(wake)?;
        self.handover.closed = asking.closed();
        if let Some(old) = self.voice() {
            upgrade::follow(old, asking.again()?)?;
        }
        if let Some(metrics) = doors.metrics {
            metrics.serve(asking.again()?)?;
        }
        if let Some(web) = doors.web {
            web.serve(&doors.about, asking.again()?)?;
        }
        self.ceiling = doors.ceiling;
        let namespaces = match beside {
            Beside::Commands(namespaces) => Some(namespaces),
            Beside::Keeper(keeper) => {
                keeper.serve(asking.again()?)?;
                self.handover.keeper = Some(keeper);
                None
            }
        };
        let commands = namespaces.is_some();
        self.inbox = Some(inbox);
        self.entry = Some(doors.control.serve(asking, namespaces)?);
        self.log.iter_mut().for_each(Writer::start);
        self.forwarder.tap_mut().iter_mut().for_each(|recorder| recorder.out().start());
        self.capture.iter().for_each(Capture::start);
        trouble::speak();
        // With rights by its file or as a service it could be looked into by all that is its user's.
        set_dumpable(false).map_err(|e| Trouble::system("closing the process to others", e))?;
        confine(commands)
    }

    /// Carries out the requests that have arrived.
    fn answer(&mut self) -> Result<(), Trouble> {
        while let Some(asked) = self.inbox.as_ref().and_then(|inbox| inbox.try_recv().ok()) {
            if !asked.take() {
                continue;
            }
            let answer = match &asked.request {
                Request::Show { classes } => {
                    let most = if *classes { usize::MAX } else { report::TOP };
                    Ok(self.state([report::TOP, most], false))
                }
                Request::Watch {} => Ok(self.state([FLOWS_ON_PAGE, 0], true)),
                Request::Renew(renewal) => self.renew(renewal).map(|done| Value::from(done).into()),
                Request::Note(event) => {
                    let mut line = (**event).clone();
                    line["time_s"] = json!(self.forwarder.now() as f64 / 1e9);
                    self.line(&line);
                    Ok(Told::default())
                }
                Request::Upgrade {} => self.upgrade().map(Told::from),
                Request::Handover(step) => Ok(self.step(step)?.into()),
                Request::Set(change) => {
                    self.change(change).map(|()| self.state([report::TOP; 2], false))
                }
                // The thread at the socket answers this one.
                Request::Join { .. } => Err(Trouble::new("this is not for the link", "")),
            };
            match answer {
                Ok(told) if told.classes.iter().any(Option::is_some) => {
                    self.gathering.answer(asked.answer, told);
                }
                // The caller may be gone.
                answer => _ = asked.answer.send(answer),
            }
        }
        Ok(())
    }

    /// All that is known now, with so many of the flows and classes that send most, and if that is wanted with the
    /// whole distribution of delays.
    fn state(&mut self, [top, classes]: [usize; 2], delays: bool) -> Told {
        let now = self.now();
        self.forwarder.deliver(now);
        let overrun = self.overrun();
        let refused = self.forwarder.refused();
        let queues: Vec<Value> = (0..2)
            .map(|i| {
                let link = &mut self.forwarder.links[i];
                let mut state = report::state(i, link, now, (overrun[i], refused[i]), top);
                if delays {
                    state["delays"] = report::delays(link);
                }
                state
            })
            .collect();
        let value = json!({
            "time_s": now as f64 / 1e9, "queues": queues, "lost_records": self.lost(),
            "ceiling_pps": self.ceiling.map(f64::round), "pid": std::process::id(),
            "version": env!("BLUEWATER_VERSION"), "handover": self.handover(),
        });
        let counts = |link: &Link| link.no_classes_yet().filter(|_| classes > 0);
        Told { value, classes: self.forwarder.links.each_ref().map(counts), most: classes }
    }

    /// Records that are lost of each file so far.
    fn lost(&self) -> Map<String, Value> {
        self.lost.iter().map(|(name, lost)| ((*name).into(), lost.records().into())).collect()
    }

    /// Goes on with new files and changed links. Returns a description of the changes.
    fn renew(&mut self, renewal: &Renewal) -> Result<String, Trouble> {
        let mut done = Vec::new();
        let [log, capture] = &renewal.files;
        let again = |file: &File, path: &Path| {
            file.try_clone().map_err(|e| Trouble::system(path.display(), e))
        };
        if let (Some(log), Some(entry)) = (&mut self.log, log) {
            let (file, path) = &**entry;
            let mut head = self.head.clone();
            head["queues"] = report::settings(self.forwarder.links.each_ref().map(Link::spec));
            head["time_s"] = json!(self.forwarder.now() as f64 / 1e9);
            let now = self.forwarder.time_of_day();
            if log.turn_to(again(file, path)?, path, dated(&head, now).as_bytes())? {
                done.push(format!("log goes on in {}", path.display()));
            }
        }
        if let (Some(capture), Some(entry)) = (&self.capture, capture) {
            let (file, path) = &**entry;
            if capture.turn_to(again(file, path)?, path)? {
                done.push(format!("capture goes on in {}", path.display()));
            }
        }
        if let Some(specs) = &renewal.specs {
            let links = &self.forwarder.links;
            // Of a link of which only the classes are others, all else stays as it was set meanwhile.
            let new = [0, 1].map(|i| match renewal.new[i] {
                Differs::Classes => {
                    let classes = specs[i].classes.clone();
                    renewed(links[i].spec(), &Spec { classes, ..links[i].spec().clone() })
                }
                Differs::Not | Differs::Options => renewed(links[i].spec(), &specs[i]),
            });
            let told = |spec: &Spec| format!("{} {} {}", spec.rate, spec.delay, spec.aqm);
            let mut kept = Vec::new();
            for (i, way) in DIRECTIONS.iter().enumerate() {
                match (&new[i], renewal.new[i]) {
                    (Some(spec), Differs::Options) => {
                        done.push(format!("{way} is {} now", told(spec)));
                    }
                    (Some(_), Differs::Classes) => {
                        done.push(format!("{way} has the classes of its file now"));
                    }
                    (Some(_), Differs::Not) => {
                        kept.push(format!(
                            "{way} stays {}, as `ctl set` made it",
                            told(links[i].spec())
                        ));
                    }
                    (None, _) => {}
                }
            }
            let new = [0, 1].map(|i| new[i].clone().filter(|_| renewal.new[i] != Differs::Not));
            done.append(&mut kept);
            if new.iter().any(Option::is_some) {
                let all = new.clone();
                self.become_links(new, renewal.config.as_deref())?;
                warn_overbooked(all.iter().flatten());
            }
        }
        Ok(if done.is_empty() { "nothing is otherwise".into() } else { done.join(", ") })
    }

    /// Changes both links or neither.
    fn change(&mut self, change: &Change) -> Result<(), Trouble> {
        let links = &self.forwarder.links;
        self.become_links(change.apply(links.each_ref().map(Link::spec))?, None)
    }

    /// Makes the links what `specs` say, where they say something, or none of them. `file` says it, if one does.
    fn become_links(
        &mut self,
        specs: [Option<Spec>; 2],
        file: Option<&Path>,
    ) -> Result<(), Trouble> {
        if self.forwarder.tap().is_some() {
            return Err(Trouble::new(
                "no changes while arrivals are recorded: a replay would decide otherwise",
                "start the gateway without --record",
            ));
        }
        self.unchanging()?;
        let now = self.now();
        self.forwarder.deliver(now);
        let links = &mut self.forwarder.links;
        let prepare = |i: usize| {
            let next = specs[i]
                .as_ref()
                .map(|spec| links[i].prepare(now, spec).map_err(|e| explain(spec, e).by(file)));
            next.transpose()
        };
        let next = [prepare(0)?, prepare(1)?];
        for ((link, next), eras) in links.iter_mut().zip(next).zip(&mut self.eras) {
            if let Some(next) = next {
                eras.end(link, now);
                link.change(next);
            }
        }
        let queues = report::settings(links.each_ref().map(Link::spec));
        self.line(&json!({"time_s": now as f64 / 1e9, "change": queues}));
        Ok(())
    }

    /// Forwards until `until` (ns), or until `waker` can be read, and writes the log.
    ///
    /// # Errors
    /// When an interface is gone.
    pub fn forward(&mut self, until: u64, waker: &UnixStream) -> Result<Pause, Trouble> {
        loop {
            let until_counts = match self.gathering.go_on(&self.forwarder.links) {
                true => 0,
                false => u64::MAX,
            };
            let pause = self
                .forwarder
                .run(until.min(self.next).min(self.look).min(until_counts), waker.as_fd())
                .map_err(|e| Trouble::system("forwarding", e))?;
            let now = self.forwarder.now();
            if now >= self.look {
                if !self.forwarder.ports().iter().all(Port::exists) {
                    return Err(Trouble::new("an interface is gone", "ip -br link"));
                }
                self.look = now + LOOK;
                self.service.lives();
                self.alarm(now);
            }
            if now >= self.next {
                if !self.is_leaving() {
                    self.samples();
                }
                // If it came too late for the next ones, too, they are left out.
                self.next = self.next.max(now.saturating_sub(self.interval));
                self.next = self.next.saturating_add(self.interval);
            }
            if pause == Pause::Woken || now >= until {
                return Ok(pause);
            }
        }
    }

    /// Time since the beginning, ns.
    pub fn now(&self) -> u64 {
        self.forwarder.now()
    }

    /// Frames that the kernel dropped at each of two existing interfaces.
    pub fn overrun(&mut self) -> [u64; 2] {
        self.forwarder.ports().each_mut().map(Port::overrun)
    }

    /// Begins a new window of measurement.
    pub fn restart_measurement(&mut self) {
        let now = self.now();
        self.forwarder.deliver(now);
        for (link, eras) in self.forwarder.links.iter_mut().zip(&mut self.eras) {
            link.restart_measurement(now);
            eras.begin(link, now);
        }
    }

    /// The summaries of both directions since the last restart. `lost` are packets that the system
    /// dropped before they could be read.
    pub fn summaries(&mut self, lost: [u64; 2]) -> [Value; 2] {
        let now = self.now();
        self.forwarder.deliver(now);
        self.summaries_at(now, lost)
    }

    /// Ends log, recording and capture. Returns the summaries, and what could not be written.
    pub fn finish(mut self, lost: [u64; 2]) -> Finished {
        if !self.is_leaving() {
            self.service.stops();
        }
        self.samples();
        let now = self.now();
        self.forwarder.deliver(now);
        let summaries = self.summaries_at(now, lost);
        // The log is the new process's then.
        if !self.is_leaving() {
            self.line(&json!({"summary": summaries, "lost_records": self.lost()}));
        }
        let conserved = self.conserved();
        let specs = self.forwarder.links.each_ref().map(|link| link.spec().clone());
        let hashes = self.forwarder.links.each_ref().map(|link| link.decision_hash().to_string());
        let recording = self.forwarder.into_tap().and_then(|tap| tap.end(now, hashes).ok());
        let ends = [
            ("log", self.log.map(Writer::end)),
            ("recording", recording.map(Writer::end)),
            ("capture", self.capture.map(Capture::end)),
        ];
        self.handover.keeper.into_iter().for_each(Keeper::end);
        let unwritten = ends.into_iter().filter_map(|(file, end)| {
            let (records, why) = end?;
            Some(Unwritten { file, records, why: why? })
        });
        Finished { specs, summaries, conserved, unwritten: unwritten.collect() }
    }

    fn summaries_at(&self, now: u64, lost: [u64; 2]) -> [Value; 2] {
        std::array::from_fn(|i| {
            let beside = (lost[i], self.forwarder.refused()[i]);
            let link = &self.forwarder.links[i];
            let mut all = report::summary(DIRECTIONS[i], link, now, beside);
            if let Some((settings, forgotten)) = self.eras[i].told(link, now) {
                all["settings"] = settings.into();
                all["settings_before"] = forgotten.into();
            }
            all
        })
    }

    /// What is queued now, and what happened since the last sample, of both directions.
    pub fn sample(&mut self) -> [Value; 2] {
        let now = self.now();
        self.forwarder.deliver(now);
        let (links, before) = (&self.forwarder.links, &mut self.before);
        std::array::from_fn(|i| report::sample(i, &links[i], now, &mut before[i]))
    }

    /// When packets were really handed over, up and down.
    pub fn pace(&self) -> [&Pace; 2] {
        self.forwarder.links.each_ref().map(Link::pace)
    }

    /// Whether the forwarding thread goes before others.
    pub fn realtime(&self) -> bool {
        self.realtime
    }

    /// Whether every packet is accounted for.
    pub fn conserved(&self) -> bool {
        self.forwarder.links.iter().all(Link::check)
    }

    /// Says it if packets were lost since the last look before they could be read.
    fn alarm(&mut self, now: u64) {
        let lost = self.overrun();
        let Some(fresh) = self.alarm.raised(now, lost) else { return };
        let [up, down] = fresh;
        let ceiling =
            self.ceiling.map(|ceiling| format!(", which forwards about {ceiling:.0} a second"));
        say(format!(
            "warning: {up} packets up and {down} down were lost before the gateway could read them: more \
             come than this machine can take{}\nhint: `lost_before` counts them; less traffic at the \
             interfaces, a machine with less else to do, or --realtime on",
            ceiling.unwrap_or_default()
        ));
        self.line(
            &json!({"time_s": now as f64 / 1e9, "alarm": "lost_before", "lost_before": fresh}),
        );
    }

    fn samples(&mut self) {
        if self.log.is_some() {
            self.sample().iter().for_each(|line| self.line(line));
        }
    }

    /// Writes a line to the log, with the time of day.
    fn line(&mut self, line: &Value) {
        let now = self.forwarder.time_of_day();
        if let Some(log) = &mut self.log {
            log.record(dated(line, now).as_bytes());
        }
    }
}

/// A line of the log at `now`, ns since 1970.
fn dated(line: &Value, now: u64) -> String {
    let mut line = line.clone();
    line["at"] = time_of_day(now).into();
    format!("{line}\n")
}

/// Bytes that may wait to be written.
const LOG_ROOM: usize = 256 << 10;
const RECORDING_ROOM: usize = 16 << 20;

#[cfg(test)]
mod tests;
