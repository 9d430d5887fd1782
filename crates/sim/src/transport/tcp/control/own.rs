//! A controller that is brought along: windows in packets for the sender, in bytes for the controller.

use std::fmt;
use std::sync::Arc;

use aqm::Rng;

use super::{CongestionControl, Pace, Times};
use crate::control::{Controller, LARGEST_WINDOW, NEVER, Out, Setting, Start};
use crate::transport::tcp::Options;

/// The longest time between two packets, ns: about a day, so that sums of it are times as well.
const LONGEST_GAP: f64 = 1e14;
/// The most packets that go together.
const LARGEST_BURST: f64 = u16::MAX as f64;
/// A second, ns.
const SECOND: f64 = 1e9;

/// The controllers of one flow: one for each of its connections.
#[derive(Clone, Default)]
pub struct Own {
    setting: Option<Arc<Setting>>,
    /// Each connection's stream of random numbers begins with a number of this one.
    rng: Option<Rng>,
    running: Option<Running>,
}

/// The controller of the present connection.
struct Running {
    controller: Box<dyn Controller>,
    out: Out,
    /// The timer that is set, ns.
    timer: u64,
}

impl Clone for Running {
    fn clone(&self) -> Self {
        Self { controller: self.controller.duplicate(), ..*self }
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out = self.running.as_ref().map(|running| running.out);
        f.debug_struct("Own").field("out", &out).finish_non_exhaustive()
    }
}

impl CongestionControl for Own {
    fn new(_: &Options) -> Self {
        Self::default()
    }

    fn pace(&self, _: Times) -> Pace {
        let (Some(setting), Some(running)) = (&self.setting, &self.running) else {
            return Pace::Gap(0);
        };
        match running.out.pacing {
            rate if rate > 0.0 => Pace::Gap((setting.mtu * SECOND / rate) as u64),
            _ if setting.paced => Pace::Gain(1.2),
            _ => Pace::Gap(0),
        }
    }

    fn rng(&mut self) -> Option<&mut Rng> {
        Some(self.rng.get_or_insert_with(|| Rng::new(0, 0)))
    }
}

impl Own {
    /// From now on its connections are controlled like this.
    pub(in super::super) fn bring(&mut self, setting: &Arc<Setting>) {
        self.setting = Some(Arc::clone(setting));
    }

    /// Its connection is over.
    pub(super) fn end(&mut self) {
        self.running = None;
    }

    /// A connection sends its first packet, with a window of so many.
    pub(in super::super) fn begin(&mut self, now: u64, window: f64) {
        let (None, Some(setting)) = (&self.running, self.setting.clone()) else { return };
        let start = Start {
            now,
            mtu: setting.mtu as u64,
            initial_window: (window * setting.mtu) as u64,
            min_window: setting.min_window as u64,
        };
        let seed = self.rng().map_or(0, Rng::bits);
        let controller = setting.make.make(&start, Rng::new(seed, 0));
        self.running = Some(Running { controller, out: Out::default(), timer: NEVER });
        self.tell(now, |_| ());
    }

    /// Tells the controller something, and takes what it decides then.
    pub(in super::super) fn tell<T: Default>(
        &mut self,
        now: u64,
        news: impl FnOnce(&mut dyn Controller) -> T,
    ) -> T {
        let (Some(setting), Some(running)) = (&self.setting, &mut self.running) else {
            return T::default();
        };
        let answer = news(running.controller.as_mut());
        let given = running.controller.out();
        let before = std::mem::replace(&mut running.out, held(given, setting));
        let out = &running.out;
        // The time that was set and is due just now is to come.
        if given.timer != running.timer {
            running.timer = if given.timer > now { given.timer } else { NEVER };
        }
        for (field, is_held) in [
            ("cwnd", given.cwnd != out.cwnd),
            ("ssthresh", given.ssthresh != out.ssthresh),
            ("pacing", given.pacing != out.pacing),
            ("burst", given.burst != out.burst),
            ("timer", given.timer != before.timer && given.timer <= now),
        ] {
            if is_held {
                setting.note_held(field, now);
            }
        }
        answer
    }

    /// Values of its own, by name.
    pub(super) fn observe(&self, values: &mut dyn FnMut(&'static str, f64)) {
        if let Some(running) = &self.running {
            running.controller.observe(values);
        }
    }

    /// Its timer may have come.
    pub(in super::super) fn wake(&mut self, now: u64) {
        if let Some(running) = &mut self.running
            && running.timer <= now
        {
            running.timer = NEVER;
            self.tell(now, |control| control.on_timer(now));
        }
    }

    /// Bytes of a packet.
    pub(in super::super) fn mtu(&self) -> f64 {
        self.setting.as_ref().map_or(1.0, |setting| setting.mtu)
    }

    /// The window and the slow-start threshold in packets, while it runs.
    pub(in super::super) fn windows(&self) -> Option<(f64, f64)> {
        let (setting, out) = (self.setting.as_ref()?, &self.running.as_ref()?.out);
        Some((out.cwnd / setting.mtu, out.ssthresh / setting.mtu))
    }

    /// Packets of a burst.
    pub(in super::super) fn burst(&self) -> u64 {
        let bytes = self.running.as_ref().map_or(0.0, |running| running.out.burst);
        ((bytes / self.mtu()) as u64).max(1)
    }

    /// When its timer comes, ns.
    pub(in super::super) fn timer(&self) -> u64 {
        self.running.as_ref().map_or(NEVER, |running| running.timer)
    }

    /// Whether what is sent now tells nothing of the bandwidth.
    pub(in super::super) fn is_app_limited(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.out.app_limited)
    }
}

/// A decision in bounds; for what is no number the least.
fn held(out: Out, setting: &Setting) -> Out {
    let slowest = setting.mtu * SECOND / LONGEST_GAP;
    Out {
        cwnd: out.cwnd.max(setting.min_window).min(LARGEST_WINDOW),
        ssthresh: out.ssthresh.max(0.0),
        pacing: if out.pacing > 0.0 { out.pacing.max(slowest) } else { 0.0 },
        burst: out.burst.max(0.0).min(LARGEST_BURST * setting.mtu),
        ..out
    }
}
