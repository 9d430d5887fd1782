//! What web sessions do at their events.

use aqm::Ecn;
use link::NEVER;

use super::{Flow, Simulation};
use crate::app::App;
use crate::app::web::{Client, Next, Web};
use crate::packet::{Packet, Payload};
use crate::transport::{After, FlowSetup, Group};

/// The web sessions of each group that is of such.
pub(super) fn webs(groups: &[Group], setups: &[FlowSetup]) -> Vec<Option<Box<Web>>> {
    let of = |(number, group): (usize, &Group)| {
        let App::Web(objects) = group.app else { return None };
        let flows = setups.iter().filter(|setup| usize::from(setup.group) == number);
        let first = setups.iter().position(|setup| usize::from(setup.group) == number)?;
        let rngs = flows.step_by(usize::from(objects.connections)).map(|setup| setup.seed.rng());
        Some(Box::new(Web::new(objects, first, rngs.collect())))
    };
    groups.iter().enumerate().map(of).collect()
}

impl Simulation {
    /// A session begins a page.
    #[cold]
    #[inline(never)]
    pub(super) fn on_session(&mut self, i: usize) {
        let seat = &mut self.flows[i].seat;
        seat.app_at = NEVER;
        let group = usize::from(seat.group);
        if self.now >= self.groups[group].stop {
            return;
        }
        let Some(web) = &mut self.webs[group] else { return };
        let slots = web.begin_page(self.now, i);
        (i..i + slots).for_each(|slot| self.ask(slot));
    }

    /// A new connection asks for an object.
    #[cold]
    #[inline(never)]
    fn ask(&mut self, i: usize) {
        let Flow { ends, seat } = &mut self.flows[i];
        let group = usize::from(seat.group);
        let connections = self.groups[group].transport.connections();
        let (Some(web), Some(connections)) = (&mut self.webs[group], connections) else { return };
        web.slot(i).delivered += ends.report().delivered;
        ends.renew();
        seat.connection = seat.connection.checked_add(1).unwrap_or(1);
        web.ask(self.now, i, connections.timeouts[0]);
        self.request(i);
    }

    /// The client sends what it waits for an answer to.
    #[cold]
    #[inline(never)]
    fn request(&mut self, i: usize) {
        let flow = &mut self.flows[i];
        let group = usize::from(flow.seat.group);
        let connections = self.groups[group].transport.connections();
        let (Some(web), Some(connections)) = (&mut self.webs[group], connections) else { return };
        let slot = web.slot(i);
        let (payload, ecn) = match slot.client {
            Client::Opening => (Payload::Syn { tick: 0 }, connections.ecn[0]),
            _ => (Payload::Request { marked: slot.marked }, Ecn::NotEct),
        };
        let packet = Packet {
            payload,
            ecn,
            flow: i as u32,
            hop: flow.seat.back,
            connection: flow.seat.connection,
            ..Packet::default()
        };
        flow.seat.ack_at = self.now.saturating_add(slot.retry);
        flow.list(i, &mut self.network);
        self.network.forward(self.now, &packet);
    }

    /// The client's timer has come: if nothing was heard, it says again what it said, and waits for
    /// twice as long.
    #[cold]
    #[inline(never)]
    pub(super) fn repeat(&mut self, i: usize) {
        let group = usize::from(self.flows[i].seat.group);
        let connections = self.groups[group].transport.connections();
        let (Some(web), Some(connections)) = (&mut self.webs[group], connections) else { return };
        let slot = web.slot(i);
        if matches!(slot.client, Client::Opening | Client::Asking) {
            slot.retry = slot.retry.saturating_mul(2).min(connections.timeouts[1]);
            self.request(i);
        }
    }

    /// A packet of a session has come to the end of its path.
    #[inline(never)]
    pub(super) fn on_web(&mut self, packet: &Packet) {
        let i = packet.flow as usize;
        if packet.connection != self.flows[i].seat.connection {
            return; // of a connection that has had its time
        }
        if let Payload::Syn { .. } | Payload::SynAck { .. } | Payload::Request { .. } =
            packet.payload
        {
            self.on_opening(i, packet);
            return;
        }
        let mut after = After::Nothing;
        self.at(i, |ends, port| after = ends.on_any(port, packet));
        match after {
            After::Nothing => {}
            After::Timer => self.flows[i].list(i, &mut self.network),
            After::Ask => self.send(i),
        }
        if matches!(packet.payload, Payload::Data { .. }) {
            self.on_object(i);
        }
    }

    /// A SYN or a request comes to the server, or a SYN's answer to the client.
    fn on_opening(&mut self, i: usize, packet: &Packet) {
        let Flow { ends, seat } = &mut self.flows[i];
        let group = usize::from(seat.group);
        let transport = &self.groups[group].transport;
        let connections = transport.connections();
        let (Some(web), Some(connections)) = (&mut self.webs[group], connections) else { return };
        let slot = web.slot(i);
        match packet.payload {
            Payload::Syn { .. } => {
                let (flow, hop, connection) = (i as u32, seat.out, seat.connection);
                // The client sends one packet in any case.
                let (payload, ecn) =
                    (Payload::SynAck { echo: 0, marked: false }, connections.ecn[1]);
                let answer = Packet { flow, hop, payload, ecn, connection, ..Packet::default() };
                self.network.forward(self.now, &answer);
            }
            Payload::SynAck { .. } if slot.client == Client::Opening => {
                (slot.client, slot.retry) = (Client::Asking, connections.timeouts[0]);
                slot.marked = packet.ecn == Ecn::Ce;
                self.request(i);
            }
            Payload::Request { marked }
                if ends.serve(self.now, slot.packets, marked, transport) =>
            {
                self.send(i);
            }
            _ => {}
        }
    }

    /// A packet of an object has come to the client.
    fn on_object(&mut self, i: usize) {
        let Flow { ends, seat } = &mut self.flows[i];
        let group = usize::from(seat.group);
        let Some(web) = &mut self.webs[group] else { return };
        let slot = web.slot(i);
        if slot.client == Client::Idle {
            return;
        }
        slot.client = Client::Receiving;
        let packets = slot.packets;
        if ends.report().delivered < packets {
            return;
        }
        let alone = self.alone(i, packets);
        let Some(web) = &mut self.webs[group] else { return };
        match web.complete(self.now, i, alone) {
            Next::Ask => self.ask(i),
            Next::Wait => {}
            Next::Page { flow, at } => {
                self.flows[flow].seat.app_at = at;
                self.flows[flow].list(flow, &mut self.network);
            }
        }
    }
}
