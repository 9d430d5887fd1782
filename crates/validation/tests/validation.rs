//! The simulator against closed forms, against ns-2.35, and against Linux 6.1.

use std::thread;

use validation::formulas::sign_test;
use validation::{
    Case, dctcp_response, delayed_ack_response, linux, linux_bbr, linux_cake, linux_packets, ns2,
    queues, red_pd, tcp_response,
};

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

#[test]
fn delayed_acknowledgements_halve_the_growth() {
    let cases = delayed_ack_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

/// Rows of one seed in which a comparison fails. In the first RED makes all connections of one
/// round-trip time swing together, and we use two points more of the link. The second has two steady
/// states, all windows at one packet or losses in step, and the seed says which one is found. What lifts
/// our loss in the third is not known.
const APART: [&str; 3] = [
    "std_pre R2 N = 400, 100 packets, ftp",
    "noecnto_pre R4 N = 400, 100 packets, ftp",
    "std_pre R2 N = 1000, 600 packets, pareto",
];

/// Settings of several seeds in which a mean differs by more than chance and tolerance allow: shares,
/// which turn on microseconds of delay in both programs; and the link's use where all connections swing together.
const MEANS_APART: [&str; 2] =
    ["std DropTail N = 400, 100 packets", "std RED 0.002 N = 400, 100 packets"];

#[test]
fn means_over_seeds_agree_with_ns2() {
    let all = ns2::Seeds::all();
    assert_eq!(all.len(), 8);
    let cases: Vec<Case> = all.iter().flat_map(|seeds| seeds.compare().unwrap()).collect();
    let failures = failures(&cases);
    let apart = |c: &&Case| MEANS_APART.iter().any(|setting| c.setting.starts_with(setting));
    let (known, others): (Vec<&Case>, Vec<&Case>) = failures.into_iter().partition(apart);
    assert!(others.is_empty(), "{others:#?}");
    for setting in MEANS_APART {
        assert!(known.iter().any(|c| c.setting.starts_with(setting)), "{setting} agrees now");
    }
}

#[test]
fn red_and_drop_tail_agree_with_ns2() {
    let references = ns2::references();
    assert!(references.len() > 35, "{} rows", references.len());
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
    assert!(losses.len() > 8 && sign_test(above, below) > 0.05, "{above} above, {below} below");
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
fn a_flow_behind_a_fixed_drop_rate_gets_what_red_pd_s_authors_give_it() {
    let cases = red_pd::fixed_drop_rate().unwrap();
    assert_eq!(cases.len(), 6);
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
fn queue_disciplines_agree_with_linux() {
    let cases = linux::cases().unwrap();
    assert!(cases.len() > 30, "{} comparisons", cases.len());
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
fn cake_shares_as_linux_s() {
    let cases = linux_cake::cases().unwrap();
    assert!(cases.len() > 80, "{} comparisons", cases.len());
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

/// Where TCP and queue disciplines differ from the kernel's, and by how much, is said in
/// docs/validation.md.
const APART_FROM_LINUX: [(&str, &str); 9] = [
    ("red, 20 Mb/s, 100 ms, 10 cubic, ECN", "packets waiting, mean"),
    ("red, 20 Mb/s, 100 ms, 10 cubic, ECN", "drops"),
    ("codel, 20 Mb/s, 100 ms, 10 cubic", "packets waiting, mean"),
    ("red, 100 Mb/s, 20 ms, 80 cubic, ECN", "drops"),
    ("pie, 10 Mb/s, 20 ms, 4 cubic, ECN beside 5 Mb/s of datagrams", "packets waiting, mean"),
    ("pie, 10 Mb/s, 20 ms, 4 cubic, ECN beside 5 Mb/s of datagrams", "drops"),
    ("pie, 10 Mb/s, 20 ms, 4 cubic, ECN beside 5 Mb/s of datagrams", "marks"),
    ("red, 10 Mb/s, 20 ms, 4 cubic, ECN beside 20 Mb/s of datagrams", "TCP's goodput, Mb/s"),
    ("red, 10 Mb/s, 20 ms, 4 cubic, ECN beside 20 Mb/s of datagrams", "marks"),
];

#[test]
fn tcp_agrees_with_linux() {
    let cases = linux::tcp_cases().unwrap();
    assert!(cases.len() > 90, "{} comparisons", cases.len());
    let failures = failures(&cases);
    let differ: Vec<_> = failures.iter().map(|c| (c.setting.as_str(), c.quantity)).collect();
    assert_eq!(differ, APART_FROM_LINUX, "{failures:#?}");
}

#[test]
fn dctcp_meets_its_response_function() {
    let cases = dctcp_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

const BBR_APART_FROM_LINUX: [(&str, &str); 1] =
    [("2 bbr+cubic, 20 Mb/s, 40 ms, 330 packets", "drops")];

#[test]
fn bbr_agrees_with_linux() {
    let cases = linux_bbr::cases().unwrap();
    assert!(cases.len() > 40, "{} comparisons", cases.len());
    let failures = failures(&cases);
    let differ: Vec<_> = failures.iter().map(|c| (c.setting.as_str(), c.quantity)).collect();
    assert_eq!(differ, BBR_APART_FROM_LINUX, "{failures:#?}");
}

#[test]
fn packets_have_the_fates_that_linux_gives_them() {
    let rows = linux_packets::compared();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert!(row.signals[0] > 300, "{row:?}");
        assert_eq!((row.fates, row.order, row.first), (0, 0, None), "{row:?}");
        assert!(row.delay_ms < 0.003, "{row:?}");
    }
}
