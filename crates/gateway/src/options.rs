//! Command-line options that describe links.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use aqm::any::BuildError;
use aqm::{About, CATALOG, Duration, Framing, Limit, Rate, Size};
use clap::Args;
use link::impair::Loss;
use link::{Impairments, Sending, Steps};
use scenario::course::{self, DELAY, Dimension, LOSS, RATE};
use scenario::error::did_you_mean;
use scenario::varies::Probability;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::direction::DIRECTIONS;
use crate::link::{Spec, SpecError};
use crate::text::{pair, pairs, quantity, some, text, text_of, way};
use crate::trouble::Trouble;

/// The range of `--mean-packet`, bytes.
pub(crate) const MEAN_PACKETS: std::ops::RangeInclusive<u32> = 40..=65_535;

/// The emulated links. `up` leads away from the command or the LAN, `down` back to it.
#[derive(Args, Clone, Debug)]
pub struct LinkOptions {
    /// Rate of the link, each way: 10mbit.
    #[arg(long, value_parser = text::<Rate>)]
    pub rate: Rate,
    /// Rate of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Rate>)]
    pub down_rate: Option<Rate>,
    /// Propagation delay, each way: 20ms makes a round trip of 40ms.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    pub delay: Duration,
    /// Room of the queue: 50kB, 100p, or 1bdp (rate × both delays).
    #[arg(long, default_value = "100p", value_parser = text::<Size>)]
    pub buffer: Size,
    /// Room of the queue of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Size>)]
    pub down_buffer: Option<Size>,
    /// Queue discipline.
    #[arg(long, default_value = "droptail")]
    pub aqm: String,
    /// A parameter of the queue discipline: NAME=VALUE; again for more.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub params: Vec<(String, String)>,
    /// Queue discipline of the way up, with its own parameters; if not given, --aqm.
    #[arg(long, visible_alias = "aqm-up")]
    pub up_aqm: Option<String>,
    /// A parameter of the queue discipline of the way up.
    #[arg(long = "up-param", value_name = "NAME=VALUE", value_parser = pair, requires = "up_aqm")]
    pub up_params: Vec<(String, String)>,
    /// Queue discipline of the way down, with its own parameters; if not given, --aqm.
    #[arg(long, visible_alias = "aqm-down")]
    pub down_aqm: Option<String>,
    /// A parameter of the queue discipline of the way down.
    #[arg(long = "down-param", value_name = "NAME=VALUE", value_parser = pair, requires = "down_aqm")]
    pub down_params: Vec<(String, String)>,
    /// Typical packet in bytes, for disciplines that count in packets but were given bytes.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(i64::from(*MEAN_PACKETS.start())..=i64::from(*MEAN_PACKETS.end())))]
    pub mean_packet: u32,
    /// Seed of the random numbers of disciplines and wires; a random one if not given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Propagation delay of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Duration>)]
    pub down_delay: Option<Duration>,
    /// The rate over time: a file of CSV, TOML or mahimahi's lines. A buffer in bdp, and queue disciplines
    /// that know the rate, still use --rate.
    #[arg(long, value_name = "FILE")]
    pub rate_trace: Option<PathBuf>,
    /// Rate over time of the way down; without it as of the way up.
    #[arg(long, value_name = "FILE")]
    pub down_rate_trace: Option<PathBuf>,
    /// Tell queue disciplines each new rate; without it they infer it from departures.
    #[arg(long)]
    pub told_rate: bool,
    /// The delay over time, in place of --delay.
    #[arg(long, value_name = "FILE")]
    pub delay_trace: Option<PathBuf>,
    /// Delay over time of the way down; without it as of the way up.
    #[arg(long, value_name = "FILE")]
    pub down_delay_trace: Option<PathBuf>,
    /// The probability of loss over time, beside --loss.
    #[arg(long, value_name = "FILE")]
    pub loss_trace: Option<PathBuf>,
    /// Probability of loss over time of the way down; without it as of the way up.
    #[arg(long, value_name = "FILE")]
    pub down_loss_trace: Option<PathBuf>,
    /// Play traces once and keep their last value; without it they repeat.
    #[arg(long)]
    pub once: bool,
    /// The largest extra delay of a packet, uniform from 0: 5ms.
    #[arg(long, value_parser = text::<Duration>)]
    pub jitter: Option<Duration>,
    /// Jitter of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Duration>)]
    pub down_jitter: Option<Duration>,
    /// Let packets overtake others by jitter, or where the delay falls.
    #[arg(long)]
    pub reorder: bool,
    /// Packets lost on the wire: 1%, or in bursts: "gemodel 1% 25%" (to bad, to good).
    #[arg(long, value_parser = text::<Loss>)]
    pub loss: Option<Loss>,
    /// Loss of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Loss>)]
    pub down_loss: Option<Loss>,
    /// Packets that come out of the wire twice: 0.1%.
    #[arg(long, value_parser = text::<Probability>)]
    pub duplicate: Option<Probability>,
    /// Duplicates of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Probability>)]
    pub down_duplicate: Option<Probability>,
    /// Packets in which the wire flips a bit: 0.1%.
    #[arg(long, value_parser = text::<Probability>)]
    pub corrupt: Option<Probability>,
    /// Bit errors of the way down; without it as of the way up.
    #[arg(long, value_parser = text::<Probability>)]
    pub down_corrupt: Option<Probability>,
    /// Bytes that an IP packet takes on the wire beyond its own, in words of tc cake: 44, pppoe-ptm, docsis,
    /// "overhead 44 mpu 64 atm".
    #[arg(long, allow_hyphen_values = true, value_parser = text::<Framing>)]
    pub overhead: Option<Framing>,
    /// The shortest frame on the wire, bytes with the overhead.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=MOST_MPU))]
    pub mpu: Option<u32>,
    /// Overhead of the way down; without it as of the way up.
    #[arg(long, allow_hyphen_values = true, value_parser = text::<Framing>)]
    pub down_overhead: Option<Framing>,
    /// Shortest frame of the way down; without it as of the way up.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=MOST_MPU))]
    pub down_mpu: Option<u32>,
}

const RATE_TRACE: &str = "--rate-trace";

impl LinkOptions {
    /// The specifications of the links up and down.
    ///
    /// # Errors When a buffer has no room.
    pub fn specs(&self) -> Result<[Spec; 2], Trouble> {
        let mut up = self.up()?;
        let mut down = self.down(&up)?;
        let own = [
            (&mut up, &self.up_aqm, &self.up_params),
            (&mut down, &self.down_aqm, &self.down_params),
        ];
        for (spec, aqm, params) in own {
            if let Some(aqm) = aqm {
                spec.aqm.clone_from(aqm);
                spec.params.clone_from(params);
            }
        }
        Ok([up, down])
    }

    fn down_delay(&self) -> Duration {
        self.down_delay.unwrap_or(self.delay)
    }

    /// The link up, by the options for both.
    fn up(&self) -> Result<Spec, Trouble> {
        Ok(Spec {
            rate: self.rate,
            delay: self.delay,
            limit: limit("--buffer", self.buffer, self.rate, self.delay + self.down_delay())?,
            aqm: self.aqm.clone(),
            params: self.params.clone(),
            mean_packet: self.mean_packet,
            seed: self.seed.unwrap_or_else(|| RandomState::new().hash_one(0)),
            sending: self.sending(
                [(RATE_TRACE, &self.rate_trace), (RATE_TRACE, &None)],
                (self.overhead, self.mpu),
            )?,
            impairments: Impairments {
                delay: self.course(&DELAY, "--delay-trace", &self.delay_trace)?,
                jitter: self.jitter.unwrap_or(Duration::ZERO).as_nanos(),
                reorder: self.reorder,
                loss: self.loss.unwrap_or_default(),
                losses: self.course(&LOSS, "--loss-trace", &self.loss_trace)?,
                duplicate: self.duplicate.unwrap_or_default().0,
                corrupt: self.corrupt.unwrap_or_default().0,
            },
            told_rate: self.told_rate,
        })
    }

    /// The link down: as `up`, but for what is given for it alone.
    fn down(&self, up: &Spec) -> Result<Spec, Trouble> {
        let rate = self.down_rate.unwrap_or(self.rate);
        let (key, buffer) = match self.down_buffer {
            Some(buffer) => ("--down-buffer", buffer),
            None => ("--buffer", self.buffer),
        };
        let mut down = Spec {
            rate,
            delay: self.down_delay(),
            limit: limit(key, buffer, rate, self.delay + self.down_delay())?,
            seed: up.seed.wrapping_add(1),
            sending: self.sending(
                [
                    ("--down-rate-trace", &self.down_rate_trace),
                    (RATE_TRACE, if self.down_rate.is_some() { &None } else { &self.rate_trace }),
                ],
                (self.down_overhead.or(self.overhead), self.down_mpu.or(self.mpu)),
            )?,
            ..up.clone()
        };
        let wire = &mut down.impairments;
        if self.down_delay.is_some() {
            wire.delay = None;
        }
        if self.down_delay_trace.is_some() {
            wire.delay = self.course(&DELAY, "--down-delay-trace", &self.down_delay_trace)?;
        }
        if self.down_loss_trace.is_some() {
            wire.losses = self.course(&LOSS, "--down-loss-trace", &self.down_loss_trace)?;
        }
        wire.jitter = self.down_jitter.map_or(wire.jitter, Duration::as_nanos);
        wire.loss = self.down_loss.unwrap_or(wire.loss);
        wire.duplicate = self.down_duplicate.map_or(wire.duplicate, |p| p.0);
        wire.corrupt = self.down_corrupt.map_or(wire.corrupt, |p| p.0);
        Ok(down)
    }

    /// The files that it names.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        let rates = [&self.rate_trace, &self.down_rate_trace];
        let delays = [&self.delay_trace, &self.down_delay_trace];
        let losses = [&self.loss_trace, &self.down_loss_trace];
        [rates, delays, losses].into_iter().flatten().flatten()
    }

    /// How a way sends, by the first of two traces that is given.
    fn sending(
        &self,
        traces: [(&str, &Option<PathBuf>); 2],
        (framing, mpu): (Option<Framing>, Option<u32>),
    ) -> Result<Sending, Trouble> {
        let (key, trace) = if traces[0].1.is_some() { traces[0] } else { traces[1] };
        let mut framing = framing.unwrap_or_default();
        framing.mpu = mpu.unwrap_or(framing.mpu);
        // A constant rate of a way down is not that of the trace of the way up.
        Ok(Sending { rates: self.course(&RATE, key, trace)?, framing })
    }

    /// What a file says of how something varies.
    fn course<T: Copy>(
        &self,
        kind: &Dimension<T>,
        key: &str,
        file: &Option<PathBuf>,
    ) -> Result<Option<Arc<Steps<T>>>, Trouble> {
        let Some(path) = file else { return Ok(None) };
        let name = format!("{key} {}", path.display());
        let text = text_of(path).map_err(|e| Trouble::system(&name, e))?;
        let steps = course::read(kind, &text, !self.once);
        let hint = "a file of CSV (time_s,rate_mbps), of TOML (steps = …) or of mahimahi's lines";
        let steps = steps.map_err(|e| Trouble::new(format!("{name}: {e}"), hint))?;
        Ok(Some(Arc::new(steps)))
    }
}

/// Changes to links that run; all else stays.
#[derive(Args, Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Only the link of this way.
    #[arg(long, value_parser = DIRECTIONS)]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "way")]
    pub way: Option<String>,
    /// Rate: 20mbit.
    #[arg(long, value_parser = text::<Rate>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub rate: Option<Rate>,
    /// Propagation delay: 30ms.
    #[arg(long, value_parser = text::<Duration>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub delay: Option<Duration>,
    /// Room of the queue: 50kB, 100p, 1bdp.
    #[arg(long, value_parser = text::<Size>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub buffer: Option<Size>,
    /// Queue discipline. It starts anew, with its defaults.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some")]
    pub aqm: Option<String>,
    /// A parameter of the queue discipline, NAME=VALUE; again for more. The discipline starts anew.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    #[serde(with = "pairs")]
    pub params: Vec<(String, String)>,
    /// Jitter of the wire: 5ms, 0s for none.
    #[arg(long, value_parser = text::<Duration>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub jitter: Option<Duration>,
    /// Whether packets may overtake others.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    /// Packets lost on the wire: 1%, 0 for none, or in bursts: "gemodel 1% 25%".
    #[arg(long, value_parser = text::<Loss>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub loss: Option<Loss>,
    /// Packets that come out of the wire twice: 0.1%.
    #[arg(long, value_parser = text::<Probability>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub duplicate: Option<Probability>,
    /// Packets in which the wire flips a bit: 0.1%.
    #[arg(long, value_parser = text::<Probability>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub corrupt: Option<Probability>,
    /// Bytes that an IP packet takes on the wire beyond its own, in words of tc cake.
    #[arg(long, allow_hyphen_values = true, value_parser = text::<Framing>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub overhead: Option<Framing>,
    /// The shortest frame on the wire, bytes with the overhead; 0 for no such bound.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=MOST_MPU))]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "mpu")]
    pub mpu: Option<u32>,
}

/// The largest `--mpu`, bytes.
const MOST_MPU: i64 = 256;

/// Reads an mpu, or nothing.
fn mpu<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let given = Option::<u32>::deserialize(from)?;
    if given.is_some_and(|mpu| i64::from(mpu) > MOST_MPU) {
        return Err(D::Error::custom(format!("mpu: 0 … {MOST_MPU} bytes")));
    }
    Ok(given)
}

impl Change {
    /// What the links are to be like after it.
    ///
    /// # Errors
    /// When it says nothing, or a buffer is none.
    pub fn apply(&self, specs: [&Spec; 2]) -> Result<[Option<Spec>; 2], Trouble> {
        if *self == (Self { way: self.way.clone(), ..Self::default() }) {
            return Err(Trouble::new(
                "nothing is to change",
                "name what is: rate, delay, buffer, aqm, param, jitter, loss …",
            ));
        }
        let meant = |i: usize| self.way.as_deref().is_none_or(|way| way == DIRECTIONS[i]);
        let new = |i: usize| {
            let other = 1 - i;
            let back = self.delay.filter(|_| meant(other)).unwrap_or(specs[other].delay);
            meant(i).then(|| self.one(specs[i], back)).transpose()
        };
        Ok([new(0)?, new(1)?])
    }

    /// `back` is the delay of the other way.
    fn one(&self, old: &Spec, back: Duration) -> Result<Spec, Trouble> {
        let mut new = old.clone();
        new.rate = self.rate.unwrap_or(old.rate);
        new.delay = self.delay.unwrap_or(old.delay);
        // What is set no longer varies.
        if self.rate.is_some() {
            new.sending.rates = None;
        }
        let wire = &mut new.impairments;
        if self.delay.is_some() {
            wire.delay = None;
        }
        if self.loss.is_some() {
            wire.losses = None;
        }
        wire.jitter = self.jitter.map_or(wire.jitter, Duration::as_nanos);
        wire.reorder = self.reorder.unwrap_or(wire.reorder);
        wire.loss = self.loss.unwrap_or(wire.loss);
        wire.duplicate = self.duplicate.map_or(wire.duplicate, |p| p.0);
        wire.corrupt = self.corrupt.map_or(wire.corrupt, |p| p.0);
        if let Some(buffer) = self.buffer {
            new.limit = limit("--buffer", buffer, new.rate, new.delay + back)?;
        }
        if let Some(aqm) = &self.aqm {
            new.aqm.clone_from(aqm);
            new.params.clear();
        }
        for (name, value) in &self.params {
            new.params.retain(|(old, _)| old != name);
            new.params.push((name.clone(), value.clone()));
        }
        Ok(new)
    }
}

fn limit(key: &str, size: Size, rate: Rate, round_trip: Duration) -> Result<Limit, Trouble> {
    let limit = match size {
        Size::Packets(n) => Limit::packets(n),
        Size::Bytes(n) => Limit::bytes(n),
        Size::Bdp(multiple) => {
            let bytes_per_second = rate.bits_per_second() as f64 / 8.0;
            Limit::bytes((multiple * bytes_per_second * round_trip.as_secs_f64()) as u64)
        }
        Size::OfBuffer(_) => None,
    };
    limit.ok_or_else(|| {
        let least = Limit::MIN_PACKET;
        Trouble::new(
            format!("{key} {size}: no such buffer"),
            format!(
                "bytes from {least}B on (50kB), packets (100p), or 1bdp; with what is on the wire at \
                 most {} packets of {least} bytes",
                Spec::MAX_PACKETS
            ),
        )
    })
}

/// Why there can be no such link, in words.
pub(crate) fn explain(aqm: &str, error: SpecError) -> Trouble {
    let meant = |word: &str, all: Vec<&str>| {
        let meant = did_you_mean(word, all.iter().copied());
        if meant.is_empty() { format!("there are {}", all.join(", ")) } else { meant }
    };
    match error {
        SpecError::Beyond(allowed) => Trouble::new(
            format!("beyond reach: {allowed}"),
            "a lower rate, a shorter delay or a smaller buffer",
        ),
        SpecError::Queue(BuildError::UnknownAqm) => Trouble::new(
            format!("no queue discipline is called {aqm}"),
            meant(aqm, CATALOG.iter().map(|e| e.name).collect()),
        ),
        SpecError::Queue(BuildError::UnknownParameter(name)) => {
            let entry = About::of(aqm);
            let table = entry.map_or_else(Vec::new, |e| (e.parameters)());
            Trouble::new(
                format!("{aqm} has no parameter {name}"),
                meant(&name, table.iter().map(|p| p.name).collect()),
            )
        }
        SpecError::Queue(BuildError::Parameter(name, e)) => {
            Trouble::new(format!("{aqm}: {name}: allowed: {}", e.allowed), e.hint)
        }
        SpecError::Queue(BuildError::Config(e)) => {
            Trouble::new(format!("{aqm}: {}: allowed: {}", e.key, e.allowed), "")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    fn specs(args: &str) -> [Spec; 2] {
        let command = LinkOptions::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(args.split(' ')).unwrap();
        LinkOptions::from_arg_matches(&matches).unwrap().specs().unwrap()
    }

    #[test]
    fn each_way_may_have_a_discipline_of_its_own() {
        let common = "--rate=1mbit --aqm=blue --param=increment=0.01";
        let told = |spec: &Spec| (spec.aqm.clone(), spec.params.len());
        let blue = ("blue".into(), 1);
        assert_eq!(specs(common).each_ref().map(told), [blue.clone(), blue.clone()]);
        let up = specs(&format!("{common} --aqm-up=sfb"));
        assert_eq!(up.each_ref().map(told), [("sfb".into(), 0), blue.clone()]);
        let down = specs(&format!("{common} --down-aqm=red --down-param=gentle=true"));
        assert_eq!(down.each_ref().map(told), [blue, ("red".into(), 1)]);
    }

    #[test]
    fn each_way_may_vary_and_impair_on_its_own() {
        let args = "--rate=1mbit --delay=5ms --down-delay=20ms --jitter=2ms --down-jitter=0s \
                    --loss=gemodel,1%,20% --down-loss=1% --corrupt=2% --overhead=bridged-llcsnap \
                    --mpu=64 --down-overhead=44 --buffer=1bdp";
        let [up, down] = specs(args);
        assert_eq!([up.delay, down.delay].map(|d| d.as_nanos() / 1_000_000), [5, 20]);
        assert_eq!([up.longest(), down.longest()].map(|d| d.as_nanos() / 1_000_000), [7, 20]);
        let wires = [up.impairments, down.impairments];
        assert_eq!(
            wires.each_ref().map(|wire| wire.loss.to_string()),
            ["gemodel 0.01 0.2 1 0", "0.01"]
        );
        assert_eq!(wires.map(|wire| wire.corrupt), [0.02; 2]);
        let framings = [up.sending.framing, down.sending.framing].map(|f| f.to_string());
        assert_eq!(framings, ["overhead 32 mpu 64 atm", "overhead 44 mpu 64 noatm"]);
        assert_eq!([up.limit, down.limit], [Limit::bytes(3125).unwrap(); 2]);
        let change = Change { buffer: Some("1bdp".parse().unwrap()), ..Change::default() };
        let both = specs(args);
        let changed = change.apply(both.each_ref()).unwrap().map(|spec| spec.unwrap().limit);
        assert_eq!(changed, [up.limit; 2], "as at the start");
    }
}
