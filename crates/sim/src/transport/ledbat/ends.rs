//! Both ends of a flow, at their events.

use aqm::Ecn;

use super::Options;
use super::sender::Sender;
use crate::packet::{Packet, Payload};
use crate::results::distinct::Distinct;
use crate::transport::{After, EndPoints, FlowReport, FlowSetup, Port};

/// Both ends of a flow.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ends {
    sender: Box<Sender>,
    received: Distinct,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(_: &Options, _: usize, _: &[FlowSetup]) -> Self {
        Self::default()
    }

    fn are_apart(_: &Options) -> bool {
        true
    }

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        port.seat.app_at = port.group.stop;
        self.send(port, o);
    }

    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        match packet.payload {
            Payload::Datagram { .. } => {
                self.received.take(packet.seq);
                let marks = u16::from(packet.ecn == Ecn::Ce);
                let payload = Payload::Report { arrived: port.now.into(), missing: 0, marks };
                *port.scratch = Packet { payload, seq: packet.seq, ..Packet::default() };
                port.send_back();
                After::Nothing
            }
            Payload::Report { arrived, marks, .. } => {
                self.sender.on_answer(port.now, packet.seq, (arrived.ns(), marks > 0), o);
                self.send(port, o);
                After::Timer
            }
            _ => After::Nothing,
        }
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        if self.sender.deadline <= port.now {
            self.sender.on_silence();
            self.send(port, o);
        }
    }

    fn send(&mut self, port: &mut Port<'_>, o: &Options) {
        while let Some(number) = self.sender.send(port.now) {
            let sent = port.now.into();
            let packet = port.take_data();
            (packet.payload, packet.seq, packet.ecn) =
                (Payload::Datagram { sent }, number, Ecn::ect(o.ecn));
            port.send();
        }
    }

    fn stop(&mut self) {
        (self.sender.stopped, self.sender.deadline) = (true, u64::MAX);
    }

    fn deadline(&self) -> u64 {
        self.sender.deadline
    }

    fn window(&self, _: &Options) -> Option<f64> {
        Some(self.sender.window)
    }

    fn report(&self) -> FlowReport {
        let sender = &self.sender;
        FlowReport {
            delivered: self.received.count(),
            timeouts: sender.timeouts,
            ecn_reductions: sender.marked,
            srtt: sender.rtt.srtt(),
            ..FlowReport::default()
        }
    }
}
