//! All tests of this folder in one program: each more would be linked, and compile what it shares, again.

use aqm::{Ack, Carried, Cause, Instant, Meta, Outlet, Rng};

mod counting;
mod idle;
mod laws;
mod no_alloc;
mod oracle;
mod pages;
mod state;
mod vectors;
mod watched;

/// Whether a queue discipline is to be tried: all are, unless `BLUEWATER_ONLY` names one.
fn wanted(name: &str) -> bool {
    std::env::var("BLUEWATER_ONLY").map_or(true, |only| only.is_empty() || only == name)
}

/// A packet by its number: what all queues here hold. Each other type would have all disciplines
/// compiled again.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Numbered {
    id: u32,
    ack: Ack,
    /// Something that must not matter.
    salt: u64,
}

impl Numbered {
    /// One that acknowledges nothing.
    fn plain(id: u32) -> Self {
        Numbered { id, ..Numbered::default() }
    }
}

impl Carried for Numbered {
    fn ack(&self) -> Ack {
        self.ack
    }
}

/// To whom all queues here report, as one type for the reason given above.
struct To<'a>(&'a mut dyn Outlet<Numbered>);

impl Outlet<Numbered> for To<'_> {
    fn dropped(&mut self, meta: &Meta, packet: Numbered, cause: Cause, now: Instant) {
        self.0.dropped(meta, packet, cause, now);
    }
    fn marked(&mut self, meta: &Meta, packet: &Numbered, cause: Cause, now: Instant) {
        self.0.marked(meta, packet, cause, now);
    }
    fn drawn(&mut self, rng: &Rng) {
        self.0.drawn(rng);
    }
}
