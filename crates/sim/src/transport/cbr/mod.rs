//! Datagrams at a constant rate, exact over time, whatever happens to them.

mod echo;

use aqm::{Ecn, Rng};
use scenario::traffic::{self as keys, GapsName, TrafficSpec};

use super::{After, EndPoints, FlowReport, FlowSetup, Port};
use crate::app::Periods;
use crate::packet::{Packet, Payload};
use crate::results::distinct::Distinct;
use crate::results::one_way::OneWay;
pub use echo::Echo;
pub(crate) use echo::Echoes;

/// How the gaps of a datagram source are spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gaps {
    /// All the same, exact over time.
    Constant,
    /// Uniform within this share of the mean on both sides, 0 … 1.
    Uniform(f64),
    /// Exponential: a Poisson process.
    Exponential,
}

/// What the flows of a group share.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rates in bits per second on the wire, each from a time in ns on; the first from 0.
    pub rates: Box<[(u64, u64)]>,
    /// How the gaps between datagrams are spread about their mean.
    pub gaps: Gaps,
    /// Whether the datagrams claim to be ECN-capable; marks are ignored.
    pub ecn: bool,
    /// Whether the far end sends each back.
    pub echo: bool,
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, cbr: &keys::Cbr, _: u32) -> Self {
        let gaps = match cbr.gaps {
            GapsName::Constant => Gaps::Constant,
            GapsName::Uniform => Gaps::Uniform(cbr.jitter),
            GapsName::Poisson => Gaps::Exponential,
        };
        let rates = cbr.rates.iter().map(|(at, r)| (at.0.as_nanos(), r.0.bits_per_second()));
        let rates = [(0, cbr.rate.0.bits_per_second())].into_iter().chain(rates).collect();
        Self { rates, gaps, ecn: spec.group.ecn, echo: cbr.echo }
    }
}

/// Both ends of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    rng: Rng,
    /// When it started, ns.
    start: u64,
    carry: u64,
    sent: u32,
    received: Distinct,
    /// If it is measured.
    one_way: Option<Box<OneWay>>,
    /// If datagrams come back.
    echoes: Option<Box<Echoes>>,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(o: &Options, number: usize, setups: &[FlowSetup]) -> Self {
        let setup = &setups[number];
        let (rng, start) = (setup.seed.rng(), setup.start);
        let echoes = o.echo.then(Box::default);
        Self { rng, start, carry: 0, sent: 0, received: Distinct::from(1), one_way: None, echoes }
    }

    fn are_apart(_: &Options) -> bool {
        true
    }

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        let now = port.now;
        let rate = o.rates.iter().rev().find(|(from, _)| *from <= now).map_or(1, |r| r.1);
        let next = now + self.gap(port.group.packet, rate, o.gaps);
        port.seat.app_at = self.start + port.group.app.next_on(next - self.start);
        self.sent += 1;
        if let Some(one_way) = &mut self.one_way {
            one_way.send(self.sent, now);
        }
        if let Some(echoes) = &mut self.echoes {
            echoes.send(self.sent, now);
        }
        let datagram = port.take_data();
        (datagram.payload, datagram.seq, datagram.ecn) =
            (Payload::Datagram { sent: now.into() }, self.sent, Ecn::ect(o.ecn));
        port.send();
    }

    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, _: &Options) -> After {
        if let (Payload::Answer, Some(echoes)) = (packet.payload, &mut self.echoes) {
            echoes.come_back(packet.seq, port.now);
            return After::Nothing;
        }
        self.received.take(packet.seq);
        if let (Some(one_way), Payload::Datagram { sent }) = (&mut self.one_way, packet.payload) {
            one_way.receive(packet.seq, sent.ns(), port.now);
        }
        if let Some(echoes) = &mut self.echoes {
            echoes.turn(packet.seq, port.now);
            *port.scratch = Packet { len: packet.len, payload: Payload::Answer, ..*packet };
            port.send_back();
        }
        After::Nothing
    }

    fn measure_from(&mut self, now: u64) {
        self.one_way = Some(Box::new(OneWay::new(now)));
    }

    fn one_way(&self) -> Option<&OneWay> {
        self.one_way.as_deref()
    }

    fn round_trip(&self, now: u64, packet: &Packet) -> Option<u64> {
        self.echoes.as_ref()?.round_trip(packet.seq, now)
    }

    fn echoes(&mut self) -> Option<&mut Echoes> {
        self.echoes.as_deref_mut()
    }

    fn report(&self) -> FlowReport {
        FlowReport { delivered: self.received.count(), ..FlowReport::default() }
    }
}

impl Ends {
    /// Time to the next datagram, ns.
    fn gap(&mut self, len: u16, rate: u64, gaps: Gaps) -> u64 {
        let owed = u128::from(len) * 8_000_000_000 + u128::from(self.carry);
        self.carry = (owed % u128::from(rate)) as u64;
        let mean = (owed / u128::from(rate)) as u64;
        let gap = match gaps {
            Gaps::Constant => mean,
            Gaps::Uniform(share) => {
                (mean as f64 * (1.0 + share * (2.0 * self.rng.uniform() - 1.0))) as u64
            }
            Gaps::Exponential => Periods::Exponential.draw(mean, &mut self.rng),
        };
        gap.max(1) // time goes on
    }
}
