//! What the pages say of the table of all comparisons, some of it measured anew, and packets that have Linux's fates.

use std::collections::{BTreeMap, BTreeSet};

use validation::formulas::sign_test;
use validation::parts::{PARTS, measure};
use validation::{Allowed, Case, Setting, linux_packets, table};

/// The table's cases of the groups whose names begin so.
fn kept(group: &str) -> Vec<Case> {
    let cases: Vec<Case> = table::kept().into_iter().map(|(case, _)| case).collect();
    let cases: Vec<Case> = cases.into_iter().filter(|c| c.group.starts_with(group)).collect();
    assert!(!cases.is_empty(), "{group}");
    cases
}

const MEANS: &str = "ns-2.35, means over seeds";
const BETWEEN: &str = "ns-2.35, loads between";
const DATAGRAMS: &str = "ns-2.35, datagrams";
const STEPS: &str = "ns-2.35, RED under steps";

/// Of so many settings one is measured anew.
const ONE_IN: usize = 8;

/// What the program measures is what the table has: of one setting in some.
#[test]
fn the_table_is_what_the_program_measures() {
    let all: Vec<Setting> = PARTS.into_iter().flat_map(|(_, settings)| settings()).collect();
    let some: Vec<Setting> = all.into_iter().step_by(ONE_IN).collect();
    let lines: BTreeSet<&str> = table::kept().into_iter().map(|(_, line)| line).collect();
    let cases = measure(&some).unwrap();
    let others: Vec<String> =
        cases.iter().map(table::row).filter(|row| !lines.contains(&**row)).collect();
    assert!(others.is_empty(), "not in the table, so `make validate` it: {others:#?}");
}

/// A row read again says what it says: rounding decides nothing.
#[test]
fn the_table_is_read_as_it_is_written() {
    for (case, line) in table::kept() {
        assert_eq!(case.holds(), line.ends_with("| holds |"), "{line}");
    }
}

/// What differs, apart from the loads between, of which the pages have the number. The pages say by how much and why.
///
/// Of ns-2: the link's use where all connections swing together, and a loss of sources that pause; and one of the steps,
/// by 0.016 of the link where 0.015 is allowed. Of Prague's program: of one flow the length of a train of marks is nobody's
/// else.
const APART: [(&str, &str); 15] = [
    ("std RED 0.002 N = 400, 100 packets, ftp, 8 seeds", "utilisation"),
    ("std_pre RED 0.002 N = 400, 100 packets, ftp, 5 seeds", "utilisation"),
    ("noecnto_pre RED 0.0002 N = 1000, 600 packets, pareto, 3 seeds", "loss"),
    ("RED, 440 packets, max_th 80 %, access 11 ms, least timeout 0.2 s", "utilisation"),
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
    ("pfifo of 41 packets, 100 Mb/s, 10 ms, 1 cubic", "packets waiting, mean"),
    ("pfifo of 41 packets, 100 Mb/s, 10 ms, 1 cubic", "drops"),
    ("pfifo, 100 Mb/s, 10 ms, 1 cubic", "drops"),
    ("20 dctcp, 100 Mb/s, 10 ms, step of 1 ms", "TCP's goodput, Mb/s"),
    ("20 dctcp, 100 Mb/s, 10 ms, dualpi2", "TCP's goodput, Mb/s"),
    ("prague:40; of prague:40, step:1", "share of marks"),
];

#[test]
fn what_differs_is_known() {
    let cases = kept("");
    let differ: Vec<(&str, &str)> = failures(&cases)
        .into_iter()
        .filter(|c| c.group != BETWEEN && c.group != TESTBED)
        .map(|c| (&*c.setting, c.quantity))
        .collect();
    assert_eq!(differ, APART);
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

/// Loads that were not looked at before they were measured: the page says which differ, and on which side ours lie.
#[test]
fn loads_between_have_what_the_page_says() {
    let cases = kept(BETWEEN);
    let (above, below) = signs(cases.iter());
    let differ = failures(&cases).len();
    quoted(
        DETAILS,
        &format!(
            "{differ} of {} comparisons are out of tolerance, and ours loses more in {above} of {} settings",
            cases.len(),
            above + below
        ),
    );
}

/// The rule of ns-2's RED that spares short queues decides how much of the link is used.
#[test]
fn red_under_steps_uses_the_link_as_its_rule_says() {
    let cases = kept(STEPS);
    assert_eq!(cases.len(), 2 * 16);
    let used = |queue: &str| {
        let case =
            cases.iter().find(|c| c.setting.starts_with(queue) && c.quantity == "utilisation");
        case.unwrap().measured
    };
    assert!(used("RED,") - used("RED/Short,") > 0.1, "{cases:#?}");
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
fn the_page_has_the_number_of_comparisons_and_of_those_that_differ() {
    let all: Vec<Case> = kept("ns-2.35").into_iter().filter(|c| c.group != BETWEEN).collect();
    let all: Vec<&Case> = all.iter().collect();
    let of_network =
        |c: &&Case| [MEANS, STEPS].contains(&c.group) || c.group.starts_with(DATAGRAMS);
    let network: Vec<&Case> = all.iter().copied().filter(of_network).collect();
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
    quoted(SUMMARY, &format!("| {} | {differ} |", all.len()));
}

/// Half a point lets small losses pass that are far apart, and chance some others.
#[test]
fn the_page_has_what_differs_by_quantity() {
    let means = kept(MEANS);
    let by_chance = |c: &&&Case| {
        c.holds() && matches!(c.allowed, Allowed::Absolute(most) if !matches!(most, 0.01 | 0.02))
    };
    for (name, quantity) in [
        ("use of the link", "utilisation"),
        ("mean queue", "mean queue, packets"),
        ("loss", "loss"),
        ("Jain's index", "Jain's index"),
    ] {
        let cases: Vec<&Case> = means.iter().filter(|c| c.quantity == quantity).collect();
        let differ = cases.iter().filter(|c| !c.holds()).count();
        let chance = cases.iter().filter(by_chance).count();
        quoted(DETAILS, &format!("| {name} | {} | {differ} | {chance} |", cases.len()));
        let row = SUMMARY.lines().find(|line| line.starts_with(&format!("| {name} | ")));
        quoted(row.unwrap_or_default(), &format!(" | {} | {differ} |", cases.len()));
    }
    let lost: Vec<&Case> = means
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
fn losses_lie_to_either_side_of_ns2_s() {
    let [means, datagrams, steps] =
        [MEANS, DATAGRAMS, STEPS].map(|group| signs(kept(group).iter()));
    let network = (means.0 + datagrams.0 + steps.0, means.1 + datagrams.1 + steps.1);
    let others = signs(kept("ns-2.35, TFRC").iter().chain(&kept("ns-2.35, RED-PD")));
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
fn the_page_has_the_numbers_of_linux_and_prague() {
    let of = |group: &str| {
        let cases = kept(group);
        (cases.len(), failures(&cases).len())
    };
    let (cases, differ) = of("TCP of Linux 6.1");
    quoted(SUMMARY, &format!("Of {cases} comparisons {differ} differ:"));
    let (cases, differ) = of("Prague of udp_prague");
    quoted(SUMMARY, &format!("| {cases} values | {} |", cases - differ));
}

const TESTBED: &str = "A testbed of Linux hosts";

/// Where senders fare otherwise than on the testbed: Prague beside CUBIC in a FIFO, and as ten beside ten (docs/validation.md).
const APART_FROM_TESTBED: [&str; 7] = [
    "fifo, 0.5 BDP, 10 ms: 1 prague, 1 cubic",
    "fifo, 1 BDP, 10 ms: 1 prague, 1 cubic",
    "fifo, 2 BDP, 10 ms: 1 prague, 1 cubic",
    "fifo, 0.5 BDP, 10 ms: 1 prague, 1 cubic+ecn",
    "fifo, 1 BDP, 10 ms: 1 prague, 1 cubic+ecn",
    "fifo, 2 BDP, 10 ms: 1 prague, 1 cubic+ecn",
    "dualpi2, 2 BDP, 10 ms: 10 prague, 10 cubic+ecn",
];

#[test]
fn senders_fare_as_on_a_testbed() {
    let cases = kept(TESTBED);
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
