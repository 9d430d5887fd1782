//! Both ends of a flow, at their events.

use aqm::Ecn;

use super::Options;
use super::receiver::{Data, Feedback, Receiver};
use super::sender::Sender;
use crate::packet::{Packet, Payload};
use crate::transport::{After, EndPoints, FlowReport, FlowSetup, Port};

/// Both ends of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    sender: Sender,
    receiver: Box<Receiver>,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(_: &Options, _: usize, _: &[FlowSetup]) -> Self {
        Self { sender: Sender::default(), receiver: Box::default() }
    }

    fn are_apart(_: &Options) -> bool {
        true
    }

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        let now = port.now;
        let packet = port.take_data();
        (packet.seq, packet.ecn) = (self.sender.send(now), Ecn::ect(o.ecn));
        let rtt = u32::try_from(self.sender.srtt() / 1000).unwrap_or(u32::MAX);
        packet.payload = Payload::Paced { sent: now.into(), rtt };
        port.seat.app_at = self.sender.due(now);
        port.send();
    }

    #[inline(never)]
    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        match packet.payload {
            Payload::Paced { sent, rtt } => {
                let (sent, rtt) = (sent.ns(), u64::from(rtt) * 1000);
                let data = Data { seq: packet.seq, sent, rtt, marked: packet.ecn == Ecn::Ce };
                if self.receiver.on_data(port.now, data, o) {
                    self.send_feedback(port, o);
                }
            }
            Payload::Feedback { echo, p, rate } if port.now < port.group.stop => {
                let feedback = Feedback { echo: echo.ns(), p, rate };
                self.sender.on_feedback(port.now, feedback, port.group.packet, o);
                port.seat.app_at = self.sender.due(port.now);
            }
            _ => {}
        }
        After::Timer
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        if self.sender.deadline() <= port.now {
            self.sender.on_timer(port.now, o);
            port.seat.app_at = self.sender.due(port.now);
        }
        if port.seat.ack_at <= port.now {
            self.send_feedback(port, o);
        }
    }

    fn stop(&mut self) {
        self.sender.stop();
    }

    fn deadline(&self) -> u64 {
        self.sender.deadline()
    }

    fn report(&self) -> FlowReport {
        FlowReport {
            delivered: self.receiver.received.count(),
            timeouts: self.sender.timeouts,
            srtt: self.sender.srtt(),
            ..FlowReport::default()
        }
    }
}

impl Ends {
    /// The receiver tells what there is to tell.
    fn send_feedback(&mut self, port: &mut Port<'_>, o: &Options) {
        let (feedback, next) = self.receiver.feedback(port.now, o);
        port.seat.ack_at = next;
        if let Some(Feedback { echo, p, rate }) = feedback {
            let payload = Payload::Feedback { echo: echo.into(), p, rate };
            *port.scratch = Packet { payload, ..Packet::default() };
            port.send_back();
        }
    }
}
