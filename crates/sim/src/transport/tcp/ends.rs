//! Both ends of a connection, at their events.

use std::sync::Arc;

use aqm::Ecn;
use link::NEVER;
use scenario::traffic::{Conduct, TcpName};

use super::options::{Echo, Options, Pacing};
use super::receiver::{AckWhen, Receiver};
use super::sender::{Counts, Sender};
use crate::app::{App, OnOff, Step};
use crate::control::Setting;
use crate::packet::{Packet, Payload, SHORTEST_PACKET};
use crate::transport::{After, Connections, EndPoints, FlowReport, FlowSetup, Port};
use crate::watch::{Look, Values};

/// Parts that a receiver which divides acknowledgements tells of before a packet.
const PARTS: u32 = 10;

/// Both ends of a connection.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ends {
    sender: Sender,
    receiver: Receiver,
}

impl EndPoints for Ends {
    type Options = Options;

    fn new(o: &Options, number: usize, setups: &[FlowSetup]) -> Self {
        let mut ends = Self::default();
        if o.control.has_model {
            ends.sender.draw_from(setups[number].jitter.rng(), o);
        }
        ends
    }

    /// A user's own controller may do anything.
    fn are_apart(o: &Options) -> bool {
        o.control.name != TcpName::Own
    }

    fn on_app(&mut self, port: &mut Port<'_>, o: &Options) {
        let (now, group, sender) = (port.now, port.group, &mut self.sender);
        let begins = sender.is_closed();
        if begins {
            sender.start(now, o);
        }
        port.seat.app_at = group.stop;
        match group.app {
            App::Infinite => sender.offer(u32::MAX),
            App::Finite { .. } => sender.offer(group.finite(port.flow as usize).unwrap_or(0)),
            App::OnOff { .. } | App::Schedule(_) if begins => step(sender, port, now),
            App::OnOff { .. } | App::Schedule(_) | App::Periodic { .. } | App::Web(_) => {}
        }
        self.send(port, o);
    }

    /// Nearly all packets of a simulation come here.
    #[inline(always)]
    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Options) -> After {
        let Self { sender, receiver } = self;
        match packet.payload {
            Payload::Data { cwr, tick } => {
                let ce = packet.ecn == Ecn::Ce;
                let when = if o.acks.look_closer {
                    if o.ecn.echo == Echo::Exact && receiver.owes_other_echo(ce) {
                        answer(receiver, port, o);
                    }
                    if o.recovery.timestamps {
                        receiver.on_timestamp(packet.seq, tick);
                    }
                    receiver.on_watched_data(packet.seq, ce, cwr, o)
                } else {
                    receiver.on_data(packet.seq, ce, cwr, o.acks.delay > 0)
                };
                match when {
                    AckWhen::Now => {
                        port.seat.ack_at = NEVER;
                        answer(receiver, port, o);
                        After::Nothing
                    }
                    AckWhen::Later => {
                        port.seat.ack_at = port.now + o.acks.delay;
                        After::Timer
                    }
                }
            }
            Payload::Ack { .. } => {
                sender.on_ack(port.now, packet, o);
                if o.later {
                    return After::Ask;
                }
                port.address_data();
                send_all(sender, port, o);
                if sender.has_nothing_left() {
                    After::Ask
                } else if sender.deadline() < port.seat.listed {
                    After::Timer
                } else {
                    After::Nothing
                }
            }
            _ => {
                let (answer, after) = on_handshake(sender, port.now, packet, o);
                if let Some(payload) = answer {
                    let ecn = o.ecn.syn_ack;
                    *port.scratch = Packet { payload, ecn, ..Packet::default() };
                    port.send_back();
                }
                after
            }
        }
    }

    fn bring(&mut self, setting: &Arc<Setting>) {
        self.sender.bring(setting);
    }

    fn on_timers(&mut self, port: &mut Port<'_>, o: &Options) {
        if port.seat.ack_at <= port.now {
            port.seat.ack_at = NEVER;
            if self.receiver.owes_ack() {
                if o.acks.conduct == Conduct::AckDivision {
                    divide(self.receiver.expected() - 1, port);
                }
                answer(&mut self.receiver, port, o);
            }
        }
        if self.sender.deadline() <= port.now {
            self.sender.on_timer(port.now, o);
            self.send(port, o);
        }
        if port.seat.send_at <= port.now {
            self.send(port, o);
        }
    }

    /// Sends all that may be sent now, or later if that takes time.
    #[inline(never)]
    fn send(&mut self, port: &mut Port<'_>, o: &Options) {
        let (now, sender) = (port.now, &mut self.sender);
        let own = o.control.name == TcpName::Own;
        if own && port.seat.send_at <= now {
            sender.on_own_timer(now, o);
        }
        if port.group.app.comes_and_goes() {
            // What it did while nothing could be sent was not waited for.
            while let Some(ends) = source(port).map(|source| source.ends())
                && ends <= now
            {
                step(sender, port, ends);
            }
        }
        port.address_data();
        let waited = port.seat.send_at <= now;
        let jitter = if let Pacing::Jitter { most } = o.pacing { Some(most) } else { None };
        let at_once = jitter.is_none() || waited;
        if at_once {
            port.seat.send_at = NEVER;
            release(sender, port, o);
        }
        if let Some(source) = source(port) {
            let mut due = source.ends();
            // A source with a rate gives one packet after another; as long as there are others to
            // send they are counted, not waited for.
            if source.gap() > 0 && sender.has_nothing_left() {
                sender.offer(source.given(now));
                let gives = source.gives();
                if at_once {
                    release(sender, port, o);
                }
                if sender.has_nothing_left() {
                    due = due.min(gives);
                }
            }
            let held = at_once && sender.is_held(o);
            port.seat.app_at = if held { port.group.stop } else { due.min(port.group.stop) };
        }
        if let Some(most) = jitter.filter(|_| !at_once)
            && port.seat.send_at == NEVER
            && sender.room(now, o) != Some(0)
            && let Some(send_timing) = port.send_timing()
        {
            let wait = most as f64 * send_timing.jitter.uniform();
            port.seat.send_at = now.saturating_add(wait as u64);
        }
        if own && let Some((_, timer)) = sender.own_burst_and_timer() {
            port.seat.send_at = port.seat.send_at.min(timer);
        }
    }

    fn stop(&mut self) {
        self.sender.withdraw();
    }

    fn sends_later(o: &Options) -> bool {
        o.later
    }

    #[inline(always)]
    fn deadline(&self) -> u64 {
        self.sender.deadline()
    }

    fn window(&self, _: &Options) -> Option<f64> {
        Some(self.sender.cwnd())
    }

    fn report(&self) -> FlowReport {
        let Self { sender, receiver } = self;
        let Counts { retransmits, timeouts, ecn_reductions } = sender.counts();
        FlowReport {
            delivered: receiver.delivered(),
            delivered_bytes: 0,
            retransmits,
            timeouts,
            ecn_reductions,
            srtt: sender.srtt(),
        }
    }

    fn connections(o: &Options) -> Option<Connections> {
        let windows = [o.window.initial as u32, o.window.receiver];
        let timeouts = [o.timer.rto.initial, o.timer.rto.max];
        let ecn = [o.ecn.control, o.ecn.syn_ack];
        Some(Connections { handshake: o.handshake.syn, windows, timeouts, ecn })
    }

    fn renew(&mut self) {
        self.sender.renew();
        self.receiver.renew();
    }

    fn serve(&mut self, now: u64, packets: u32, marked: bool, o: &Options) -> bool {
        let begins = self.sender.is_closed();
        if begins {
            self.sender.start(now, o);
            // An exact echo has none of SYN-ACKs (RFC 8257 §3.6).
            if marked && o.ecn.echo != Echo::Exact {
                self.sender.begin_with_one();
            }
            self.sender.offer(packets);
        }
        begins
    }

    fn acknowledged(&self) -> Option<u32> {
        Some(self.sender.acknowledged())
    }

    fn stamp(o: &mut Options) {
        o.stamp();
    }

    fn round_trip(&self, now: u64, packet: &Packet) -> Option<u64> {
        self.sender.sample(now, packet)
    }

    fn last_round_trip(&mut self) -> Option<u64> {
        self.sender.take_sample()
    }

    fn look(&mut self, now: u64, o: &Options, look: &mut Look) -> bool {
        self.sender.look(now, o, look)
    }

    fn values(&mut self, values: Values<'_>) {
        self.sender.values(values);
    }
}

/// A packet has come that is neither data nor an acknowledgement: its answer, and what follows. Apart,
/// and without the port, so that both stay in registers where nearly all packets go.
#[inline(never)]
fn on_handshake(
    sender: &mut Sender,
    now: u64,
    packet: &Packet,
    o: &Options,
) -> (Option<Payload>, After) {
    match packet.payload {
        Payload::Syn { tick } => {
            // RFC 9768 §3.1.1; without its counter a mark is not told (RFC 8257 §3.6).
            let marked = o.ecn.echo == Echo::Counted && packet.ecn == Ecn::Ce;
            (Some(Payload::SynAck { echo: tick, marked }), After::Nothing)
        }
        Payload::SynAck { echo, marked } => {
            sender.on_syn_ack(now, echo, marked, o);
            (None, After::Ask)
        }
        Payload::Part => {
            sender.on_part(now, packet.seq, o);
            (None, After::Ask)
        }
        _ => (None, After::Nothing),
    }
}

/// Acknowledges parts of packet `seq`, before all of it is acknowledged.
#[cold]
fn divide(seq: u32, port: &mut Port<'_>) {
    port.address_back();
    for _ in 0..PARTS {
        let scratch = &mut *port.scratch;
        (scratch.len, scratch.ecn) = (SHORTEST_PACKET, Ecn::default());
        (scratch.seq, scratch.payload) = (seq, Payload::Part);
        port.send();
    }
}

/// The flow's source of data, if it has periods.
fn source<'a>(port: &'a mut Port<'_>) -> Option<&'a mut OnOff> {
    port.send_timing()?.on_off.as_mut()
}

/// The flow's source does what is due at `now`.
fn step(sender: &mut Sender, port: &mut Port<'_>, now: u64) {
    let app = &port.group.app;
    let Some(source) = source(port) else { return };
    match source.step(now, app) {
        Step::Offer(packets) => sender.offer(packets),
        Step::Withdraw => sender.withdraw(),
        Step::Nothing => {}
    }
}

/// Sends all that a connection may send, or the first burst of it if it is paced.
fn release(sender: &mut Sender, port: &mut Port<'_>, o: &Options) {
    if o.pacing != Pacing::Paced {
        return if o.bursts.tso { send_bursts(sender, port, o) } else { send_all(sender, port, o) };
    }
    let mut until = port.send_timing().map_or(0, |send_timing| send_timing.paced_until);
    while until <= port.now {
        let burst = match o.control.name {
            TcpName::Own => sender.own_burst_and_timer().map_or(1, |(burst, _)| burst),
            _ => sender.burst(port.now, o),
        };
        let mut sent = 0;
        while sent < burst && sender.next(port.now, o, port.scratch) {
            port.send();
            sent += 1;
        }
        if sent == 0 {
            break;
        }
        until = port.now.saturating_add(sent * sender.pace(port.now));
    }
    if let Some(send_timing) = port.send_timing() {
        send_timing.paced_until = until;
    }
    if until > port.now && sender.room(port.now, o) != Some(0) {
        port.seat.send_at = until;
    }
}

/// Sends what a connection may send, in bursts, but for what waits to fill one.
fn send_bursts(sender: &mut Sender, port: &mut Port<'_>, o: &Options) {
    while !sender.fills_burst(port.now, o) {
        let burst = sender.burst(port.now, o);
        for _ in 0..burst {
            if !sender.next(port.now, o, port.scratch) {
                return;
            }
            port.send();
        }
    }
}

/// Sends all that a connection may send. The scratch packet is addressed as data of its flow.
#[inline(always)]
fn send_all(sender: &mut Sender, port: &mut Port<'_>, o: &Options) {
    if let Some(room) = sender.unpaced_room(port.now, o) {
        for _ in 0..room {
            sender.next_new(port.now, o, port.scratch);
            port.send();
        }
    } else {
        while sender.next(port.now, o, port.scratch) {
            port.send();
        }
    }
}

/// Sends the acknowledgement of what `receiver` has.
#[inline(always)]
fn answer(receiver: &mut Receiver, port: &mut Port<'_>, o: &Options) {
    port.address_back();
    receiver.acknowledge(o.recovery.has_sack(), port.scratch);
    if o.acks.look_closer {
        receiver.tell_more(port.scratch, o);
    }
    port.send();
}
