//! The simulator against closed forms, against ns-2.35, and against Linux 6.1.

use std::thread;

use validation::formulas::sign_test;
use validation::{Case, dctcp_response, linux, ns2, queues, red_pd, tcp_response};

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

/// Rows in which a comparison fails. In the first three RED makes all connections of one round-trip
/// time swing together, and we use one to four points more of the link; another seed of ns-2 has 0.7
/// to 1.4 points more as well. The fourth has two steady states, all windows at one packet or losses in
/// step, and the seed says which one is found. What lifts our queue in the fifth and our loss in the
/// sixth is not known.
const APART: [&str; 6] = [
    "std R2 N = 400, 100 packets, ftp",
    "std_pre R2 N = 400, 100 packets, ftp",
    "std R4 N = 400, 100 packets, ftp",
    "noecnto_pre R4 N = 400, 100 packets, ftp",
    "std DT N = 400, 500 packets, ftp",
    "std_pre R2 N = 1000, 600 packets, pareto",
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
    let failures = failures(&cases);
    let (apart, others): (Vec<&Case>, Vec<&Case>) =
        failures.iter().partition(|c| APART.contains(&c.setting.as_str()));
    assert!(others.is_empty(), "{others:#?}");
    for setting in APART {
        assert!(apart.iter().any(|c| c.setting == setting), "{setting} agrees now");
    }
    for case in apart.iter().filter(|c| c.quantity == "utilisation") {
        assert!((case.measured - case.expected).abs() < 0.15, "{case:#?}");
    }
    // Nor do we err to one side.
    let losses: Vec<&Case> = cases
        .iter()
        .filter(|c| c.quantity == "loss" && c.expected.max(c.measured) > 0.005)
        .collect();
    let above = losses.iter().filter(|c| c.measured > c.expected).count() as u32;
    let below = losses.len() as u32 - above;
    assert!(losses.len() > 15 && sign_test(above, below) > 0.05, "{above} above, {below} below");
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
fn red_pd_fares_as_its_authors_program() {
    let references = red_pd::Reference::all();
    assert_eq!(references.len(), 10);
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
