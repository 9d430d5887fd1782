//! How large transfers are: distributions by name, and the two that data centres are studied with.

use std::fmt::{self, Display};
use std::str::FromStr;

use aqm::units::TextError;

use crate::text::Quantity;

/// How the sizes of transfers are spread.
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
    /// Its points, if it has such: then it has its mean, too.
    pub fn points(self) -> Option<Points> {
        match self {
            Self::WebSearch => Some(WEB_SEARCH),
            Self::DataMining => Some(DATA_MINING),
            Self::Pareto(_) | Self::LogNormal(_) => None,
        }
    }

    /// Its mean in bytes, if it has one of its own.
    pub fn mean(self) -> Option<f64> {
        let pairs = self.points()?.windows(2);
        Some(pairs.map(|p| (p[1].1 - p[0].1) * (p[0].0 + p[1].0) / 2.0).sum())
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
        assert_eq!(Sizes::Pareto(1.5).mean(), None);
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
