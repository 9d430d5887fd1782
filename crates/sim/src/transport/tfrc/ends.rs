//! Both ends of a flow, at their events.

use aqm::Ecn;

use super::Options;
use super::receiver::{Data, Feedback, Receiver};
use super::sender::Sender;
use crate::packet::{Kind, Packet};
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

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        let now = port.now;
        let packet = port.take_data();
        (packet.seq, packet.ecn) = (self.sender.send(now), Ecn::ect(o.ecn));
        packet.say(now, u32::try_from(self.sender.srtt() / 1000).unwrap_or(u32::MAX));
        port.seat.app_at = self.sender.due(now);
        port.send();
    }

    #[inline(never)]
    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        let (time, other) = packet.said();
        if packet.kind == Kind::Data {
            let (rtt, marked) = (u64::from(other) * 1000, packet.ecn == Ecn::Ce);
            let data = Data { seq: packet.seq, sent: time, rtt, marked };
            if self.receiver.on_data(port.now, data, o) {
                self.tell(port, o);
            }
        } else if port.now < port.group.stop {
            let (p, rate) = (f32::from_bits(packet.seq), f32::from_bits(other));
            let told = Feedback { echo: time, p, rate };
            self.sender.on_feedback(port.now, told, port.group.packet, o);
            port.seat.app_at = self.sender.due(port.now);
        }
        After::Timer
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        if self.sender.deadline() <= port.now {
            self.sender.on_timer(port.now, o);
            port.seat.app_at = self.sender.due(port.now);
        }
        if port.seat.ack_at <= port.now {
            self.tell(port, o);
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
            delivered: self.receiver.received,
            timeouts: self.sender.timeouts,
            srtt: self.sender.srtt(),
            ..FlowReport::default()
        }
    }
}

impl Ends {
    /// The receiver tells what there is to tell.
    fn tell(&mut self, port: &mut Port<'_>, o: &Options) {
        let (told, next) = self.receiver.feedback(port.now, o);
        port.seat.ack_at = next;
        if let Some(Feedback { echo, p, rate }) = told {
            *port.hand = Packet { kind: Kind::Ack, seq: p.to_bits(), ..Packet::default() };
            port.hand.say(echo, rate.to_bits());
            port.send_back();
        }
    }
}
