//! Counts and gauges for a monitoring system: OpenMetrics text over HTTP, on this machine's loopback
//! address only.

use std::fmt::{self, Write as _};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde_json::Value;

use crate::clock::Clock;
use crate::control::{Asking, Request};
use crate::trouble::Trouble;

/// The longest request, bytes.
const LONGEST: usize = 4096;
/// How long a client may take in all, ns.
const PATIENCE: u64 = 2_000_000_000;
/// The most clients at a time. The one that is there longest makes room for a new one.
const MOST: usize = 128;
/// The most that are let in at a time: each is read once before it may have to make room.
const AT_ONCE: usize = 32;
/// The most parts of what one says that are read at a time.
const PARTS: usize = 16;
/// The forwarding thread is asked no more often, however many want to know, ns.
const FRESH: u64 = 100_000_000;

/// A port that waits for requests.
#[derive(Debug)]
pub struct Metrics(TcpListener);

impl Metrics {
    /// Opens `port` of the loopback address; 0 chooses a free one.
    ///
    /// # Errors
    /// When it is taken.
    pub fn bind(port: u16) -> Result<Self, Trouble> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|e| {
            Trouble::new(format!("metrics at port {port}: {e}"), "--metrics 0 chooses a free port")
        })?;
        Ok(Self(listener))
    }

    /// Where to ask.
    pub fn url(&self) -> String {
        self.0.local_addr().map_or_else(|_| String::new(), |at| format!("http://{at}/metrics"))
    }

    /// Answers in a thread of its own.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn serve(self, mut asking: Asking) -> Result<(), Trouble> {
        let failed = |e: io::Error| Trouble::system("starting a thread", e);
        self.0.set_nonblocking(true).map_err(failed)?;
        let listen = move || {
            let mut page = Page { at: 0, answer: None };
            let clock = Clock::new();
            let mut visitors = Vec::new();
            loop {
                wait(&self.0, &visitors);
                let now = clock.now();
                for _ in 0..AT_ONCE {
                    let Ok((stream, _)) = self.0.accept() else { break };
                    if visitors.len() == MOST {
                        visitors.remove(0);
                    }
                    if stream.set_nonblocking(true).is_ok() {
                        visitors.push(Visitor::new(stream, now));
                    }
                }
                visitors.retain_mut(|visitor| {
                    now - visitor.since < PATIENCE
                        && visitor.go_on(|| page.fresh(now, &mut asking)).unwrap_or(false)
                });
            }
        };
        let thread = thread::Builder::new().name("metrics".into()).spawn(listen);
        thread.map(drop).map_err(failed)
    }
}

/// Waits until somebody comes or goes on, or may have had enough time.
fn wait(listener: &TcpListener, visitors: &[Visitor]) {
    let mut fds = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    fds.extend(visitors.iter().map(|visitor| {
        let writes = !visitor.answer.is_empty();
        let flags = if writes { PollFlags::POLLOUT } else { PollFlags::POLLIN };
        PollFd::new(visitor.stream.as_fd(), flags)
    }));
    let time = if visitors.is_empty() { PollTimeout::NONE } else { PollTimeout::from(500u16) };
    _ = poll(&mut fds, time);
}

/// What is answered, for a while.
struct Page {
    at: u64,
    answer: Option<Result<String, Trouble>>,
}

impl Page {
    fn fresh(&mut self, now: u64, asking: &mut Asking) -> &Result<String, Trouble> {
        if now - self.at >= FRESH {
            self.answer = None;
        }
        self.answer.get_or_insert_with(|| {
            self.at = now;
            asking.ask(Request::Show {}).map(text)
        })
    }
}

/// A connection.
struct Visitor {
    stream: TcpStream,
    since: u64,
    request: Vec<u8>,
    /// What is still to be sent.
    answer: Vec<u8>,
    /// All was sent; it may read that before the connection goes.
    answered: bool,
}

impl Visitor {
    fn new(stream: TcpStream, since: u64) -> Self {
        Self { stream, since, request: Vec::new(), answer: Vec::new(), answered: false }
    }

    /// Does what can be done now. Whether it is to stay.
    fn go_on<'a>(
        &mut self,
        page: impl FnOnce() -> &'a Result<String, Trouble>,
    ) -> io::Result<bool> {
        let mut part = [0; 512];
        for _ in 0..PARTS {
            if !self.answer.is_empty() {
                break;
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(false),
                Ok(_) if self.answered => {}
                Ok(length) => self.request.extend_from_slice(&part[..length]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(e),
            }
            if self.answered {
                continue;
            }
            if let Some(asked) = read(&self.request) {
                self.answer = reply(asked, page);
                break;
            }
            if self.request.len() > LONGEST {
                return Ok(false);
            }
        }
        if self.answer.is_empty() {
            return Ok(true);
        }
        while !self.answer.is_empty() {
            match self.stream.write(&self.answer) {
                Ok(length) => self.answer.drain(..length),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(e),
            };
        }
        self.answered = true;
        self.stream.shutdown(Shutdown::Write)?;
        Ok(true)
    }
}

/// What a request wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The metrics.
    Metrics,
    /// Something else, or something else than reading them.
    Other,
    /// This is no HTTP.
    Nonsense,
}

/// Reads a request, once all of it is there.
pub fn read(request: &[u8]) -> Option<Wanted> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(Wanted::Nonsense),
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.and_then(|path| path.split('?').next());
            let metrics = parsed.method == Some("GET") && path == Some("/metrics");
            Some(if metrics { Wanted::Metrics } else { Wanted::Other })
        }
    }
}

fn reply<'a>(wanted: Wanted, page: impl FnOnce() -> &'a Result<String, Trouble>) -> Vec<u8> {
    let (status, kind, body) = match wanted {
        Wanted::Nonsense => ("400 Bad Request", "text/plain", "this is no HTTP\n".into()),
        Wanted::Other => ("404 Not Found", "text/plain", "there is GET /metrics\n".into()),
        Wanted::Metrics => match page() {
            Ok(text) => ("200 OK", OPEN_METRICS, text.clone()),
            Err(trouble) => ("503 Service Unavailable", "text/plain", format!("{trouble}\n")),
        },
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What `show` tells, as OpenMetrics.
fn text(state: Value) -> String {
    let mut registry = Registry::with_prefix("bluewater");
    registry.register_collector(Box::new(State(state)));
    let mut text = String::new();
    if prometheus_client::encoding::text::encode(&mut text, &registry).is_err() {
        text.clear();
        _ = writeln!(text, "# EOF");
    }
    text
}

/// A metric: its name, what it means, whether it only grows, and where it stands in the state; a
/// last word `*` is each member of an object, which a label of this name tells.
type Metric = (&'static str, &'static str, MetricType, &'static str, &'static str);

const METRICS: &[Metric] = &[
    ("backlog_packets", "Packets queued", MetricType::Gauge, "backlog_packets", ""),
    ("backlog_bytes", "Bytes queued", MetricType::Gauge, "backlog_bytes", ""),
    ("delay_seconds", "Time to send what is queued", MetricType::Gauge, "delay_s", ""),
    ("arrivals", "Packets that arrived", MetricType::Counter, "arrivals", ""),
    ("arrivals_bytes", "Bytes that arrived", MetricType::Counter, "arrivals_bytes", ""),
    ("departures", "Packets that were sent", MetricType::Counter, "departures", ""),
    ("departures_bytes", "Bytes that were sent", MetricType::Counter, "departures_bytes", ""),
    ("drops", "Packets dropped, by cause", MetricType::Counter, "drops", "cause"),
    ("marks", "Packets marked CE, by cause", MetricType::Counter, "marks", "cause"),
    ("refused", "Packets that were not carried", MetricType::Counter, "refused", ""),
    ("lost_before", "Packets lost before they were read", MetricType::Counter, "lost_before", ""),
    ("lateness_p99_seconds", "Lateness of departures", MetricType::Gauge, "lateness_p99_s", ""),
    ("conserved", "1 if every packet is accounted for", MetricType::Gauge, "conserved", ""),
    ("signal", "Signals of the queue discipline", MetricType::Gauge, "signals", "name"),
];

#[derive(Debug)]
struct State(Value);

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for &(name, help, kind, key, label) in METRICS {
            let queues = self.0["queues"].as_array().into_iter().flatten();
            let none = |queue: &Value| match &queue[key] {
                Value::Object(members) => members.is_empty(),
                value => value.is_null(),
            };
            if queues.clone().all(none) {
                continue;
            }
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for queue in queues {
                let way = queue["queue"].as_str().unwrap_or_default();
                let mut one = |labels: &[(&str, &str)], value: &Value| {
                    let number = value.as_f64().unwrap_or(f64::from(value == true));
                    let metric = family.encode_family(&labels)?;
                    match kind {
                        MetricType::Counter => {
                            ConstCounter::new(value.as_u64().unwrap_or_default()).encode(metric)
                        }
                        _ => ConstGauge::new(number).encode(metric),
                    }
                };
                match &queue[key] {
                    Value::Object(members) => {
                        for (member, value) in members {
                            one(&[("queue", way), (label, member)], value)?;
                        }
                    }
                    Value::Null => {}
                    value => one(&[("queue", way)], value)?,
                }
            }
        }
        self.times(&mut encoder)?;
        self.lost(&mut encoder)
    }
}

impl State {
    /// The histogram of the time in the queue.
    fn times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time in the queue of packets that were sent";
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("sojourn_seconds", help, None, kind)?;
        for queue in self.0["queues"].as_array().into_iter().flatten() {
            let way = queue["queue"].as_str().unwrap_or_default();
            let times = &queue["sojourn"];
            let bucket =
                |pair: &Value| Some((pair[0].as_f64().unwrap_or(f64::INFINITY), pair[1].as_u64()?));
            let buckets: Vec<_> =
                times["buckets"].as_array().into_iter().flatten().filter_map(bucket).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = times["sum_s"].as_f64().unwrap_or_default();
            let labels = [("queue", way)];
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    /// What could not be written.
    fn lost(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Records of a file that could not be written";
        let kind = MetricType::Counter;
        if self.0["lost_records"].as_object().is_none_or(|all| all.is_empty()) {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor("lost_records", help, None, kind)?;
        for (file, count) in self.0["lost_records"].as_object().into_iter().flatten() {
            let count = ConstCounter::new(count.as_u64().unwrap_or_default());
            count.encode(family.encode_family(&[("file", file.as_str())])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_state_as_open_metrics() {
        let queue = json!({
            "queue": "up", "backlog_packets": 3, "delay_s": 0.0025, "arrivals": 1_000_000_000_000u64,
            "drops": {"overflow": 2, "early": 5}, "signals": {"p_m": 0.25}, "conserved": true,
            "sojourn": {"sum_s": 0.75, "buckets": [[0.001, 5], [0.1, 2], [null, 1]]},
        });
        let text = text(json!({"queues": [queue], "lost_records": {"log": 3}}));
        for line in [
            "# TYPE bluewater_backlog_packets gauge",
            "bluewater_backlog_packets{queue=\"up\"} 3.0",
            "bluewater_delay_seconds{queue=\"up\"} 0.0025",
            "bluewater_arrivals_total{queue=\"up\"} 1000000000000",
            "bluewater_drops_total{queue=\"up\",cause=\"early\"} 5",
            "bluewater_signal{queue=\"up\",name=\"p_m\"} 0.25",
            "bluewater_conserved{queue=\"up\"} 1.0",
            "bluewater_sojourn_seconds_sum{queue=\"up\"} 0.75",
            "bluewater_sojourn_seconds_count{queue=\"up\"} 8",
            "bluewater_sojourn_seconds_bucket{le=\"0.1\",queue=\"up\"} 7",
            "bluewater_sojourn_seconds_bucket{le=\"+Inf\",queue=\"up\"} 8",
            "bluewater_lost_records_total{file=\"log\"} 3",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    /// Who goes on sending behind its request is cut off as others are, and others are answered.
    #[test]
    fn a_client_without_an_end_is_cut_off() {
        use std::os::unix::net::UnixStream;
        use std::time::Duration;

        let (_waker, wake) = UnixStream::pair().unwrap();
        let (asking, inbox) = crate::control::line(&wake).unwrap();
        thread::spawn(move || {
            inbox.into_iter().for_each(|asked| _ = asked.answer.send(Ok(json!({}))));
        });
        let metrics = Metrics::bind(0).unwrap();
        let address = metrics.0.local_addr().unwrap();
        metrics.serve(asking).unwrap();
        let request = b"GET /metrics HTTP/1.1\r\n\r\n";
        let clock = Clock::new();
        let patient = Duration::from_nanos(PATIENCE);
        let endless = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_write_timeout(Some(3 * patient)).unwrap();
            stream.write_all(request).unwrap();
            while stream.write_all(&[0; 65_536]).is_ok() && clock.now() < 3 * PATIENCE {}
            clock.now()
        });
        while !endless.is_finished() {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(patient)).unwrap();
            stream.write_all(request).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            thread::sleep(Duration::from_millis(50));
        }
        let lasted = endless.join().unwrap();
        assert!((PATIENCE / 2..2 * PATIENCE).contains(&lasted), "{lasted} ns");
    }

    #[test]
    fn a_request_is_read_once_it_is_there() {
        for (request, wanted) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", Some(Wanted::Metrics)),
            ("GET /metrics?x=1&y HTTP/1.1\r\nHost: x\r\n\r\n", Some(Wanted::Metrics)),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n", None),
            ("GET /metric", None),
            ("GET /metricsx HTTP/1.1\r\n\r\n", Some(Wanted::Other)),
            ("POST /metrics HTTP/1.1\r\n\r\n", Some(Wanted::Other)),
            ("\0\0", Some(Wanted::Nonsense)),
            ("GET /metrics HTTP/1.1 what\r\n\r\n", Some(Wanted::Nonsense)),
        ] {
            assert_eq!(read(request.as_bytes()), wanted, "{request}");
        }
    }
}
