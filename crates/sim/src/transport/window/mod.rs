//! A constant window: always so many packets under way, none sent again. Nothing reacts, nothing is
//! drawn: behind a bottleneck lie exactly the packets that the path does not hold.
//!
//! The receiver answers each packet. Networks keep the order, so an answer says that all packets
//! before it have left the network, too, lost or not. Only if the last ones are lost a timer has to
//! tell; then a single packet asks, and its answer lets the window go on.

use aqm::Ecn;
use scenario::traffic::{self as keys, TrafficSpec};

use super::{After, EndPoints, FlowReport, FlowSetup, Port};
use crate::packet::{Packet, Payload};
use crate::results::distinct::Distinct;

/// What the flows of a group share.
#[derive(Clone, Debug)]
pub struct Options {
    /// Packets under way.
    pub window: u32,
    /// Without an answer for so long, all are taken for lost, ns.
    pub timeout: u64,
    /// Whether packets are ECN-capable; marks are ignored.
    pub ecn: bool,
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, keys: &keys::Window, _: u32) -> Self {
        let timeout = keys.timeout.0.as_nanos();
        Self { window: keys.window, timeout, ecn: spec.group.ecn }
    }
}

/// Both ends of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// The next packet to send, and the next to be answered.
    next: u32,
    answered: u32,
    /// When all under way are taken for lost, ns.
    deadline: u64,
    stopped: bool,
    received: Distinct,
    timeouts: u32,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(_: &Options, _: usize, _: &[FlowSetup]) -> Self {
        let deadline = u64::MAX;
        Self {
            next: 0,
            answered: 0,
            deadline,
            stopped: false,
            received: Distinct::default(),
            timeouts: 0,
        }
    }

    fn are_apart(_: &Options) -> bool {
        true
    }

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        port.seat.app_at = port.group.stop;
        self.fill(port, o, o.window);
    }

    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        if let Payload::Datagram { .. } = packet.payload {
            self.received.take(packet.seq);
            *port.scratch =
                Packet { seq: packet.seq, payload: Payload::Answer, ..Packet::default() };
            port.send_back();
            return After::Nothing;
        }
        self.answered = self.answered.max(packet.seq + 1);
        self.fill(port, o, o.window);
        After::Timer
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        if self.deadline <= port.now {
            self.timeouts += 1;
            self.answered = self.next;
            // A whole window each time would grow without end where the path is longer than the timeout.
            self.fill(port, o, 1);
        }
    }

    fn stop(&mut self) {
        (self.stopped, self.deadline) = (true, u64::MAX);
    }

    fn deadline(&self) -> u64 {
        self.deadline
    }

    fn window(&self, o: &Options) -> Option<f64> {
        Some(f64::from(o.window))
    }

    fn report(&self) -> FlowReport {
        let delivered = self.received.count();
        FlowReport { delivered, timeouts: self.timeouts, ..FlowReport::default() }
    }
}

impl Ends {
    /// Sends until `window` packets are under way.
    fn fill(&mut self, port: &mut Port<'_>, o: &Options, window: u32) {
        if self.stopped {
            return;
        }
        while self.next - self.answered < window {
            let sent = port.now.into();
            let packet = port.take_data();
            (packet.payload, packet.seq, packet.ecn) =
                (Payload::Datagram { sent }, self.next, Ecn::ect(o.ecn));
            self.next += 1;
            port.send();
        }
        self.deadline = port.now + o.timeout;
    }
}
