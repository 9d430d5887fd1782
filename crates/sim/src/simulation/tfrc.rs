//! What a flow with TFRC does at its events.

use aqm::Ecn;

use super::{End, Simulation, Transport};
use crate::packet::{Kind, Packet};
use crate::transport::tfrc::receiver::{Data, Feedback};

impl Simulation {
    /// A packet of a flow with TFRC has come to the end of its path.
    #[cold]
    #[inline(never)]
    pub(super) fn on_tfrc(&mut self, packet: &Packet) {
        let (now, i) = (self.now, packet.flow as usize);
        let flow = &mut self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        let (End::Tfrc(tfrc), Transport::Tfrc(o)) = (&mut flow.end, &group.transport) else {
            return;
        };
        let (time, other) = packet.said();
        if packet.kind == Kind::Data {
            let (rtt, marked) = (u64::from(other) * 1000, packet.ecn == Ecn::Ce);
            let data = Data { seq: packet.seq, sent: time, rtt, marked };
            if tfrc.receiver.on_data(now, data, o) {
                self.tell(i);
            }
        } else if now < group.stop {
            let (p, rate) = (f32::from_bits(packet.seq), f32::from_bits(other));
            tfrc.sender.on_feedback(now, Feedback { echo: time, p, rate }, group.packet, o);
            flow.app_at = tfrc.sender.due(now);
        }
        self.flows[i].list(i, &mut self.network);
    }

    /// The receiver tells what there is to tell.
    fn tell(&mut self, i: usize) {
        let flow = &mut self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        let (End::Tfrc(tfrc), Transport::Tfrc(o)) = (&mut flow.end, &group.transport) else {
            return;
        };
        let (told, next) = tfrc.receiver.feedback(self.now, o);
        flow.ack_at = next;
        if let Some(Feedback { echo, p, rate }) = told {
            let mut packet = Packet {
                kind: Kind::Ack,
                flow: i as u32,
                hop: flow.back,
                seq: p.to_bits(),
                ..Packet::default()
            };
            packet.say(echo, rate.to_bits());
            self.network.forward(self.now, &packet);
        }
    }

    /// What a flow's timers have come to.
    pub(super) fn on_tfrc_timers(&mut self, i: usize) {
        let flow = &mut self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        if let (End::Tfrc(tfrc), Transport::Tfrc(o)) = (&mut flow.end, &group.transport)
            && tfrc.sender.deadline() <= self.now
        {
            tfrc.sender.on_timer(self.now, o);
            flow.app_at = tfrc.sender.due(self.now);
        }
        if flow.ack_at <= self.now {
            self.tell(i);
        }
    }
}
