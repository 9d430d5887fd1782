//! Links of one's own.

use aqm::{Duration, Framing, Rate};
use link::impair::Loss;
use link::{Impairments, Sending};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Files;
use crate::course::{DELAY, LOSS};
use crate::error::Complaint;
use crate::limits::LONGEST;
use crate::network::{DocsisSpec, WifiSpec};
use crate::text::Text;
use crate::varies::{Course, Probability, Written, written};

/// A link of one's own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Rate.
    pub rate: Text<Rate>,
    /// Propagation delay.
    pub delay: Text<Duration>,
    /// Whether there is an equal link back. Its wire draws its own random numbers.
    #[serde(default = "crate::defaults::yes")]
    pub duplex: bool,
    /// The rate over time. Queue disciplines that use the rate of their link, and sizes in `bdp`, still go by
    /// `rate`.
    #[serde(default, deserialize_with = "written", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub rate_trace: Option<Course>,
    /// The propagation delay over time, in place of `delay`. A packet has the delay of the time at
    /// which its transmission ends.
    #[serde(default, deserialize_with = "written", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub delay_trace: Option<Course>,
    /// The probability of loss over time, beside `loss`.
    #[serde(default, deserialize_with = "written", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub loss_trace: Option<Course>,
    /// Each packet takes longer by a random time, uniform from 0 to this.
    #[serde(default = "crate::defaults::zero", skip_serializing_if = "is_default")]
    pub jitter: Text<Duration>,
    /// Whether packets may overtake others, by `jitter` or when the delay gets shorter.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reorder: bool,
    /// Packets lost on the wire, after the queue: each with a probability, or in bursts (Gilbert–Elliott).
    #[serde(default = "no_loss", skip_serializing_if = "is_default")]
    pub loss: Text<Loss>,
    /// The probability that a packet comes out of the wire twice.
    #[serde(default = "never", skip_serializing_if = "is_default")]
    pub duplicate: Text<Probability>,
    /// The probability that a packet is damaged on the wire. The next node discards it.
    #[serde(default = "never", skip_serializing_if = "is_default")]
    pub corrupt: Text<Probability>,
    /// What a packet takes on the wire beside its own bytes, in words of `tc cake`: `pppoe-ptm`,
    /// `overhead 44 mpu 64 atm`. It counts for the time on the wire, not for the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<Text<Framing>>,
    /// An access point sends over it to stations of different rates. `rate` is then the highest of them, which
    /// disciplines go by; the link goes one way (`duplex = false`), and has a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiSpec>,
    /// A cable modem sends over it. `rate` is then the rate of its service flow; the link goes one way
    /// (`duplex = false`), and has a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docsis: Option<DocsisSpec>,
    /// How the transmitter sends, made from the keys above.
    #[serde(skip)]
    pub sending: Sending,
    /// What the wire does to packets, made from the keys above.
    #[serde(skip)]
    pub impairments: Impairments,
    /// The least delay of a wire that events change.
    #[serde(skip)]
    pub changes: Option<Duration>,
}

impl LinkSpec {
    /// Fills in what follows from files, steps and models. `at` is the link's key.
    pub(crate) fn resolve(&mut self, at: &str, files: &mut dyn Files) -> Result<(), Complaint> {
        let key = |field: &str| format!("{at}.{field}");
        let rate = self.rate.0;
        let rates = self.rate_trace.as_mut();
        let rates =
            rates.map(|course| course.rates(rate, &key("rate_trace"), files)).transpose()?;
        let delay = self.delay_trace.as_mut();
        let delay = delay
            .map(|course| course.steps(&DELAY, |ns| ns, &key("delay_trace"), files))
            .transpose()?;
        let losses = self.loss_trace.as_mut();
        let losses = losses
            .map(|course| course.steps(&LOSS, f64::to_bits, &key("loss_trace"), files))
            .transpose()?;
        if self.jitter.0 > LONGEST {
            return Err(Complaint::new(key("jitter"), format!("at most {LONGEST}")));
        }
        let framing = self.framing.map_or_else(Framing::default, |framing| framing.0);
        let medium = self.medium();
        if let Some(medium) = medium {
            for (field, given) in [
                ("duplex", self.duplex),
                ("rate_trace", rates.is_some()),
                ("framing", self.framing.is_some()),
                ("wifi", self.wifi.is_some() && medium != "wifi"),
            ] {
                if given {
                    let problem =
                        Complaint::new(key(field), format!("not on a link with {medium}"));
                    return Err(match field {
                        "duplex" => problem.hint("duplex = false, and a link back of its own"),
                        _ => problem,
                    });
                }
            }
        }
        if let Some(wifi) = &mut self.wifi {
            wifi.resolve(&key("wifi"), rate)?;
        }
        if let Some(docsis) = &self.docsis {
            docsis.check(at, rate, self.delay.0)?;
        }
        self.sending = Sending { rates, framing, aggregates: medium.is_some() };
        self.impairments = Impairments {
            delay,
            jitter: self.jitter.0.as_nanos(),
            reorder: self.reorder,
            loss: self.loss.0,
            losses,
            duplicate: self.duplicate.0.0,
            corrupt: self.corrupt.0.0,
        };
        if self.reorder && !self.impairments.delays_vary() {
            return Err(Complaint::new(key("reorder"), "only with jitter or delay_trace")
                .hint("packets overtake others because some take longer"));
        }
        Ok(())
    }

    /// The key of what says how long packets take, in place of a transmitter.
    pub(crate) fn medium(&self) -> Option<&'static str> {
        let wifi = self.wifi.as_ref().map(|_| "wifi");
        self.docsis.map(|_| "docsis").or(wifi)
    }

    /// A link that does not vary.
    pub(crate) fn plain(
        from: String,
        to: String,
        rate: Rate,
        delay: Duration,
        duplex: bool,
    ) -> Self {
        Self {
            from,
            to,
            rate: Text(rate),
            delay: Text(delay),
            duplex,
            rate_trace: None,
            delay_trace: None,
            loss_trace: None,
            jitter: crate::defaults::zero(),
            reorder: false,
            loss: no_loss(),
            duplicate: never(),
            corrupt: never(),
            framing: None,
            wifi: None,
            docsis: None,
            sending: Sending::default(),
            impairments: Impairments::default(),
            changes: None,
        }
    }

    /// An event changes the wire, which may then take `delay`.
    pub(crate) fn may_take(&mut self, delay: Duration) {
        self.changes = Some(self.changes.map_or(delay, |least| least.min(delay)));
    }
}

fn no_loss() -> Text<Loss> {
    Text(Loss::None)
}

fn never() -> Text<Probability> {
    Text(Probability(0.0))
}

/// Whether a value does nothing, so that it need not be written.
fn is_default<T: PartialEq + Default>(value: &T) -> bool {
    *value == T::default()
}
