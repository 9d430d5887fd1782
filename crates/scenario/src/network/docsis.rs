//! A link that is the upstream of a cable modem.

use aqm::docsis::Upstream;
use aqm::{Duration, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Complaint;
use crate::text::Text;

/// A cable modem's upstream (DOCSIS 3.1). Packets wait in the queue for grants of the CMTS, which come in a MAP for
/// each interval. `rate` of the link is the maximum sustained rate of the service flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocsisSpec {
    /// The rate at which a granted burst leaves, the link's `rate` … 10gbit.
    #[serde(default = "channel")]
    pub channel: Text<Rate>,
    /// The interval of MAPs, 200us … 20ms.
    #[serde(default = "map")]
    pub map: Text<Duration>,
    /// From the request's arrival at the CMTS to the earliest interval that its grant may have, at most 100ms. The
    /// request takes the link's `delay` before.
    #[serde(default = "lead")]
    pub lead: Text<Duration>,
    /// The most that a MAP grants, 64B … 25MB. If not given: what the channel sends in an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Text<Size>>,
    /// The maximum traffic burst, 1522B … 100MB: what may leave beyond the link's `rate`.
    #[serde(default = "burst")]
    pub burst: Text<Size>,
    /// The peak rate of a burst, the link's `rate` … `channel`. If not given: that of the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Text<Rate>>,
    /// A request that no grant carries waits for a random one of so many opportunities, 1 … 1024. Each interval begins
    /// with one.
    #[serde(default = "backoff")]
    pub backoff: u32,
    /// Proactive grants: the rate that each MAP grants without a request, 1kbit … the link's `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<Text<Rate>>,
}

fn channel() -> Text<Rate> {
    Text(Rate::from_mbit(100))
}

fn map() -> Text<Duration> {
    Text(Duration::from_millis(2))
}

fn lead() -> Text<Duration> {
    Text(Duration::from_millis(3))
}

fn burst() -> Text<Size> {
    Text(Size::Bytes(3044))
}

fn backoff() -> u32 {
    1
}

const FASTEST: Rate = Rate::from_mbit(10_000);
const LEAST_GUARANTEED: Rate = Rate::new(1000).unwrap();

impl DocsisSpec {
    /// Checks it, of a link of this `rate` and `delay`; `at` is the link's key.
    pub(crate) fn check(&self, at: &str, rate: Rate, delay: Duration) -> Result<(), Complaint> {
        let refused = |field: &str, allowed: String| {
            Err(Complaint::new(format!("{at}.docsis.{field}"), allowed))
        };
        let longest = Duration::from_millis(100);
        let within = |size: Text<Size>, sizes: std::ops::RangeInclusive<u64>| matches!(size.0, Size::Bytes(bytes) if sizes.contains(&bytes));
        let Text(channel) = self.channel;
        if channel > FASTEST {
            return refused("channel", format!("at most {FASTEST}"));
        }
        if rate > channel {
            // The channel may be the default, the rate is always written.
            let more = Complaint::new(
                format!("{at}.rate"),
                format!("at most {channel}, the rate of the channel"),
            );
            return Err(more.hint(format!(
                "a faster channel, of {FASTEST} at most: docsis = {{ channel = … }}"
            )));
        }
        if !(Duration::from_micros(200)..=Duration::from_millis(20)).contains(&self.map.0) {
            return refused("map", "200us … 20ms".into());
        }
        if self.lead.0 > longest {
            return refused("lead", format!("at most {longest}"));
        }
        if self.grant.is_some_and(|grant| !within(grant, 64..=25_000_000)) {
            return refused("grant", "bytes: 64B … 25MB".into());
        }
        if !within(self.burst, 1522..=100_000_000) {
            return refused("burst", "bytes: 1522B … 100MB".into());
        }
        if self.peak.is_some_and(|peak| !(rate..=channel).contains(&peak.0)) {
            return refused("peak", format!("{rate}, the rate of the link, … {channel}"));
        }
        if !(1..=1024).contains(&self.backoff) {
            return refused("backoff", "1 … 1024".into());
        }
        if self.guaranteed.is_some_and(|own| !(LEAST_GUARANTEED..=rate).contains(&own.0)) {
            return refused("guaranteed", format!("1kbit … {rate}, the rate of the link"));
        }
        if delay > longest {
            let allowed = format!("at most {longest} on a link with docsis");
            return Err(Complaint::new(format!("{at}.delay"), allowed));
        }
        Ok(())
    }

    /// What the CMTS does, over a link of this `delay`.
    pub(crate) fn upstream(&self, delay: Duration) -> Upstream {
        let bytes = |Text(size): Text<Size>| match size {
            Size::Bytes(bytes) => bytes,
            _ => 0,
        };
        Upstream {
            channel: self.channel.0,
            map: self.map.0,
            turnaround: delay + self.lead.0,
            most: self.grant.map(bytes),
            burst: bytes(self.burst) as u32,
            peak: self.peak.map(|peak| peak.0),
            backoff: self.backoff,
            guaranteed: self.guaranteed.map(|rate| rate.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const FILE: &str = r#"
duration = "1s"
[[link]]
from = "modem"
to = "net"
rate = "10mbit"
delay = "1ms"
duplex = false
docsis = { peak = "20mbit", guaranteed = "1mbit", grant = "4kB" }
[[link]]
from = "net"
to = "modem"
rate = "100mbit"
delay = "1ms"
duplex = false
[[queue]]
link = "modem->net"
aqm = "docsis-pie"
buffer = "100p"
[[traffic]]
name = "up"
from = ["modem"]
to = ["net"]
transport = "cubic"
"#;

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        let scenario = Scenario::from_toml(FILE, "x").unwrap();
        assert_eq!(Scenario::from_toml(&scenario.to_toml(), "x").unwrap(), scenario);
        let event = "[[event]]\nwhen = { flow = \"up\", enters = \"recovery\" }\n\
                     set = { \"link.0.rate\" = \"20mbit\" }\n[[traffic]]";
        let switch = "[[switch]]\nname = \"modem\"\nbuffer = \"1MB\"\n[[traffic]]";
        let class = "[[queue.class]]\nname = \"all\"\nrate = \"5mbit\"\n[[traffic]]";
        for (old, new, told) in [
            ("duplex = false\ndocsis", "docsis", "link[0].duplex: not allowed"),
            ("docsis =", "framing = \"docsis\"\ndocsis =", "not on a link with docsis"),
            ("docsis =", "wifi = {}\ndocsis =", "link[0].wifi = {}: not allowed"),
            (
                "docsis =",
                "rate_trace = { model = \"leo\", mean = \"9mbit\" }\ndocsis =",
                "rate_trace",
            ),
            (
                "\"10mbit\"",
                "\"200mbit\"",
                "link[0].rate = \"200mbit\": not allowed; allowed: at most 100mbit, the rate of the channel",
            ),
            ("peak =", "channel = \"11gbit\", peak =", "link[0].docsis.channel = \"11gbit\""),
            ("peak =", "map = \"100us\", peak =", "200us … 20ms"),
            ("peak =", "lead = \"1s\", peak =", "at most 100ms"),
            ("\"4kB\"", "\"4p\"", "link[0].docsis.grant = \"4p\": not allowed"),
            ("peak =", "burst = \"1kB\", peak =", "1522B … 100MB"),
            ("\"20mbit\"", "\"9mbit\"", "10mbit, the rate of the link, … 100mbit"),
            ("peak =", "backoff = 0, peak =", "1 … 1024"),
            ("\"1mbit\"", "\"11mbit\"", "1kbit … 10mbit, the rate of the link"),
            ("grant", "grants", "did you mean `grant`?"),
            ("delay = \"1ms\"", "delay = \"200ms\"", "at most 100ms on a link with docsis"),
            ("modem->net", "net->modem", "modem->net has docsis and no queue"),
            ("buffer =", "shaper = { rate = \"5mbit\" }\nbuffer =", "queue[0].shaper"),
            ("buffer =", "told_rate = true\nbuffer =", "queue[0].told_rate"),
            ("[[traffic]]", class, "queue[0].class"),
            ("[[traffic]]", switch, "without docsis on a link out\nhint: modem->net has docsis"),
            ("[[traffic]]", event, "the rate of a link without docsis"),
        ] {
            let text = FILE.replacen(old, new, 1);
            assert_ne!(text, FILE);
            let error = Scenario::from_toml(&text, "x").unwrap_err().to_string();
            assert!(error.contains(told), "{told}\nin: {error}");
        }
    }
}
