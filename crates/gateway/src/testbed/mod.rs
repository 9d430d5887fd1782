//! A measurement with real packets: a sender, the gateway and a receiver, each in a network
//! namespace (the gateway needs none), and the kernel's own TCP between them. All of it is one
//! process, so that nothing is left however it ends.
//!
//! All connections are made before any of them sends: a SYN is not ECN-capable, and where all is
//! marked none comes through. Then there is a warm-up, and then the window that is measured.

pub mod bench;
pub mod datagrams;
pub mod traffic;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use aqm::Duration;
use serde_json::{Value, json};

use crate::link::Spec;
use crate::namespace::Namespace;
use crate::namespace::ends::{Ends, Places};
use crate::session::{Forwarding, Session};
use crate::signals::{terminated, waker};
use crate::trouble::Trouble;
use datagrams::{Blast, Counts, PAYLOAD, Tally};
use traffic::Received;

/// What is sent, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of connections that always have something to send.
    pub flows: usize,
    /// Datagrams beside them, a flow each.
    pub blasts: Vec<Blast>,
    /// The kernel's congestion control.
    pub congestion: String,
    /// Whether TCP uses selective acknowledgements.
    pub sack: bool,
    /// Whether TCP asks for ECN.
    pub ecn: bool,
    /// Before the window.
    pub warmup: Duration,
    /// Length of the window.
    pub window: Duration,
    /// Time between samples of the queues; none if 0.
    pub interval: Duration,
}

/// Runs `plan` over the links of `specs`: the summaries of both queues over the window, the goodput
/// of each connection, what became of the datagrams, and samples of the way up from the beginning of
/// the warm-up on, as JSON.
///
/// # Errors
/// What is missing here.
pub fn run(specs: &[Spec; 2], plan: &Plan) -> Result<Value, Trouble> {
    let how = Forwarding::silent();
    let (waker, wake) = waker()?;
    let told = terminated(&wake)?;
    let (ends, ports) = Ends::new(&Places::new(0), 1500, plan.ecn)?;
    let mut session = Session::new(specs, &how, ports)?;
    let traffic = Traffic::start(&ends, plan)?;
    while !traffic.sending.load(Ordering::Relaxed) {
        session.forward(session.now() + 10_000_000, &waker)?;
    }
    let began = session.now();
    let (warm, end) =
        (began + plan.warmup.as_nanos(), began + (plan.warmup + plan.window).as_nanos());
    let step = if plan.interval == Duration::ZERO { u64::MAX } else { plan.interval.as_nanos() };
    let mut next = began.saturating_add(step);
    let (mut series, mut before) = (Vec::new(), None);
    _ = session.sample();
    loop {
        let now = session.now();
        if before.is_none() && now >= warm {
            session.restart_measurement();
            before = Some((traffic.received.each(), traffic.counts()));
        }
        if now >= next {
            let [mut sample, _] = session.sample();
            sample["time_s"] = ((now - began) as f64 / 1e9).into();
            series.push(sample);
            next += step;
        }
        if now >= end {
            break;
        }
        let until = if now < warm { warm } else { end };
        session.forward(until.min(next), &waker)?;
        if told.load(Ordering::Relaxed) {
            return Err(Trouble::new("interrupted", ""));
        }
    }
    let queues = session.summaries(ends.lost());
    let (before, counts_before) = before.unwrap_or_default();
    let after = traffic.received.each();
    let counts =
        traffic.counts().into_iter().zip(counts_before).map(|(all, before)| all.since(before));
    let seconds = queues[0]["measured_s"].as_f64().unwrap_or(f64::NAN);
    let goodput = after.iter().enumerate().map(|(i, bytes)| {
        let bytes = bytes - before.get(i).copied().unwrap_or_default();
        json!({"flow": i, "transport": "tcp", "goodput_bps": 8.0 * bytes as f64 / seconds})
    });
    let datagrams = counts.zip(after.len()..).map(|(counts, flow)| cbr(flow, counts, seconds));
    let result = json!({
        "queues": queues,
        "flows": goodput.chain(datagrams).collect::<Vec<_>>(),
        "series": series,
        "connected": traffic.connected.load(Ordering::Relaxed),
        "conserved": session.conserved(),
    });
    traffic.stop();
    Ok(result)
}

/// The row of datagrams, as flow number `flow`.
fn cbr(flow: usize, counts: Counts, seconds: f64) -> Value {
    json!({
        "flow": flow, "transport": "cbr",
        "goodput_bps": 8.0 * (counts.received * PAYLOAD as u64) as f64 / seconds,
        "sent": counts.sent, "received": counts.received, "marked": counts.marked,
    })
}

/// A sender and a receiver at work.
struct Traffic {
    stop: Arc<AtomicBool>,
    received: Arc<Received>,
    /// Of each flow of datagrams.
    datagrams: Vec<Arc<Tally>>,
    /// Whether the connections have been made, and how many.
    sending: Arc<AtomicBool>,
    connected: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Traffic {
    fn start(ends: &Ends, plan: &Plan) -> Result<Self, Trouble> {
        if !plan.sack {
            for end in [&ends.near, &ends.far] {
                end.run(|| fs::write("/proc/sys/net/ipv4/tcp_sack", "0"))
                    .map_err(|e| Trouble::system("switching SACK off", e))?;
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let listener = ends
            .far
            .run(|| TcpListener::bind((far(), traffic::PORT)))
            .map_err(|e| Trouble::system("listening at the far end", e))?;
        let received = Arc::new(Received::default());
        let receiver = {
            let (stop, received) = (Arc::clone(&stop), Arc::clone(&received));
            at(&ends.far, move || _ = traffic::receive(&listener, &stop, &received))
        };
        let (sending, connected) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let sender = {
            let stop = Arc::clone(&stop);
            let (sending, connected) = (Arc::clone(&sending), Arc::clone(&connected));
            let (flows, congestion) = (plan.flows, plan.congestion.clone());
            at(&ends.near, move || {
                let to = SocketAddr::new(far(), traffic::PORT);
                let streams = traffic::open(to, flows, Some(&congestion));
                connected.store(streams.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
                sending.store(true, Ordering::Relaxed);
                if let Err(e) = streams.and_then(|streams| traffic::send(streams, &stop)) {
                    eprintln!("sending: {e}");
                }
            })
        };
        let mut new = Self {
            stop,
            received,
            datagrams: Vec::new(),
            sending,
            connected,
            threads: vec![receiver, sender],
        };
        for &blast in &plan.blasts {
            new.blast(ends, blast).map_err(|e| Trouble::system("opening a UDP socket", e))?;
        }
        Ok(new)
    }

    /// A flow of datagrams, too, once the connections are made.
    fn blast(&mut self, ends: &Ends, blast: Blast) -> io::Result<()> {
        let sink = ends.far.run(|| UdpSocket::bind((far(), 0)))?;
        let to = sink.local_addr()?;
        let source = ends.near.run(move || {
            let socket = UdpSocket::bind((IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))?;
            socket.connect(to).map(|()| socket)
        })?;
        let new = Arc::<Tally>::default();
        self.datagrams.push(Arc::clone(&new));
        let (stop, tally) = (Arc::clone(&self.stop), Arc::clone(&new));
        self.threads.push(at(&ends.far, move || {
            if let Err(e) = datagrams::receive(&sink, &stop, &tally) {
                eprintln!("receiving datagrams: {e}");
            }
        }));
        let (stop, tally) = (Arc::clone(&self.stop), new);
        let sending = Arc::clone(&self.sending);
        self.threads.push(at(&ends.near, move || {
            while !sending.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                thread::sleep(std::time::Duration::from_millis(1));
            }
            if let Err(e) = datagrams::send(&source, blast, &stop, &tally) {
                eprintln!("sending datagrams: {e}");
            }
        }));
        Ok(())
    }

    /// Datagrams so far, of each flow.
    fn counts(&self) -> Vec<Counts> {
        self.datagrams.iter().map(|tally| tally.now()).collect()
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| _ = thread.join());
    }
}

/// The receiver's address.
fn far() -> IpAddr {
    Places::new(0).far[0]
}

/// A thread in a namespace.
fn at(namespace: &Namespace, job: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    namespace.run(move || thread::spawn(job))
}
