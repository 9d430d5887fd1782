//! What a transport is given, and how it is reached.

use super::Transport;
use crate::app::{App, OnOff};
use crate::network::Network;
use crate::packet::Packet;

/// What the flows of one group of traffic share.
#[derive(Clone, Debug)]
pub struct Group {
    /// The transport.
    pub transport: Transport,
    /// What there is to send.
    pub app: App,
    /// Length of a data packet on the wire, bytes.
    pub packet: u16,
    /// When sending ends, ns.
    pub stop: u64,
    /// The number of its first flow.
    pub first: u32,
    /// Packets of each of its finite flows, if each has its own.
    pub sizes: Vec<u32>,
}

impl Group {
    /// Packets that flow `number` of the simulation has to send, if that is a finite number.
    pub(crate) fn finite(&self, number: usize) -> Option<u32> {
        let App::Finite { packets } = self.app else { return None };
        Some(self.sizes.get(number - self.first as usize).copied().unwrap_or(packets))
    }
}

/// How a flow is set up.
#[derive(Clone, Debug)]
pub struct FlowSetup {
    /// The group that it belongs to.
    pub group: u16,
    /// Positions in the table of paths of the way out and back.
    pub out: u32,
    /// The way back.
    pub back: u32,
    /// When it starts, ns.
    pub start: u64,
    /// Its random numbers.
    pub seed: Seed,
    /// Others, for the time that it waits before it sends.
    pub jitter: Seed,
}

/// From which a stream of random numbers begins. It is smaller than the stream, which most flows do not need.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    /// That of the run.
    pub run: u64,
    /// The number of the stream.
    pub stream: u64,
}

impl Seed {
    /// The stream.
    pub(crate) fn rng(self) -> aqm::Rng {
        aqm::Rng::new(self.run, self.stream)
    }
}

/// A flow's place in the simulation: its ways, and the times at which it is woken.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// The event that the list holds for this flow, ns. It may be earlier than the flow's next
    /// event (timers move on with each acknowledgement): then it is put off when it comes.
    pub(crate) listed: u64,
    /// Start, application's next step, or next datagram, ns.
    pub(crate) app_at: u64,
    /// When the receiving end has something to say, as a delayed acknowledgement, ns.
    pub(crate) ack_at: u64,
    /// When what may be sent is sent, where that takes time, ns.
    pub(crate) send_at: u64,
    /// Positions in the table of paths.
    pub(crate) out: u32,
    pub(crate) back: u32,
    pub(crate) group: u16,
    /// The number of its connection, from 1, where it has one after another (web sessions).
    pub(crate) connection: u8,
}

/// When an application or jitter lets a flow send; flows that always may have none.
#[derive(Clone, Debug)]
pub(crate) struct SendTiming {
    pub(crate) on_off: Option<OnOff>,
    /// Draws the time before it sends.
    pub(crate) jitter: aqm::Rng,
    /// A paced sender sends its next packet then or later, ns.
    pub(crate) paced_until: u64,
}

/// Through which a transport acts for one of its flows.
pub(crate) struct Port<'a> {
    /// The time, ns.
    pub(crate) now: u64,
    /// The flow's number.
    pub(crate) flow: u32,
    pub(crate) group: &'a Group,
    pub(crate) seat: &'a mut Seat,
    pub(crate) network: &'a mut Network,
    /// Room for the packet that is being made.
    pub(crate) scratch: &'a mut Packet,
    /// Of each flow, if any has such.
    pub(crate) send_timings: &'a mut [SendTiming],
}

impl Port<'_> {
    /// Makes the scratch packet one of the flow, on its way out, as long as the group's packets are.
    #[inline(always)]
    pub(crate) fn take_data(&mut self) -> &mut Packet {
        *self.scratch = Packet::default();
        self.address_data();
        self.scratch
    }

    /// Makes the scratch packet one of the flow, on its way out; number, codepoint and payload follow.
    #[inline(always)]
    pub(crate) fn address_data(&mut self) {
        self.scratch.len = self.group.packet;
        self.address_out();
    }

    /// Addresses the scratch packet to the receiving end.
    #[inline(always)]
    pub(crate) fn address_out(&mut self) {
        self.address(self.seat.out);
    }

    /// Addresses the scratch packet to the sending end.
    #[inline(always)]
    pub(crate) fn address_back(&mut self) {
        self.address(self.seat.back);
    }

    #[inline(always)]
    fn address(&mut self, hop: u32) {
        let Self { seat, scratch, .. } = self;
        (scratch.flow, scratch.hop, scratch.connection) = (self.flow, hop, seat.connection);
    }

    /// Addresses the scratch packet to the sending end, and sends it.
    #[inline(always)]
    pub(crate) fn send_back(&mut self) {
        self.address_back();
        self.send();
    }

    /// Sends the scratch packet, which is addressed.
    #[inline(always)]
    pub(crate) fn send(&mut self) {
        self.network.forward(self.now, self.scratch);
    }

    /// When this flow may send, if that is not always.
    pub(crate) fn send_timing(&mut self) -> Option<&mut SendTiming> {
        self.send_timings.get_mut(self.flow as usize)
    }
}
