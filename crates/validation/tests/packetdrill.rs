//! TCP against the kernel's test scripts, as the table has them.

use std::collections::BTreeMap;

use validation::packetdrill::{Counts, Script, Step, TABLE, drive, script};

fn scripts() -> Vec<Script> {
    Script::all(TABLE).unwrap()
}

/// What agreed agrees, and what differed does: whoever changes that writes the table anew
/// (`bluewater-validate packetdrill FOLDER`) and says why.
#[test]
fn each_expectation_compares_as_the_table_says() {
    let mut others = Vec::new();
    for script in scripts() {
        let found = drive::compare(&script).unwrap();
        for (n, (found, (agrees, _))) in found.iter().zip(&script.kept).enumerate() {
            if found.is_some_and(|found| found != *agrees) {
                others.push(format!("{} {n}: {:?} {found:?}", script.name, script.steps[n]));
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn a_table_is_read_as_it_is_written() {
    let scripts = scripts();
    assert_eq!(validation::packetdrill::table(&scripts, &scripts).unwrap(), TABLE);
}

/// A script of ours with each kind of line, and what is read of it.
#[test]
fn a_script_becomes_steps() {
    let text = "--tolerance_usecs=9000\n`sysctl -q net.ipv4.tcp_slow_start_after_idle=1`\n\
        // Ours.\n 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = 0\n\
        +.5 < S 0:0(0) win 5000 <mss 500,sackOK,nop,wscale 2>\n\
        +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>\n+.25 < . 1:1(0) ack 1 win 250\n\
        +0 write(4, ..., 2000) = 2000\n/* All of it. */\n+0 > P. 1:2001(2000) ack 1\n\
        +.1~+.12 > . 1501:2001(500) ack 1\n\
        +0 < . 1:1(0) ack 501 win 200 <nop,nop,sack 1001:2001>\n\
        +0 %{ n = 4; assert tcpi_snd_cwnd == n, tcpi_snd_cwnd\nassert tcpi_x == 1 }%\n\
        +0 < F. 1:1(0) ack 2001 win 200\n+0 > . 2001:2001(0) ack 2\n";
    let read = script::read("ours", text).unwrap();
    let steps: Vec<String> =
        read.steps.iter().map(|t| format!("{} {} {:?}", t.after, t.until, t.step)).collect();
    let ack =
        "Ack { ack: 1, window: 1, echo: false, duplicate: false, stamp: 0, blocks: [(2, 4)] }";
    let expected = [
        "0 0 Setup(Setup { control: \"cubic\", sack: true, timestamps: false, ecn: false, \
         idle: true, paced: false, old_rounds: false, tolerance: 9000 })",
        "500000 500000 Open",
        "250000 250000 Opened(2)",
        "0 0 Write(4)",
        "0 0 Sent(0, 4, 2)",
        "100000 120000 Sent(3, 4, 2)",
        &format!("0 0 {ack}"),
        "0 0 Info(Cwnd, Equal, 4)",
        "0 0 Skipped(\"tcpi_x == 1 is not modelled\")",
        "0 0 Skipped(\"the end of a connection\")",
    ];
    assert_eq!(steps, expected);
}

/// A first window of ten, of which the first packet is lost: three blocks, and it is sent again, not a millisecond
/// later than expected, and not another packet.
#[test]
fn what_is_sent_is_compared_by_number_and_time() {
    let script = |number: u32, after: u64| {
        let ack =
            |after: u32, end: u32| format!("ours,0,{after},{after},ack,0 100 0 0 0 1-{end},,\n");
        let table = format!(
            "\nours,0,0,0,setup,cubic 1 0 0 0 0 0 1000,,\nours,0,0,0,open,,,\n\
             ours,0,100000,100000,opened,100,,\nours,0,0,0,write,10,,\n\
             ours,0,0,0,sent,0 10 2,,\n{}{}{}ours,0,{after},{after},sent,{number} {} 2,,\n\
             ours,0,0,0,info,ca_state == 3,,\n",
            ack(100_000, 2),
            ack(1000, 3),
            ack(1000, 4),
            number + 1
        );
        let script = Script::all(&table).unwrap().remove(0);
        let found = drive::compare(&script).unwrap();
        found.into_iter().flatten().collect::<Vec<bool>>()
    };
    assert_eq!(script(0, 0), [true, true, true]);
    assert_eq!(script(1, 0), [true, false, true]);
    assert_eq!(script(0, 5000), [true, false, true]);
}

#[test]
fn most_of_what_is_expected_agrees() {
    let counts = Counts::of(&scripts());
    assert!(counts.expected > 400, "{counts}");
    let Counts { scripts: of, expected, agree, skipped, .. } = counts;
    let page = include_str!("../../../docs/validation.md");
    for text in [
        format!("Of {expected} expectations in {of} of them {agree} agree."),
        format!("{skipped} more expectations concern what the simulator does not have"),
    ] {
        assert!(page.contains(&text), "docs/validation.md has not got: {text}");
    }
    assert!(scripts().iter().all(|script| matches!(script.steps[0].step, Step::Setup(_))));
    // The page has a row for each reason, with the number of expectations.
    let mut reasons = BTreeMap::new();
    for script in scripts() {
        for (timed, (agrees, reason)) in script.steps.iter().zip(&script.kept) {
            if timed.step.is_expected() && !agrees {
                assert!(!reason.is_empty(), "{}: {timed:?} differs without a reason", script.name);
                *reasons.entry(reason.clone()).or_insert(0) += 1;
            }
        }
    }
    // Single cases share one.
    let (mut counts, singles): (Vec<usize>, Vec<usize>) =
        reasons.into_values().partition(|&count| count > 1);
    counts.push(singles.len());
    let (_, rows) = page.split_once("| expectations | reason |\n|---|---|\n").unwrap();
    let first = |row: &str| row.split('|').nth(1)?.trim().parse().ok();
    let mut on_page: Vec<usize> = rows.lines().map_while(first).collect();
    counts.sort_unstable();
    on_page.sort_unstable();
    assert_eq!(on_page, counts);
}
