//! The table of all comparisons, `docs/validation-table.md`, as it is written and read.

use crate::{Allowed, Case};

const TABLE: &str = include_str!("../../../docs/validation-table.md");

/// The heading of a group, a table's.
pub fn head(group: &str) -> String {
    format!(
        "\n### {group}\n\n| setting | quantity | expected | measured | allowed | |\n|---|---|---|---|---|---|"
    )
}

/// The row of a case.
pub fn row(case: &Case) -> String {
    format!(
        "| {} | {} | {:.5} | {:.5} | {} | {} |",
        case.setting,
        case.quantity,
        case.expected,
        case.measured,
        words(case.allowed),
        if case.holds() { "holds" } else { "**differs**" }
    )
}

fn words(allowed: Allowed) -> String {
    match allowed {
        Allowed::Share(share) => format!("± {:.0} %", share * 100.0),
        Allowed::Absolute(most) => format!("± {}", (1e4 * most).round() / 1e4),
        Allowed::Factor(factor, floor) => format!("× {factor} or ± {floor}"),
    }
}

/// The cases that the table has, rounded as they stand there, each with its line.
pub fn kept() -> Vec<(Case, &'static str)> {
    let mut group = "";
    let mut cases = Vec::new();
    for line in TABLE.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            group = name;
        } else if let Some(case) = read(group, line) {
            cases.push((case, line));
        }
    }
    cases
}

/// The case of a row; nothing if it is another line.
fn read(group: &'static str, line: &'static str) -> Option<Case> {
    let cells: Vec<&str> = line.split(" | ").collect();
    let [setting, quantity, expected, measured, allowed, _] = cells[..] else { return None };
    let allowed = if let Some(factor) = allowed.strip_prefix("× ") {
        let (factor, floor) = factor.split_once(" or ± ")?;
        Allowed::Factor(factor.parse().ok()?, floor.parse().ok()?)
    } else {
        let most = allowed.strip_prefix("± ")?;
        match most.strip_suffix(" %") {
            Some(percent) => Allowed::Share(percent.parse::<f64>().ok()? / 100.0),
            None => Allowed::Absolute(most.parse().ok()?),
        }
    };
    Some(Case {
        group,
        setting: setting.strip_prefix("| ")?.to_string(),
        quantity,
        expected: expected.parse().ok()?,
        measured: measured.parse().ok()?,
        allowed,
    })
}
