//! From the first packet to the last: forwarding, the log, the recording, the summaries.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use aqm::Counters;
use nix::sys::prctl::set_timerslack;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::forward::{DIRECTIONS, Forwarder, Pause};
use crate::link::Spec;
use crate::options::links;
use crate::port::Port;
use crate::privilege::RealTime;
use crate::record::Recorder;
use crate::trouble::Trouble;
use crate::{report, selftest};

/// How to forward.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// Whether the forwarding thread goes before others.
    pub realtime: RealTime,
    /// Look at the clock instead of sleeping for the last so many ns before a departure.
    pub spin: u64,
    /// Where to write JSON lines.
    pub log: Option<PathBuf>,
    /// Where to record arrivals.
    pub record: Option<PathBuf>,
    /// Time between lines, ns.
    pub interval: u64,
}

/// Two ports and the links between them, from now on.
pub struct Session {
    specs: [Spec; 2],
    forwarder: Forwarder<Option<Recorder<BufWriter<File>>>>,
    log: Option<BufWriter<File>>,
    /// Counters at the last line of the log.
    before: [Counters; 2],
    interval: u64,
    /// When the next line is due, ns.
    next: u64,
}

impl Session {
    /// Links between `ports`, of which each frame is at most `longest` bytes.
    ///
    /// # Errors
    /// When there are no such links, or a file cannot be written.
    pub fn new(
        specs: &[Spec; 2],
        how: &Forwarding,
        ports: [Port; 2],
        longest: usize,
    ) -> Result<Self, Trouble> {
        let links = links(specs, &ports, longest)?;
        let recorder = how.record.as_deref().map(create).transpose()?;
        let recorder =
            recorder.map(|file| Recorder::new(file, specs)).transpose().map_err(unwritten)?;
        let log = how.log.as_deref().map(create).transpose()?;
        if let Some(warning) = selftest::warning(specs) {
            eprintln!("{warning}");
        }
        let realtime = how.realtime.apply()?;
        // The default of 50 µs would delay every departure.
        set_timerslack(1).map_err(|e| Trouble::system("setting the timer slack", e))?;
        let mut new = Self {
            specs: specs.clone(),
            forwarder: Forwarder::new(links, ports, Clock::new(), how.spin, recorder),
            log,
            before: [Counters::default(); 2],
            interval: how.interval,
            next: how.interval,
        };
        new.line(&report::head(specs, realtime))?;
        Ok(new)
    }

    /// Forwards until `ended`, which is asked whenever `waker` was written to.
    ///
    /// # Errors
    /// When an interface is gone or the log cannot be written.
    pub fn run(
        &mut self,
        waker: &UnixStream,
        mut ended: impl FnMut() -> bool,
    ) -> Result<(), Trouble> {
        loop {
            if self.forward(u64::MAX, waker)? == Pause::Woken {
                _ = (&*waker).read(&mut [0; 64]);
                if ended() {
                    return Ok(());
                }
            }
        }
    }

    /// Forwards until `until` (ns), or until `waker` can be read, and writes the log.
    ///
    /// # Errors
    /// When an interface is gone or the log cannot be written.
    pub fn forward(&mut self, until: u64, waker: &UnixStream) -> Result<Pause, Trouble> {
        loop {
            let pause = self
                .forwarder
                .run(until.min(self.next), waker.as_fd())
                .map_err(|e| Trouble::system("forwarding", e))?;
            let now = self.forwarder.now();
            if now >= self.next {
                self.samples(now)?;
                self.next += self.interval;
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

    /// Frames that the kernel dropped at each of two existing interfaces, since the last call.
    pub fn overrun(&self) -> [u64; 2] {
        self.forwarder.ports().each_ref().map(Port::overrun)
    }

    /// Begins a new window of measurement.
    pub fn restart_measurement(&mut self) {
        let now = self.now();
        self.forwarder.deliver(now);
        self.forwarder.links.iter_mut().for_each(|link| link.restart_measurement(now));
    }

    /// The summaries of both directions since the last restart. `lost` are packets that the system
    /// dropped before they could be read.
    pub fn summaries(&mut self, lost: [u64; 2]) -> [Value; 2] {
        let now = self.now();
        self.forwarder.deliver(now);
        self.summaries_at(now, lost)
    }

    /// Ends log and recording. Returns the summaries.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(mut self, lost: [u64; 2]) -> Result<[Value; 2], Trouble> {
        let now = self.now();
        self.samples(now)?;
        let summaries = self.summaries_at(now, lost);
        self.line(&json!({"summary": summaries}))?;
        let hashes = self.forwarder.links.each_ref().map(|link| link.decision_hash().to_string());
        if let Some(recorder) = self.forwarder.into_tap() {
            recorder.end(now, hashes).map_err(unwritten)?;
        }
        Ok(summaries)
    }

    fn summaries_at(&self, now: u64, lost: [u64; 2]) -> [Value; 2] {
        std::array::from_fn(|i| {
            let beside = (lost[i], self.forwarder.refused()[i]);
            let link = &self.forwarder.links[i];
            report::summary(DIRECTIONS[i], &self.specs[i], link, now, beside)
        })
    }

    fn samples(&mut self, now: u64) -> Result<(), Trouble> {
        self.forwarder.deliver(now);
        if self.log.is_some() {
            for i in 0..2 {
                let line = report::sample(i, &self.forwarder.links[i], now, &mut self.before[i]);
                self.line(&line)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Value) -> Result<(), Trouble> {
        let Some(log) = &mut self.log else { return Ok(()) };
        writeln!(log, "{line}")
            .and_then(|()| log.flush())
            .map_err(|e| Trouble::system("writing the log", e))
    }
}

fn unwritten(error: io::Error) -> Trouble {
    Trouble::system("recording", error)
}

/// A file to write to.
fn create(path: &Path) -> Result<BufWriter<File>, Trouble> {
    File::create(path).map(BufWriter::new).map_err(|e| Trouble::system(path.display(), e))
}
