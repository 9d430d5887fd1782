//! Counts and gauges for a monitoring system: OpenMetrics text over HTTP, on this machine's loopback
//! address only.

use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde_json::Value;

use super::asking::{Asking, Latest};
use super::http::{self, Answer, Wish, is_address};
use super::request::Request;
use crate::trouble::Trouble;

/// A port of the loopback address.
///
/// # Errors
/// What is allowed.
pub fn port(text: &str) -> Result<u16, String> {
    let wrong = || "allowed: a PORT, which is at 127.0.0.1, as in 9477; 0 is a free one".into();
    text.parse().map_err(|_| wrong())
}

/// A port that waits for requests.
#[derive(Debug)]
pub struct Metrics(pub(crate) TcpListener);

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
    pub(crate) fn serve(self, asking: Asking) -> Result<(), Trouble> {
        let closed = asking.closed();
        let mut all = Latest::new(asking.again()?, Request::Show { classes: true }, text);
        let mut page = Latest::new(asking, Request::Show { classes: false }, text);
        http::serve(self.0, "metrics", closed, move |now, wish: &Wish| {
            // A page elsewhere may have made its own name lead here (DNS rebinding).
            if wish.host.as_deref().is_some_and(|host| !is_address(host)) {
                return Answer::text("403 Forbidden", "ask for 127.0.0.1 or localhost");
            }
            let of_health = wish.path() == "/health";
            if !wish.reads() || !(of_health || wish.path() == "/metrics") {
                return Answer::text("404 Not Found", "there are GET /metrics and GET /health");
            }
            let mut asked = wish.query().split('&').filter(|word| word.starts_with("classes"));
            let page = match (asked.next(), asked.next()) {
                (None, _) => &mut page,
                (Some("classes=all"), None) => &mut all,
                _ => {
                    return Answer::text(
                        "400 Bad Request",
                        "of classes there is /metrics?classes=all",
                    );
                }
            };
            match page.fresh(now) {
                Ok(_) if of_health => Answer::text("200 OK", "packets are forwarded"),
                Ok(text) => Answer {
                    status: "200 OK",
                    content_type: OPEN_METRICS,
                    headers: HEADERS,
                    body: text.clone().into_bytes(),
                },
                Err(trouble) => Answer::text("503 Service Unavailable", &trouble.to_string()),
            }
        })
    }
}

/// For no page from elsewhere.
const HEADERS: &str =
    "Cross-Origin-Resource-Policy: same-origin\r\nX-Content-Type-Options: nosniff\r\n";

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

/// A metric: its name, what it means, whether it only grows, and where it stands in the state; of an
/// object there each member, which a label of this name tells.
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
    ("wire", "Packets that the wire impaired", MetricType::Counter, "wire", "event"),
    ("refused", "Packets that were not carried", MetricType::Counter, "refused", ""),
    ("lost_before", "Packets lost before they were read", MetricType::Counter, "lost_before", ""),
    ("lateness_p99_seconds", "Lateness of departures", MetricType::Gauge, "lateness_p99_s", ""),
    ("conserved", "1 if every packet is accounted for", MetricType::Gauge, "conserved", ""),
    ("tin_packets", "Packets sent, by tin", MetricType::Counter, "tins/packets", "tin"),
    ("tin_bytes", "Bytes sent, by tin", MetricType::Counter, "tins/bytes", "tin"),
    ("tin_drops", "Packets dropped, by tin", MetricType::Counter, "tins/drops", "tin"),
    ("tin_marks", "Packets marked CE, by tin", MetricType::Counter, "tins/marks", "tin"),
    (
        "tin_sojourn_seconds",
        "Time in the queue of packets sent, by tin",
        MetricType::Counter,
        "tins/sojourn_s",
        "tin",
    ),
    (
        "class_departures",
        "Packets sent, by class",
        MetricType::Counter,
        "classes/departures",
        "class",
    ),
    (
        "class_departures_bytes",
        "Bytes sent, by class",
        MetricType::Counter,
        "classes/departures_bytes",
        "class",
    ),
    (
        "class_rate_bits_per_second",
        "The rate that a class is sure of, by class",
        MetricType::Gauge,
        "classes/rate_bps",
        "class",
    ),
    (
        "class_ceil_bits_per_second",
        "The most that a class may have, by class",
        MetricType::Gauge,
        "classes/ceil_bps",
        "class",
    ),
    ("class_drops", "Packets dropped, by class", MetricType::Counter, "classes/drops", "class"),
    ("class_marks", "Packets marked CE, by class", MetricType::Counter, "classes/marks", "class"),
    (
        "class_backlog_packets",
        "Packets queued, by class",
        MetricType::Gauge,
        "classes/backlog_packets",
        "class",
    ),
    (
        "class_backlog_bytes",
        "Bytes queued, by class",
        MetricType::Gauge,
        "classes/backlog_bytes",
        "class",
    ),
    (
        "class_borrowed",
        "Packets sent by rates of classes above, by class",
        MetricType::Counter,
        "classes/borrowed",
        "class",
    ),
    (
        "class_borrowed_bytes",
        "Bytes sent by rates of classes above, by class",
        MetricType::Counter,
        "classes/borrowed_bytes",
        "class",
    ),
    ("signal", "Signals of the queue discipline", MetricType::Gauge, "signals", "name"),
];

/// What stands in a queue's state, by keys with `/` between them.
fn at<'a>(queue: &'a Value, keys: &str) -> &'a Value {
    keys.split('/').fold(queue, |value, key| &value[key])
}

#[derive(Debug)]
struct State(Value);

impl Collector for State {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for &(name, help, kind, key, label) in METRICS {
            let queues = self.0["queues"].as_array().into_iter().flatten();
            let none = |queue: &Value| match at(queue, key) {
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
                        MetricType::Counter => match value.as_u64() {
                            Some(count) => ConstCounter::new(count).encode(metric),
                            None => ConstCounter::new(number).encode(metric),
                        },
                        _ => ConstGauge::new(number).encode(metric),
                    }
                };
                match at(queue, key) {
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
        if let Some(ceiling) = self.0["ceiling_pps"].as_f64() {
            let help = "Packets a second that this machine can forward, as tried at the start";
            let name = "ceiling_packets_per_second";
            let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(ceiling).encode(family)?;
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
            "wire": {"lost": 4},
            "tins": {"packets": {"background": 7}, "sojourn_s": {"background": 0.5}},
            "classes": {"departures": {"an\"na": 8}, "backlog_bytes": {"anna": 9},
                "rate_bps": {"anna": 5_000_000}},
            "sojourn": {"sum_s": 0.75, "buckets": [[0.001, 5], [0.1, 2], [null, 1]]},
        });
        let text =
            text(json!({"queues": [queue], "lost_records": {"log": 3}, "ceiling_pps": 400_000}));
        for line in [
            "# TYPE bluewater_backlog_packets gauge",
            "bluewater_backlog_packets{queue=\"up\"} 3.0",
            "bluewater_delay_seconds{queue=\"up\"} 0.0025",
            "bluewater_arrivals_total{queue=\"up\"} 1000000000000",
            "bluewater_drops_total{queue=\"up\",cause=\"early\"} 5",
            "bluewater_wire_total{queue=\"up\",event=\"lost\"} 4",
            "bluewater_signal{queue=\"up\",name=\"p_m\"} 0.25",
            "bluewater_tin_packets_total{queue=\"up\",tin=\"background\"} 7",
            "bluewater_tin_sojourn_seconds_total{queue=\"up\",tin=\"background\"} 0.5",
            "bluewater_class_departures_total{queue=\"up\",class=\"an\\\"na\"} 8",
            "bluewater_class_rate_bits_per_second{queue=\"up\",class=\"anna\"} 5000000.0",
            "bluewater_class_backlog_bytes{queue=\"up\",class=\"anna\"} 9.0",
            "bluewater_conserved{queue=\"up\"} 1.0",
            "bluewater_sojourn_seconds_sum{queue=\"up\"} 0.75",
            "bluewater_sojourn_seconds_count{queue=\"up\"} 8",
            "bluewater_sojourn_seconds_bucket{le=\"0.1\",queue=\"up\"} 7",
            "bluewater_sojourn_seconds_bucket{le=\"+Inf\",queue=\"up\"} 8",
            "bluewater_lost_records_total{file=\"log\"} 3",
            "bluewater_ceiling_packets_per_second 400000.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    /// A client that goes on sending after its request is cut off like others, and others are answered.
    #[test]
    fn a_client_without_an_end_is_cut_off() {
        use std::io::{Read, Write};
        use std::net::TcpStream;
        use std::os::unix::net::UnixStream;
        use std::thread;
        use std::time::Duration;

        use super::super::http::PATIENCE;
        use crate::clock::Clock;

        let (_waker, wake) = UnixStream::pair().unwrap();
        let (asking, inbox) = super::super::line(&wake).unwrap();
        thread::spawn(move || {
            inbox.into_iter().for_each(|asked| _ = asked.answer.send(Ok(json!({}).into())));
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
}
