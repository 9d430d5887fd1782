//! What varies over time at a link: rate, delay, loss. Read from text, generated, and written.
//!
//! | format | looks like |
//! |---|---|
//! | mahimahi | a whole number a line, ascending: milliseconds at which 1500 bytes may be sent |
//! | CSV | a head such as `time_s,rate_mbps,delay_ms,loss`, then a row for each change |
//! | columns | two bare ones: seconds and Mbit/s, between commas, tabs or spaces |
//! | TOML | `steps = [["0s", "10mbit"], ["5s", "2mbit"], ["20s", "2mbit"]]` |
//!
//! Names and values may be in quotes, numbers may have exponents, and a first column of row numbers without
//! a name is passed over. Times since 1970 count from the first one.
//!
//! A value holds from its time to the next one. What repeats begins again at the last time, whose
//! value is not used then; else the last value holds.

use std::fmt::Write as _;

use aqm::units::TextError;
use aqm::{Duration, Rate, Rng};
use link::Steps;
use link::impair::probability;
use link::varying::Varying;
use serde::{Deserialize, Serialize};

use crate::limits::{LONGEST, RATES};
use crate::text::pairs;

/// Times in ns, and what holds from each on; or what is wrong with the text.
type Rows<T> = Result<Vec<(u64, T)>, String>;

/// What a course of time is of.
pub struct Dimension<T: 'static> {
    /// The names of its columns in CSV, each with the unit that is put behind its values.
    columns: &'static [(&'static str, &'static str)],
    /// The head of columns that have none; empty if such are not read.
    bare: &'static str,
    /// A value from text with a unit.
    value: fn(&str) -> Result<T, String>,
    /// What cannot be, of a course.
    check: fn(&Steps<T>) -> Result<(), String>,
    /// Rows from mahimahi's lines.
    mahimahi: fn(&str, bool) -> Rows<T>,
}

/// Rates, bit/s; 0 is an outage.
pub const RATE: Dimension<u64> = Dimension {
    columns: &[
        ("rate_bps", "bit"),
        ("rate_kbps", "kbit"),
        ("rate_mbps", "mbit"),
        ("rate_gbps", "gbit"),
        ("rate", ""),
    ],
    bare: "time_s,rate_mbps",
    value: rate,
    check: |rates| {
        let ends = if rates.period().is_some() { rates.steps() } else { last(rates.steps()) };
        match ends.iter().any(|step| step.1 > 0) {
            true => Ok(()),
            false => Err("a rate that stays 0 carries nothing: end with a rate above 0".into()),
        }
    },
    mahimahi,
};

/// Delays, ns.
pub const DELAY: Dimension<u64> = Dimension {
    columns: &[("delay_s", "s"), ("delay_ms", "ms"), ("delay_us", "us"), ("delay", "")],
    bare: "time_s,delay_ms",
    value: |text| {
        let delay = text.parse::<Duration>().map_err(words)?;
        if delay > LONGEST {
            return Err(format!("a delay of at most {LONGEST}"));
        }
        Ok(delay.as_nanos())
    },
    check: |_| Ok(()),
    mahimahi: |_, _| Err(NO_RATE.into()),
};

/// Probabilities of loss.
pub const LOSS: Dimension<f64> = Dimension {
    columns: &[("loss", ""), ("loss_percent", "%")],
    bare: "time_s,loss",
    value: |text| probability(text).map_err(words),
    check: |_| Ok(()),
    mahimahi: |_, _| Err(NO_RATE.into()),
};

const NO_RATE: &str = "mahimahi's lines tell a rate, nothing else";

fn last<T>(steps: &[T]) -> &[T] {
    &steps[steps.len() - 1..]
}

fn rate(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '/').trim_end();
    if !number.is_empty() && number.chars().all(|c| c == '0' || c == '.') {
        return Ok(0);
    }
    let rate = text.parse::<Rate>().map_err(words)?.bits_per_second();
    if RATES.contains(&rate) { Ok(rate) } else { Err("a rate of 0, or 1kbit … 100tbit".into()) }
}

fn words(e: TextError) -> String {
    let separator = if e.hint.is_empty() { "" } else { "; " };
    format!("{}{separator}{}", e.allowed, e.hint)
}

/// The most rows of a course.
const MOST_ROWS: usize = 10_000_000;
/// The latest time in a course, ms: 30 days.
const LONGEST_MS: u64 = 30 * 86_400_000;

/// TOML's form of a course.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(deserialize_with = "pairs")]
    steps: Vec<(String, String)>,
}

/// Reads a course in any format.
///
/// # Errors
/// What is wrong with it, with its line where there is one.
pub fn read<T: Copy>(kind: &Dimension<T>, text: &str, repeat: bool) -> Result<Steps<T>, String> {
    // Some editors begin each file with a mark of its encoding.
    let text = text.trim_start_matches('\u{feff}');
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let first = first.ok_or("there is nothing in it")?;
    let rows = if first.parse::<f64>().is_ok() {
        (kind.mahimahi)(text, repeat)?
    } else if first.contains('=') {
        let table: Table = toml::from_str(text).map_err(|e| e.to_string())?;
        return course(kind, &table.steps, repeat);
    } else {
        csv(kind, text)?
    };
    of_rows(kind, &rows, repeat)
}

/// Of pairs of texts: times and values with units.
///
/// # Errors
/// What is wrong, and in which of them.
pub fn course<T: Copy>(
    kind: &Dimension<T>,
    steps: &[(String, String)],
    repeat: bool,
) -> Result<Steps<T>, String> {
    let read = |(i, (time, value)): (usize, &(String, String))| {
        let in_step = |e: String| format!("step {i}: {e}");
        let time = time.parse::<Duration>().map_err(|e| in_step(words(e)))?.as_nanos();
        Ok((time, (kind.value)(value).map_err(in_step)?))
    };
    let rows = steps.iter().enumerate().map(read).collect::<Result<Vec<_>, String>>()?;
    of_rows(kind, &rows, repeat)
}

fn of_rows<T: Copy>(
    kind: &Dimension<T>,
    rows: &[(u64, T)],
    repeat: bool,
) -> Result<Steps<T>, String> {
    if let Some(i) = rows.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
        return Err(format!("times must ascend: step {} comes at or before step {i}", i + 1));
    }
    if rows.last().is_some_and(|last| last.0 > LONGEST_MS * MS) {
        return Err("times of at most 30 days".into());
    }
    let steps = Steps::new(rows, repeat).ok_or(if rows.first().is_none_or(|row| row.0 > 0) {
        "the first time must be 0"
    } else {
        "what repeats has two times at least: the last one ends the round"
    })?;
    (kind.check)(&steps)?;
    Ok(steps)
}

/// What a line has between commas, semicolons, tabs or spaces, without quotes.
fn cells(line: &str) -> Vec<&str> {
    let separator = [';', '\t', ','].into_iter().find(|c| line.contains(*c));
    match separator {
        Some(separator) => line.split(separator).map(unquoted).collect(),
        None => line.split_whitespace().map(unquoted).collect(),
    }
}

fn unquoted(cell: &str) -> &str {
    cell.trim().trim_matches('"')
}

/// Whether a line is one of two numbers.
fn bare(line: &str) -> bool {
    let cells = cells(line);
    cells.len() == 2 && cells.iter().all(|cell| cell.parse::<f64>().is_ok())
}

/// A number without its exponent.
fn plain(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.contains(['e', 'E']) => number.to_string(),
        _ => cell.into(),
    }
}

/// If the first time is at least this many seconds (those of 2001), times count from 1970.
const SINCE_1970: u64 = 1_000_000_000;
/// The names of columns of times.
const TIMES: [(&str, &str); 5] =
    [("time_s", "s"), ("time_ms", "ms"), ("time_us", "us"), ("time_ns", "ns"), ("time", "")];
/// Names of columns whose values have units.
const UNITLESS: [&str; 3] = ["time", "rate", "delay"];
/// The most that a bare column of Mbit/s may hold: more is likely in bit/s or kbit/s.
const MOST_BARE: f64 = 1e5;

fn csv<T>(kind: &Dimension<T>, text: &str) -> Result<Vec<(u64, T)>, String> {
    let numbered = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut lines = lines.peekable();
    let bare = lines.peek().is_some_and(|(_, line)| bare(line));
    let named = if bare { commented(kind, text) } else { lines.next() };
    let (first, head) = named.unwrap_or((0, kind.bare));
    let head = cells(head);
    let find = |columns: &[(&str, &'static str)]| {
        let unit = |name: &str| columns.iter().find(|column| column.0 == name).map(|c| c.1);
        let found = head.iter().enumerate().find_map(|(i, name)| Some((i, unit(name)?)));
        found.ok_or_else(|| {
            let names: Vec<_> = columns.iter().map(|column| column.0).collect();
            format!("line {first}: a column is missing: one of {}", names.join(", "))
        })
    };
    let ((time, time_unit), (value, unit)) = (find(&TIMES)?, find(kind.columns)?);
    let mut rows = Vec::new();
    for (number, line) in lines {
        let at_line = |e: String| format!("line {number}: {e}");
        if rows.len() == MOST_ROWS {
            return Err(at_line(format!("more than {MOST_ROWS} rows")));
        }
        let mut cells = cells(line);
        if !bare && cells.len() == head.len() + 1 {
            cells.remove(0); // R's number of the row
        }
        if cells.len() != head.len() {
            return Err(at_line(format!("{} values are wanted", head.len())));
        }
        if named.is_none() && cells[value].parse().is_ok_and(|number: f64| number > MOST_BARE) {
            let wanted = format!("at most {MOST_BARE} Mbit/s where columns have no names");
            return Err(at_line(format!("{wanted}; a first line time_s,rate_bps tells bit/s")));
        }
        let told = |cell: &str, e: String| {
            let comma = if cell.contains(',') { "; decimals stand behind a point" } else { "" };
            at_line(format!("'{cell}': {e}{comma}"))
        };
        let at = format!("{}{time_unit}", plain(cells[time])).parse::<Duration>();
        let at = at.map_err(|e| told(cells[time], words(e)))?.as_nanos();
        let held = (kind.value)(&format!("{}{unit}", plain(cells[value])));
        rows.push((at, held.map_err(|e| told(cells[value], e))?));
    }
    let origin = rows.first().map_or(0, |row| row.0);
    if origin >= SINCE_1970 * 1000 * MS {
        rows.iter_mut().for_each(|row| row.0 = row.0.saturating_sub(origin));
    }
    Ok(rows)
}

/// The names of two bare columns in a comment above them, as numpy writes them.
fn commented<'a, T>(kind: &Dimension<T>, text: &'a str) -> Option<(usize, &'a str)> {
    let named = |cell: &&str| {
        let mut all = TIMES.iter().chain(kind.columns);
        all.any(|(name, unit)| name == cell && !(unit.is_empty() && UNITLESS.contains(name)))
    };
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .take_while(|(_, line)| line.is_empty() || line.starts_with('#'))
        .map(|(i, line)| (i + 1, line.trim_start_matches('#').trim()))
        .find(|(_, line)| cells(line).len() == 2 && cells(line).iter().all(named))
}

const MS: u64 = 1_000_000;
/// Bytes of an opportunity of mahimahi.
const OPPORTUNITY: u32 = 1500;

/// Mahimahi's lines as rates. Mahimahi names the end of a millisecond; its opportunities are spread over that
/// millisecond, so that a full queue's packets of 1500 bytes leave in the same millisecond as in mahimahi. An
/// opportunity at 0 counts to the first millisecond. A course that does not repeat goes on at the mean rate.
fn mahimahi(text: &str, repeat: bool) -> Rows<u64> {
    let bits = u64::from(OPPORTUNITY) * 8;
    let mut rows: Vec<(u64, u64)> = Vec::new();
    let (mut last, mut opportunities) = (0, 0);
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", i + 1);
        let at: u64 = line
            .parse()
            .map_err(|_| wrong(&format!("'{line}': whole milliseconds are wanted, one a line")))?;
        if at < last || at > LONGEST_MS {
            return Err(wrong("milliseconds must not descend, and be below 2592000000"));
        }
        last = at;
        opportunities += 1;
        let ms = at.saturating_sub(1);
        match rows.last_mut() {
            Some(row) if row.0 == ms * MS => row.1 += bits * 1000,
            _ => {
                // The rate falls to 0 in the millisecond after the last one with an opportunity.
                if let Some(&(before, _)) = rows.last()
                    && before + MS < ms * MS
                {
                    rows.push((before + MS, 0));
                } else if rows.is_empty() && ms > 0 {
                    rows.push((0, 0));
                }
                rows.push((ms * MS, bits * 1000));
            }
        }
        if rows.len() > MOST_ROWS {
            return Err(format!("more than {MOST_ROWS} milliseconds with a change"));
        }
    }
    rows.dedup_by(|next, row| next.1 == row.1);
    if last == 0 {
        return Err("it ends at 0 ms: the last line is its length, 1 or more".into());
    }
    rows.push((last * MS, if repeat { 0 } else { (opportunities * bits * 1000 / last).max(1000) }));
    Ok(rows)
}

/// The opportunities of mahimahi in `length` (ns) at such rates: each as soon as the integral of the
/// rate has reached it, at the end of that millisecond. The last line is the length: mahimahi begins
/// again there.
pub fn to_mahimahi(rates: &Steps<u64>, length: u64) -> String {
    let mut text = String::new();
    let mut varying = Varying::new(rates.clone().into());
    let last = length.div_ceil(MS);
    let (mut at, mut written) = (0, 0);
    loop {
        at = varying.finish(at, OPPORTUNITY);
        let ms = at.div_ceil(MS);
        if ms > last {
            break;
        }
        written = ms;
        _ = writeln!(text, "{ms}");
    }
    if written < last {
        _ = writeln!(text, "{last}");
    }
    text
}

/// A course of rates as CSV.
pub fn to_csv(rates: &Steps<u64>) -> String {
    let mut text = String::from("time_s,rate_bps\n");
    for (at, rate) in rates.rows() {
        _ = writeln!(text, "{}.{:09},{rate}", at / 1_000_000_000, at % 1_000_000_000);
    }
    text
}

/// A course of rates that is made: what is typical of a kind of link, not a measurement of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A Markov chain over eight rates, each 1.6 times the one before, and an outage: each 100 ms it
    /// goes a step up (0.25), a step down (0.25) or stays; from the lowest a step down is the outage.
    Cellular,
    /// A new rate each 15 s, 0.5 … 1.5 of the mean, with 100 ms of outage at each handover.
    Leo,
    /// Bursts of 1 … 8 ms at one rate and silence of 1 ms and more, exponential with mean 6 ms.
    Wifi,
    /// Away and back: the rate falls with time t as (1 + 10 t / half the length)⁻², and rises again
    /// as it fell; in steps of 100 ms.
    Fade,
    /// Others share the link: each second one more comes with probability 1/4, and each goes with 1/8. With n
    /// of them the rate is 2 / (1 + n) of that without any, at most all of it.
    Shared,
}

impl Model {
    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Cellular, Self::Leo, Self::Wifi, Self::Fade, Self::Shared];
        all.into_iter().find(|model| model.name() == name)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cellular => "cellular",
            Self::Leo => "leo",
            Self::Wifi => "wifi",
            Self::Fade => "fade",
            Self::Shared => "shared",
        }
    }

    /// Rates (bit/s) with a mean of `mean` over a round of `length`, 100 ms or more, the same on
    /// every machine.
    pub fn make(self, mean: Rate, length: Duration, seed: u64) -> Steps<u64> {
        let end = length.as_nanos().max(100 * MS);
        let mut rows = scaled(self.weights(end, seed), mean, end);
        if rows.iter().all(|row| row.1 == 0) {
            rows[0].1 = mean.bits_per_second().clamp(*RATES.start(), *RATES.end());
        }
        rows.push((end, 0));
        Steps::new(&rows, true).unwrap_or_else(|| Steps::constant(mean.bits_per_second()))
    }

    /// The steps of a round of `end` (ns), their rates in a unit of the model's own.
    fn weights(self, end: u64, seed: u64) -> Vec<(u64, u64)> {
        let mut rng = Rng::new(seed, 0x30 << 56 | self as u64);
        let mut weights: Vec<(u64, u64)> = Vec::new();
        let (mut at, mut level) = (0, if self == Self::Shared { 2 } else { 5usize });
        while at < end {
            let (lasts, weight) = match self {
                Self::Cellular => {
                    level = match rng.below(4) {
                        0 => (level + 1).min(8),
                        1 => level.saturating_sub(1),
                        _ => level,
                    };
                    // 1.6 = 8/5, to whole numbers.
                    let weight = 8u64.pow(level as u32) * 5u64.pow(8 - level as u32);
                    (100 * MS, if level == 0 { 0 } else { weight })
                }
                Self::Leo => {
                    weights.push((at, 0));
                    at += 100 * MS;
                    (14_900 * MS, 500_000 + rng.below(1_000_001) as u64)
                }
                Self::Wifi => {
                    let burst = MS + rng.below(7_000_001) as u64;
                    weights.push((at, 1_000_000));
                    at += burst;
                    let silence = -libm::log(1.0 - rng.uniform()) * 5.0;
                    (MS + (silence * MS as f64) as u64, 0)
                }
                Self::Shared => {
                    level -= (0..level).filter(|_| rng.below(8) == 0).count();
                    level += usize::from(rng.below(4) == 0);
                    (1000 * MS, 2_000_000 / (1 + level.max(1) as u64))
                }
                Self::Fade => {
                    let half = end as f64 / 2.0;
                    let away = half - libm::fabs(half - at as f64);
                    (100 * MS, (1e12 * libm::pow(1.0 + 10.0 * away / half, -2.0)) as u64)
                }
            };
            if at < end {
                weights.push((at, weight));
            }
            at += lasts;
        }
        weights.retain(|step| step.0 < end);
        weights.dedup_by(|next, step| next.1 == step.1);
        weights
    }
}

/// The steps of `weights` with the same proportions and a mean of `mean` over a round of `end` (ns).
fn scaled(weights: Vec<(u64, u64)>, mean: Rate, end: u64) -> Vec<(u64, u64)> {
    let ends = weights.iter().skip(1).map(|step| step.0).chain([end]);
    let done: u128 = weights
        .iter()
        .zip(ends)
        .map(|(&(from, weight), to)| u128::from(weight) * u128::from(to - from))
        .sum();
    // Below 1 kbit/s there is nothing to speak of, and a packet would take minutes.
    let scale = |weight: u64| {
        let rate =
            u128::from(weight) * u128::from(mean.bits_per_second()) * u128::from(end) / done.max(1);
        if rate < 1000 { 0 } else { u64::try_from(rate).unwrap_or(u64::MAX).min(*RATES.end()) }
    };
    weights.into_iter().map(|(at, weight)| (at, scale(weight))).collect()
}

#[cfg(test)]
mod tests {
    use link::varying::mean;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formats_tell_the_same() {
        let csv =
            "# of ours\ntime_s,loss,rate_mbps,delay_ms\n0,0,10,20\n0.5,0.01,0,30.5\n2,1,4,20\n";
        let toml = "steps = [[\"0s\", \"10mbit\"], [\"500ms\", \"0bit\"], [\"2s\", \"4mbit\"]]";
        let half = 500 * MS;
        for repeat in [false, true] {
            let rates = read(&RATE, csv, repeat).unwrap();
            assert_eq!(read(&RATE, toml, repeat).unwrap(), rates);
            assert_eq!(rates.steps()[..2], [(0, 10_000_000), (half, 0)]);
            assert_eq!(read(&RATE, &format!("\u{feff}{csv}"), repeat).unwrap(), rates);
            assert_eq!(read(&RATE, &to_csv(&rates), repeat).unwrap().steps(), rates.steps());
        }
        let delays = read(&DELAY, csv, false).unwrap();
        assert_eq!(delays.steps()[1..], [(half, 30_500_000), (2000 * MS, 20 * MS)]);
        assert_eq!(read(&LOSS, csv, true).unwrap().steps(), [(0, 0.0), (half, 0.01)]);
    }

    /// Two opportunities in the first millisecond (0 counts as one of it), none in the second, one in
    /// the third: 24, 0 and 12 Mb/s, which is a mean of 12.
    #[test]
    fn opportunities_are_rates() {
        let rates = read(&RATE, "0\n1\n3\n", true).unwrap();
        assert_eq!(rates.steps(), [(0, 24_000_000), (MS, 0), (2 * MS, 12_000_000)]);
        assert_eq!((rates.period(), mean(&rates)), (Some(3 * MS), 12e6));
        assert_eq!(
            read(&RATE, "2\n", false).unwrap().steps(),
            [(0, 0), (MS, 12_000_000), (2 * MS, 6_000_000)]
        );
    }

    /// A head is one of CSV whatever its columns are called.
    #[test]
    fn unknown_columns_are_named() {
        for head in ["\"t\",\"rate\"", "t rate_bps", "a;b"] {
            let wrong = read(&RATE, &format!("{head}\n0,10\n"), false).unwrap_err();
            assert!(wrong.starts_with("line 1: a column is missing: one of time_s"), "{wrong}");
        }
    }

    #[test]
    fn tables_of_other_programs_are_read() {
        let expected = [(0, 10_000_000), (1500 * MS, 2_500_000)];
        for text in [
            "0\t10\n1.5\t2.5\n3\t2.5\n",
            "0,10\n1.5,2.5\n3,2.5\n",
            "0 10\n1.5  2.5\n3 2.5\n",
            "\"time_s\",\"rate_mbps\"\n0,10\n1.5,2.5\n3,2.5\n",
            "\"\",\"time_s\",\"rate_mbps\"\n\"1\",0,10\n\"2\",1.5,2.5\n\"3\",3,2.5\n",
            "\"time_s\" \"rate_mbps\"\n\"1\" 0 10\n\"2\" 1.5 2.5\n\"3\" 3 2.5\n",
            "# numpy\n0.000000e+00 1.000000e+01\n1.500000e+00 2.500000e+00\n3.0e+00 2.5E0\n",
            "time_s,rate_mbps\n1700000000,10\n1700000001.5,2.5\n1700000003,2.5\n",
            "1700000000 10\n1700000001.5 2.5\n1700000003 2.5\n",
            "# time_s rate_bps\n0.0e+00 1.0e+07\n1.5e+00 2.5e+06\n3.0e+00 2.5e+06\n",
            "# time_ms,rate_kbps\n0,10000\n1500,2500\n3000,2500\n",
            "# time rate\n0 10\n1.5 2.5\n3 2.5\n",
        ] {
            let rates = read(&RATE, text, true).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(rates.steps()[..2], expected, "{text}");
        }
        let rates = read(&RATE, "0 12000000\n1 12000000\n", true).unwrap_err();
        assert!(rates.contains("time_s,rate_bps"), "{rates}");
        let delays = read(&DELAY, "# time_s delay_us\n0 20000\n1 30000\n", false).unwrap();
        assert_eq!(delays.steps(), [(0, 20 * MS), (1000 * MS, 30 * MS)]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| read(&RATE, text, true).unwrap_err();
        for (text, said) in [
            ("", "nothing in it"),
            ("5\n3", "line 2: milliseconds must not descend"),
            ("5\nx", "line 2: 'x': whole milliseconds are wanted"),
            ("5.000e+00\n6.000e+00", "line 1: '5.000e+00': whole milliseconds"),
            ("-1\n2", "line 1: '-1': whole milliseconds"),
            ("0\n0", "ends at 0 ms"),
            ("0", "ends at 0 ms"),
            ("time_s,rate\n0,1mbit\n0,1mbit", "times must ascend"),
            ("time_s,rate\n1,1mbit\n2,1mbit", "first time must be 0"),
            ("time_s,rate\n0,1mbit", "two times at least"),
            ("time_s,rate\n0,0\n1,1mbit", "end with a rate above 0"),
            ("time_s,rate\n0,1mbps", "line 2: '1mbps': a rate such as"),
            ("time_s;rate_mbps\n0;10,5", "line 2: '10,5': a rate such as 45mbit"),
            ("time_s;rate_mbps\n0;10,5", "; decimals stand behind a point"),
            ("time,rate\n2024-01-01,1mbit", "line 2: '2024-01-01': a time such as"),
            ("time_s,rate\n0,1bit", "line 2: '1bit': a rate of 0, or 1kbit"),
            ("time_s,rate\n0", "line 2: 2 values"),
            ("time_s,delay_ms\n0,1", "one of rate_bps"),
            ("steps = 5", "invalid type"),
        ] {
            let found = wrong(text);
            assert!(found.contains(said), "{text}: {found}");
        }
        assert!(read(&LOSS, "1\n2\n", true).is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[0-9a-z_,.\n =\\[\\]\"]{0,80}", repeat: bool) {
            _ = read(&RATE, &text, repeat);
            _ = read(&DELAY, &text, repeat);
            _ = read(&LOSS, &text, repeat);
        }

        /// Mahimahi's opportunities come back unchanged.
        #[test]
        fn opportunities_come_back(gaps in prop::collection::vec(0u64..5, 1..200)) {
            let times = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) });
            let lines: Vec<String> = times.map(|at: u64| at.max(1).to_string()).collect();
            let text = lines.join("\n") + "\n";
            let rates = read(&RATE, &text, true).unwrap();
            prop_assert_eq!(to_mahimahi(&rates, rates.period().unwrap()), text);
        }

        #[test]
        fn models_have_the_mean_asked_for(which in 0usize..5, seed: u64, mbit in 1u64..1000) {
            let model = Model::named(["cellular", "leo", "wifi", "fade", "shared"][which]).unwrap();
            let (asked, length) = (Rate::from_mbit(mbit), Duration::from_secs(60));
            let rates = model.make(asked, length, seed);
            prop_assert_eq!(rates.period(), Some(length.as_nanos()));
            let mean = mean(&rates);
            prop_assert!((mean / (mbit as f64 * 1e6) - 1.0).abs() < 0.01, "{}", mean);
            prop_assert_eq!(rates, model.make(asked, length, seed));
        }
    }

    /// Pinned, so that a trace that somebody made can be made again.
    #[test]
    fn models_are_pinned() {
        let sums = ["cellular", "leo", "wifi", "fade", "shared"].map(|name| {
            let model = Model::named(name).unwrap();
            let rates = model.make(Rate::from_mbit(10), Duration::from_secs(60), 1);
            let mix =
                |sum: u64, (at, rate): (u64, u64)| (sum ^ at).wrapping_mul(31).wrapping_add(rate);
            rates.rows().fold(0, mix)
        });
        let pinned = [
            6_335_541_415_583_557_962,
            8_809_383_579_323_425_525,
            12_231_724_661_423_656_656,
            7_885_188_424_196_273_110,
            7_782_837_035_801_576_884,
        ];
        assert_eq!(sums, pinned);
    }
}
