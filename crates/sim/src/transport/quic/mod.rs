//! QUIC, by stacks of others ([`crate::stack`]): losses, pacing and congestion control are theirs. Here is
//! what lies around them: the application's data on one side, packets on the other.
//!
//! A packet of the application has as many bytes as the longest datagram carries of a stream. So sizes and
//! goodputs count with headers, as those of TCP do.

use std::fmt;

use aqm::Ecn;
use link::NEVER;
use scenario::traffic::{Quic, QuicControl, TrafficSpec};

use super::{After, EndPoints, FlowReport, FlowSetup, Port};
use crate::app::{App, OnOff, Step};
use crate::packet::{Packet, Payload};
use crate::stack::{self, Datagram, End, Make, Pair, Start, Tally};

/// What the flows of a group share.
#[derive(Clone, Debug)]
pub struct Options {
    /// The stack; a run begins only if there is one.
    make: Option<Make>,
    control: QuicControl,
    /// The longest packet, bytes.
    packet: u16,
    /// Whether the network lets datagrams be ECN-capable.
    ecn: bool,
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, keys: &Quic, _: u32) -> Self {
        Self {
            make: stack::named(spec.group.transport.name()),
            control: keys.control,
            packet: spec.group.packet_bytes().unwrap_or(u16::MAX),
            ecn: spec.group.ecn,
        }
    }
}

/// Both ends of a flow.
pub(crate) struct Ends {
    pair: Option<Box<dyn Pair>>,
    /// Bytes of a packet of the application.
    payload: u64,
    begun: bool,
    /// Bytes that the application has given and the stack has not taken; the greatest: without an end.
    backlog: u64,
    /// Nothing comes after them.
    is_last: bool,
    /// Packets of the whole transfer, if that is what there is.
    transfer: u32,
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").field("tally", &self.tally()).finish_non_exhaustive()
    }
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(o: &Options, number: usize, setups: &[FlowSetup]) -> Self {
        let rng = setups[number].jitter.rng();
        let start = Start { control: o.control, datagram: Quic::datagram(o.packet), rng };
        Self {
            pair: o.make.map(|make| make(start)),
            payload: Quic::payload(o.packet).into(),
            begun: false,
            backlog: 0,
            is_last: false,
            transfer: 0,
        }
    }

    /// One connection has both ends.
    fn are_apart(_: &Options) -> bool {
        false
    }

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        port.seat.app_at = port.group.stop;
        if !self.begun {
            self.begun = true;
            self.pair.iter_mut().for_each(|pair| pair.open(port.now));
            match port.group.app {
                App::Infinite => self.offer(u32::MAX),
                App::Finite { .. } => {
                    self.transfer = port.group.finite(port.flow as usize).unwrap_or(0);
                    self.offer(self.transfer);
                    self.is_last = true;
                }
                App::OnOff { .. } | App::Schedule(_) => self.step(port, port.now),
                App::Periodic { .. } | App::Web(_) => {}
            }
        }
        self.send(port, o);
    }

    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        let Some(pair) = &mut self.pair else { return After::Nothing };
        let to_sender = matches!(packet.payload, Payload::Answer);
        let end = if to_sender { End::Sender } else { End::Receiver };
        pair.arrive(port.now, end, packet.seq, packet.ecn);
        if to_sender {
            return After::Ask;
        }
        self.pump(port, o);
        After::Timer
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        let Some(pair) = self.pair.as_mut().filter(|pair| pair.timer() <= port.now) else { return };
        pair.on_timer(port.now);
        self.send(port, o);
    }

    fn send(&mut self, port: &mut Port<'_>, o: &Options) {
        let now = port.now;
        // What the application did while nothing could be sent was not waited for.
        while let Some(ends) = source(port).map(|source| source.ends())
            && ends <= now
        {
            self.step(port, ends);
        }
        self.pump(port, o);
        let Some(source) = source(port) else { return };
        let mut due = source.ends();
        // It gives one packet after another; as long as there are others to send they are counted, not
        // waited for.
        if source.gap() > 0 && self.backlog == 0 {
            let (given, gives) = (source.given(now), source.gives());
            self.offer(given);
            self.pump(port, o);
            if self.backlog == 0 {
                due = due.min(gives);
            }
        }
        port.seat.app_at = due.min(port.group.stop);
    }

    /// The application closes the connection.
    fn stop(&mut self) {
        (self.backlog, self.is_last, self.transfer) = (0, true, 0);
        self.pair.iter_mut().for_each(|pair| pair.finish());
    }

    fn deadline(&self) -> u64 {
        self.pair.as_ref().map_or(NEVER, |pair| pair.timer())
    }

    fn window(&self, o: &Options) -> Option<f64> {
        Some(self.tally().window as f64 / f64::from(Quic::datagram(o.packet)))
    }

    fn report(&self) -> FlowReport {
        let Tally { delivered, lost, marked, srtt, .. } = self.tally();
        FlowReport {
            delivered: (delivered / self.payload) as u32,
            retransmits: lost,
            ecn_reductions: marked,
            srtt,
            ..FlowReport::default()
        }
    }

    fn acknowledged(&self) -> Option<u32> {
        let all = self.pair.as_ref().is_some_and(|pair| pair.is_done());
        Some(if all { self.transfer } else { 0 })
    }

    fn broken(&self) -> Option<(u64, &str)> {
        self.pair.as_ref()?.broken()
    }

    fn last_round_trip(&mut self) -> Option<u64> {
        self.pair.as_mut()?.take_sample()
    }
}

impl Ends {
    fn tally(&self) -> Tally {
        self.pair.as_ref().map_or_else(Tally::default, |pair| pair.tally())
    }

    /// The application has so many packets more; the greatest number: without an end.
    fn offer(&mut self, packets: u32) {
        let bytes = u64::from(packets) * self.payload;
        self.backlog =
            if packets == u32::MAX { u64::MAX } else { self.backlog.saturating_add(bytes) };
    }

    /// The flow's source does what is due at `now`.
    fn step(&mut self, port: &mut Port<'_>, now: u64) {
        let app = &port.group.app;
        match source(port).map_or(Step::Nothing, |source| source.step(now, app)) {
            Step::Offer(packets) => self.offer(packets),
            Step::Withdraw => self.backlog = 0,
            Step::Nothing => {}
        }
    }

    /// Hands over what the stack takes, and sends what it gives.
    fn pump(&mut self, port: &mut Port<'_>, o: &Options) {
        let Some(pair) = &mut self.pair else { return };
        loop {
            if self.backlog > 0 {
                let taken = pair.write(port.now, self.backlog);
                self.backlog -= if self.backlog == u64::MAX { 0 } else { taken };
            }
            if self.backlog == 0 && self.is_last {
                pair.finish();
            }
            let Some(Datagram { from, number, bytes, ecn }) = pair.next(port.now) else { return };
            let packet = Packet {
                len: Quic::packet(bytes),
                seq: number,
                ecn: if o.ecn { ecn } else { Ecn::NotEct },
                ..Packet::default()
            };
            match from {
                End::Sender => {
                    let payload = Payload::Datagram { sent: port.now.into() };
                    *port.scratch = Packet { payload, ..packet };
                    port.address_out();
                    port.send();
                }
                End::Receiver => {
                    *port.scratch = Packet { payload: Payload::Answer, ..packet };
                    port.send_back();
                }
            }
        }
    }
}

/// The flow's source of data, if it has periods.
fn source<'a>(port: &'a mut Port<'_>) -> Option<&'a mut OnOff> {
    port.send_timing()?.on_off.as_mut()
}
