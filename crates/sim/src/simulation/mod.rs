//! A simulation: links, flows, and the loop that moves packets between them.
//!
//! ```text
//! application -> sender -> link -> queue -> link -> receiver -> acknowledgement -> sender
//! ```

pub(crate) mod events;
mod flow;
mod part;
mod web;

use aqm::{AnyQdisc, Env};
use link::NEVER;
use link::memory::{fetch_ahead, room_for};

use crate::app::web::Web;
use crate::app::{App, Objects, OnOff};
use crate::control::Setting;
use crate::network::{Event, Identities, Link, Managed, Network, Passed, Pool, Stage};
use crate::packet::{Packet, Payload};
use crate::results::delays::EndToEnd;
use crate::results::journal::Selection;
use crate::results::one_way::OneWay;
use crate::results::table::Table;
use crate::results::transfers::Transfers;
use crate::transport::cbr::Echoes;
use crate::transport::{After, Ends, FlowReport, FlowSetup, Group, Port, SendTiming};
use crate::watch::Watch;
use events::{Events, Waiting};
use flow::Flow;

/// A simulation that can be advanced and looked at.
pub struct Simulation {
    /// Nothing before this time is left to do, ns.
    now: u64,
    network: Network,
    groups: Vec<Group>,
    flows: Vec<Flow>,
    /// Of each flow, if any has such.
    send_timings: Vec<SendTiming>,
    /// When a finite flow was acknowledged to its end, ns; of each flow, if any is finite.
    completed: Vec<u64>,
    /// By group.
    webs: Vec<Option<Box<Web>>>,
    /// What is measured from end to end, if it is.
    end_to_end: Option<Box<EndToEnd>>,
    /// The observer of congestion controllers, if there is one.
    watch: Option<Box<Watch>>,
    events: Events,
    /// Timers of flows that were due so far, those of each end apart.
    timers: u64,
    /// The packet that is being made.
    scratch: Packet,
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
        let webs = web::webs(&groups, &setups);
        let mut flows = room_for(setups.len());
        for (i, setup) in setups.iter().enumerate() {
            let Group { transport, app, .. } = &groups[usize::from(setup.group)];
            // A web session is woken by its first flow.
            let begins = match (app, &webs[usize::from(setup.group)]) {
                (App::Web(_), Some(web)) => web.wakes(i),
                _ => transport.begins(i),
            };
            let start = if begins { setup.start } else { NEVER };
            network.set_timer(i, start);
            flows.push(Flow::new(transport.ends(i, &setups), setup, start));
        }
        let any_is_finite = groups.iter().any(|group| matches!(group.app, App::Finite { .. }));
        Self {
            now: 0,
            network,
            send_timings: send_timings(&groups, setups),
            completed: if any_is_finite { vec![NEVER; flows.len()] } else { Vec::new() },
            groups,
            flows,
            webs,
            end_to_end: None,
            watch: None,
            events: Events::default(),
            timers: 0,
            scratch: Packet::default(),
        }
    }

    /// The stages between links ([`Network::set_stages`]). Only at time 0.
    pub(crate) fn set_stages(&mut self, stages: Vec<Stage>, pools: Vec<Pool>) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.set_stages(stages, pools);
    }

    /// Handles all events before `until` (ns), then brings every link up to it: what is observed
    /// is the state just before `until`.
    pub fn advance(&mut self, until: u64) {
        loop {
            self.network.set_end(self.events.next().min(until).min(self.horizon()));
            if self.end_to_end.is_some() || self.watch.is_some() {
                self.handle::<true>();
            } else {
                self.handle::<false>();
            }
            // Something may have been put in the way meanwhile.
            self.now = self.events.next().min(until);
            // The transmitters' events at that time itself belong to what comes next.
            self.network.catch_up_all(self.now.saturating_sub(1));
            if self.now == until {
                return;
            }
            self.change();
        }
    }

    /// Handles all events before the end; whether anything is `MEASURED` is asked but once.
    fn handle<const MEASURED: bool>(&mut self) {
        let mut packet = Packet::default();
        loop {
            let (now, event) = self.network.next(&mut packet);
            match event {
                Event::End => {
                    self.now = now;
                    fetch_ahead(&self.flows, || self.network.coming());
                    let sample = if MEASURED { self.measure(&mut packet) } else { None };
                    self.on_packet::<MEASURED>(now, &packet);
                    if MEASURED {
                        self.note_round_trip(&packet, sample);
                    }
                }
                Event::Timer(i) => {
                    self.now = now;
                    self.on_flow(i);
                    if MEASURED {
                        self.look(i);
                    }
                }
                Event::CheckTimers => self.check_timers(),
                Event::Nothing => break,
            }
        }
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

    /// The discipline on a link.
    pub fn queue_mut(&mut self, link: usize) -> Option<&mut AnyQdisc<Packet>> {
        self.network.queue_mut(link)
    }

    /// All managed queues, in the order of their links.
    pub fn queues(&self) -> impl Iterator<Item = &Managed> {
        self.network.queues()
    }

    /// What the wire of a link did to packets in the window of measurement, if it impairs them.
    pub fn passed(&self, link: usize) -> Option<Passed> {
        self.network.passed(link)
    }

    /// Counts by group at all managed queues. Only at time 0.
    pub fn count_groups(&mut self) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.count_groups(&self.group_of_each());
    }

    /// Measures delays: of each flow at all managed queues, from end to end, and round trips. Only at
    /// time 0.
    pub fn measure_delays(&mut self) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.measure_delays(self.flows.len());
        self.end_to_end = Some(Box::new(EndToEnd::new(self.flows.len())));
        self.groups.iter_mut().for_each(|group| group.transport.stamp());
    }

    /// Writes down what congestion controls do, and lets it change what `waiting` says. Only at time 0.
    pub(crate) fn watch(&mut self, watch: Watch, waiting: Vec<Waiting>) {
        debug_assert!(self.now == 0, "packets are under way");
        if !waiting.is_empty() {
            // What is known of a packet as it enters a folded link would not hold.
            self.set_folding(false);
        }
        self.watch = Some(Box::new(watch));
        self.events.waiting = waiting;
    }

    /// What was written down of congestion controls, if it was.
    pub(crate) fn take_control(&mut self) -> [Table; 2] {
        let kept = self.watch.take().and_then(|watch| watch.into_tables());
        kept.unwrap_or_else(Watch::empty)
    }

    /// What was measured from end to end, if it was.
    pub fn end_to_end(&self) -> Option<&EndToEnd> {
        self.end_to_end.as_deref()
    }

    /// Keeps a journal of packets at all managed queues. Only at time 0.
    pub fn keep_journals(&mut self, selection: &Selection) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.keep_journals(selection);
    }

    /// What the journal of a link's queue has ready, or all of it if nothing more will happen.
    pub fn drain_journal(&mut self, link: usize, all: bool) -> Option<Table> {
        self.network.drain_journal(link, all)
    }

    fn group_of_each(&self) -> Vec<u16> {
        self.flows.iter().map(|flow| flow.seat.group).collect()
    }

    /// Sets what queues take for each flow's identity, in place of its number. Only at time 0.
    pub fn identify(&mut self, identities: &Identities) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.identify(identities);
    }

    /// The controllers of a group's connections are brought along. Only before the first
    /// [`Simulation::advance`].
    pub(crate) fn bring(&mut self, group: usize, setting: &Setting) {
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if usize::from(flow.seat.group) == group {
                flow.ends.bring(&setting.of_flow(number));
            }
        }
    }

    /// Begins a new window of measurement.
    pub fn restart_measurement(&mut self) {
        self.network.restart_measurement(self.now);
        self.webs.iter_mut().flatten().for_each(|web| web.restart_measurement(self.now));
        if let Some(ends) = &mut self.end_to_end {
            ends.restart();
        }
    }

    /// The congestion window of flow `i`, packets, if it has one.
    pub fn window(&self, i: usize) -> Option<f64> {
        let flow = &self.flows[i];
        flow.ends.window(&self.groups[usize::from(flow.seat.group)].transport)
    }

    /// The connections that ended before their data did: flow, when (ns), why.
    pub fn broken(&self) -> Vec<(usize, u64, String)> {
        let each =
            self.flows.iter().enumerate().filter_map(|(i, flow)| Some((i, flow.ends.broken()?)));
        each.map(|(i, (at, why))| (i, at, why.into())).collect()
    }

    /// From now on what datagrams meet on their way is measured.
    pub fn measure_one_way(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.ends.measure_from(self.now));
    }

    /// What was measured of the datagrams of flow `i`.
    pub fn one_way(&self, i: usize) -> Option<&OneWay> {
        self.flows[i].ends.one_way()
    }

    /// What is known of the datagrams of flow `i` that the far end sends back, where it does.
    pub(crate) fn echoes(&mut self, i: usize) -> Option<&mut Echoes> {
        self.flows[i].ends.echoes()
    }

    /// From now on somebody takes the news of the echoes of flow `i`. Only at time 0.
    pub(crate) fn hear_echoes(&mut self, i: usize) {
        self.echoes(i).into_iter().for_each(|echoes| echoes.heard = true);
    }

    /// The links of the way of flow `i` that crosses `link`, and whether it is the way out.
    pub(crate) fn way_over(&self, i: usize, link: usize) -> Option<(bool, Vec<usize>)> {
        let seat = &self.flows[i].seat;
        let ways = [(true, seat.out), (false, seat.back)];
        let (out, path) = ways.into_iter().find(|(_, path)| self.network.crosses(*path, link))?;
        Some((out, self.network.links_of(path).collect()))
    }

    /// A link with a managed queue sends at the rate of `env` from now on, and its queue knows it. Only if links
    /// are not folded.
    pub(crate) fn shape(&mut self, link: usize, env: &Env) {
        self.network.shape(link, env);
    }

    /// How many flows there are.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// What a flow has done so far.
    pub fn flow(&self, i: usize) -> FlowReport {
        let flow = &self.flows[i];
        let mut report = flow.ends.report();
        if let Some(web) = &self.webs[usize::from(flow.seat.group)] {
            report.delivered += web.delivered(i);
        }
        report
    }

    /// Whether what flow `i` sends crosses a link.
    pub fn crosses(&self, i: usize, link: usize) -> bool {
        self.network.crosses(self.flows[i].seat.out, link)
    }

    /// How long a transfer of `packets` over flow `i` takes (ns) if nothing else is under way, to the
    /// acknowledgement of the last, or from a request to its arrival.
    pub fn alone(&self, i: usize, packets: u32) -> Option<u64> {
        let seat = &self.flows[i].seat;
        let group = &self.groups[usize::from(seat.group)];
        let connections = group.transport.connections()?;
        let alone = self.network.alone(seat.out, seat.back, group.packet);
        let web = matches!(group.app, App::Web(Objects { handshake: true, .. }));
        let handshake = if connections.handshake || web { alone.handshake() } else { 0 };
        let delivery = alone.delivery(packets, connections.windows);
        Some(handshake + delivery + alone.back)
    }

    /// Requests and pages of a group that began in the window of measurement, if it is one of web
    /// sessions.
    pub fn web(&self, group: usize) -> Option<[&Transfers; 2]> {
        self.webs[group].as_ref().map(|web| [&web.requests, &web.pages])
    }

    /// Packets that flow `i` has to send, if that is a finite number.
    pub fn finite(&self, i: usize) -> Option<u32> {
        self.groups[usize::from(self.flows[i].seat.group)].finite(i)
    }

    /// When a finite flow was completed (ns), if it was.
    pub fn completed(&self, i: usize) -> Option<u64> {
        self.completed.get(i).copied().filter(|at| *at != NEVER)
    }

    /// A packet has come to the end of its path.
    #[inline(always)]
    fn on_packet<const MEASURED: bool>(&mut self, now: u64, packet: &Packet) {
        if packet.connection != 0 {
            self.on_web(packet);
            return;
        }
        let i = packet.flow as usize;
        let Self { network, flows, groups, scratch, send_timings, .. } = self;
        let Flow { ends, seat } = &mut flows[i];
        let group = &groups[usize::from(seat.group)];
        let port = Port { now, flow: packet.flow, group, seat, network, scratch, send_timings };
        let after = ends.on_packet(port, packet);
        if MEASURED {
            self.look(i);
        }
        match after {
            After::Nothing => {}
            After::Timer => self.flows[i].list(i, &mut self.network),
            After::Ask => self.ask_for_data(i),
        }
    }

    /// Looks at the congestion control of flow `i`, if anybody looks on.
    fn look(&mut self, i: usize) {
        let Some(watch) = &mut self.watch else { return };
        let Flow { ends, seat } = &mut self.flows[i];
        let group = &self.groups[usize::from(seat.group)];
        if seat.connection == 0 && ends.look(self.now, &group.transport, &mut watch.look) {
            for &entered in watch.note(self.now, i, |values| ends.values(values)) {
                self.events.note(self.now, i, entered);
            }
            self.network.end_by(self.events.next());
        }
    }

    /// Before a packet is handled that has come to the end of its path: how long it took, and the round
    /// trip that it is a sample of, ns.
    fn measure(&mut self, packet: &mut Packet) -> Option<u64> {
        let i = packet.flow as usize;
        if let (Some(ends), Some(sent)) = (&mut self.end_to_end, packet.payload.sent()) {
            ends.one_way[i].add(self.now - sent);
        }
        if let Payload::Stamped { cwr, tick, .. } = packet.payload {
            packet.payload = Payload::Data { cwr, tick };
        }
        let now = self.now;
        self.answered(packet)?.round_trip(now, packet)
    }

    /// After it was handled; with RACK the sample is known now.
    fn note_round_trip(&mut self, packet: &Packet, sample: Option<u64>) {
        let sample = sample.or_else(|| self.answered(packet)?.last_round_trip());
        if let (Some(ends), Some(rtt)) = (&mut self.end_to_end, sample) {
            ends.round_trip[packet.flow as usize].add(rtt);
        }
    }

    /// Whose data a packet answers, if they are of the flow's present connection.
    fn answered(&mut self, packet: &Packet) -> Option<&mut Ends> {
        let Flow { ends, seat } = &mut self.flows[packet.flow as usize];
        let answers = matches!(
            packet.payload,
            Payload::Ack { .. } | Payload::SynAck { .. } | Payload::Answer
        );
        (answers && packet.connection == seat.connection).then_some(ends)
    }

    /// What flow `i` was given is sent, or is to be sent later.
    #[inline(never)]
    fn ask_for_data(&mut self, i: usize) {
        if let App::Finite { .. } = self.groups[usize::from(self.flows[i].seat.group)].app {
            self.note_completion(i);
        }
        self.send(i);
    }

    #[inline(never)]
    fn note_completion(&mut self, i: usize) {
        let acknowledged = self.flows[i].ends.acknowledged();
        if acknowledged.is_some() && acknowledged == self.finite(i) {
            self.completed[i] = self.completed[i].min(self.now);
        }
    }

    /// Sends all that flow `i` may send now, or later if that takes time, and lists its next event.
    fn send(&mut self, i: usize) {
        self.at(i, |ends, port| ends.send(port));
        self.flows[i].list(i, &mut self.network);
    }

    /// Has something done by the ends of flow `i`, through its port.
    #[inline]
    fn at(&mut self, i: usize, act: impl FnOnce(&mut Ends, &mut Port<'_>)) {
        let Self { now, network, flows, groups, scratch, send_timings, .. } = self;
        let Flow { ends, seat } = &mut flows[i];
        let group = &groups[usize::from(seat.group)];
        act(
            ends,
            &mut Port { now: *now, flow: i as u32, group, seat, network, scratch, send_timings },
        );
    }

    /// A flow's listed event has come; it may have been put off meanwhile.
    #[inline(never)]
    fn on_flow(&mut self, i: usize) {
        let now = self.now;
        let flow = &mut self.flows[i];
        if flow.next_event() > now {
            // Put off.
            flow.list_anew(i, &mut self.network);
            fetch_ahead(&self.flows, || Some(self.network.next_timer()));
            return;
        }
        // Listed once, at the end.
        flow.seat.listed = now;
        let at_destination = flow.seat.ack_at <= now;
        let at_source = flow.seat.app_at.min(flow.seat.send_at).min(flow.ends.deadline()) <= now;
        self.timers += u64::from(at_destination) + u64::from(at_source);
        if flow.seat.app_at <= now {
            self.on_app(i);
        }
        let seat = &self.flows[i].seat;
        if seat.connection != 0 && seat.ack_at <= now {
            self.repeat(i);
        }
        self.at(i, Ends::on_timers);
        self.flows[i].list_anew(i, &mut self.network);
        fetch_ahead(&self.flows, || Some(self.network.next_timer()));
    }

    /// Looks at timers that may have moved on.
    #[inline(never)]
    fn check_timers(&mut self) {
        let mut next = self.network.begin_timer_check();
        while let Some(i) = next {
            let (after, is_set) = self.network.check_timer(i);
            fetch_ahead(&self.flows, || after);
            if !is_set {
                self.flows[i].list_anew(i, &mut self.network);
            }
            next = after;
        }
    }

    /// The application of flow `i` starts or takes its next step.
    fn on_app(&mut self, i: usize) {
        let Flow { ends, seat } = &mut self.flows[i];
        let group = &self.groups[usize::from(seat.group)];
        if matches!(group.app, App::Web(_)) {
            self.on_session(i);
        } else if self.now >= group.stop {
            seat.app_at = NEVER;
            ends.stop();
            if let Some(send_timing) = self.send_timings.get_mut(i) {
                send_timing.on_off = None;
            }
        } else {
            self.at(i, Ends::on_app);
        }
    }
}

/// What flows have besides, if any has such.
fn send_timings(groups: &[Group], setups: Vec<FlowSetup>) -> Vec<SendTiming> {
    let has = |group: &Group| group.transport.sends_later() || group.app.comes_and_goes();
    if !groups.iter().any(has) {
        return Vec::new();
    }
    let send_timing = |FlowSetup { group, seed, jitter, .. }| {
        let comes_and_goes = groups[usize::from(group)].app.comes_and_goes();
        let on_off = comes_and_goes.then(|| OnOff::new(seed.rng()));
        SendTiming { on_off, jitter: jitter.rng(), paced_until: 0 }
    };
    setups.into_iter().map(send_timing).collect()
}

#[cfg(test)]
mod tests;
