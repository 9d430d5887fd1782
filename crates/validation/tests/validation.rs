//! The simulator against closed forms, against ns-2.35, against Linux 6.1 and against udp_prague.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::thread;

use sim::ScenarioError;
use validation::formulas::sign_test;
use validation::{
    Allowed, Case, dctcp_response, delayed_ack_response, linux, linux_accecn, linux_bbr,
    linux_cake, linux_packets, ns2, ns2_steps, prague, queues, red_pd, tcp_response, testbed,
};

/// What was compared with ns-2.35, each row once.
struct AgainstNs2 {
    means: Vec<Case>,
    between: Vec<Case>,
    datagrams: Vec<Case>,
    steps: Vec<Case>,
    tfrc: Vec<Case>,
    red_pd: Vec<Case>,
}

/// Measured once for all tests.
static NS2: LazyLock<AgainstNs2> = LazyLock::new(|| {
    thread::scope(|scope| {
        let means = scope.spawn(|| all(&ns2::Seeds::all(), ns2::Seeds::compare));
        AgainstNs2 {
            between: all(&ns2::Seeds::between(), ns2::Seeds::compare),
            datagrams: all(&ns2::CbrReference::all(), ns2::CbrReference::compare),
            steps: ns2_steps::cases().unwrap(),
            tfrc: all(&ns2::TfrcReference::all(), ns2::TfrcReference::compare),
            red_pd: all(&red_pd::Reference::all(), red_pd::Reference::compare),
            means: means.join().unwrap(),
        }
    })
});

fn all<R>(rows: &[R], compare: impl Fn(&R) -> Result<Vec<Case>, ScenarioError>) -> Vec<Case> {
    rows.iter().flat_map(|row| compare(row).unwrap()).collect()
}

/// In how many settings our loss, the mean over seeds, lies above ns-2's and below. Where neither loses a
/// packet in ten thousand it says nothing: of losses so rare, whoever has more seeds sees more.
fn signs<'a>(cases: impl Iterator<Item = &'a Case>) -> (u32, u32) {
    let mut settings = BTreeMap::<&str, (f64, f64)>::new();
    for c in cases {
        if matches!(c.quantity, "loss" | "connections' loss, Mb/s" | "drop rate of the queue") {
            let setting =
                c.setting.rsplit_once(", seed ").map_or(&*c.setting, |(setting, _)| setting);
            let (ours, theirs) = settings.entry(setting).or_default();
            (*ours, *theirs) = (*ours + c.measured, *theirs + c.expected);
        }
    }
    let counted = settings.into_values().filter(|(ours, theirs)| ours.max(*theirs) >= 1e-4);
    counted.fold((0, 0), |(above, below), (ours, theirs)| {
        (above + u32::from(ours > theirs), below + u32::from(ours < theirs))
    })
}

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
#[ignore = "slow: make check runs it"]
fn tcp_has_its_response_function() {
    let cases = tcp_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
#[ignore = "slow: make check runs it"]
fn delayed_acknowledgements_halve_the_growth() {
    let cases = delayed_ack_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

/// Settings of several seeds in which a mean differs by more than chance and tolerance allow: the link's use
/// where all connections swing together, and a loss of sources that pause.
const MEANS_APART: [(&str, &str); 3] = [
    ("std RED 0.002 N = 400, 100 packets, ftp", "utilisation"),
    ("std_pre RED 0.002 N = 400, 100 packets, ftp", "utilisation"),
    ("noecnto_pre RED 0.0002 N = 1000, 600 packets, pareto", "loss"),
];

/// The one comparison of steps that differs, by 0.016 of the link where 0.015 is allowed.
const STEP_APART: (&str, &str) =
    ("RED, 440 packets, max_th 80 %, access 11 ms, least timeout 0.2 s", "utilisation");

/// What differs, by setting and quantity.
fn apart(cases: &[Case]) -> Vec<(&str, &str)> {
    failures(cases).into_iter().map(|c| (&*c.setting, c.quantity)).collect()
}

#[test]
#[ignore = "slow: make check runs it"]
fn means_over_seeds_agree_with_ns2() {
    let cases = &NS2.means;
    assert_eq!(cases.len(), 4 * 37 + 3 * 10); // Sources that pause have no index.
    let failures = failures(cases);
    let setting = |c: &Case| c.setting.rsplit_once(", ").map(|(network, _)| network.to_string());
    let differ: Vec<_> = failures.iter().map(|c| (setting(c).unwrap(), c.quantity)).collect();
    let known = MEANS_APART.map(|(network, quantity)| (network.to_string(), quantity));
    assert_eq!(differ, known, "{failures:#?}");
}

/// Loads that were not looked at before they were measured: the page says which differ, and on which side ours lie.
#[test]
#[ignore = "slow: make check runs it"]
fn loads_between_have_what_the_page_says() {
    let cases = &NS2.between;
    let (above, below) = signs(cases.iter());
    let differ = failures(cases).len();
    quoted(
        DETAILS,
        &format!(
            "{differ} of {} comparisons are out of tolerance, and ours loses more in {above} of {} settings",
            cases.len(),
            above + below
        ),
    );
}

/// The RED of ns-2, and one of its without the rule that spares short queues, which decides how much of the
/// link is used.
#[test]
#[ignore = "slow: make check runs it"]
fn red_under_steps_with_ecn_timeouts_fares_as_in_ns2() {
    let cases = &NS2.steps;
    assert_eq!(cases.len(), 2 * 16);
    assert_eq!(apart(cases), [STEP_APART]);
    let used = |queue: &str| {
        let case =
            cases.iter().find(|c| c.setting.starts_with(queue) && c.quantity == "utilisation");
        case.unwrap().measured
    };
    assert!(used("RED,") - used("RED/Short,") > 0.1, "{cases:#?}");
}

#[test]
#[ignore = "slow: make check runs it"]
fn a_datagram_flow_among_connections_fares_as_in_ns2() {
    assert_eq!(NS2.datagrams.len(), 3 * 10);
    let failures = failures(&NS2.datagrams);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
#[ignore = "slow: make check runs it"]
fn tfrc_fares_as_in_ns2() {
    assert!(NS2.tfrc.len() > 20, "{} comparisons", NS2.tfrc.len());
    let failures = failures(&NS2.tfrc);
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The page that sums up what is counted here.
const SUMMARY: &str = include_str!("../../../docs/validation.md");
/// The page with the details of ns-2.
const DETAILS: &str = include_str!("../../../docs/validation-ns2.md");

/// Asserts that `page` says `text`.
fn quoted(page: &str, text: &str) {
    let title = page.lines().next().unwrap_or_default();
    assert!(page.contains(text), "the page {title:?} has not got: {text}");
}

/// How many settings there are in `cases`.
fn settings<'a>(cases: impl Iterator<Item = &'a Case>) -> usize {
    cases.map(|c| (c.group, &c.setting)).collect::<BTreeSet<_>>().len()
}

#[test]
#[ignore = "slow: make check runs it"]
fn the_page_has_the_number_of_comparisons_and_of_those_that_differ() {
    let AgainstNs2 { means, datagrams, steps, tfrc, red_pd, .. } = &*NS2;
    let network: Vec<&Case> = [means, datagrams, steps].into_iter().flatten().collect();
    let all: Vec<&Case> = network.iter().copied().chain(tfrc).chain(red_pd).collect();
    let count = |cases: &[&Case]| {
        let differ: Vec<_> = cases.iter().filter(|c| !c.holds()).copied().collect();
        let [of, within] = [settings(cases.iter().copied()), settings(differ.iter().copied())];
        format!("{} of {} comparisons, in {within} of {of} settings", differ.len(), cases.len())
    };
    quoted(
        DETAILS,
        &format!("{}; of the BLUE paper's network alone {}", count(&all), count(&network)),
    );
    let differ = all.iter().filter(|c| !c.holds()).count();
    quoted(SUMMARY, &format!("{differ} of {} differ", all.len()));
}

/// Half a point lets small losses pass that are far apart, and chance some others.
#[test]
#[ignore = "slow: make check runs it"]
fn the_page_has_what_differs_by_quantity() {
    let by_chance = |c: &&&Case| {
        c.holds() && matches!(c.allowed, Allowed::Absolute(most) if !matches!(most, 0.01 | 0.02))
    };
    for (name, quantity) in [
        ("use of the link", "utilisation"),
        ("mean queue", "mean queue, packets"),
        ("loss", "loss"),
        ("Jain's index", "Jain's index"),
    ] {
        let cases: Vec<&Case> = NS2.means.iter().filter(|c| c.quantity == quantity).collect();
        let differ = cases.iter().filter(|c| !c.holds()).count();
        let chance = cases.iter().filter(by_chance).count();
        quoted(DETAILS, &format!("| {name} | {} | {differ} | {chance} |", cases.len()));
        let row = SUMMARY.lines().find(|line| line.starts_with(&format!("| {name} | ")));
        quoted(row.unwrap_or_default(), &format!(" | {} | {differ} |", cases.len()));
    }
    let lost: Vec<&Case> = NS2
        .means
        .iter()
        .filter(|c| c.quantity == "loss" && c.measured.max(c.expected) >= 1e-4)
        .collect();
    let far: Vec<&Case> = lost
        .iter()
        .filter(|c| !Case { allowed: Allowed::Factor(1.15, 0.0), ..(**c).clone() }.holds())
        .copied()
        .collect();
    let differ = far.iter().filter(|c| !c.holds()).count();
    let chance = far.iter().filter(by_chance).count();
    let by_half_a_point = far.len() - differ - chance;
    quoted(
        DETAILS,
        &format!(
            "Of {} settings in which a packet in ten thousand is lost, {} have losses more than 15 % apart: {differ} out of tolerance, {by_half_a_point} within half a point, {chance} within chance",
            lost.len(),
            far.len(),
        ),
    );
    quoted(SUMMARY, &format!("lets {by_half_a_point} of {} lossy ns-2 settings pass", lost.len()));
}

/// Neither on the network of the BLUE paper nor in the rows of TFRC and RED-PD, nor over all settings, does the
/// side on which our losses lie tell us from ns-2; the page says on which they do.
#[test]
#[ignore = "slow: make check runs it"]
fn losses_lie_to_either_side_of_ns2_s() {
    let AgainstNs2 { means, datagrams, steps, tfrc, red_pd, .. } = &*NS2;
    let [means, datagrams, steps] = [means, datagrams, steps].map(|cases| signs(cases.iter()));
    let network = (means.0 + datagrams.0 + steps.0, means.1 + datagrams.1 + steps.1);
    let others = signs([tfrc, red_pd].into_iter().flatten());
    let all = (network.0 + others.0, network.1 + others.1);
    for (above, below) in [network, others, all] {
        assert!(sign_test(above, below) > 0.05, "{above} above, {below} below");
    }
    let side = |(above, below): (u32, u32)| format!("{above} : {below}");
    let with_p =
        |sides: (u32, u32)| format!("{} (p = {:.2})", side(sides), sign_test(sides.0, sides.1));
    quoted(
        DETAILS,
        &format!(
            "**{}**: means over seeds {}, a datagram flow among connections {}, steps {}. TFRC and RED-PD have {}. All together have **{}**",
            with_p(network),
            side(means),
            side(datagrams),
            side(steps),
            with_p(others),
            with_p(all),
        ),
    );
    quoted(
        SUMMARY,
        &format!(
            "above in {} settings and below in {} (sign test, p = {:.2})",
            all.0,
            all.1,
            sign_test(all.0, all.1)
        ),
    );
}

#[test]
#[ignore = "slow: make check runs it"]
fn red_pd_fares_as_its_authors_program() {
    assert_eq!(red_pd::Reference::all().len(), 10);
    assert_eq!(apart(&NS2.red_pd), []);
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

/// Where TCP and queue disciplines differ from the kernel's; docs/validation-linux.md says by how much.
const APART_FROM_LINUX: [(&str, &str); 5] = [
    ("pfifo, 5 Mb/s, 40 ms, 1 reno", "drops"),
    ("red, 20 Mb/s, 100 ms, 10 cubic, ECN", "drops"),
    ("red, 100 Mb/s, 20 ms, 80 cubic, ECN", "drops"),
    (
        "choke, 10 Mb/s, 20 ms, 4 cubic, ECN beside 20 Mb/s of datagrams",
        "delay in the queue, 95 %, ms",
    ),
    (
        "choke, 10 Mb/s, 20 ms, 4 cubic, ECN beside 20 Mb/s of datagrams, from the start",
        "delay in the queue, 95 %, ms",
    ),
];

#[test]
#[ignore = "slow: make check runs it"]
fn tcp_agrees_with_linux() {
    let cases = linux::tcp_cases().unwrap();
    assert!(cases.len() > 90, "{} comparisons", cases.len());
    let failures = failures(&cases);
    let differ: Vec<_> = failures.iter().map(|c| (c.setting.as_str(), c.quantity)).collect();
    assert_eq!(differ, APART_FROM_LINUX, "{failures:#?}");
    quoted(SUMMARY, &format!("Of {} comparisons {} differ:", cases.len(), differ.len()));
}

#[test]
fn dctcp_meets_its_response_function() {
    let cases = dctcp_response().unwrap();
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

#[test]
#[ignore = "slow: make check runs it"]
fn bbr_agrees_with_linux() {
    let cases = linux_bbr::cases().unwrap();
    assert!(cases.len() > 40, "{} comparisons", cases.len());
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

/// Goodput and marks of DCTCP, where a fifth of the acknowledgements is lost and where none is.
#[test]
fn dctcp_with_accecn_agrees_with_linux() {
    let cases = linux_accecn::cases().unwrap();
    assert!(cases.len() > 13, "{} comparisons", cases.len());
    assert!(failures(&cases).is_empty(), "{:#?}", failures(&cases));
}

/// Rates, marks and queues of whole runs of the program of Prague's authors.
#[test]
#[ignore = "slow: make check runs it"]
fn prague_agrees_with_its_authors_program() {
    let cases = prague::cases().unwrap();
    assert!(cases.len() > 60, "{} comparisons", cases.len());
    // Of one flow the length of a train of marks is nobody's else.
    let train = ("prague:40; of prague:40, step:1", "share of marks");
    assert_eq!(apart(&cases), [train]);
    quoted(SUMMARY, &format!("| {} values | {} |", cases.len(), cases.len() - 1));
}

/// Where senders fare otherwise than on the testbed: Prague beside CUBIC in a FIFO, and as ten beside ten (docs/validation.md).
const APART_FROM_TESTBED: [&str; 10] = [
    "fifo, 0.5 BDP, 10 ms: 1 prague, 1 cubic",
    "fifo, 1 BDP, 10 ms: 1 prague, 1 cubic",
    "fifo, 2 BDP, 10 ms: 1 prague, 1 cubic",
    "fifo, 0.5 BDP, 10 ms: 1 prague, 1 cubic+ecn",
    "fifo, 1 BDP, 10 ms: 1 prague, 1 cubic+ecn",
    "fifo, 2 BDP, 10 ms: 1 prague, 1 cubic+ecn",
    "fifo, 2 BDP, 10 ms: 1 prague, 1 bbr+ecn",
    "dualpi2, 2 BDP, 10 ms: 1 prague, 1 bbr+ecn",
    "dualpi2, 2 BDP, 2 ms: 1 prague, 1 bbr+low",
    "dualpi2, 2 BDP, 10 ms: 10 prague, 10 cubic+ecn",
];

#[test]
#[ignore = "slow: make check runs it"]
fn senders_fare_as_on_a_testbed() {
    let cases = testbed::cases().unwrap();
    let failures = failures(&cases);
    let mut differ: Vec<&str> = failures.iter().map(|c| &*c.setting).collect();
    differ.dedup();
    assert_eq!(differ, APART_FROM_TESTBED, "{failures:#?}");
    quoted(SUMMARY, &format!("{} of {} agree", cases.len() - failures.len(), cases.len()));
}

/// How many of 4481 packets have another fate when FQ-CoDel is as Linux's but for one thing: as it is, with a
/// quantum of 300, with room for 60.
#[test]
fn each_thing_in_which_linux_s_fq_codel_differs_shows() {
    for (key, word, expected) in [
        ("root", "exact", [964, 783, 1456]),
        ("emptied", "old", [937, 0, 0]),
        ("backlog", "queue", [718, 10, 964]),
        ("drop_half", "packets", [0, 0, 1267]),
        ("overflow_counts", "false", [0, 0, 1445]),
    ] {
        let rows = linux_packets::otherwise("fq_codel", key, word);
        let fates: Vec<usize> = rows.iter().map(|row| row.fates).collect();
        assert_eq!(fates, expected, "{key} = {word}");
    }
}

/// The same of CAKE: one queue, tins, an RTT of 20 ms, flows; the kernel's gets whole quanta.
#[test]
fn each_thing_in_which_linux_s_cake_differs_shows() {
    let settings = ["cake: one", "cake: diffserv4 (", "cake: rtt 20 ms (", "cake ("];
    let fates = |rows: &[&str], key, word| -> Vec<usize> {
        let whole = |c: &linux_packets::Compared| c.setting.ends_with("(whole quanta)");
        let rows = rows.iter().flat_map(|rows| linux_packets::otherwise(rows, key, word));
        rows.filter(whole).map(|row| row.fates).collect()
    };
    assert_eq!(fates(&settings, "root", "exact"), [457, 824, 1089, 1145]);
    assert_eq!(fates(&["cake of 7.2"], "root", "newton"), [698, 144, 986, 307]);
    assert_eq!(fates(&settings[1..], "rounds", "ahead"), [455, 1325, 920]);
}

/// CAKE rounds quanta by chance, ours does not: so many of 4481 packets have another fate, of those that the
/// kernel's gives them when it does not either as many.
const ROUNDED: [(&str, usize); 4] =
    [("cake", 555), ("cake: diffserv4", 6), ("cake: rtt 20 ms", 1030), ("cake: one queue", 0)];

#[test]
fn packets_have_the_fates_that_linux_gives_them() {
    let rows = linux_packets::compared();
    assert_eq!(rows.len(), 19);
    for row in &rows {
        assert!(row.signals[0] > 100, "{row:?}");
        if let Some((_, fates)) = ROUNDED.iter().find(|(setting, _)| *setting == row.setting) {
            assert_eq!(row.fates, *fates, "{row:?}");
            continue;
        }
        assert_eq!((row.fates, row.order, row.first), (0, 0, None), "{row:?}");
        // The clock of the kernel of 7.2 counts by 256 ns.
        let unit = if row.setting.contains("7.2") { 0.000_3 } else { 0.0 };
        assert!(row.delay_ms <= unit, "{row:?}");
    }
}

/// What draws, with the same random numbers as in the kernel. RED's average is a number of whole bytes there,
/// rounded down where it is used: one decision is another, and what follows is another queue.
const ROUNDED_DOWN: [(&str, usize); 1] = [("red", 4528)];

#[test]
fn packets_have_the_fates_that_linux_draws_for_them() {
    let rows = linux_packets::drawn();
    assert_eq!(rows.len(), 25);
    for row in &rows {
        assert!(row.signals[0] > 1000, "{row:?}");
        if let Some((_, fates)) = ROUNDED_DOWN.iter().find(|(setting, _)| *setting == row.setting) {
            assert_eq!(row.fates, *fates, "{row:?}");
            continue;
        }
        assert_eq!((row.fates, row.order, row.first), (0, 0, None), "{row:?}");
        assert!(row.delay_ms < 0.000_3, "a unit of the kernel's clock: {row:?}");
    }
}

/// How many packets have another fate when ours is as Linux's but for one thing.
#[test]
fn each_thing_in_which_linux_s_disciplines_that_draw_differ_shows() {
    let dual = ["dualpi2: classic", "dualpi2: L4S", "dualpi2: both"];
    let pie = ["pie", "pie: a full", "fq_pie", "fq_pie: a full"];
    let red = ["red", "red: ECN"];
    let otherwise = |rows: &[&str], key, word| -> Vec<usize> {
        rows.iter().map(|row| linux_packets::otherwise(row, key, word)[0].fates).collect()
    };
    for (rows, key, word, expected) in [
        (&dual[..], "signals", "random", &[5596, 5956, 5908][..]),
        (&dual[..], "spare", "0", &[5542, 6011, 5709]),
        (&dual[..], "scheduler", "wrr", &[0, 0, 5184]),
        (&dual[..], "alpha", "0.16", &[4003, 3307, 3067]),
        (&pie[..], "delay", "timestamps", &[3007, 0, 1946, 0]),
        (&pie[..], "burst_runs", "updates", &[3007, 0, 0, 0]),
        (&pie[..], "decay", "0.98", &[2233, 928, 2268, 2300]),
        (&pie[..], "derandomise", "false", &[4022, 3520, 3857, 3434]),
        (&pie[..], "spared_by", "last-update", &[0, 1354, 0, 2356]),
        (&pie[..], "steep_above", "0s", &[4808, 0, 4712, 0]),
        (&pie[..], "p_max", "1", &[2565, 0, 2747, 0]),
        (&pie[2..], "emptied", "old", &[0, 0]),
        (&pie[2..], "overflow", "longest", &[0, 5196]),
        (&red[..], "spacing", "uniform-exact", &[4935, 2023]),
    ] {
        assert_eq!(otherwise(rows, key, word), expected, "{key} = {word}");
    }
}
