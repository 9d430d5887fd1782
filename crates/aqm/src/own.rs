//! An algorithm that is brought along while the program runs, as one written in Python.
//!
//! It advises a FIFO as those of the catalogue do, through one call by address an event: room,
//! counters, marks and drops are the library's.

use alloc::boxed::Box;

use crate::context::{Cx, Env};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::policy::{Arrival, Departure, Policy, Victim, View};
use crate::rng::Rng;
use crate::time::Instant;

/// What such an algorithm does at each event; see [`Policy`] for when they come.
pub trait Advice: Send {
    /// A packet arrives; `q` does not hold it.
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival;

    /// A packet is about to be sent; `q` does not hold it.
    fn on_departure(&mut self, _pkt: &Meta, _q: &View<'_>, _cx: &mut Cx<'_>) -> Departure {
        Departure::Send
    }

    /// An arriving packet does not fit now.
    fn on_overflow(&mut self, _pkt: &Meta, _q: &View<'_>, _cx: &mut Cx<'_>) -> Victim {
        Victim::Arriving
    }

    /// The transmitter asked for a packet and the queue was empty.
    fn on_idle(&mut self, _cx: &mut Cx<'_>) {}

    /// When it wants [`on_timer`](Advice::on_timer).
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// That time has come.
    fn on_timer(&mut self, _q: &View<'_>, _cx: &mut Cx<'_>) {}

    /// Reports each signal by name as it stands at `now`.
    fn observe(&self, _now: Instant, _sink: &mut dyn FnMut(&'static str, f64)) {}

    /// Another one in the same state, that goes its own way from now on.
    fn duplicate(&self) -> Box<dyn Advice>;
}

params! {
    /// What is brought along has parameters of its own.
    pub struct OwnConfig {}
}

/// The policy that asks an [`Advice`].
pub struct Own(pub Box<dyn Advice>);

impl Clone for Own {
    fn clone(&self) -> Self {
        Self(self.0.duplicate())
    }
}

impl Policy for Own {
    type Config = OwnConfig;
    type Tag = ();

    /// Never: there is nothing to make it of but an [`Advice`], see
    /// [`AnyQdisc::own`](crate::AnyQdisc::own).
    fn new(_: &OwnConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Err(ConfigError { key: "aqm", allowed: "made by AnyQdisc::own".into() })
    }

    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.0.on_arrival(pkt, q, cx)
    }

    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        self.0.on_departure(pkt, q, cx)
    }

    fn on_overflow(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Victim {
        self.0.on_overflow(pkt, q, cx)
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        self.0.on_idle(cx);
    }

    fn poll_at(&self) -> Option<Instant> {
        self.0.poll_at()
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        self.0.on_timer(q, cx);
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe(now, sink);
    }
}
