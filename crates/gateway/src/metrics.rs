//! Counts and gauges for a monitoring system: OpenMetrics text over HTTP, on this machine's loopback
//! address only.

use std::fmt::{self, Write as _};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
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
/// How long a client may take for its part.
const PATIENCE: Duration = Duration::from_secs(2);

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
        let listen = move || {
            for stream in self.0.incoming().flatten() {
                // One at a time, and whoever is too slow is cut off.
                _ = attend(stream, &mut asking);
            }
        };
        let thread = thread::Builder::new().name("metrics".into()).spawn(listen);
        thread.map(drop).map_err(|e| Trouble::system("starting a thread", e))
    }
}

fn attend(mut stream: TcpStream, asking: &mut Asking) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut request, clock) = (Vec::new(), Clock::new());
    let mut part = [0; 512];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let length = stream.read(&mut part)?;
        request.extend_from_slice(&part[..length]);
        let slow = Duration::from_nanos(clock.now()) > PATIENCE;
        if length == 0 || request.len() > LONGEST || slow {
            return Ok(());
        }
    }
    let (status, kind, body) = if !request.starts_with(b"GET /metrics ") {
        ("404 Not Found", "text/plain", "there is GET /metrics\n".into())
    } else {
        match asking.ask(Request::Show) {
            Ok(state) => ("200 OK", OPEN_METRICS, text(state)),
            Err(trouble) => ("503 Service Unavailable", "text/plain", format!("{trouble}\n")),
        }
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
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
    ("passed", "ARP packets that went by the queue", MetricType::Counter, "passed", ""),
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
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for queue in self.0["queues"].as_array().into_iter().flatten() {
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
        });
        let text = text(json!({"queues": [queue]}));
        for line in [
            "# TYPE bluewater_backlog_packets gauge",
            "bluewater_backlog_packets{queue=\"up\"} 3.0",
            "bluewater_delay_seconds{queue=\"up\"} 0.0025",
            "bluewater_arrivals_total{queue=\"up\"} 1000000000000",
            "bluewater_drops_total{queue=\"up\",cause=\"early\"} 5",
            "bluewater_signal{queue=\"up\",name=\"p_m\"} 0.25",
            "bluewater_conserved{queue=\"up\"} 1.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
