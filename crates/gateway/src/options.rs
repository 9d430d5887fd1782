//! Command-line options that describe links.

use std::hash::{BuildHasher, RandomState};

use aqm::any::BuildError;
use aqm::{CATALOG, Duration, Limit, Rate, Size};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::direction::DIRECTIONS;
use crate::link::{Spec, SpecError};
use crate::text::{pair, pairs, quantity, some, text, way};
use crate::trouble::Trouble;

/// What `--mean-packet` may be, bytes.
pub(crate) const MEAN_PACKETS: std::ops::RangeInclusive<u32> = 40..=65_535;

/// The emulated links. `up` leads away from the command or the LAN, `down` back to it.
#[derive(Args, Clone, Debug)]
pub struct LinkOptions {
    /// Rate of the link, each way: 10mbit.
    #[arg(long, value_parser = text::<Rate>)]
    pub rate: Rate,
    /// Rate of the way down, if it is another.
    #[arg(long, value_parser = text::<Rate>)]
    pub down_rate: Option<Rate>,
    /// Propagation delay, each way: 20ms makes a round trip of 40ms.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    pub delay: Duration,
    /// Room of the queue: 50kB, 100p, or 1bdp (rate × both delays).
    #[arg(long, default_value = "100p", value_parser = text::<Size>)]
    pub buffer: Size,
    /// Room of the queue of the way down, if it is another.
    #[arg(long, value_parser = text::<Size>)]
    pub down_buffer: Option<Size>,
    /// Queue discipline.
    #[arg(long, default_value = "droptail")]
    pub aqm: String,
    /// A parameter of the queue discipline: NAME=VALUE; again for more.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub params: Vec<(String, String)>,
    /// Queue discipline of the way up, if it is another; it has its own parameters.
    #[arg(long, visible_alias = "aqm-up")]
    pub up_aqm: Option<String>,
    /// A parameter of the queue discipline of the way up.
    #[arg(long = "up-param", value_name = "NAME=VALUE", value_parser = pair, requires = "up_aqm")]
    pub up_params: Vec<(String, String)>,
    /// Queue discipline of the way down, if it is another; it has its own parameters.
    #[arg(long, visible_alias = "aqm-down")]
    pub down_aqm: Option<String>,
    /// A parameter of the queue discipline of the way down.
    #[arg(long = "down-param", value_name = "NAME=VALUE", value_parser = pair, requires = "down_aqm")]
    pub down_params: Vec<(String, String)>,
    /// Typical packet in bytes, for disciplines that count in packets but were given bytes.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(i64::from(*MEAN_PACKETS.start())..=i64::from(*MEAN_PACKETS.end())))]
    pub mean_packet: u32,
    /// Seed of the disciplines' random numbers; a random one if not given.
    #[arg(long)]
    pub seed: Option<u64>,
}

impl LinkOptions {
    /// What the links up and down are to be like.
    ///
    /// # Errors
    /// When a buffer is none.
    pub fn specs(&self) -> Result<[Spec; 2], Trouble> {
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let mut up = Spec {
            rate: self.rate,
            delay: self.delay,
            limit: limit("--buffer", self.buffer, self.rate, self.delay)?,
            aqm: self.aqm.clone(),
            params: self.params.clone(),
            mean_packet: self.mean_packet,
            seed,
        };
        let rate = self.down_rate.unwrap_or(self.rate);
        let (key, buffer) = match self.down_buffer {
            Some(buffer) => ("--down-buffer", buffer),
            None => ("--buffer", self.buffer),
        };
        let mut down = Spec {
            rate,
            limit: limit(key, buffer, rate, self.delay)?,
            seed: seed.wrapping_add(1),
            ..up.clone()
        };
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
}

/// What is to change at links that run; all else stays.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Queue discipline, which begins anew, with its defaults.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some")]
    pub aqm: Option<String>,
    /// A parameter of the queue discipline, which begins anew: NAME=VALUE; again for more.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    #[serde(with = "pairs")]
    pub params: Vec<(String, String)>,
}

impl Change {
    /// What the links are to be like after it.
    ///
    /// # Errors
    /// When a buffer is none.
    pub fn apply(&self, specs: [&Spec; 2]) -> Result<[Option<Spec>; 2], Trouble> {
        let new = |i: usize| {
            let meant = self.way.as_deref().is_none_or(|way| way == DIRECTIONS[i]);
            meant.then(|| self.one(specs[i])).transpose()
        };
        Ok([new(0)?, new(1)?])
    }

    fn one(&self, old: &Spec) -> Result<Spec, Trouble> {
        let mut new = old.clone();
        new.rate = self.rate.unwrap_or(old.rate);
        new.delay = self.delay.unwrap_or(old.delay);
        if let Some(buffer) = self.buffer {
            new.limit = limit("--buffer", buffer, new.rate, new.delay)?;
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

fn limit(key: &str, size: Size, rate: Rate, delay: Duration) -> Result<Limit, Trouble> {
    let limit = match size {
        Size::Packets(n) => Limit::packets(n),
        Size::Bytes(n) => Limit::bytes(n),
        Size::Bdp(multiple) => {
            let round_trip = 2.0 * delay.as_secs_f64();
            Limit::bytes((multiple * rate.bits_per_second() as f64 / 8.0 * round_trip) as u64)
        }
        Size::OfBuffer(_) => None,
    };
    limit.ok_or_else(|| {
        Trouble::new(
            format!("{key} {size}: no such buffer"),
            format!("bytes from {}B on (50kB), packets (100p), or 1bdp", Limit::MIN_PACKET),
        )
    })
}

/// Why there can be no such link, in words.
pub(crate) fn explain(aqm: &str, error: SpecError) -> Trouble {
    let names = |all: Vec<&str>| format!("there are {}", all.join(", "));
    match error {
        SpecError::Beyond(allowed) => Trouble::new(format!("beyond reach: {allowed}"), ""),
        SpecError::Queue(BuildError::UnknownAqm) => Trouble::new(
            format!("no queue discipline is called {aqm}"),
            names(CATALOG.iter().map(|e| e.name).collect()),
        ),
        SpecError::Queue(BuildError::UnknownParameter(name)) => {
            let entry = CATALOG.iter().find(|e| e.name == aqm);
            let table = entry.map_or_else(Vec::new, |e| (e.parameters)());
            Trouble::new(
                format!("{aqm} has no parameter {name}"),
                names(table.iter().map(|p| p.name).collect()),
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
}
