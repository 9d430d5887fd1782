//! Experiments with real packets: a sender, the gateway and a receiver, each in a network namespace
//! (the gateway needs none), and the kernel's own TCP between them. All of it is one process, so
//! that nothing is left however it ends.
//!
//! `feng/fig13` (000 §III.E, Figs. 12 and 13): RED and BLUE on a 10 Mb/s link with 50 kB of buffer,
//! n bulk connections with ECN. Where the paper is silent: TCP is Reno, as FreeBSD's of 1998;
//! connections are made before any of them sends, then given a warm-up; the way back is a full-duplex link of the
//! same rate, while the paper's Ethernet was shared with the acknowledgements; no delay is added to
//! that of the machine.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use aqm::{Duration, Limit, Rate};
use serde_json::{Value, json};

use crate::link::Spec;
use crate::namespace::Namespace;
use crate::privilege::RealTime;
use crate::session::{Forwarding, Session};
use crate::shell::{Ends, FAR, terminated, waker};
use crate::traffic;
use crate::trouble::Trouble;

/// How long, and under which loads.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Numbers of connections.
    pub loads: Vec<usize>,
    /// Before the first interval.
    pub warmup: Duration,
    /// Length of an interval.
    pub interval: Duration,
    /// How many intervals are averaged.
    pub intervals: usize,
}

impl Plan {
    /// The paper's: five intervals of 10 s.
    pub fn full() -> Self {
        Self {
            loads: vec![10, 20, 40, 80, 160],
            warmup: Duration::from_secs(5),
            interval: Duration::from_secs(10),
            intervals: 5,
        }
    }

    /// A quick look.
    pub fn quick() -> Self {
        Self {
            loads: vec![20, 80],
            warmup: Duration::from_secs(2),
            interval: Duration::from_secs(2),
            intervals: 3,
        }
    }
}

/// A claim, and whether it holds here.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Its letter and text.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was measured.
    pub measured: String,
}

/// A queue of the experiment.
const RED: (&str, &[(&str, &str)]) = (
    "red",
    &[("mode", "bytes"), ("min_th", "10kB"), ("max_th", "40kB"), ("max_p", "1"), ("w_q", "0.002")],
);
const BLUE: (&str, &[(&str, &str)]) =
    ("blue", &[("freeze_time", "50ms"), ("increment", "0.01"), ("decrement", "0.001")]);

/// Runs `feng/fig13`, gives each interval's row to `row`, and judges the claims.
///
/// # Errors
/// What is missing here.
pub fn fig13(plan: &Plan, mut row: impl FnMut(&Value)) -> Result<Vec<Verdict>, Trouble> {
    let (mut throughput, mut loss) = (Vec::new(), Vec::new());
    for &flows in &plan.loads {
        let mut of = |queue| run(plan, queue, Rate::from_mbit(10), flows, &mut row);
        let (red, blue) = (of(RED)?, of(BLUE)?);
        throughput.push((flows, compare(&red, &blue, "throughput_bps")));
        loss.push((flows, compare(&red, &blue, "loss")));
    }
    let fast = run(plan, BLUE, Rate::from_mbit(100), 20, &mut row)?;
    let fast = mean(&values(&fast, "throughput_bps")) / 1e6;
    Ok(vec![
        Verdict {
            claim: "a: BLUE's throughput is at least RED's at every load".into(),
            holds: throughput.iter().all(|(_, c)| c.order() >= 0),
            measured: shown(&throughput, 1e6, "Mb/s"),
        },
        Verdict {
            claim: "b: BLUE's loss is below RED's at every load".into(),
            holds: loss.iter().all(|(_, c)| c.order() < 0),
            measured: shown(&loss, 0.01, "%"),
        },
        Verdict {
            claim: "c: at 100 Mb/s the gateway sustains more than 80 Mb/s".into(),
            holds: fast > 80.0,
            measured: format!("{fast:.1} Mb/s"),
        },
    ])
}

/// One queue under one load: a row an interval.
fn run(
    plan: &Plan,
    (aqm, params): (&str, &[(&str, &str)]),
    rate: Rate,
    flows: usize,
    row: &mut impl FnMut(&Value),
) -> Result<Vec<Value>, Trouble> {
    let up = Spec {
        rate,
        delay: Duration::ZERO,
        limit: Limit::bytes(50_000).ok_or_else(|| Trouble::new("no buffer", ""))?,
        aqm: aqm.into(),
        params: params.iter().map(|&(k, v)| (k.into(), v.into())).collect(),
        mean_packet: 1500,
        seed: 1,
    };
    let down = Spec { aqm: "droptail".into(), params: Vec::new(), ..up.clone() };
    let how = Forwarding {
        name: None,
        metrics: None,
        realtime: RealTime::Auto,
        spin: 0,
        log: None,
        record: None,
        interval: 1_000_000_000,
    };
    let (waker, wake) = waker()?;
    let told = terminated(&wake)?;
    let (ends, ports) = Ends::new(1500, true)?;
    let mut session = Session::new(&[up, down], &how, ports, 1500)?;
    let traffic = Traffic::start(&ends, flows)?;
    // Each connection is there before data fills the queue: a SYN is not ECN-capable, and where all
    // is marked none comes through.
    while !traffic.sending.load(Ordering::Relaxed) {
        session.forward(session.now() + 10_000_000, &waker)?;
    }
    let mut rows = Vec::new();
    let mut until = Duration::from_nanos(session.now()) + plan.warmup;
    for interval in 0..=plan.intervals {
        session.forward(until.as_nanos(), &waker)?;
        if told.load(Ordering::Relaxed) {
            return Err(Trouble::new("interrupted", ""));
        }
        if interval > 0 {
            let [mut line, _] = session.summaries(ends.lost());
            line["flows"] = flows.into();
            line["connected"] = traffic.connected.load(Ordering::Relaxed).into();
            line["rate"] = rate.to_string().into();
            line["interval"] = interval.into();
            row(&line);
            rows.push(line);
        }
        session.restart_measurement();
        until += plan.interval;
    }
    traffic.stop();
    Ok(rows)
}

/// A sender and a receiver at work.
struct Traffic {
    stop: Arc<AtomicBool>,
    /// Whether the connections have been made, and how many.
    sending: Arc<AtomicBool>,
    connected: Arc<AtomicUsize>,
    threads: [thread::JoinHandle<()>; 2],
}

impl Traffic {
    fn start(ends: &Ends, flows: usize) -> Result<Self, Trouble> {
        let stop = Arc::new(AtomicBool::new(false));
        let listener = ends
            .far
            .run(|| TcpListener::bind((FAR[0], traffic::PORT)))
            .map_err(|e| Trouble::system("listening at the far end", e))?;
        let receiver = {
            let stop = Arc::clone(&stop);
            at(&ends.far, move || {
                _ = traffic::receive(&listener, &stop, &AtomicU64::new(0));
            })
        };
        let (sending, connected) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let sender = {
            let stop = Arc::clone(&stop);
            let (sending, connected) = (Arc::clone(&sending), Arc::clone(&connected));
            at(&ends.near, move || {
                let to = SocketAddr::new(FAR[0], traffic::PORT);
                let streams = traffic::open(to, flows, Some("reno"));
                connected.store(streams.as_ref().map_or(0, Vec::len), Ordering::Relaxed);
                sending.store(true, Ordering::Relaxed);
                if let Err(e) = streams.and_then(|streams| traffic::send(streams, &stop)) {
                    eprintln!("sending: {e}");
                }
            })
        };
        Ok(Self { stop, sending, connected, threads: [receiver, sender] })
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| _ = thread.join());
    }
}

/// A thread in a namespace.
fn at(namespace: &Namespace, job: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    namespace.run(move || thread::spawn(job))
}

/// Means of RED's and BLUE's intervals, and the standard error of their difference.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    red: f64,
    blue: f64,
    error: f64,
}

impl Comparison {
    /// −1, 0, 1: BLUE's is less than, like, more than RED's. Less and more mean by two standard
    /// errors.
    fn order(self) -> i8 {
        let difference = self.blue - self.red;
        i8::from(difference > 2.0 * self.error) - i8::from(difference < -2.0 * self.error)
    }
}

fn compare(red: &[Value], blue: &[Value], key: &str) -> Comparison {
    let (red, blue) = (values(red, key), values(blue, key));
    let error = |x: &[f64]| variance(x) / x.len() as f64;
    Comparison { red: mean(&red), blue: mean(&blue), error: (error(&red) + error(&blue)).sqrt() }
}

fn shown(all: &[(usize, Comparison)], unit: f64, name: &str) -> String {
    let each = all.iter().map(|(flows, c)| {
        let sign = ["<", "≈", ">"][(c.order() + 1) as usize];
        format!("{flows} flows: BLUE {:.3} {sign} RED {:.3} {name}", c.blue / unit, c.red / unit)
    });
    each.collect::<Vec<_>>().join("; ")
}

fn values(rows: &[Value], key: &str) -> Vec<f64> {
    rows.iter().filter_map(|row| row[key].as_f64()).collect()
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (x.len() as f64 - 1.0)
}

/// What was judged, as JSON.
pub fn report(verdicts: &[Verdict]) -> Value {
    let each = verdicts
        .iter()
        .map(|v| json!({"claim": v.claim, "holds": v.holds, "measured": v.measured}));
    json!({"experiment": "feng/fig13", "claims": each.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: [f64; 3]) -> Vec<Value> {
        values.map(|v| json!({"loss": v})).into()
    }

    /// Variances 1 and 1, three intervals each: the error is √(2/3) = 0.816, twice it 1.63.
    #[test]
    fn a_difference_counts_from_two_standard_errors_on() {
        let red = rows([4.0, 5.0, 6.0]);
        for (blue, order) in [(1.0, -1), (3.3, -1), (3.5, 0), (5.0, 0), (6.5, 0), (6.7, 1)] {
            let c = compare(&red, &rows([blue - 1.0, blue, blue + 1.0]), "loss");
            assert!((c.error - 0.8165).abs() < 1e-4);
            assert_eq!(c.order(), order, "{blue}");
        }
        let same = compare(&rows([0.0; 3]), &rows([0.0; 3]), "loss");
        assert_eq!(same.order(), 0, "no loss is not below no loss");
    }
}
