//! Paths that packets draw (equal-cost multipath by packet).
//!
//! Such a path has one entry in the table of paths, numbered behind all links: it sends each packet on to
//! the beginning of a path of links. All links between know nothing of it.

use std::sync::Arc;

use aqm::Rng;

/// The paths among which the packets of a flow draw, one way.
#[derive(Clone, Debug)]
pub struct Spray {
    /// Up to which number, in 0 … 1, each is drawn, and where it is in the table; ascending.
    paths: Arc<[(f64, u32)]>,
    rng: Rng,
}

impl Spray {
    /// Draws from `rng`; each path is drawn up to a number in 0 … 1. There is one at least.
    pub(crate) fn new(paths: Arc<[(f64, u32)]>, rng: Rng) -> Self {
        Self { paths, rng }
    }

    /// The path of the next packet.
    pub(super) fn draw(&mut self) -> u32 {
        let drawn = self.rng.uniform();
        let number = self.paths.partition_point(|(upto, _)| *upto <= drawn);
        // Shares that are added up may be a little less than 1.
        self.paths[number.min(self.paths.len() - 1)].1
    }

    /// All of them.
    pub(super) fn paths(&self) -> impl Iterator<Item = u32> {
        self.paths.iter().map(|(_, path)| *path)
    }
}
