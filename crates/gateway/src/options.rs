//! Command-line options that describe links.

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use aqm::any::BuildError;
use aqm::filter::policer::PolicerConfig;
use aqm::shaper::ShaperConfig;
use aqm::{About, CATALOG, Duration, Framing, Limit, Rate, Size};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use link::impair::Loss;
use link::{Impairments, Sending, Steps};
use scenario::course::{self, DELAY, Dimension, LOSS, RATE};
use scenario::error::{meant, meant_choice, meant_parameter};
use scenario::tree::TreeSpec;
use scenario::varies::Probability;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::direction::DIRECTIONS;
use crate::link::{Bucket, Classes, Spec, SpecError};
use crate::text::{OrNone, pair, pairs, quantity, some, text, text_of, way, whole};
use crate::trouble::Trouble;

/// The range of `--mean-packet`, bytes.
pub(crate) const MEAN_PACKETS: std::ops::RangeInclusive<u32> = 40..=65_535;

/// The emulated links. `up` leads away from the command or the LAN, `down` back to it.
#[derive(Clone, Debug)]
pub struct LinkOptions([Way; 2]);

/// The options of a link, for both ways or for one. This is the only place of an option: its twin for
/// the way down (`--down-rate`), `--help` and the keys of files follow from it.
#[derive(Args, Clone, Debug)]
struct Way {
    /// Rate of the link, each way: 10mbit.
    #[arg(long, value_parser = text::<Rate>)]
    rate: Rate,
    /// Propagation delay, each way: 20ms makes a round trip of 40ms.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    delay: Duration,
    /// Room of the queue: 50kB, 100p, or 1bdp (rate × both delays).
    #[arg(long, default_value = "100p", value_parser = text::<Size>)]
    buffer: Size,
    /// Queue discipline.
    #[arg(long, default_value = "droptail")]
    aqm: String,
    /// A parameter of the queue discipline: NAME=VALUE; again for more.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,
    /// A tree of classes, each with a rate and a queue of the discipline: a file of TOML, in which customers are
    /// known by their addresses on the LAN.
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,
    /// Typical packet in bytes, for disciplines that count in packets but were given bytes.
    #[arg(long, default_value_t = 1000, value_parser = whole(MEAN_PACKETS))]
    mean_packet: u32,
    /// Seed of the random numbers of disciplines and wires; a random one if not given.
    #[arg(long, value_parser = whole(0..=u64::MAX))]
    seed: Option<u64>,
    /// The rate over time: a file of CSV, TOML or mahimahi's lines. A buffer in bdp, and queue disciplines
    /// that know the rate, still use --rate.
    #[arg(long, value_name = "FILE")]
    rate_trace: Option<PathBuf>,
    /// Tell queue disciplines each new rate; without it they infer it from departures.
    #[arg(long)]
    told_rate: bool,
    /// Clear the codepoints (DSCP) of packets behind the queue, as tc cake's wash; not the ECN field.
    #[arg(long)]
    wash: bool,
    /// The delay over time, in place of --delay.
    #[arg(long, value_name = "FILE")]
    delay_trace: Option<PathBuf>,
    /// The probability of loss over time, beside --loss.
    #[arg(long, value_name = "FILE")]
    loss_trace: Option<PathBuf>,
    /// Play traces once and keep their last value; without it they repeat.
    #[arg(long)]
    once: bool,
    /// Each packet takes up to so much longer, uniform: 5ms.
    #[arg(long, value_parser = text::<Duration>)]
    jitter: Option<Duration>,
    /// Let packets overtake others by jitter, or where the delay falls.
    #[arg(long)]
    reorder: bool,
    /// Packets lost on the wire: 1%, or in bursts: "gemodel 1% 25%" (to bad, to good).
    #[arg(long, value_parser = text::<Loss>)]
    loss: Option<Loss>,
    /// Packets that come out of the wire twice: 0.1%.
    #[arg(long, value_parser = text::<Probability>)]
    duplicate: Option<Probability>,
    /// Packets in which the wire flips a bit: 0.1%.
    #[arg(long, value_parser = text::<Probability>)]
    corrupt: Option<Probability>,
    /// What an IP packet takes on the wire beside its own bytes, in words of tc cake: 44, pppoe-ptm,
    /// docsis, "overhead 44 mpu 64 atm".
    #[arg(long, allow_hyphen_values = true, value_parser = text::<Framing>)]
    overhead: Option<Framing>,
    /// The least that is sent, bytes with the overhead.
    #[arg(long, value_parser = whole(0..=MOST_MPU))]
    mpu: Option<u32>,
    /// Drop what arrives at the queue faster than this rate, or none.
    #[arg(long, value_name = "RATE", value_parser = text::<OrNone<Rate>>)]
    policer: Option<OrNone<Rate>>,
    /// What the policer lets pass at once after a pause; ten packets of 1514 bytes if not given.
    #[arg(long, value_name = "SIZE", value_parser = text::<Size>)]
    policer_burst: Option<Size>,
    /// Hold back what would leave the queue faster than this rate, or none.
    #[arg(long, value_name = "RATE", value_parser = text::<OrNone<Rate>>)]
    shaper: Option<OrNone<Rate>>,
    /// What the shaper lets pass at once after a pause; ten packets of 1514 bytes if not given.
    #[arg(long, value_name = "SIZE", value_parser = text::<Size>)]
    shaper_burst: Option<Size>,
    /// The rate at which the shaper's bursts leave, or none: that of the link.
    #[arg(long, value_name = "RATE", value_parser = text::<OrNone<Rate>>)]
    shaper_peak: Option<OrNone<Rate>>,
    /// What of such a burst leaves at once; a packet of 1514 bytes if not given.
    #[arg(long, value_name = "SIZE", value_parser = text::<Size>)]
    shaper_peak_burst: Option<Size>,
    /// The options that were given for this way alone.
    #[arg(skip)]
    alone: Vec<String>,
}

/// Options that are of both ways only.
const COMMON: [&str; 6] = ["mean_packet", "seed", "told_rate", "wash", "once", "reorder"];
/// Options that the way up may have alone, too.
const OF_UP: [&str; 2] = ["aqm", "params"];
/// Of one way alone, the first takes the place of the second of both ways, too.
const TAKES: [(&str, &str); 3] =
    [("rate", "rate_trace"), ("delay", "delay_trace"), ("aqm", "params")];
/// In `--help`, the first for one way alone stands behind the second for both; others behind their own.
const BEHIND: [(&str, &str); 3] = [("aqm", "params"), ("delay", "seed"), ("overhead", "mpu")];

impl Args for LinkOptions {
    fn augment_args(mut command: Command) -> Command {
        let both = Way::arguments();
        let behind = |id: &str| BEHIND.iter().find(|(one, _)| *one == id).map(|(_, it)| *it);
        for option in both.get_arguments() {
            command = command.arg(option.clone().display_order(None));
            for way in DIRECTIONS {
                let own = both.get_arguments().filter(|one| {
                    let id = one.get_id().as_str();
                    behind(id).unwrap_or(id) == option.get_id() && has_alone(way, id)
                });
                command = command.args(own.map(|one| alone(way, one)));
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Whether an option may be given for a way alone.
fn has_alone(way: &str, id: &str) -> bool {
    if way == DIRECTIONS[0] { OF_UP.contains(&id) } else { !COMMON.contains(&id) }
}

/// An option for one way alone.
fn alone(way: &str, option: &Arg) -> Arg {
    let (id, long) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
    let own = option
        .clone()
        .id(format!("{way}_{id}"))
        .long(format!("{way}-{long}"))
        .display_order(None)
        .help(format!("As --{long}, for the way {way} alone"))
        .required(false)
        .default_value(None);
    match id {
        "aqm" => own.visible_alias(format!("aqm-{way}")),
        "params" => own.requires(format!("{way}_aqm")),
        _ => own,
    }
}

impl FromArgMatches for LinkOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let [up, down] = DIRECTIONS;
        Ok(Self([Way::of(up, matches)?, Way::of(down, matches)?]))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl LinkOptions {
    /// The specifications of the links up and down.
    ///
    /// # Errors
    /// When a buffer is none, or a trace cannot be read.
    pub fn specs(&self) -> Result<[Spec; 2], Trouble> {
        let [up, down] = &self.0;
        let seed = up.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let (other, back) = (seed.wrapping_add(1), [down.delay, up.delay]);
        Ok([up.spec(false, back[0], seed)?, down.spec(true, back[1], other)?])
    }

    /// The files that it names.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().flat_map(Way::inputs).flatten()
    }
}

impl Way {
    /// The options for both ways, of a command that has no others.
    fn arguments() -> Command {
        Self::augment_args(Command::new("").no_binary_name(true))
    }

    /// The options of a way: those for it alone, else those for both.
    fn of(way: &str, matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |id: &str| {
            matches.try_contains_id(id).unwrap_or_default()
                && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let own = |id: &str| has_alone(way, id) && given(&format!("{way}_{id}"));
        let command = Self::arguments();
        let (mut arguments, mut alone) = (Vec::new(), Vec::new());
        for option in command.get_arguments() {
            let (id, long) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
            let taken = TAKES.iter().any(|(one, other)| *other == id && own(one));
            let source = if own(id) {
                alone.push(format!("{way}-{long}"));
                format!("{way}_{id}")
            } else if given(id) && !taken {
                id.into()
            } else {
                continue;
            };
            if matches!(option.get_action(), ArgAction::SetTrue) {
                arguments.push(format!("--{long}").into());
                continue;
            }
            for value in matches.get_raw(&source).into_iter().flatten() {
                let mut argument = OsString::from(format!("--{long}="));
                argument.push(value);
                arguments.push(argument);
            }
        }
        let matches = command.try_get_matches_from(arguments)?;
        Ok(Self { alone, ..Self::from_arg_matches(&matches)? })
    }

    /// The files that it may name.
    fn inputs(&self) -> [&Option<PathBuf>; 4] {
        [&self.classes, &self.rate_trace, &self.delay_trace, &self.loss_trace]
    }

    /// The link of this way, which may be the one `down`; `back` is the delay of the other one.
    fn spec(&self, down: bool, back: Duration, seed: u64) -> Result<Spec, Trouble> {
        let mut framing = self.overhead.unwrap_or_default();
        framing.mpu = self.mpu.unwrap_or(framing.mpu);
        let shaper = bucket(SHAPER, None, self.shaper, self.shaper_burst)?;
        let peak = bucket(PEAK, None, self.shaper_peak, self.shaper_peak_burst)?;
        Ok(Spec {
            rate: self.rate,
            delay: self.delay,
            limit: limit(&self.key("buffer"), self.buffer, self.rate, self.delay + back)?,
            aqm: self.aqm.clone(),
            params: self.params.clone(),
            mean_packet: self.mean_packet,
            seed,
            sending: Sending {
                rates: self.course(&RATE, "rate-trace", &self.rate_trace)?,
                framing,
                ..Sending::default()
            },
            header: 0,
            impairments: Impairments {
                delay: self.course(&DELAY, "delay-trace", &self.delay_trace)?,
                jitter: self.jitter.unwrap_or(Duration::ZERO).as_nanos(),
                reorder: self.reorder,
                loss: self.loss.unwrap_or_default(),
                losses: self.course(&LOSS, "loss-trace", &self.loss_trace)?,
                duplicate: self.duplicate.unwrap_or_default().0,
                corrupt: self.corrupt.unwrap_or_default().0,
            },
            told_rate: self.told_rate,
            wash: self.wash,
            policer: bucket(POLICER, None, self.policer, self.policer_burst)?,
            shaper,
            peak: of_shaper(shaper, self.shaper, peak)?,
            classes: self.classes(down)?,
            named: 0,
        })
    }

    /// The tree of classes of this way.
    fn classes(&self, down: bool) -> Result<Option<Arc<Classes>>, Trouble> {
        let Some(path) = &self.classes else { return Ok(None) };
        let name = format!("{} {}", self.key("classes"), path.display());
        let text = text_of(path).map_err(|e| Trouble::system(&name, e))?;
        let tree = TreeSpec::from_toml(&text, &name)?;
        Ok(Some(Arc::new(Classes { tree, down })))
    }

    /// The option `long` as it was given.
    fn key(&self, long: &str) -> String {
        let mut alone = self.alone.iter().map(String::as_str);
        let own = alone.find(|own| own.split_once('-').is_some_and(|(_, own)| own == long));
        format!("--{}", own.unwrap_or(long))
    }

    /// What a file says of how something varies.
    fn course<T: Copy>(
        &self,
        kind: &Dimension<T>,
        long: &str,
        file: &Option<PathBuf>,
    ) -> Result<Option<Arc<Steps<T>>>, Trouble> {
        let Some(path) = file else { return Ok(None) };
        let name = format!("{} {}", self.key(long), path.display());
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
    /// A parameter of the queue discipline, NAME=VALUE; again for more. The discipline starts anew, unless the
    /// parameter may change while it runs.
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
    #[arg(long, value_parser = whole(0..=MOST_MPU))]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "mpu")]
    pub mpu: Option<u32>,
    /// The rate beyond which arriving packets are dropped, or none.
    #[arg(long, value_name = "RATE", value_parser = text::<OrNone<Rate>>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub policer: Option<OrNone<Rate>>,
    /// What the policer lets pass at once after a pause.
    #[arg(long, value_name = "SIZE", value_parser = text::<Size>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub policer_burst: Option<Size>,
    /// The rate at which packets leave the queue at most, or none.
    #[arg(long, value_name = "RATE", value_parser = text::<OrNone<Rate>>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub shaper: Option<OrNone<Rate>>,
    /// What the shaper lets pass at once after a pause.
    #[arg(long, value_name = "SIZE", value_parser = text::<Size>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub shaper_burst: Option<Size>,
    /// The rate at which the shaper's bursts leave, or none.
    #[arg(long, value_name = "RATE", value_parser = text::<OrNone<Rate>>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub shaper_peak: Option<OrNone<Rate>>,
    /// What of such a burst leaves at once.
    #[arg(long, value_name = "SIZE", value_parser = text::<Size>)]
    #[serde(skip_serializing_if = "Option::is_none", with = "quantity")]
    pub shaper_peak_burst: Option<Size>,
}

/// The largest `--mpu`, bytes.
const MOST_MPU: u32 = 256;

/// Reads an mpu, or nothing.
fn mpu<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let given = Option::<u32>::deserialize(from)?;
    if given.is_some_and(|mpu| mpu > MOST_MPU) {
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
        let framing = &mut new.sending.framing;
        *framing = self.overhead.unwrap_or(*framing);
        framing.mpu = self.mpu.unwrap_or(framing.mpu);
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
        new.policer = bucket(POLICER, old.policer, self.policer, self.policer_burst)?;
        new.shaper = bucket(SHAPER, old.shaper, self.shaper, self.shaper_burst)?;
        let peak = bucket(PEAK, old.peak, self.shaper_peak, self.shaper_peak_burst)?;
        new.peak = of_shaper(new.shaper, self.shaper, peak)?;
        if let Some(buffer) = self.buffer {
            new.limit = limit("--buffer", buffer, new.rate, new.delay + back)?;
        }
        if let Some(aqm) = &self.aqm {
            new.aqm.clone_from(aqm);
            new.params.clear();
            new.named += 1;
        }
        for (name, value) in &self.params {
            new.params.retain(|(old, _)| old != name);
            new.params.push((name.clone(), value.clone()));
        }
        Ok(new)
    }
}

/// The name of a bucket in options, and its burst if none is given.
type Kind = (&'static str, fn() -> Size);
const POLICER: Kind = ("policer", || PolicerConfig::default().burst);
const SHAPER: Kind = ("shaper", || ShaperConfig::default().burst);
const PEAK: Kind = ("shaper-peak", || ShaperConfig::default().minburst);

/// What a policer, or a shaper, becomes by another rate, or none, and another burst.
fn bucket(
    (name, default): Kind,
    old: Option<Bucket>,
    rate: Option<OrNone<Rate>>,
    burst: Option<Size>,
) -> Result<Option<Bucket>, Trouble> {
    let known = rate.map_or(old.map(|old| old.rate), |rate| rate.0);
    match (known, burst) {
        (Some(rate), _) => {
            let burst = burst.or(old.map(|old| old.burst)).unwrap_or_else(default);
            Ok(Some(Bucket { rate, burst }))
        }
        (None, Some(burst)) if rate.is_none() => Err(Trouble::new(
            format!("--{name}-burst {burst}: there is no {name}"),
            format!("--{name} RATE makes one"),
        )),
        _ => Ok(None),
    }
}

/// The peak of a shaper; where `asked` took the shaper away, the peak goes with it.
fn of_shaper(
    shaper: Option<Bucket>,
    asked: Option<OrNone<Rate>>,
    peak: Option<Bucket>,
) -> Result<Option<Bucket>, Trouble> {
    match (shaper, peak) {
        (None, Some(peak)) if asked.is_none() => Err(Trouble::new(
            format!("--shaper-peak {}: there is no shaper", peak.rate),
            "--shaper RATE makes one",
        )),
        (None, _) => Ok(None),
        (Some(_), peak) => Ok(peak),
    }
}

fn limit(key: &str, size: Size, rate: Rate, round_trip: Duration) -> Result<Limit, Trouble> {
    if matches!(size, Size::Bdp(_)) && round_trip == Duration::ZERO {
        return Err(Trouble::new(
            format!("{key} {size}: without --delay the round trip is 0s, and such a buffer empty"),
            "--delay 10ms makes a round trip of 20ms; or a buffer in bytes (50kB) or packets (100p)",
        ));
    }
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
pub(crate) fn explain(spec: &Spec, error: SpecError) -> Trouble {
    let aqm = &spec.aqm;
    let hint = |meant: String, all: &[&str]| match all {
        [] => format!("{aqm} has none"),
        _ if meant.is_empty() => format!("there are {}", all.join(", ")),
        _ => meant,
    };
    let given = |name: &str| spec.params.iter().rev().find(|(param, _)| param == name);
    let shown = |name: &str| {
        given(name).map_or_else(|| name.into(), |(_, value)| format!("{name} = {value}"))
    };
    match error {
        SpecError::Beyond(allowed) => Trouble::new(
            format!("beyond reach: {allowed}"),
            "a lower rate, a shorter delay or a smaller buffer",
        ),
        SpecError::Classes(trouble) => trouble,
        SpecError::Queue(BuildError::UnknownAqm) if aqm.contains(".py") => Trouble::new(
            format!("{aqm}: a class in Python, which cannot run here"),
            "try it in the simulator: `bluewater compare`",
        ),
        SpecError::Queue(BuildError::UnknownAqm) => {
            let all: Vec<_> = CATALOG.iter().map(|e| e.name).collect();
            let what = format!("no queue discipline is called {aqm}");
            Trouble::new(what, hint(meant(aqm, &all), &all))
        }
        SpecError::Queue(BuildError::UnknownParameter(name)) => {
            let table = About::of(aqm).map_or_else(Vec::new, |about| (about.parameters)());
            let all: Vec<_> = table.iter().map(|parameter| parameter.name).collect();
            let what = format!("{aqm} has no parameter {name}");
            Trouble::new(what, hint(meant_parameter(&name, &all), &all))
        }
        SpecError::Queue(BuildError::Parameter(name, mut e)) => {
            if let (true, Some((_, value))) = (e.hint.is_empty(), given(&name)) {
                e.hint = meant_choice(value, &e.allowed);
            }
            Trouble::new(format!("{aqm}: {}: allowed: {}", shown(&name), e.allowed), e.hint)
        }
        SpecError::Queue(BuildError::Config(e)) => {
            Trouble::new(format!("{aqm}: {}: allowed: {}", shown(e.key), e.allowed), "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(args: &str) -> [Spec; 2] {
        let command = LinkOptions::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(args.split(' ')).unwrap();
        LinkOptions::from_arg_matches(&matches).unwrap().specs().unwrap()
    }

    #[test]
    fn what_cannot_be_is_told_with_its_value_and_what_is_allowed() {
        for (args, words) in [
            ("--rate=10mbit --delay=2h", "a delay of 7200s, with jitter; allowed: at most 60s"),
            ("--rate=1mbit --jitter=61s", "a delay of 61s, with jitter; allowed: at most 60s"),
            ("--rate=900gbit", "a rate of 900gbit; allowed: at most 100gbit"),
            ("--rate=1mbit --aqm=red --param=w_q=7", "red: w_q = 7: allowed: 0 … 1"),
            ("--rate=1mbit --param=foo=1", "droptail has no parameter foo (droptail has none)"),
        ] {
            let spec = &specs(args)[0];
            let error = crate::link::Link::new(spec, crate::frame::Layer::Ip, 1500).err().unwrap();
            let Trouble { what, hint } = explain(spec, error);
            assert!(format!("{what} ({hint})").contains(words), "{what} ({hint})");
        }
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

    /// Whatever option there is for both ways, in the order of `--help`.
    #[test]
    fn an_option_for_both_ways_has_one_for_the_way_down() {
        let both = Way::arguments();
        let both: Vec<_> = both.get_arguments().collect();
        let all = LinkOptions::augment_args(Command::new("x"));
        let all: Vec<_> = all.get_arguments().filter_map(Arg::get_long).collect();
        for option in &both {
            let (id, long) = (option.get_id().as_str(), option.get_long().unwrap());
            let own = all.iter().position(|name| *name == format!("down-{long}"));
            assert_eq!(own.is_none(), COMMON.contains(&id), "{long}");
            let behind = BEHIND.iter().find(|(one, _)| *one == id).map_or(id, |(_, it)| *it);
            let place = all.iter().position(|name| {
                both.iter().any(|one| one.get_id() == behind && one.get_long() == Some(*name))
            });
            assert!(own.is_none_or(|own| (1..=4).contains(&(own - place.unwrap()))), "{long}");
        }
        assert_eq!(all.len(), both.len() + both.len() - COMMON.len() + OF_UP.len());
    }

    #[test]
    fn a_policer_is_of_a_way_and_may_change() {
        let told = |specs: [Spec; 2]| {
            specs.map(|spec| spec.policer.map(|p| (p.rate.to_string(), p.burst.to_string())))
        };
        let some = |rate: &str, burst: &str| Some((rate.to_string(), burst.to_string()));
        let args = "--rate=10mbit --policer=5mbit --down-policer=2mbit --down-policer-burst=30kB";
        assert_eq!(told(specs(args)), [some("5mbit", "15140B"), some("2mbit", "30kB")]);
        let args = "--rate=10mbit --policer=5mbit --policer-burst=9kB --down-policer=none";
        let both = specs(args);
        assert_eq!(told(both.clone()), [some("5mbit", "9kB"), None]);
        let changed = |json: &str| {
            let change: Change = serde_json::from_str(json).unwrap();
            let new = change.apply(both.each_ref()).map(|new| told(new.map(Option::unwrap)));
            new.map_err(|trouble| trouble.what)
        };
        assert_eq!(changed(r#"{"policer": "none"}"#), Ok([None, None]));
        assert_eq!(
            changed(r#"{"policer": "1mbit"}"#),
            Ok([some("1mbit", "9kB"), some("1mbit", "15140B")])
        );
        let refused = changed(r#"{"policer_burst": "20kB"}"#).unwrap_err();
        assert_eq!(refused, "--policer-burst 20kB: there is no policer");
        let [up, down] = specs("--rate=10mbit --shaper=5mbit --down-shaper-burst=30kB");
        let shapers = [up, down].map(|spec| spec.shaper.map(|s| s.burst.to_string()));
        assert_eq!(shapers, [Some("15140B".into()), Some("30kB".into())]);
    }

    #[test]
    fn a_shaper_may_have_a_peak() {
        let told = |specs: [Spec; 2]| {
            specs.map(|spec| spec.peak.map(|p| (p.rate.to_string(), p.burst.to_string())))
        };
        let some = |rate: &str, burst: &str| Some((rate.to_string(), burst.to_string()));
        let args = "--rate=10mbit --shaper=2mbit --shaper-peak=5mbit --down-shaper-peak-burst=9kB";
        let both = specs(args);
        assert_eq!(told(both.clone()), [some("5mbit", "1514B"), some("5mbit", "9kB")]);
        assert_eq!(
            told(specs(&format!("{args} --down-shaper=none"))),
            [some("5mbit", "1514B"), None]
        );
        let changed = |json: &str| {
            let change: Change = serde_json::from_str(json).unwrap();
            let new = change.apply(both.each_ref()).map(|new| told(new.map(Option::unwrap)));
            new.map_err(|trouble| trouble.what)
        };
        assert_eq!(changed(r#"{"shaper": "none"}"#), Ok([None, None]));
        assert_eq!(changed(r#"{"shaper_peak": "none"}"#), Ok([None, None]));
        assert_eq!(
            changed(r#"{"shaper_peak": "4mbit"}"#),
            Ok([some("4mbit", "1514B"), some("4mbit", "9kB")])
        );
        let alone = Change { shaper_peak: Some("4mbit".parse().unwrap()), ..Change::default() };
        let refused = alone.apply(specs("--rate=10mbit").each_ref()).unwrap_err();
        assert_eq!(refused.what, "--shaper-peak 4mbit: there is no shaper");
        let spec = &specs("--rate=10mbit --shaper=2mbit --shaper-peak=1mbit")[0];
        let error = crate::link::Link::new(spec, crate::frame::Layer::Ip, 1500).err().unwrap();
        assert!(explain(spec, error).what.contains("shaper-peak"));
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
