//! What a wire does to packets beside a constant delay: it varies, loses, doubles and damages.
//!
//! All of it happens behind the transmitter, so that a queue discipline sees none of it. Each kind
//! draws from a stream of its own, once a packet, so that one kind's probability does not shift
//! another's draws, and the same packets meet the same fate in the simulator and in the gateway.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aqm::units::TextError;
use aqm::{Rng, Tally};

use crate::steps::Steps;

/// How packets are lost.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub enum Loss {
    /// Not at all.
    #[default]
    None,
    /// Each with this probability.
    Independent(f64),
    /// Gilbert–Elliott: a packet is lost with a probability that depends on whether the wire is good
    /// or bad, which may change behind each packet. It begins good.
    Bursts {
        /// From good to bad, 0 … 1.
        fails: f64,
        /// From bad to good, 0 … 1.
        recovers: f64,
        /// Lost while it is bad, 0 … 1.
        bad: f64,
        /// Lost while it is good, 0 … 1.
        good: f64,
    },
}

impl Loss {
    /// The share of packets that is lost in the long run.
    pub fn mean(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Independent(p) => p,
            Self::Bursts { fails, .. } if fails <= 0.0 => self.good(),
            Self::Bursts { fails, recovers, bad, good } => {
                (fails * bad + recovers * good) / (fails + recovers)
            }
        }
    }

    fn good(self) -> f64 {
        if let Self::Bursts { good, .. } = self { good } else { 0.0 }
    }
}

/// Reads a probability: `0.01` or `1%`.
///
/// # Errors
/// What is allowed.
pub fn probability(text: &str) -> Result<f64, TextError> {
    let text = text.trim();
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |n| (n.trim_end(), 100.0));
    let number = number.parse::<f64>().ok().map(|n| n / scale);
    let allowed = "a probability such as 0.01 or 1%";
    number
        .filter(|p| (0.0..=1.0).contains(p))
        .ok_or_else(|| TextError { allowed, hint: "from 0 to 1, or 0% to 100%".into() })
}

/// Probabilities in the order of netem's `gemodel`: from good to bad, from bad to good, lost while bad
/// (1 if not given), lost while good (0).
impl FromStr for Loss {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        const ALLOWED: &str = "a probability such as 1%, or gemodel and two to four of them: \
                               gemodel 1% 25% 100% 0%";
        let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let values: Vec<f64> = words.map(probability).collect::<Result<_, _>>()?;
        match (first, &values[..]) {
            ("gemodel", &[fails, recovers, ref rest @ ..]) if rest.len() <= 2 => {
                let (bad, good) = (rest.first().unwrap_or(&1.0), rest.get(1).unwrap_or(&0.0));
                Ok(Self::Bursts { fails, recovers, bad: *bad, good: *good })
            }
            (single, []) => match probability(single) {
                Ok(p) if p > 0.0 => Ok(Self::Independent(p)),
                Ok(_) => Ok(Self::None),
                Err(e) => Err(TextError { allowed: ALLOWED, ..e }),
            },
            _ => Err(TextError { allowed: ALLOWED, hint: String::new() }),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::Independent(p) => write!(f, "{p}"),
            Self::Bursts { fails, recovers, bad, good } => {
                write!(f, "gemodel {fails} {recovers} {bad} {good}")
            }
        }
    }
}

/// What a wire does to packets.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Impairments {
    /// The delay over time, ns, in place of a constant one: that of a packet is the one at which it
    /// enters the wire.
    pub delay: Option<Arc<Steps<u64>>>,
    /// The largest extra delay of a packet, uniform from 0, ns.
    pub jitter: u64,
    /// Whether a packet that is faster by this overtakes those before; else it waits for them.
    pub reorder: bool,
    /// How packets are lost.
    pub loss: Loss,
    /// The probability of loss over time, beside that.
    pub losses: Option<Arc<Steps<f64>>>,
    /// The probability that a packet comes out twice.
    pub duplicate: f64,
    /// The probability that a bit of a packet is flipped.
    pub corrupt: f64,
}

impl Impairments {
    /// Whether it does anything at all.
    pub fn any(&self) -> bool {
        let Self { delay, losses, loss, .. } = self;
        let sometimes = self.duplicate > 0.0 || self.corrupt > 0.0 || *loss != Loss::None;
        delay.is_some() || losses.is_some() || self.jitter > 0 || sometimes
    }

    /// Whether packets may come out later than after the least delay.
    pub fn delays_vary(&self) -> bool {
        self.delay.is_some() || self.jitter > 0
    }

    /// The least and the greatest delay of a wire that takes `constant` (ns) if it does not vary, ns.
    pub fn delays(&self, constant: u64) -> (u64, u64) {
        let Some(delay) = &self.delay else {
            return (constant, constant.saturating_add(self.jitter));
        };
        let delays = || delay.steps().iter().map(|step| step.1);
        let greatest = delays().max().unwrap_or(constant);
        (delays().min().unwrap_or(constant), greatest.saturating_add(self.jitter))
    }

    /// The most packets that come out for one that goes in.
    pub fn copies(&self) -> u64 {
        1 + u64::from(self.duplicate > 0.0)
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fate {
    /// When it comes out of the wire, ns.
    pub at: u64,
    /// How often it comes out: not at all, once or twice.
    pub copies: u8,
    /// A random word that says which of its bits is flipped, if one is.
    pub damage: Option<u64>,
}

/// What happened on a wire so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Impaired {
    /// Lost.
    pub lost: Tally,
    /// Came out a second time.
    pub duplicated: Tally,
    /// Came out with a wrong bit; each copy of a packet counts.
    pub corrupted: Tally,
    /// Came out before a packet that went in earlier.
    pub reordered: Tally,
}

impl Impaired {
    /// What happened since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            lost: self.lost.since(before.lost),
            duplicated: self.duplicated.since(before.duplicated),
            corrupted: self.corrupted.since(before.corrupted),
            reordered: self.reordered.since(before.reordered),
        }
    }
}

/// A wire that impairs packets.
#[derive(Clone, Debug)]
pub struct Impair {
    how: Impairments,
    /// What the wire takes at least, ns.
    least: u64,
    bad: bool,
    /// When the last packet comes out, ns.
    last: u64,
    loss: Rng,
    losses: Rng,
    duplicate: Rng,
    corrupt: Rng,
    jitter: Rng,
    count: Impaired,
}

/// Where the streams of wires begin among those of a seed.
const STREAMS: u64 = 0x20 << 56;

impl Impair {
    /// A wire of `constant` delay (ns) if it does not vary; it is number `number` of those that share
    /// a seed.
    pub fn new(how: &Impairments, constant: u64, seed: u64, number: u64) -> Self {
        let stream = |kind| Rng::new(seed, STREAMS | number << 3 | kind);
        Self {
            least: how.delays(constant).0,
            how: how.clone(),
            bad: false,
            last: 0,
            loss: stream(0),
            losses: stream(1),
            duplicate: stream(2),
            corrupt: stream(3),
            jitter: stream(4),
            count: Impaired::default(),
        }
    }

    /// This wire, which may take as little as `least` (ns) later, and now takes `constant` if it does not
    /// vary.
    #[must_use]
    pub fn with_least(mut self, least: u64, constant: u64) -> Self {
        self.least = self.least.min(least);
        self.how.delay.get_or_insert_with(|| Arc::new(Steps::constant(constant)));
        self
    }

    /// Another delay (ns) from now on, no less than the least.
    pub fn set_delay(&mut self, delay: u64) {
        self.how.delay = Some(Arc::new(Steps::constant(delay)));
    }

    /// Another loss from now on, beside that over time.
    pub fn set_loss(&mut self, loss: Loss) {
        self.how.loss = loss;
    }

    /// A packet of `len` bytes that would come out at `soonest` (ns) at the least delay.
    pub fn pass(&mut self, soonest: u64, len: u32) -> Fate {
        let entered = soonest - self.least;
        // All draw, whatever comes of the others.
        let lost = self.lose(entered);
        let twice = self.how.duplicate > 0.0 && self.duplicate.chance(self.how.duplicate);
        let damaged = self.how.corrupt > 0.0 && self.corrupt.chance(self.how.corrupt);
        let damage = damaged.then(|| self.corrupt.bits());
        let delay = self.how.delay.as_ref().map_or(self.least, |delay| delay.at(entered));
        let mut at = entered.saturating_add(delay);
        if self.how.jitter > 0 {
            let more = u128::from(self.jitter.bits()) * (u128::from(self.how.jitter) + 1);
            at = at.saturating_add((more >> 64) as u64);
        }
        if lost {
            self.count.lost.count(len);
            return Fate { at, copies: 0, damage: None };
        }
        if at < self.last {
            if self.how.reorder {
                self.count.reordered.count(len);
            } else {
                at = self.last;
            }
        }
        self.last = self.last.max(at);
        let copies = 1 + u8::from(twice);
        if twice {
            self.count.duplicated.count(len);
        }
        if damaged {
            (0..copies).for_each(|_| self.count.corrupted.count(len));
        }
        Fate { at, copies, damage }
    }

    fn lose(&mut self, entered: u64) -> bool {
        let lost = match self.how.loss {
            Loss::None => false,
            Loss::Independent(p) => self.loss.chance(p),
            Loss::Bursts { fails, recovers, bad, good } => {
                let lost = self.loss.chance(if self.bad { bad } else { good });
                self.bad ^= self.loss.chance(if self.bad { recovers } else { fails });
                lost
            }
        };
        let at_times = self.how.losses.as_ref().is_some_and(|p| self.losses.chance(p.at(entered)));
        lost || at_times
    }

    /// Nothing that keeps the order comes out before `at` (ns), when the last packet that is on the wire
    /// already does.
    pub fn follow(&mut self, at: u64) {
        self.last = at;
    }

    /// What happened so far.
    pub fn count(&self) -> Impaired {
        self.count
    }

    /// Treats packets as `how` says from now on; states, streams and counts stay. `constant` is the delay
    /// (ns) if it does not vary.
    pub fn change(&mut self, how: &Impairments, constant: u64) {
        self.least = how.delays(constant).0;
        self.how = how.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn fates(how: &Impairments, count: u64) -> (Vec<Fate>, Impaired) {
        let mut wire = Impair::new(how, 10 * MS, 7, 0);
        let fates = (0..count).map(|i| wire.pass(10 * MS + i * 100_000, 1000)).collect();
        (fates, wire.count())
    }

    /// Entered a third as often as it is left, the bad state has a quarter of the time. If it is never
    /// entered it has none, even if it would never be left.
    #[test]
    fn bursts_have_their_share_in_the_long_run() {
        let model = |fails, recovers| Loss::Bursts { fails, recovers, bad: 1.0, good: 0.25 };
        let models = [model(0.25, 0.75), model(0.0, 0.5), model(0.0, 0.0)];
        assert_eq!(models.map(Loss::mean), [0.4375, 0.25, 0.25]);
    }

    /// 100 000 packets, σ = √(p(1−p)/n): the bands are 5 σ.
    #[test]
    fn shares_are_as_asked_and_streams_apart() {
        let all = Impairments {
            loss: Loss::Independent(0.1),
            duplicate: 0.02,
            corrupt: 0.05,
            ..Impairments::default()
        };
        let (found, count) = fates(&all, 100_000);
        let share = |packets: u64, of: f64, p: f64| {
            let expected = of * p;
            let sigma = (of * p * (1.0 - p)).sqrt();
            assert!((packets as f64 - expected).abs() < 5.0 * sigma, "{packets} of {of}, p = {p}");
        };
        let lost = count.lost.packets;
        share(lost, 1e5, 0.1);
        share(count.duplicated.packets, 0.9e5, 0.02);
        share(count.corrupted.packets, 0.9e5 * 1.02, 0.05);
        let out: u64 = found.iter().map(|fate| u64::from(fate.copies)).sum();
        assert_eq!(out, 100_000 - lost + count.duplicated.packets, "conservation");
        // Which packets are doubled does not depend on which are lost.
        let (alone, _) = fates(&Impairments { loss: Loss::None, ..all }, 100_000);
        assert!(found.iter().zip(&alone).all(|(a, b)| a.copies == 0 || a == b));
    }

    /// Mean burst 1/r = 4 packets, share p/(p+r) = 1/26; over about 38 000 bursts.
    #[test]
    fn bursts_are_those_of_gilbert_and_elliott() {
        let loss: Loss = "gemodel 1% 25%".parse().unwrap();
        assert!((loss.mean() - 1.0 / 26.0).abs() < 1e-12);
        let (found, count) = fates(&Impairments { loss, ..Impairments::default() }, 4_000_000);
        let begins = |pair: &&[Fate]| pair[0].copies == 1 && pair[1].copies == 0;
        let bursts = found.windows(2).filter(begins).count() as f64;
        let lost = count.lost.packets as f64;
        assert!((lost / bursts - 4.0).abs() < 0.1, "{} in a burst", lost / bursts);
        assert!((lost / 4e6 - loss.mean()).abs() < 0.001, "{}", lost / 4e6);
    }

    #[test]
    fn jitter_keeps_the_order_unless_asked() {
        let jitter = |reorder| Impairments { jitter: 5 * MS, reorder, ..Impairments::default() };
        let (kept, none) = fates(&jitter(false), 10_000);
        assert!(kept.is_sorted_by_key(|fate| fate.at) && none.reordered.packets == 0);
        let (free, some) = fates(&jitter(true), 10_000);
        assert!(some.reordered.packets > 5000);
        let more: Vec<u64> =
            free.iter().enumerate().map(|(i, f)| f.at - 10 * MS - i as u64 * 100_000).collect();
        assert!(more.iter().all(|&more| more <= 5 * MS));
        let mean = more.iter().sum::<u64>() as f64 / 1e4;
        assert!((mean / MS as f64 - 2.5).abs() < 0.1, "{mean}"); // σ = 5/√12/100 = 0.014
    }

    #[test]
    fn a_delay_that_falls_holds_back_what_would_overtake() {
        let delay = Arc::new(Steps::new(&[(0, 30 * MS), (2 * MS, 10 * MS)], false).unwrap());
        let how = Impairments { delay: Some(delay), ..Impairments::default() };
        let mut wire = Impair::new(&how, 99 * MS, 7, 0);
        let out = [0, 1, 3, 25].map(|ms| wire.pass((ms + 10) * MS, 1000).at / MS);
        assert_eq!(out, [30, 31, 31, 35]);
        let mut wire = Impair::new(&Impairments { reorder: true, ..how }, 99 * MS, 7, 0);
        assert_eq!(
            [0, 1, 3, 25].map(|ms| wire.pass((ms + 10) * MS, 1000).at / MS),
            [30, 31, 13, 35]
        );
    }

    #[test]
    fn loss_follows_its_trace() {
        let losses = Arc::new(Steps::new(&[(0, 0.0), (MS, 1.0), (2 * MS, 0.0)], true).unwrap());
        let how = Impairments { losses: Some(losses), ..Impairments::default() };
        let (found, _) = fates(&how, 40);
        let lost: Vec<bool> = found.iter().map(|fate| fate.copies == 0).collect();
        assert!((0..40).all(|i| lost[i] == (i / 10 % 2 == 1)), "{lost:?}");
    }

    #[test]
    fn loss_is_read_and_written() {
        for text in ["0", "0.01", "gemodel 0.01 0.25 1 0", "gemodel 0.01 0.25 0.5 0.001"] {
            let loss: Loss = text.parse().unwrap();
            assert_eq!(loss.to_string(), text);
        }
        assert_eq!("1%".parse(), Ok(Loss::Independent(0.01)));
        for wrong in ["", "101%", "-1", "gemodel 1%", "gemodel 1 1 1 1 1", "1% 2%", "NaN"] {
            assert!(wrong.parse::<Loss>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wire_that_does_nothing_is_none() {
        let plain = Impairments::default();
        assert!(!plain.any());
        for how in [
            Impairments { jitter: 1, ..plain.clone() },
            Impairments { duplicate: 0.1, ..plain.clone() },
            Impairments { corrupt: 0.1, ..plain.clone() },
            Impairments { loss: Loss::Independent(0.1), ..plain.clone() },
            Impairments { losses: Some(Arc::new(Steps::constant(0.1))), ..plain.clone() },
            Impairments { delay: Some(Arc::new(Steps::constant(1))), ..plain },
        ] {
            assert!(how.any(), "{how:?}");
        }
    }

    #[test]
    fn jitter_reaches_its_end() {
        let (found, _) = fates(&Impairments { jitter: 1, ..Impairments::default() }, 1000);
        let late = found.iter().zip(0..).filter(|(f, i)| f.at == 10 * MS + i * 100_000 + 1).count();
        assert!((421..579).contains(&late), "{late} of 1000 by 1 ns: 5 σ are 79");
    }

    #[test]
    fn what_follows_does_not_overtake() {
        let mut wire = Impair::new(&Impairments { jitter: 1, ..Impairments::default() }, MS, 7, 0);
        wire.follow(9 * MS);
        assert_eq!(wire.pass(MS, 1000).at, 9 * MS);
    }
}
