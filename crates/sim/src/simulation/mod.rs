//! A simulation: links, flows, and the loop that moves packets between them.
//!
//! ```text
//! application -> sender -> link -> queue -> link -> receiver -> acknowledgement -> sender
//! ```

mod tfrc;
mod web;

use std::sync::Arc;

use aqm::Ecn;
use link::memory::{fetch_ahead, room_for};
use link::{DecisionHash, NEVER};
use scenario::arrivals::Arrivals;

use crate::app::{App, Objects, OnOff, Periods, Step};
use crate::network::{Event, Identity, Link, Managed, Network};
use crate::packet::{CWR, Kind, Packet};
use crate::results::transfers::Transfers;
use crate::transport::tcp::Options;
use crate::transport::tcp::receiver::{AckWhen, Receiver};
use crate::transport::tcp::sender::Sender;
use crate::transport::tfrc::Tfrc;
use web::{Web, webs};

/// How the gaps of a datagram source are spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gaps {
    /// All the same, exact over time.
    Constant,
    /// Uniform within this share of the mean on both sides, 0 … 1.
    Uniform(f64),
    /// Exponential: a Poisson process.
    Exponential,
}

/// How the flows of a group carry their data.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(Options),
    /// TCP-friendly rate control, always with something to send.
    Tfrc(crate::transport::tfrc::Options),
    /// Datagrams at a constant rate, whatever happens to them.
    Cbr {
        /// Rates in bits per second on the wire, each from a time in ns on; the first from 0.
        rates: Box<[(u64, u64)]>,
        /// How the gaps between datagrams are spread about their mean.
        gaps: Gaps,
        /// Whether the datagrams claim to be ECN-capable; marks are ignored.
        ecn: bool,
    },
    /// The packets of a capture, as datagrams.
    Trace {
        /// The packets.
        arrivals: Arc<Arrivals>,
        /// The time of the first, ns.
        start: u64,
        /// The number of the group's first flow. Its events send the packets of all.
        first: u32,
        /// Whether packets that are not ECN-capable in the file are here.
        ecn: bool,
    },
}

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
    /// TCP waits before it sends: at most so long, uniform, ns (ns-2's `overhead_`).
    pub send_jitter: u64,
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
    /// Its stream of random numbers.
    pub rng: aqm::Rng,
    /// Another one, for the time that it waits before it sends.
    pub jitter: aqm::Rng,
}

/// Constant bit rate, exact over time.
#[derive(Clone, Debug)]
struct Cbr {
    rng: aqm::Rng,
    /// When it started, ns.
    start: u64,
    carry: u64,
    sent: u32,
    received: u32,
}

/// A flow of a capture.
#[derive(Clone, Copy, Default, Debug)]
struct Traced {
    /// Of the group's first flow: the packets sent, of all its flows.
    sent: u32,
    received: u32,
    received_bytes: u64,
}

#[derive(Clone, Debug)]
enum End {
    Tcp { sender: Sender, receiver: Receiver },
    Cbr(Box<Cbr>),
    Tfrc(Box<Tfrc>),
    Trace(Traced),
}

/// A flow: both its ends.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Flow {
    end: End,
    /// The event that the list holds for this flow, ns. It may be earlier than the flow's next
    /// event (timers move on with each acknowledgement): then it is put off when it comes.
    listed: u64,
    /// Start, application's next step, or next datagram, ns.
    app_at: u64,
    /// When a delayed acknowledgement is due, ns.
    ack_at: u64,
    /// When what may be sent is sent, where that takes time, ns.
    send_at: u64,
    out: u32,
    back: u32,
    group: u16,
    started: bool,
    /// The number of its connection, from 1, where it has one after another (web sessions).
    connection: u8,
}

impl Flow {
    /// The time of its next event, ns.
    #[inline]
    fn next_event(&self) -> u64 {
        self.fixed().min(self.deadline())
    }

    /// The time of its next event that does not move on, ns.
    #[inline(always)]
    fn fixed(&self) -> u64 {
        self.app_at.min(self.ack_at).min(self.send_at)
    }

    /// The time of its transport's timer, ns.
    #[inline(always)]
    fn deadline(&self) -> u64 {
        if let End::Tcp { sender, .. } = &self.end {
            sender.deadline()
        } else if let End::Tfrc(tfrc) = &self.end {
            tfrc.sender.deadline()
        } else {
            NEVER
        }
    }

    /// Makes sure that the list wakes this flow, number `i`, no later than its next event.
    #[inline(never)]
    fn list(&mut self, i: usize, network: &mut Network) {
        if self.next_event() < self.listed {
            self.list_anew(i, network);
        }
    }

    /// Lists the next event of this flow, number `i`.
    #[inline(always)]
    fn list_anew(&mut self, i: usize, network: &mut Network) {
        let (fixed, timer) = (self.fixed(), self.deadline());
        // A transport's timer moves on with each acknowledgement.
        if timer < fixed {
            self.listed = timer;
            network.set_moving_timer(i, timer);
        } else {
            self.listed = fixed;
            network.set_timer(i, fixed);
        }
    }
}

/// Sends all that a connection may send at `now`. `packet` is a data packet of its flow.
#[inline(always)]
fn send_all(
    sender: &mut Sender,
    o: &Options,
    now: u64,
    network: &mut Network,
    packet: &mut Packet,
) {
    if let Some(room) = sender.room(now, o) {
        for _ in 0..room {
            sender.next_new(now, o, packet);
            network.forward(now, packet);
        }
    } else {
        while sender.next(now, o, packet) {
            network.forward(now, packet);
        }
    }
}

/// Sends the acknowledgement of what `receiver` has: of a flow, along its way back, of a connection.
#[inline(always)]
fn answer(
    receiver: &mut Receiver,
    o: &Options,
    now: u64,
    network: &mut Network,
    ack: &mut Packet,
    (flow, back, connection): (u32, u32, u8),
) {
    receiver.acknowledge(o.sack(), ack);
    (ack.flow, ack.hop, ack.connection) = (flow, back, connection);
    network.forward(now, ack);
}

const _: () = assert!(size_of::<Flow>() <= 256, "an active connection takes at most 256 bytes");

/// What a flow has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowReport {
    /// Packets delivered to the application in order (TCP) or at all (datagrams).
    pub delivered: u32,
    /// Their bytes, where a group's packets differ in length: those of a capture.
    pub delivered_bytes: u64,
    /// Packets sent again.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Window reductions after an ECN echo.
    pub ecn_reductions: u32,
    /// Smoothed round-trip time, ns.
    pub srtt: u64,
}

/// A simulation that can be advanced and looked at.
#[derive(Clone)]
pub struct Simulation {
    /// Nothing before this time is left to do, ns.
    now: u64,
    network: Network,
    groups: Vec<Group>,
    flows: Vec<Flow>,
    on_off: Vec<Option<Box<OnOff>>>,
    /// Who draws the time before a flow sends, where there is such a time.
    jitter: Vec<aqm::Rng>,
    /// When a finite flow was acknowledged to its end, ns.
    completed: Vec<u64>,
    /// By group.
    webs: Vec<Option<Box<Web>>>,
    /// Timers of flows handled so far.
    timers: u64,
    /// The packet that is being made.
    hand: Packet,
}

impl Simulation {
    /// A simulation at time 0. Paths are runs of link numbers, each ended by
    /// [`crate::network::END`].
    pub fn new(
        links: Vec<Link>,
        paths: Vec<u32>,
        groups: Vec<Group>,
        setups: Vec<FlowSetup>,
    ) -> Self {
        let mut network = Network::new(links, paths, setups.len());
        let webs = webs(&groups, &setups);
        let mut flows = room_for(setups.len());
        let mut on_off = Vec::with_capacity(setups.len());
        let is_jittered = groups.iter().any(|group| group.send_jitter > 0);
        let jitter = setups.iter().filter(|_| is_jittered).map(|s| s.jitter.clone()).collect();
        for (i, setup) in setups.into_iter().enumerate() {
            let group = &groups[usize::from(setup.group)];
            // A web session is woken by its first flow.
            let begins = match (&group.app, &webs[usize::from(setup.group)], &group.transport) {
                (App::Web(_), Some(web), _) => web.wakes(i),
                // One flow of a capture sends the packets of all.
                (_, _, Transport::Trace { first, .. }) => i == *first as usize,
                _ => true,
            };
            let start = if begins { setup.start } else { NEVER };
            network.set_timer(i, start);
            let is_on_off = matches!(group.app, App::OnOff { .. });
            on_off.push(is_on_off.then(|| Box::new(OnOff::new(setup.rng.clone()))));
            let end = match group.transport {
                Transport::Tcp(_) => {
                    End::Tcp { sender: Sender::default(), receiver: Receiver::default() }
                }
                Transport::Tfrc(_) => End::Tfrc(Box::default()),
                Transport::Cbr { .. } => End::Cbr(Box::new(Cbr {
                    rng: setup.rng,
                    start: setup.start,
                    carry: 0,
                    sent: 0,
                    received: 0,
                })),
                Transport::Trace { .. } => End::Trace(Traced::default()),
            };
            flows.push(Flow {
                end,
                listed: start,
                app_at: start,
                ack_at: NEVER,
                send_at: NEVER,
                out: setup.out,
                back: setup.back,
                group: setup.group,
                started: false,
                connection: 0,
            });
        }
        let completed = vec![NEVER; flows.len()];
        Self {
            now: 0,
            network,
            groups,
            flows,
            on_off,
            jitter,
            completed,
            webs,
            timers: 0,
            hand: Packet::default(),
        }
    }

    /// Handles all events before `until` (ns), then brings every link up to it: what is observed
    /// is the state just before `until`.
    pub fn advance(&mut self, until: u64) {
        self.network.set_end(until.min(self.horizon()));
        let mut packet = Packet::default();
        loop {
            let (now, event) = self.network.next(&mut packet);
            match event {
                Event::End => {
                    self.now = now;
                    fetch_ahead(&self.flows, || self.network.coming());
                    self.on_packet(now, &packet);
                }
                Event::Timer(i) => {
                    self.now = now;
                    self.on_flow(i);
                }
                Event::Look => self.look(),
                Event::Nothing => break,
            }
        }
        self.now = until;
        // The transmitters' events at `until` itself belong to what comes next.
        self.network.catch_up_all(until.saturating_sub(1));
    }

    /// The latest time that can be simulated, ns.
    pub fn horizon(&self) -> u64 {
        self.network.horizon()
    }

    /// Whether links that can be are folded. Only at time 0; the results are the same.
    pub fn set_folding(&mut self, on: bool) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.set_folding(on);
    }

    /// Events handled so far: packets arriving at the end of a link that is not folded, and timers.
    pub fn events_handled(&self) -> u64 {
        self.network.arrivals() as u64 + self.timers
    }

    /// The managed queue of a link, if it has one.
    pub fn queue(&self, link: usize) -> Option<&Managed> {
        self.network.queue(link)
    }

    /// All managed queues, in the order of their links.
    pub fn queues(&self) -> impl Iterator<Item = &Managed> {
        self.network.queues()
    }

    /// Counts by group at all managed queues. Only at time 0.
    pub fn count_groups(&mut self) {
        debug_assert!(self.now == 0, "packets are under way");
        let of: Vec<u16> = self.flows.iter().map(|flow| flow.group).collect();
        self.network.count_groups(&of);
    }

    /// Sets what queues take for each flow's identity, in place of its number. Only at time 0.
    pub fn identify(&mut self, identities: &[Identity]) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.identify(identities);
    }

    /// Begins a new window of measurement.
    pub fn restart_measurement(&mut self) {
        self.network.restart_measurement(self.now);
        self.webs.iter_mut().flatten().for_each(|web| web.restart_measurement(self.now));
    }

    /// How many flows there are.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// What a flow has done so far.
    pub fn flow(&self, i: usize) -> FlowReport {
        let flow = &self.flows[i];
        let web = &self.webs[usize::from(flow.group)];
        let before = web.as_ref().map_or(0, |web| web.delivered(i));
        match &flow.end {
            End::Tcp { sender, receiver } => FlowReport {
                delivered: before + receiver.delivered(),
                delivered_bytes: 0,
                retransmits: sender.retransmits,
                timeouts: sender.timeouts,
                ecn_reductions: sender.ecn_reductions,
                srtt: sender.srtt(),
            },
            End::Cbr(cbr) => FlowReport { delivered: cbr.received, ..FlowReport::default() },
            End::Tfrc(tfrc) => FlowReport {
                delivered: tfrc.receiver.received,
                timeouts: tfrc.sender.timeouts,
                srtt: tfrc.sender.srtt(),
                ..FlowReport::default()
            },
            End::Trace(traced) => FlowReport {
                delivered: traced.received,
                delivered_bytes: traced.received_bytes,
                ..FlowReport::default()
            },
        }
    }

    /// How long a transfer of `packets` over flow `i` takes (ns) if nothing else is under way, to the
    /// acknowledgement of the last, or from a request to its arrival.
    pub fn alone(&self, i: usize, packets: u32) -> Option<u64> {
        let flow = &self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        let Transport::Tcp(o) = &group.transport else { return None };
        let alone = self.network.alone(flow.out, flow.back, group.packet);
        let web = matches!(group.app, App::Web(Objects { handshake: true, .. }));
        let handshake = if o.handshake || web { alone.handshake() } else { 0 };
        let delivery = alone.delivery(packets, o.initial_window as u32, o.window);
        Some(handshake + delivery + alone.back)
    }

    /// Requests and pages of a group that began in the window of measurement, if it is one of web
    /// sessions.
    pub fn web(&self, group: usize) -> Option<[&Transfers; 2]> {
        self.webs[group].as_ref().map(|web| [&web.requests, &web.pages])
    }

    /// When a finite flow was completed (ns), if it was.
    pub fn completed(&self, i: usize) -> Option<u64> {
        (self.completed[i] != NEVER).then(|| self.completed[i])
    }

    /// The hash over all decisions of all queues, in the order of the links.
    pub fn decision_hash(&self) -> DecisionHash {
        self.network.decision_hash()
    }

    /// A packet has come to the end of its path.
    #[inline(always)]
    fn on_packet(&mut self, now: u64, packet: &Packet) {
        let i = packet.flow as usize;
        if packet.connection != 0 && self.is_over(packet) {
            return;
        }
        let flow = &mut self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        // Nearly all are of TCP.
        let (End::Tcp { sender, receiver }, Transport::Tcp(options)) =
            (&mut flow.end, &group.transport)
        else {
            self.on_datagram(packet);
            return;
        };
        match packet.kind {
            Kind::Data => {
                let ce = packet.ecn == Ecn::Ce;
                let delayed = options.delayed_ack > 0;
                let to = (packet.flow, flow.back, flow.connection);
                let mut answered = packet.has(CWR);
                if options.exact_echo() {
                    answered = true;
                    if receiver.owes_other_echo(ce) {
                        answer(receiver, options, now, &mut self.network, &mut self.hand, to);
                    }
                }
                match receiver.on_data(packet.seq, ce, answered, delayed) {
                    AckWhen::Now => {
                        flow.ack_at = NEVER;
                        answer(receiver, options, now, &mut self.network, &mut self.hand, to);
                    }
                    AckWhen::Later => {
                        flow.ack_at = now + options.delayed_ack;
                        flow.list(i, &mut self.network);
                    }
                }
                if packet.connection != 0 {
                    self.on_object(i);
                }
            }
            Kind::Ack => {
                debug_assert!(packet.seq <= receiver.delivered(), "of another connection");
                sender.on_ack(now, packet, options);
                let data = &mut self.hand;
                *data = Packet::default();
                (data.hop, data.flow, data.len) = (flow.out, packet.flow, group.packet);
                data.connection = flow.connection;
                if group.send_jitter == 0 {
                    send_all(sender, options, now, &mut self.network, data);
                }
                if matches!(group.app, App::Finite { packets } if sender.acknowledged() == packets)
                {
                    self.completed[i] = self.completed[i].min(now);
                }
                let asks = group.send_jitter > 0
                    || (sender.has_nothing_left()
                        && matches!(group.app, App::OnOff { gap: 1.., .. }));
                // Nothing else of the flow has changed.
                if sender.deadline() < flow.listed {
                    flow.list(i, &mut self.network);
                }
                if asks {
                    self.send(i);
                }
            }
            _ => self.on_handshake(i, packet.kind),
        }
    }

    /// A packet of a flow without acknowledgements, or with TFRC, has come to the end of its path.
    #[inline(never)]
    fn on_datagram(&mut self, packet: &Packet) {
        match &mut self.flows[packet.flow as usize].end {
            End::Cbr(cbr) => cbr.received += 1,
            End::Tfrc(_) => self.on_tfrc(packet),
            End::Trace(traced) => {
                traced.received += 1;
                traced.received_bytes += u64::from(packet.len);
            }
            End::Tcp { .. } => {}
        }
    }

    /// A packet without data or acknowledgement of flow `i` has come to the end of its path.
    #[cold]
    #[inline(never)]
    fn on_handshake(&mut self, i: usize, kind: Kind) {
        let flow = &mut self.flows[i];
        let (connection, hop) = (flow.connection, flow.back);
        match (&mut flow.end, kind) {
            _ if connection != 0 => self.on_web(i, kind),
            (_, Kind::Syn) => {
                let answer =
                    Packet { flow: i as u32, hop, kind: Kind::SynAck, ..Packet::default() };
                self.network.forward(self.now, &answer);
            }
            (End::Tcp { sender, .. }, Kind::SynAck) => {
                sender.on_syn_ack(self.now);
                self.send(i);
            }
            _ => {}
        }
    }

    /// Sends all that flow `i` may send now, or later if that takes time, and lists its next event.
    #[inline(never)]
    fn send(&mut self, i: usize) {
        let Self { now, network, flows, groups, on_off, jitter, hand, .. } = self;
        let (now, flow) = (*now, &mut flows[i]);
        let group = &groups[usize::from(flow.group)];
        let (End::Tcp { sender, .. }, Transport::Tcp(o)) = (&mut flow.end, &group.transport) else {
            return;
        };
        *hand = Packet {
            hop: flow.out,
            flow: i as u32,
            len: group.packet,
            connection: flow.connection,
            ..Packet::default()
        };
        let at_once = group.send_jitter == 0 || flow.send_at <= now;
        if at_once {
            flow.send_at = NEVER;
            send_all(sender, o, now, network, hand);
        }
        // A source with a rate gives one packet after another; as long as there are others to send
        // they are counted, not waited for.
        if let (Some(state), &App::OnOff { gap: gap @ 1.., .. }) = (&mut on_off[i], &group.app)
            && sender.has_nothing_left()
        {
            sender.offer(state.given(now, gap));
            if at_once {
                send_all(sender, o, now, network, hand);
            }
            if sender.has_nothing_left() {
                flow.app_at = flow.app_at.min(state.gives());
            }
        }
        if !at_once && flow.send_at == NEVER && sender.room(now, o) != Some(0) {
            let wait = group.send_jitter as f64 * jitter[i].uniform();
            flow.send_at = now.saturating_add(wait as u64);
        }
        flow.list(i, network);
    }

    /// A flow's listed event has come; it may have been put off meanwhile.
    #[inline(never)]
    fn on_flow(&mut self, i: usize) {
        let now = self.now;
        self.timers += 1;
        let flow = &mut self.flows[i];
        if flow.next_event() > now {
            // Put off.
            flow.list_anew(i, &mut self.network);
            fetch_ahead(&self.flows, || Some(self.network.next_timer()));
            return;
        }
        // Listed once, at the end.
        flow.listed = now;
        if flow.app_at <= now {
            self.on_app(i);
        }
        let flow = &mut self.flows[i];
        if matches!(flow.end, End::Tfrc(_)) {
            self.on_tfrc_timers(i);
        } else if flow.ack_at <= now {
            flow.ack_at = NEVER;
            let group = &self.groups[usize::from(flow.group)];
            if let (End::Tcp { receiver, .. }, Transport::Tcp(o)) =
                (&mut flow.end, &group.transport)
                && receiver.owes_ack()
            {
                let to = (i as u32, flow.back, flow.connection);
                answer(receiver, o, now, &mut self.network, &mut self.hand, to);
            }
            if flow.connection != 0 {
                self.repeat(i);
            }
        }
        let flow = &mut self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        if let (End::Tcp { sender, .. }, Transport::Tcp(o)) = (&mut flow.end, &group.transport)
            && sender.deadline() <= now
        {
            sender.on_timer(now, o);
            self.send(i);
        }
        if self.flows[i].send_at <= now {
            self.send(i);
        }
        let flow = &mut self.flows[i];
        flow.list_anew(i, &mut self.network);
        fetch_ahead(&self.flows, || Some(self.network.next_timer()));
    }

    /// Looks at timers that may have moved on.
    #[inline(never)]
    fn look(&mut self) {
        let mut next = self.network.begin_look();
        while let Some(i) = next {
            let (after, is_set) = self.network.look_at(i);
            fetch_ahead(&self.flows, || after);
            if !is_set {
                self.flows[i].list_anew(i, &mut self.network);
            }
            next = after;
        }
    }

    /// The application of flow `i` starts or takes its next step.
    fn on_app(&mut self, i: usize) {
        let now = self.now;
        let flow = &mut self.flows[i];
        let group = &self.groups[usize::from(flow.group)];
        if matches!(group.app, App::Web(_)) {
            self.on_session(i);
            return;
        }
        let first = !std::mem::replace(&mut flow.started, true);
        if now >= group.stop {
            flow.app_at = NEVER;
            self.on_off[i] = None;
            match &mut flow.end {
                End::Tcp { sender, .. } => sender.withdraw(),
                End::Tfrc(tfrc) => tfrc.sender.stop(),
                End::Cbr(_) | End::Trace(_) => {}
            }
            return;
        }
        match (&mut flow.end, &group.transport) {
            (End::Tcp { sender, .. }, Transport::Tcp(options)) => {
                if first {
                    sender.start(now, options);
                }
                flow.app_at = group.stop;
                match (group.app, &mut self.on_off[i]) {
                    (App::Infinite, _) => sender.offer(u32::MAX),
                    (App::Finite { packets }, _) => sender.offer(packets),
                    (App::OnOff { .. }, Some(state)) => {
                        match state.step(now, &group.app) {
                            Step::Offer(packets) => sender.offer(packets),
                            Step::Withdraw => sender.withdraw(),
                            Step::Nothing => {}
                        }
                        flow.app_at = state.ends().min(group.stop);
                    }
                    (App::OnOff { .. }, None) | (App::Periodic { .. } | App::Web(_), _) => {}
                }
                self.send(i);
            }
            (End::Tfrc(tfrc), Transport::Tfrc(o)) => {
                let mut packet = Packet {
                    flow: i as u32,
                    hop: flow.out,
                    seq: tfrc.sender.send(now),
                    len: group.packet,
                    ecn: Ecn::ect(o.ecn),
                    ..Packet::default()
                };
                packet.say(now, u32::try_from(tfrc.sender.srtt() / 1000).unwrap_or(u32::MAX));
                flow.app_at = tfrc.sender.due(now);
                self.network.forward(now, &packet);
            }
            (End::Cbr(cbr), Transport::Cbr { rates, gaps, ecn }) => {
                let rate = rates.iter().rev().find(|(from, _)| *from <= now).map_or(1, |r| r.1);
                let next = now + cbr.gap(group.packet, rate, *gaps);
                flow.app_at = cbr.start + group.app.next_on(next - cbr.start);
                cbr.sent += 1;
                let datagram = Packet {
                    kind: Kind::Datagram,
                    flow: i as u32,
                    hop: flow.out,
                    seq: cbr.sent,
                    len: group.packet,
                    ecn: Ecn::ect(*ecn),
                    ..Packet::default()
                };
                self.network.forward(now, &datagram);
            }
            (End::Trace(_), _) => self.replay(i),
            _ => {}
        }
    }

    /// Sends the packets of a capture that are due; `i` is the first of its flows.
    #[cold]
    #[inline(never)]
    fn replay(&mut self, i: usize) {
        let flow = &self.flows[i];
        let Transport::Trace { arrivals, start, first, ecn } =
            &self.groups[usize::from(flow.group)].transport
        else {
            return;
        };
        let End::Trace(Traced { mut sent, .. }) = flow.end else { return };
        let mut next = NEVER;
        for arrival in &arrivals.packets[sent as usize..] {
            if start + arrival.time > self.now {
                next = start + arrival.time;
                break;
            }
            sent += 1;
            let flow = first + arrival.flow;
            let capable = *ecn && arrival.ecn == Ecn::NotEct;
            let datagram = Packet {
                kind: Kind::Datagram,
                flow,
                hop: self.flows[flow as usize].out,
                seq: sent,
                len: arrival.len,
                ecn: if capable { Ecn::Ect0 } else { arrival.ecn },
                ..Packet::default()
            };
            self.network.forward(self.now, &datagram);
        }
        let flow = &mut self.flows[i];
        flow.app_at = next;
        if let End::Trace(traced) = &mut flow.end {
            traced.sent = sent;
        }
    }
}

impl Cbr {
    /// Time to the next datagram, ns.
    fn gap(&mut self, len: u16, rate: u64, gaps: Gaps) -> u64 {
        let owed = u128::from(len) * 8_000_000_000 + u128::from(self.carry);
        self.carry = (owed % u128::from(rate)) as u64;
        let mean = (owed / u128::from(rate)) as u64;
        let gap = match gaps {
            Gaps::Constant => mean,
            Gaps::Uniform(share) => {
                (mean as f64 * (1.0 + share * (2.0 * self.rng.uniform() - 1.0))) as u64
            }
            Gaps::Exponential => Periods::Exponential.draw(mean, &mut self.rng),
        };
        gap.max(1) // time goes on
    }
}
