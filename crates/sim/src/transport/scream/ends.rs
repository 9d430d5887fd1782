//! Both ends of a flow, at their events.

use aqm::Ecn;

use super::receiver::Receiver;
use super::sender::Sender;
use super::{Options, REPORT, Report};
use crate::packet::{Packet, Payload};
use crate::results::one_way::OneWay;
use crate::transport::{After, EndPoints, FlowReport, FlowSetup, Port};

/// Both ends of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// From the start on.
    sender: Option<Box<Sender>>,
    receiver: Receiver,
    one_way: Option<Box<OneWay>>,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(_: &Options, _: usize, _: &[FlowSetup]) -> Self {
        Self { sender: None, receiver: Receiver::default(), one_way: None }
    }

    fn are_apart(_: &Options) -> bool {
        true
    }

    /// A frame.
    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        let (now, len) = (port.now, port.group.packet);
        if (o.pause[0]..o.pause[1]).contains(&now) {
            port.seat.app_at = o.pause[1].min(port.group.stop);
            return;
        }
        let sender = self.sender.get_or_insert_with(|| Box::new(Sender::new(now, len, o)));
        sender.encode(now, o);
        port.seat.app_at = (now + o.frame).min(port.group.stop);
        self.send(port, o);
    }

    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        match packet.payload {
            Payload::Datagram { sent } => {
                if let Some(one_way) = &mut self.one_way {
                    one_way.receive(packet.seq, sent.ns(), port.now);
                }
                let marked = packet.ecn == Ecn::Ce;
                let full = self.receiver.on_data(port.now, packet.seq, marked);
                if full || port.seat.ack_at == u64::MAX {
                    self.send_report(port);
                }
            }
            Payload::Report { arrived, missing, marks } => {
                let Some(sender) = &mut self.sender else { return After::Nothing };
                let arrived = arrived.ns();
                let report = Report { highest: packet.seq, arrived, missing, marks };
                sender.on_report(port.now, report, o);
                self.send(port, o);
            }
            _ => {}
        }
        After::Timer
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        if port.seat.ack_at <= port.now {
            self.send_report(port);
        }
        let Some(sender) = &mut self.sender else { return };
        if sender.deadline <= port.now {
            sender.on_silence(port.now, o);
        }
        self.send(port, o);
    }

    /// Sends what the window and the pace allow.
    fn send(&mut self, port: &mut Port<'_>, o: &Options) {
        let Some(sender) = &mut self.sender else { return };
        while let Some((number, made)) = sender.send(port.now) {
            if let Some(one_way) = &mut self.one_way {
                one_way.send(number, made);
            }
            let packet = port.take_data();
            (packet.payload, packet.seq, packet.ecn) =
                (Payload::Datagram { sent: made.into() }, number, Ecn::ect(o.ecn));
            port.send();
        }
        let waits = !sender.queue.is_empty() && sender.has_room();
        port.seat.send_at = if waits { sender.paced_until.max(port.now + 1) } else { u64::MAX };
    }

    fn stop(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.queue.clear();
        }
    }

    fn deadline(&self) -> u64 {
        self.sender.as_ref().map_or(u64::MAX, |sender| sender.deadline)
    }

    fn measure_from(&mut self, now: u64) {
        self.one_way = Some(Box::new(OneWay::new(now)));
    }

    fn one_way(&self) -> Option<&OneWay> {
        self.one_way.as_deref()
    }

    fn window(&self, _: &Options) -> Option<f64> {
        self.sender.as_ref().map(|sender| sender.window())
    }

    fn report(&self) -> FlowReport {
        let delivered = self.receiver.received.count();
        let (timeouts, srtt) =
            self.sender.as_ref().map_or((0, 0.0), |sender| (sender.silences, sender.srtt));
        FlowReport { delivered, timeouts, srtt: (1e9 * srtt) as u64, ..FlowReport::default() }
    }
}

impl Ends {
    /// The receiver tells what there is to tell.
    fn send_report(&mut self, port: &mut Port<'_>) {
        let (report, next) = self.receiver.report(port.now, port.group.packet);
        port.seat.ack_at = next;
        if let Some(Report { highest, arrived, missing, marks }) = report {
            let payload = Payload::Report { arrived: arrived.into(), missing, marks };
            *port.scratch = Packet { payload, seq: highest, len: REPORT, ..Packet::default() };
            port.send_back();
        }
    }
}
