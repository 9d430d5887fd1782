//! Users' own congestion controllers: what a controller learns, and what it decides.
//!
//! The sender measures round trips and delivery rates, finds losses by time (RACK-TLP, RFC 8985), says
//! when a recovery begins and ends, and spaces packets; a [`Controller`] decides how much may be under
//! way, and how fast. Volumes are in bytes (packets on the wire), times in ns since the run began, rates
//! in bytes a second. A program that links this library names one with [`register`], and scenarios then
//! have it as `transport = "rust:NAME"`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use aqm::Rng;
use scenario::TrafficSpec;
use scenario::error::{Complaint, did_you_mean};
use scenario::own::{Class, registered};
use scenario::traffic::Transport;

/// The largest window, bytes.
pub const LARGEST_WINDOW: f64 = (1_u64 << 40) as f64;
/// A timer that never comes, ns.
pub const NEVER: u64 = u64::MAX;

/// The congestion control of one connection.
///
/// Within one acknowledgement [`on_recovered`](Self::on_recovered) comes first, then
/// [`on_undo`](Self::on_undo), [`on_lost`](Self::on_lost) for each packet,
/// [`on_congestion`](Self::on_congestion) and last [`on_ack`](Self::on_ack).
pub trait Controller: Duplicate + Send {
    /// A packet leaves. The number that is returned comes back with it.
    fn on_send(&mut self, _: &Sent) -> u64 {
        0
    }

    /// A packet is found to be lost.
    fn on_lost(&mut self, _: &Lost) {}

    /// The network is congested: once a recovery episode (RFC 9002 §7.3.2), and at each timeout.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// All that had been sent when the episode began has arrived.
    fn on_recovered(&mut self, _now: u64) {}

    /// The last episode was needless: nothing had been lost. It is over with that.
    fn on_undo(&mut self, _: &Undo) {}

    /// An acknowledgement with news.
    fn on_ack(&mut self, ack: &Ack);

    /// The application has data again after a time in which nothing was under way.
    fn on_restart(&mut self, _now: u64) {}

    /// [`Out::timer`] has come.
    fn on_timer(&mut self, _now: u64) {}

    /// What it decides; asked after each of the above.
    fn out(&self) -> Out;

    /// Values of its own, by name, for the table `control_signals`. Asked for each row of the table `control`,
    /// and never without that table.
    fn observe(&self, _: &mut dyn FnMut(&'static str, f64)) {}
}

/// Another controller in the same state; each that can be cloned has it.
pub trait Duplicate {
    /// A copy that goes its own way from now on.
    fn duplicate(&self) -> Box<dyn Controller>;
}

impl<T: Controller + Clone + 'static> Duplicate for T {
    fn duplicate(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// What a controller decides. The sender holds each of these in bounds, and counts that
/// ([`Held`]): a packet's path has no errors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Out {
    /// How much may be under way, bytes; held between the least window and [`LARGEST_WINDOW`].
    pub cwnd: f64,
    /// Below this window it is in slow start, bytes: there the default pacing is faster, and a window
    /// counts as used if half of it is. Infinite: no loss was seen yet; 0: it has no slow start.
    pub ssthresh: f64,
    /// Bytes a second; 0: none of its own. At least a packet in 10⁵ s.
    pub pacing: f64,
    /// Bytes that a paced sender sends together; 0: a packet. At most 65 535 packets.
    pub burst: f64,
    /// When [`Controller::on_timer`] is wanted, ns, or [`NEVER`]. The time that has come may stay; another one
    /// is later than that of the call, or never comes.
    pub timer: u64,
    /// What is sent now tells nothing of the bandwidth.
    pub app_limited: bool,
}

impl Default for Out {
    fn default() -> Self {
        Self {
            cwnd: 0.0,
            ssthresh: f64::INFINITY,
            pacing: 0.0,
            burst: 0.0,
            timer: NEVER,
            app_limited: false,
        }
    }
}

/// What a flow's controllers decided out of bounds, and the sender held in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The flow.
    pub flow: usize,
    /// The field of [`Out`].
    pub field: &'static str,
    /// After how many calls.
    pub calls: u64,
    /// The time of the first of them, ns.
    pub first: u64,
}

/// A connection is about to send its first packet.
#[derive(Clone, Copy, Default, Debug)]
pub struct Start {
    /// The time.
    pub now: u64,
    /// The length of a packet.
    pub mtu: u64,
    /// The window that it may begin with.
    pub initial_window: u64,
    /// The least window.
    pub min_window: u64,
}

/// A packet leaves.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sent {
    /// The time.
    pub now: u64,
    /// Its number, from 0; that of the first sending if it is sent again.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
    /// Under way before.
    pub in_flight: u64,
    /// The application has nothing more.
    pub app_limited: bool,
    /// It was sent before.
    pub retransmission: bool,
}

/// A packet is lost.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lost {
    /// The time.
    pub now: u64,
    /// Its number.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
    /// When it was sent last.
    pub sent_at: u64,
    /// What [`Controller::on_send`] gave for it.
    pub tag: u64,
    /// Under way when it was sent, with it.
    pub tx_in_flight: u64,
    /// Lost since it was sent, with it.
    pub lost_since_sent: u64,
    /// The application had nothing more then.
    pub app_limited: bool,
    /// The packet before it was not found lost just before.
    pub new_range: bool,
}

/// Why a window gives way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Kind {
    /// A packet was lost.
    #[default]
    Loss,
    /// A packet was marked.
    Ecn,
    /// The retransmission timer has run out.
    Timeout,
    /// It has run out again, and nothing has arrived since: for three timeouts (RFC 9002 §7.6).
    Persistent,
}

/// The network is congested.
#[derive(Clone, Copy, Default, Debug)]
pub struct Congestion {
    /// The time.
    pub now: u64,
    /// How that shows.
    pub kind: Kind,
    /// Under way, without what is lost.
    pub in_flight: u64,
    /// Found lost just now; 0 if the episode begins with what was found lost before.
    pub lost: u64,
    /// Packets that were just reported as marked, as in [`Ack::ce_packets`].
    pub ce: u64,
    /// The number of the first packet that was not sent yet: the episode ends once those below have
    /// arrived.
    pub recovery_point: u64,
    /// Another episode begins. If not, the window gave way for this already, and the slow-start
    /// threshold stays (RFC 5681 §3.1): a timeout follows, or losses are found in an episode that a mark began.
    pub new_episode: bool,
}

/// An episode was needless.
#[derive(Clone, Copy, Default, Debug)]
pub struct Undo {
    /// The time.
    pub now: u64,
    /// [`Kind::Loss`], or [`Kind::Timeout`] if the timer had run out.
    pub kind: Kind,
}

/// An acknowledgement. Its fields of one packet are those of the last sent among the packets that it is the
/// first to acknowledge.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ack {
    /// The time.
    pub now: u64,
    /// That it is the first to acknowledge.
    pub acked: u64,
    /// Packets that it tells were marked. Only `accecn = true` counts them; the echo of RFC 3168 tells that there
    /// was one, and this is 1 where such an echo begins an episode.
    pub ce_packets: u64,
    /// The number of that packet.
    pub largest: u64,
    /// When it was sent.
    pub sent_at: u64,
    /// What [`Controller::on_send`] gave for it.
    pub tag: u64,
    /// The round trip that it is a sample of; 0: none.
    pub rtt: u64,
    /// The smoothed round trip; 0 before the first sample.
    pub srtt: u64,
    /// How much round trips vary (RFC 6298).
    pub rttvar: u64,
    /// The least round trip of the last five minutes; 0 before the first sample.
    pub min_rtt: u64,
    /// Under way before.
    pub prior_in_flight: u64,
    /// Under way after.
    pub in_flight: u64,
    /// Delivered in all.
    pub delivered: u64,
    /// Delivered when that packet was sent.
    pub prior_delivered: u64,
    /// The losses since that packet was sent.
    pub lost: u64,
    /// Under way when it was sent, with it.
    pub tx_in_flight: u64,
    /// The time that the sample of the delivery rate is over; 0: it is too short.
    pub interval: u64,
    /// That rate; 0: none.
    pub rate: f64,
    /// The application had nothing more when that packet was sent.
    pub app_limited: bool,
    /// Another round trip begins.
    pub round_start: bool,
    /// The window was used: it may grow (RFC 9002 §7.8).
    pub window_limited: bool,
    /// An episode that did not begin with a timeout goes on: losses are repaired, or it is not a round trip since
    /// a mark. Reno's window does not grow then; one that answers each mark may.
    pub in_recovery: bool,
}

/// Makes controllers, one for each connection.
pub trait Make: Send + Sync {
    /// The controller of a connection, which draws from `rng` alone.
    fn make(&self, start: &Start, rng: Rng) -> Box<dyn Controller>;
}

impl<F: Fn(&Start, Rng) -> Box<dyn Controller> + Send + Sync> Make for F {
    fn make(&self, start: &Start, rng: Rng) -> Box<dyn Controller> {
        self(start, rng)
    }
}

/// Runs classes of another language.
pub trait Provider: Sync {
    /// What makes controllers of a class. Its first connection will `start` like this.
    ///
    /// # Errors
    /// The class cannot be used.
    fn maker(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        start: &Start,
    ) -> Result<Arc<dyn Make>, Complaint>;
}

static REGISTERED: Mutex<BTreeMap<String, Arc<dyn Make>>> = Mutex::new(BTreeMap::new());
static PROVIDER: OnceLock<&'static dyn Provider> = OnceLock::new();

/// From now on `transport = "rust:NAME"` is this controller.
pub fn register(name: &str, make: impl Make + 'static) {
    let mut all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(name.into(), Arc::new(make));
}

/// From now on classes are run by this; only the first call has an effect.
pub fn provide(provider: &'static dyn Provider) {
    let _ = PROVIDER.set(provider);
}

/// The controllers of a flow.
#[derive(Clone)]
pub(crate) struct Setting {
    flow: usize,
    /// The length of a packet, the least window, bytes.
    pub(crate) mtu: f64,
    pub(crate) min_window: f64,
    /// Without a rate of its own it is paced by its window.
    pub(crate) paced: bool,
    pub(crate) make: Arc<dyn Make>,
    /// What was held in bounds, of all flows of the group.
    held: Arc<Mutex<BTreeMap<(usize, &'static str), Held>>>,
}

impl Setting {
    /// That of flows of group `number`, if their controllers are brought along.
    pub(crate) fn of(spec: &TrafficSpec, number: usize) -> Result<Option<Self>, Complaint> {
        let name = spec.group.transport.name();
        let Transport::Tcp(tcp) = &spec.transport else { return Ok(None) };
        let mtu = u64::from(spec.group.packet_bytes().unwrap_or(1000));
        let min_window = mtu * u64::from(tcp.min_window);
        let within = |c: Complaint| Complaint { key: format!("traffic[{number}].{}", c.key), ..c };
        let make = if let Some(class) = spec.class() {
            let settings = spec.settings();
            let settings: Vec<_> = settings.iter().map(|(key, text)| (*key, &text[..])).collect();
            let initial_window = mtu * u64::from(tcp.initial_window);
            let start = Start { now: 0, mtu, initial_window, min_window };
            let provider = PROVIDER.get().ok_or_else(|| {
                Complaint::wrong("transport", "a class in Python, which nobody runs here")
            });
            provider.and_then(|own| own.maker(class, &settings, &start)).map_err(within)?
        } else if let Some(name) = registered(name) {
            by_name(name, tcp.params.keys().next()).map_err(within)?
        } else {
            return Ok(None);
        };
        let paced = tcp.pacing == Some(true);
        let (mtu, min_window) = (mtu as f64, min_window as f64);
        Ok(Some(Self { flow: 0, mtu, min_window, paced, make, held: Arc::default() }))
    }

    /// That of one flow of the group.
    pub(crate) fn of_flow(&self, flow: usize) -> Arc<Self> {
        Arc::new(Self { flow, ..self.clone() })
    }

    /// Notes that a decision was held in bounds at `now`.
    #[cold]
    pub(crate) fn note_held(&self, field: &'static str, now: u64) {
        let first = Held { flow: self.flow, field, calls: 0, first: now };
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((self.flow, field)).or_insert(first).calls += 1;
    }

    /// All that was held in bounds, by flow and field.
    pub(crate) fn held(&self) -> Vec<Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
    }
}

/// The controller that is registered under a name, which takes no parameter.
fn by_name(name: &str, parameter: Option<&String>) -> Result<Arc<dyn Make>, Complaint> {
    if let Some(key) = parameter {
        let problem = "a controller that is registered has no parameters";
        return Err(Complaint::wrong(format!("params.{key}"), problem));
    }
    let all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let refused = Complaint::wrong("transport", "no such controller is registered");
        let hint = match names.is_empty() {
            true => {
                "a program that links the simulator registers it: sim::control::register".into()
            }
            false => did_you_mean(name, names.iter().copied()),
        };
        refused.allowed(names.join(", ")).hint(hint)
    })
}
