//! How large transfers are: distributions by name, the two that data centres are studied with, and those
//! of files.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

use aqm::units::TextError;
use link::DecisionHash;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::Place;
use crate::arrivals::{self, Files};
use crate::error::{Complaint, beginning};
use crate::text::{Quantity, Text};

/// How the sizes of transfers are spread: a distribution with a name, or that of a file.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a name in quotes, or a table with a file\u{1f}")]
pub enum Spread {
    /// A distribution with a name.
    Named(Text<Sizes>),
    /// That of a file.
    File(SizesFile),
}

/// A distribution of sizes that a file has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizesFile {
    /// The file, as seen from the folder of the scenario's: in each line bytes, and the share of flows
    /// that have no more.
    pub file: String,
    /// Checksum of the points, 16 hexadecimal digits. Bluewater fills it in; if you give it, the file has to
    /// match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Its points, once it was read.
    #[serde(skip)]
    points: Arc<[(f64, f64)]>,
}

impl<'de> Deserialize<'de> for Spread {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Spread;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or a table with file", Sizes::ABOUT)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Spread, E> {
                Text::deserialize(StrDeserializer::new(text)).map(Spread::Named)
            }
            fn visit_map<M: de::MapAccess<'de>>(self, map: M) -> Result<Spread, M::Error> {
                SizesFile::deserialize(MapAccessDeserializer::new(map)).map(Spread::File)
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Spread {
    /// Its points, if it has such: then it has its mean, too.
    pub fn points(&self) -> Option<&[(f64, f64)]> {
        match self {
            Self::Named(Text(sizes)) => sizes.points(),
            Self::File(file) => Some(&file.points),
        }
    }

    /// Its mean in bytes, if it has one of its own.
    pub fn mean(&self) -> Option<f64> {
        let points = self.points()?;
        let (least, at_least) = points.first()?;
        let between = points.windows(2).map(|p| (p[1].1 - p[0].1) * (p[0].0 + p[1].0) / 2.0);
        Some(least * at_least + between.sum::<f64>())
    }
}

/// The largest size in a file, bytes: a terabyte.
const LARGEST: f64 = 1e12;
/// The most points of a file.
const MOST_POINTS: usize = 1_000_000;

impl SizesFile {
    /// Takes the points of the file.
    pub(super) fn read(&mut self, at: &Place, files: &mut dyn Files) -> Result<(), Complaint> {
        let wrong = |problem| Complaint::wrong(at.key("sizes.file"), problem);
        let arrivals::Text { text, file } = files.text(&self.file).map_err(wrong)?;
        let points = read(&text).map_err(|problem| wrong(format!("{file}: {problem}")))?;
        let digest = digest(&points);
        if self.digest.as_ref().is_some_and(|known| *known != digest) {
            let allowed = format!("{digest}: that of {file}");
            return Err(Complaint::new(at.key("sizes.digest"), allowed)
                .hint("the file is not the one that this was made from"));
        }
        (self.file, self.digest, self.points) = (file, Some(digest), points.into());
        Ok(())
    }
}

/// Advice for a file of ns-2, whose sizes may be in packets: only its author knows of how many bytes.
const OF_NS2: &str = "; of ns-2's three, size, count and share, leave the second out, and make bytes of \
                      packets: awk '{ print $1 * 1460, $3 }'";

/// Points of a text: two columns with commas or spaces between, and if wanted a head. Shares end at 1, or
/// at 100 where they are in percent.
fn read(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let numbered = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (i, (number, line)) in lines.enumerate() {
        let wrong = |text: &str, what: &str| {
            let text = beginning(text);
            Err(format!("line {number}: {text}{what}"))
        };
        let cells: Vec<&str> = match line.contains(',') {
            true => line.split(',').map(str::trim).collect(),
            false => line.split_whitespace().collect(),
        };
        let [size, share] = cells[..] else {
            let hint = if cells.len() == 3 { OF_NS2 } else { "" };
            return wrong(line, &format!(": two values are wanted, bytes and a share{hint}"));
        };
        let value = |cell: &str| cell.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
        let (Some(bytes), Some(part)) = (value(size), value(share)) else {
            if i == 0 && [size, share].iter().all(|cell| value(cell).is_none()) {
                continue; // the head
            }
            return wrong(line, ": bytes and a share are numbers of 0 and more");
        };
        if bytes > LARGEST {
            return wrong(size, &format!(": at most {LARGEST:e} bytes"));
        }
        if let Some(&(before, below)) = points.last()
            && (bytes < before || part < below)
        {
            let what = if bytes < before { size } else { share };
            return wrong(what, " is less than in the line before: both ascend");
        }
        if points.len() == MOST_POINTS {
            return wrong("", &format!("more than {MOST_POINTS} points"));
        }
        points.push((bytes, part));
    }
    in_shares(points)
}

/// The points with their parts as shares of one, from 0 to 1.
fn in_shares(mut points: Vec<(f64, f64)>) -> Result<Vec<(f64, f64)>, String> {
    let Some(&(largest, whole)) = points.last() else {
        return Err("there is nothing in it".into());
    };
    if whole != 1.0 && whole != 100.0 {
        return Err(format!("the last share is {whole}: 1, or 100 where they are in percent"));
    }
    if largest == 0.0 {
        return Err("the largest size is 0: nothing would be sent".into());
    }
    points.iter_mut().for_each(|point| point.1 /= whole);
    Ok(points)
}

/// A fingerprint of points.
fn digest(points: &[(f64, f64)]) -> String {
    let mut hash = DecisionHash::default();
    for (bytes, share) in points {
        let share = share.to_bits();
        hash.departure(bytes.to_bits(), (share >> 32) as u32, share as u32);
    }
    hash.to_string()
}

/// Distributions with a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sizes {
    /// Flows of a cluster for web search: Alizadeh et al., Data Center TCP (SIGCOMM 2010), Fig. 4.
    WebSearch,
    /// Flows of a cluster for data mining: Greenberg et al., VL2 (SIGCOMM 2009), Fig. 2.
    DataMining,
    /// Pareto of this shape about a mean.
    Pareto(f64),
    /// Log-normal about a mean: the logarithm has this standard deviation.
    LogNormal(f64),
}

/// Bytes, and the share of flows that have no more; between two points straight lines.
pub type Points = &'static [(f64, f64)];

/// The points that Mellette et al. (Opera, NSDI 2020, Fig. 1) read from the papers' figures.
const WEB_SEARCH: Points = &[
    (4_000.0, 0.0),
    (5_971.0, 0.077_049_18),
    (8_722.0, 0.152_459_016),
    (18_614.0, 0.195_081_967),
    (27_563.0, 0.3),
    (44_871.0, 0.427_868_852),
    (77_113.0, 0.532_786_885),
    (193_593.0, 0.601_639_344),
    (620_119.0, 0.696_721_311),
    (1_933_313.0, 0.801_639_344),
    (3_147_330.0, 0.860_655_738),
    (4_853_634.0, 0.903_278_689),
    (6_901_099.0, 0.942_622_951),
    (9_812_271.0, 0.972_131_148),
    (15_759_080.0, 0.985_245_902),
    (28_589_215.0, 1.0),
];
const DATA_MINING: Points = &[
    (100.0, 0.0),
    (180.0, 0.085),
    (250.0, 0.14),
    (560.0, 0.33),
    (900.0, 0.47),
    (1_100.0, 0.55),
    (1_870.0, 0.65),
    (3_160.0, 0.7),
    (10_000.0, 0.8),
    (100_001.0, 0.874),
    (400_000.0, 0.9),
    (1_850_000.0, 0.95),
    (10_000_000.0, 0.97),
    (30_000_000.0, 0.98),
    (100_000_000.0, 0.99),
    (250_000_000.0, 0.995),
    (1_000_000_000.0, 1.0),
];

impl Sizes {
    fn points(self) -> Option<Points> {
        match self {
            Self::WebSearch => Some(WEB_SEARCH),
            Self::DataMining => Some(DATA_MINING),
            Self::Pareto(_) | Self::LogNormal(_) => None,
        }
    }
}

impl FromStr for Sizes {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let number = |text: &str, most: f64| {
            text.trim().parse().ok().filter(|x: &f64| *x > 0.0 && *x <= most)
        };
        let named = match text.split_once(' ').unwrap_or((text, "")) {
            ("web-search", "") => Some(Self::WebSearch),
            ("data-mining", "") => Some(Self::DataMining),
            // At a shape of 1 or less there is no mean.
            ("pareto", shape) => number(shape, 100.0).filter(|x| *x > 1.0).map(Self::Pareto),
            ("lognormal", sigma) => number(sigma, 10.0).map(Self::LogNormal),
            _ => None,
        };
        named.ok_or(TextError { allowed: Self::ABOUT, hint: String::new() })
    }
}

impl Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebSearch => f.write_str("web-search"),
            Self::DataMining => f.write_str("data-mining"),
            Self::Pareto(shape) => write!(f, "pareto {shape}"),
            Self::LogNormal(sigma) => write!(f, "lognormal {sigma}"),
        }
    }
}

impl Quantity for Sizes {
    const NAME: &'static str = "Sizes";
    const ABOUT: &'static str =
        "web-search, data-mining, pareto SHAPE (above 1 … 100), lognormal SIGMA (above 0 … 10)";
    const PATTERN: &'static str = r"^(web-search|data-mining|(pareto|lognormal) \d+(\.\d+)?)$";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_ascend_to_all_flows() {
        for sizes in [Sizes::WebSearch, Sizes::DataMining] {
            let points = sizes.points().unwrap();
            assert!(points.windows(2).all(|p| p[0].0 < p[1].0 && p[0].1 < p[1].1), "{sizes}");
            assert_eq!((points[0].1, points[points.len() - 1].1), (0.0, 1.0));
        }
        assert_eq!(Spread::Named(Text(Sizes::Pareto(1.5))).mean(), None);
    }

    /// The mean of a file by hand: a fifth have 100 bytes, 30 % between 100 and 300, half between 300
    /// and 1100. In whatever form.
    #[test]
    fn points_of_a_file_are_read_in_each_form() {
        let points = vec![(100.0, 0.2), (300.0, 0.5), (1100.0, 1.0)];
        for text in [
            "size,cdf\n100,0.2\n300,0.5\n1100,1\n",
            "\u{feff}# bytes and share\n100 0.2\n\n300\t0.5\r\n1100 1.0",
            "100, 20\n300, 50\n1100, 100\n",
        ] {
            assert_eq!(read(text), Ok(points.clone()), "{text}");
        }
        let file = SizesFile { file: String::new(), digest: None, points: points.into() };
        let mean = Spread::File(file).mean().unwrap();
        assert!((mean - (20.0 + 0.3 * 200.0 + 0.5 * 700.0)).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_line_and_value() {
        for (text, said) in [
            ("", "nothing"),
            ("size,cdf\n", "nothing"),
            ("100,0.2\n300\n", "line 2: 300: two values"),
            ("100 0.2 3\n", "line 1: 100 0.2 3: two values"),
            ("1 0 0\n2 3 0.5\n", "line 1: 1 0 0: two values"),
            ("1 0 0\n2 3 0.5\n", "of ns-2's three"),
            ("\u{1b}[31mred 0.5\n", "line 1: \\u{1b}[31mred 0.5: bytes"),
            ("100,0.2\nmany,1\n", "line 2: many,1: bytes"),
            ("# head\n100,0.2\n300,-1\n", "line 3: 300,-1: bytes"),
            ("100,nan\n", "line 1: 100,nan: bytes"),
            ("300,0.2\n100,1\n", "line 2: 100 is less"),
            ("100,0.5\n\n300,0.4\n", "line 3: 0.4 is less"),
            ("100,0.5\n1e13,1\n", "line 2: 1e13: at most"),
            ("100,0.5\n300,0.9\n", "the last share is 0.9"),
            ("0,0\n0,1\n", "the largest size is 0"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        let error = read(&"1".repeat(5_000_000)).unwrap_err();
        assert!(error.len() < 200 && error.contains("11 …: two values"), "{error}");
    }

    #[test]
    fn words_are_read_and_written() {
        for text in ["web-search", "data-mining", "pareto 1.2", "lognormal 2"] {
            assert_eq!(text.parse::<Sizes>().map(|sizes| sizes.to_string()), Ok(text.into()));
        }
        for wrong in
            ["", "pareto", "pareto 1", "pareto 101", "lognormal 0", "web-search 2", "zipf 1"]
        {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
