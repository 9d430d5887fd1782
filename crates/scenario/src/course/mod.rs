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

mod model;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use aqm::units::TextError;
use aqm::{Duration, Rate};
use link::Steps;
use link::impair::probability;
use link::varying::Varying;
pub use model::Model;
use serde::Deserialize;

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
