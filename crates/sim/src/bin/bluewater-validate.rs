//! Prints every comparison of the simulator with closed forms, with ns-2.35 and with Linux 6.1 as a
//! Markdown table. Exit code 1 if one does not hold.

use std::process::ExitCode;

use sim::ScenarioError;
use sim::validation::{Allowed, Case, linux, ns2, queues, tcp_response};

fn all() -> Result<Vec<Case>, ScenarioError> {
    let mut cases = queues()?;
    cases.extend(tcp_response()?);
    for reference in ns2::references() {
        cases.extend(reference.compare()?);
    }
    for reference in ns2::CbrReference::all() {
        cases.extend(reference.compare()?);
    }
    cases.extend(linux::cases()?);
    Ok(cases)
}

fn allowed(allowed: Allowed) -> String {
    match allowed {
        Allowed::Share(share) => format!("± {:.0} %", share * 100.0),
        Allowed::Absolute(most) => format!("± {most}"),
        Allowed::Factor(factor, floor) => format!("× {factor} or ± {floor}"),
    }
}

fn main() -> ExitCode {
    let cases = match all() {
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
