//! Prints comparisons of the simulator with closed forms, with ns-2.35, with Linux 6.1 and with udp_prague,
//! and with a testbed, as Markdown tables: all, or the parts named. Exit code 1 if one does not hold.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use sim::ScenarioError;
use validation::packetdrill::{self, Counts, Script, script};
use validation::{
    Allowed, Case, dctcp_response, delayed_ack_response, linux, linux_accecn, linux_bbr,
    linux_cake, ns2, ns2_steps, prague, queues, red_pd, tcp_response, testbed,
};

/// The comparisons of the parts named, without a name of all.
fn cases(parts: &[String]) -> Result<Vec<Case>, ScenarioError> {
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    let mut cases = Vec::new();
    if wanted("closed") {
        cases.extend(queues()?);
        cases.extend(tcp_response()?);
        cases.extend(delayed_ack_response()?);
        cases.extend(dctcp_response()?);
    }
    if wanted("ns2") {
        for seeds in ns2::Seeds::all() {
            cases.extend(seeds.compare()?);
        }
    }
    if wanted("ns2") || parts.iter().any(|p| p == "between") {
        for seeds in ns2::Seeds::between() {
            cases.extend(seeds.compare()?);
        }
    }
    if wanted("ns2") {
        for reference in ns2::CbrReference::all() {
            cases.extend(reference.compare()?);
        }
        for reference in ns2::TfrcReference::all() {
            cases.extend(reference.compare()?);
        }
        for reference in red_pd::Reference::all() {
            cases.extend(reference.compare()?);
        }
        cases.extend(red_pd::fixed_drop_rate()?);
        cases.extend(ns2_steps::cases()?);
    }
    if wanted("linux") {
        cases.extend(linux::cases()?);
        cases.extend(linux::tcp_cases()?);
        cases.extend(linux_bbr::cases()?);
        cases.extend(linux_accecn::cases()?);
        cases.extend(linux_cake::cases()?);
    }
    if wanted("prague") {
        cases.extend(prague::cases()?);
    }
    if wanted("testbed") {
        cases.extend(testbed::cases()?);
    }
    Ok(cases)
}

fn allowed(allowed: Allowed) -> String {
    match allowed {
        Allowed::Share(share) => format!("± {:.0} %", share * 100.0),
        Allowed::Absolute(most) => format!("± {}", (1e4 * most).round() / 1e4),
        Allowed::Factor(factor, floor) => format!("× {factor} or ± {floor}"),
    }
}

/// Where the table of packetdrill's scripts is kept.
const PACKETDRILL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/packetdrill.csv");

/// Reads packetdrill's scripts from `folder`, drives them and writes the table. Exit code 1 if a step differs for
/// which no reason is written there.
fn packetdrill(folder: &str) -> ExitCode {
    let written = write_packetdrill(folder);
    match written {
        Ok(unexplained) => ExitCode::from(u8::from(unexplained > 0)),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn write_packetdrill(folder: &str) -> Result<usize, Box<dyn Error>> {
    let read = script::folder(Path::new(folder)).map_err(|e| format!("{folder}: {e}"))?;
    let before = Script::all(&fs::read_to_string(PACKETDRILL)?)?;
    let table = packetdrill::table(&read.scripts, &before)?;
    fs::write(PACKETDRILL, &table)?;
    for (name, why) in &read.unfit {
        eprintln!("left out: {name}: {why}");
    }
    let counts = Counts::of(&Script::all(&table)?);
    eprintln!("{counts}; {} scripts left out", read.unfit.len());
    Ok(counts.unexplained)
}

fn main() -> ExitCode {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if let [part, folder] = &parts[..]
        && part == "packetdrill"
    {
        return packetdrill(folder);
    }
    let known = ["closed", "ns2", "between", "linux", "prague", "testbed"];
    if parts.iter().any(|p| !known.contains(&p.as_str())) {
        eprintln!(
            "usage: bluewater-validate [closed] [ns2] [between] [linux] [prague] [testbed]\n       \
             bluewater-validate packetdrill FOLDER"
        );
        return ExitCode::from(2);
    }
    let cases = match cases(&parts) {
        Ok(cases) => cases,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let mut group = "";
    for case in &cases {
        if case.group != group {
            group = case.group;
            println!("\n### {group}\n");
            println!(
                "| setting | quantity | expected | measured | allowed | |\n|---|---|---|---|---|---|"
            );
        }
        println!(
            "| {} | {} | {:.5} | {:.5} | {} | {} |",
            case.setting,
            case.quantity,
            case.expected,
            case.measured,
            allowed(case.allowed),
            if case.holds() { "holds" } else { "**differs**" }
        );
    }
    let failed = cases.iter().filter(|c| !c.holds()).count();
    eprintln!("{} comparisons, {failed} differ", cases.len());
    ExitCode::from(u8::from(failed > 0))
}
