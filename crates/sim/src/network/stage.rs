//! Stages between links, numbered behind them in the table of paths: all links know nothing of them, and
//! networks without any pay nothing.
//!
//! - At the beginning of a path, each packet draws one of several (equal-cost multipath by packet).
//! - Before the queue of a switch whose ports share a buffer, it is decided whether a packet is admitted.

use std::sync::Arc;

use aqm::{Qdisc as _, Rng};
use scenario::switch::Shared;

use super::managed::Managed;
use super::wires::Wires;

/// What the entry of a stage stands for.
#[derive(Clone, Debug)]
pub enum Stage {
    /// The packet goes on at the beginning of a path that it draws.
    Draw(Draw),
    /// Before this link: the pool of this number admits the packet or does not.
    Admit(usize, usize),
}

/// The paths among which the packets of a flow draw, one way.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Up to which number, in 0 … 1, each is drawn, and where it is in the table; ascending.
    paths: Arc<[(f64, u32)]>,
    rng: Rng,
}

impl Draw {
    /// Draws from `rng`; each path is drawn up to a number in 0 … 1. There is one at least.
    pub(crate) fn new(paths: Arc<[(f64, u32)]>, rng: Rng) -> Self {
        Self { paths, rng }
    }

    /// The path of the next packet.
    pub(super) fn next(&mut self) -> u32 {
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

/// A buffer that several queues share, each up to a dynamic threshold (CH98):
///
/// ```text
/// T := alpha · (B − Q), where Q is what all queues hold
/// a packet arrives at queue i: admit it if Q_i < T and Q + len <= B
/// ```
///
/// The packet in transmission is in no queue.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Shared,
}

impl Pool {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared }
    }

    /// Whether a packet of `len` bytes that arrives at `link` at `now` is admitted. What left the queues by
    /// then has left them.
    pub(super) fn admits(
        &self,
        link: usize,
        len: u64,
        now: u64,
        queues: &mut [Option<Box<Managed>>],
        wires: &mut Wires,
    ) -> bool {
        let (mut used, mut own) = (0, 0);
        for &port in &self.shared.links {
            let Some(queue) = &mut queues[port] else { continue };
            if queue.next_departure() <= now {
                queue.catch_up(now, port, wires);
            }
            let bytes = queue.queue().backlog().bytes;
            used += bytes;
            if port == link {
                own = bytes;
            }
        }
        let free = self.shared.bytes.saturating_sub(used);
        len <= free && (own as f64) < self.shared.alpha * free as f64
    }
}
