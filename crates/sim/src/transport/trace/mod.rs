//! The packets of a capture, as datagrams at their own times.

use std::sync::Arc;

use aqm::Ecn;
use scenario::arrivals::Arrivals;
use scenario::traffic::{self as keys, TrafficSpec};

use super::{After, EndPoints, FlowReport, FlowSetup, Port};
use crate::packet::{Packet, Payload};

/// What the flows of a group share.
#[derive(Clone, Debug)]
pub struct Options {
    /// The packets.
    pub arrivals: Arc<Arrivals>,
    /// The time of the first, ns.
    pub start: u64,
    /// The number of the group's first flow. Its events send the packets of all.
    pub first: u32,
    /// Whether packets that are not ECN-capable in the file are here.
    pub ecn: bool,
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, trace: &keys::Trace, first: u32) -> Self {
        Self {
            arrivals: Arc::clone(&trace.arrivals),
            start: spec.group.start.0.from.as_nanos(),
            first,
            ecn: spec.group.ecn,
        }
    }
}

/// Both ends of a flow of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Of the group's first flow: the packets sent, of all its flows, and the way out of each.
    sent: u32,
    outs: Box<[u32]>,
    received: u32,
    received_bytes: u64,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(o: &Options, number: usize, setups: &[FlowSetup]) -> Self {
        let mine = setups[number..].iter().filter(|setup| setup.group == setups[number].group);
        let outs = if Self::begins(o, number) {
            mine.map(|setup| setup.out).collect()
        } else {
            Box::default()
        };
        Self { sent: 0, outs, received: 0, received_bytes: 0 }
    }

    /// One event sends the packets of many flows.
    fn are_apart(_: &Options) -> bool {
        false
    }

    fn begins(o: &Options, number: usize) -> bool {
        number == o.first as usize
    }

    /// Sends the packets that are due, of all flows.
    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        port.seat.app_at = u64::MAX;
        for arrival in &o.arrivals.packets[self.sent as usize..] {
            if o.start + arrival.time > port.now {
                port.seat.app_at = o.start + arrival.time;
                break;
            }
            self.sent += 1;
            let capable = o.ecn && arrival.ecn == Ecn::NotEct;
            *port.scratch = Packet {
                payload: Payload::Datagram { sent: port.now.into() },
                flow: o.first + arrival.flow,
                hop: self.outs[arrival.flow as usize],
                seq: self.sent,
                len: arrival.len,
                ecn: if capable { Ecn::Ect0 } else { arrival.ecn },
                ..Packet::default()
            };
            port.send();
        }
    }

    fn on_packet(&mut self, _: &mut Port<'_>, packet: &Packet, _: &Options) -> After {
        self.received += 1;
        self.received_bytes += u64::from(packet.len);
        After::Nothing
    }

    fn report(&self) -> FlowReport {
        FlowReport {
            delivered: self.received,
            delivered_bytes: self.received_bytes,
            ..FlowReport::default()
        }
    }
}
