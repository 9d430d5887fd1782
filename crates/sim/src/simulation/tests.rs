//! The loop at its edges, on a link of 8 Mb/s and 10 ms each way, where all times are whole: a packet of
//! 1000 bytes comes after 11 ms, one of 40 bytes after 10.04 ms.

use scenario::Scenario;

use super::*;
use crate::app::web::{Client, Slot};
use crate::packet::Payload;
use crate::parts::Parts;
use crate::setup;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// The delay of data from end to end, and of the answers, ns.
const OUT: u64 = 11 * MS;
const BACK: u64 = 10_040_000;
const SACK: &str = "transport = \"sack\"";
/// A datagram each 10 ms.
const CBR: &str = "transport = \"cbr\"\nrate = \"800kbit\"";
/// One object of three packets after another.
const WEB: &str = "transport = \"sack\"\napp = \"web\"\nsize = \"3p\"\noff = \"50ms\"";
/// Two packets after the request, and the third after their acknowledgement.
const OBJECT: u64 = BACK + OUT + BACK + OUT;

/// Groups from a to b; `link` has further keys of the link.
fn on(link: &str, groups: &[&str]) -> Simulation {
    let ends = "[[traffic]]\nfrom = [\"a\"]\nto = [\"b\"]\n";
    let groups: String = groups.iter().map(|group| format!("{ends}{group}\n")).collect();
    let text = format!(
        "duration = \"1h\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8mbit\"\ndelay = \"10ms\"\n\
         {link}\n[[queue]]\nlink = \"a->b\"\naqm = \"droptail\"\nbuffer = \"1000p\"\n{groups}"
    );
    let scenario = Scenario::from_toml(&text, "x").unwrap_or_else(|e| panic!("{e}"));
    let topology = scenario.topology().ok().unwrap();
    let managed = scenario.managed(&topology).ok().unwrap();
    let (links, wires) = setup::links(&scenario, &topology, &managed, &[]).ok().unwrap();
    let flows = setup::flows(&scenario, &topology, wires, &[]).ok().unwrap();
    Simulation::new(links, flows.paths, flows.groups, flows.setups)
}

fn of(groups: &[&str]) -> Simulation {
    on("", groups)
}

fn slot(simulation: &mut Simulation, flow: usize) -> &mut Slot {
    let group = usize::from(simulation.flows[flow].seat.group);
    simulation.webs[group].as_mut().unwrap().slot(flow)
}

fn requests(simulation: &Simulation) -> (u64, u64) {
    let summary = simulation.web(0).unwrap()[0].summary();
    (summary.began, summary.completed)
}

/// What comes at the end itself belongs to what comes next.
#[test]
fn what_is_observed_is_the_state_just_before_the_end() {
    let mut simulation = of(&[CBR]);
    assert_eq!((simulation.events_handled(), simulation.flow_count()), (0, 1));
    for n in 0..3 {
        simulation.advance(OUT + 10 * MS * n);
        assert_eq!(simulation.flow(0).delivered, n as u32);
        simulation.advance(OUT + 10 * MS * n + 1);
        assert_eq!(simulation.flow(0).delivered, n as u32 + 1);
    }
    // A timer for each datagram that was sent: at 0, 10, 20 and 30 ms.
    assert!(simulation.events_handled() >= 4);
    assert!(simulation.horizon() > 3600 * S);
}

/// Timers that move on with each acknowledgement are put off, and none is missed.
#[test]
fn steps_of_any_length_are_one_run() {
    let on_off = "app = \"exponential\"\non = \"50ms\"\noff = \"70ms\"";
    let narrow = &format!("{SACK}\nwindow = \"50p\"");
    let groups = [narrow, &format!("{narrow}\n{on_off}"), WEB];
    let (mut whole, mut parts) = (of(&groups), of(&groups));
    whole.advance(3 * S);
    let mut now = 0;
    while now < 3 * S {
        now = (now + 777_777).min(3 * S);
        parts.advance(now);
    }
    for i in 0..3 {
        assert_eq!(whole.flow(i), parts.flow(i));
        assert_eq!((whole.flow(i).timeouts, whole.flow(i).retransmits), (0, 0));
        assert!(whole.flow(i).delivered > 0);
    }
    let [one, other] = [whole, parts].map(|simulation| Parts::one(simulation).decision_hash());
    assert_eq!(one, other);
}

/// A packet and its acknowledgement take 21.04 ms, a handshake before it 20.08.
#[test]
fn a_transfer_is_complete_with_its_last_acknowledgement() {
    let group =
        "transport = \"sack\"\napp = \"finite\"\nsize = \"1p\"\nstart = \"3ms\"\nhandshake = ";
    for (handshake, alone) in [(false, OUT + BACK), (true, OUT + 3 * BACK)] {
        let simulation = of(&[&format!("{group}{handshake}"), SACK, CBR]);
        assert_eq!([0, 1, 2].map(|i| simulation.finite(i)), [Some(1), None, None]);
        assert_eq!((simulation.alone(0, 1), simulation.alone(2, 1)), (Some(alone), None));
        let mut simulation = of(&[&format!("{group}{handshake}")]);
        simulation.advance(3 * MS + alone);
        assert_eq!(simulation.completed(0), None);
        simulation.advance(S);
        assert_eq!(simulation.completed(0), Some(3 * MS + alone));
    }
    let mut simulation = of(&[SACK]);
    simulation.advance(S);
    assert_eq!(simulation.completed(0), None);
}

#[test]
fn nothing_new_is_sent_once_a_group_has_stopped() {
    let on_off = "transport = \"sack\"\napp = \"exponential\"\non = \"10s\"\noff = \"10ms\"";
    for group in [SACK, on_off, WEB] {
        let mut simulation = of(&[&format!("{group}\nstop = \"1s\"")]);
        simulation.advance(S - 1);
        let before = simulation.flow(0).delivered;
        // What was under way comes: a window at most, or an object.
        simulation.advance(3 * S);
        let after = simulation.flow(0).delivered;
        simulation.advance(9 * S);
        assert_eq!(simulation.flow(0).delivered, after, "{group}");
        assert!(before > 0 && after > before, "{group}");
        assert!(simulation.send_timings.iter().all(|timing| timing.on_off.is_none()));
    }
    // At 0, 10 … 90 ms.
    let mut simulation = of(&[&format!("{CBR}\nstop = \"100ms\"")]);
    simulation.advance(S);
    assert_eq!(simulation.flow(0).delivered, 10);
}

#[test]
fn flows_have_what_their_transport_and_application_ask_for() {
    let on_off = "transport = \"sack\"\napp = \"exponential\"\non = \"50ms\"\noff = \"70ms\"";
    assert!(of(&[SACK, CBR]).send_timings.is_empty());
    let mut simulation = of(&[SACK, on_off, CBR]);
    let timings = &simulation.send_timings;
    assert_eq!(
        timings.iter().map(|t| t.on_off.is_some()).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(of(&["transport = \"sack\"\npacing = true"]).send_timings.len(), 1);
    simulation.advance(1);
    assert_eq!((simulation.window(0), simulation.window(2)), (Some(2.0), None));
    assert_eq!([0, 1].map(|link| simulation.crosses(0, link)), [true, false]);
    assert_eq!(simulation.group_of_each(), [0, 1, 2]);
    simulation.measure_one_way();
    simulation.advance(S);
    assert_eq!([0, 2].map(|i| simulation.one_way(i).is_some()), [false, true]);
}

/// A flow is listed anew only for what comes earlier; later, when what was listed has come.
#[test]
fn a_flow_is_listed_for_what_comes_first() {
    let mut simulation = of(&[&format!("{SACK}\nstart = \"5ms\"")]);
    let Simulation { flows, network, .. } = &mut simulation;
    let flow = &mut flows[0];
    assert_eq!(
        (flow.next_event(), flow.seat.listed, flow.ends.deadline()),
        (5 * MS, 5 * MS, NEVER)
    );
    flow.seat.send_at = 7 * MS;
    flow.list(0, network);
    assert_eq!((flow.next_event(), flow.seat.listed), (5 * MS, 5 * MS));
    flow.seat.ack_at = 2 * MS;
    assert_eq!(flow.next_event(), 2 * MS);
    flow.list(0, network);
    assert_eq!(flow.seat.listed, 2 * MS);
    flow.seat.ack_at = NEVER;
    flow.list(0, network);
    assert_eq!(flow.seat.listed, 2 * MS);
    flow.list_anew(0, network);
    assert_eq!(flow.seat.listed, 5 * MS);
    // What it sends begins the timer, a second from then.
    let mut simulation = of(&[&format!("{SACK}\nstart = \"5ms\"")]);
    simulation.advance(5 * MS + 1);
    let flow = &simulation.flows[0];
    assert_eq!((flow.ends.deadline(), flow.seat.listed), (1005 * MS, 1005 * MS));
}

#[test]
fn an_object_takes_its_request_and_its_round_trips() {
    for (handshake, takes) in [("", OBJECT), ("\nhandshake = true", OBJECT + 2 * BACK)] {
        let mut simulation = of(&[&format!("{WEB}{handshake}")]);
        simulation.advance(takes);
        assert_eq!(requests(&simulation), (1, 0));
        simulation.advance(takes + 1);
        let [request, page] = simulation.web(0).unwrap().map(|transfers| transfers.summary());
        assert_eq!((request.began, request.completed, page.completed), (1, 1, 1));
        assert_eq!(request.times_s[0], Some(takes as f64 / 1e9));
        assert_eq!(request.slowdowns[0], Some(1.0));
        assert_eq!(simulation.flow(0).delivered, 3);
        simulation.restart_measurement();
        assert_eq!(requests(&simulation), (0, 0));
    }
}

/// One connection after another: what each has delivered counts, in the window or not.
#[test]
fn a_flow_has_delivered_what_all_its_connections_have() {
    let mut simulation = of(&[WEB]);
    simulation.advance(2 * S);
    let ((began, completed), delivered) = (requests(&simulation), simulation.flow(0).delivered);
    assert!(completed > 5 && began - completed <= 1, "{began} {completed}");
    assert!((3 * completed..=3 * completed + 3).contains(&u64::from(delivered)), "{delivered}");
    assert_eq!(u64::from(simulation.flows[0].seat.connection), began);
}

/// Twice as long each time, up to `max_rto`.
#[test]
fn what_is_not_answered_is_said_again() {
    for (handshake, waits) in [("", Client::Asking), ("\nhandshake = true", Client::Opening)] {
        let group = format!("{WEB}\nmax_rto = \"3s\"{handshake}");
        let mut simulation = on("loss = \"100%\"", &[&group]);
        for (now, retry, at) in [(0.5, 1, 1), (1.5, 2, 3), (3.5, 3, 6), (6.5, 3, 9), (9.5, 3, 12)] {
            simulation.advance((now * 1e9) as u64);
            let slot = slot(&mut simulation, 0);
            assert_eq!((slot.client, slot.retry), (waits, retry * S), "{now}");
            assert_eq!(simulation.flows[0].seat.ack_at, at * S, "{now}");
        }
        assert_eq!((requests(&simulation), simulation.flow(0).delivered), ((1, 0), 0));
    }
}

/// What is left of another connection, or comes twice, changes nothing.
#[test]
fn packets_that_are_late_or_come_twice_are_nothing_to_a_session() {
    let mut simulation = of(&[WEB]);
    let packet =
        |payload, connection, seq| Packet { payload, connection, seq, ..Packet::default() };
    let data = Payload::Data { cwr: false, tick: 0 };
    let answer = Payload::SynAck { echo: 0, marked: true };
    let (syn, request) = (Payload::Syn { tick: 0 }, Payload::Request { marked: true });
    simulation.advance(30 * MS);
    assert_eq!(simulation.flow(0).delivered, 2);
    for (payload, connection) in [(data, 2), (data, 0), (request, 1), (answer, 1), (syn, 2)] {
        simulation.on_web(&packet(payload, connection, 2));
        assert_eq!(simulation.flow(0).delivered, 2, "{payload:?}");
        assert_eq!(slot(&mut simulation, 0).client, Client::Receiving, "{payload:?}");
    }
    // The last packet, by another way.
    simulation.on_web(&packet(data, 1, 2));
    assert_eq!((simulation.flow(0).delivered, requests(&simulation)), (3, (1, 1)));
    assert_eq!(slot(&mut simulation, 0).client, Client::Idle);
    simulation.on_web(&packet(data, 1, 2));
    assert_eq!(requests(&simulation), (1, 1));
    simulation.advance(OBJECT + MS);
    assert_eq!((simulation.flow(0).timeouts, requests(&simulation)), (0, (1, 1)));
}

/// The first flow of a session is its clock; a group's sessions are found by its own flows.
#[test]
fn a_session_is_woken_by_its_first_flow() {
    let web = format!("{WEB}\nobjects = 4\nconnections = 2\nflows = 2\nstart = \"3ms\"");
    let mut simulation = of(&[&format!("{CBR}\nflows = 3"), &web]);
    let listed: Vec<u64> = simulation.flows.iter().map(|flow| flow.seat.listed).collect();
    assert_eq!(listed, [0, 0, 0, 3 * MS, NEVER, 3 * MS, NEVER]);
    assert!(simulation.web(0).is_none());
    simulation.advance(3 * MS + 1);
    let asked: Vec<u8> = simulation.flows.iter().map(|flow| flow.seat.connection).collect();
    assert_eq!(asked, [0, 0, 0, 1, 1, 1, 1]);
    assert!(simulation.flows.iter().skip(3).all(|flow| flow.seat.app_at == NEVER));
    simulation.advance(S);
    let [requests, pages] = simulation.web(1).unwrap().map(|transfers| transfers.summary());
    assert!(pages.completed > 3 && requests.completed >= 4 * pages.completed, "{pages:?}");
}

/// 0 is no connection.
#[test]
fn connections_are_numbered_from_one_again() {
    let mut simulation = of(&[WEB]);
    simulation.flows[0].seat.connection = 255;
    simulation.on_session(0);
    assert_eq!((simulation.flows[0].seat.connection, simulation.flows[0].seat.app_at), (1, NEVER));
    assert_eq!(simulation.flows[0].seat.ack_at, S);
}
