//! The simulator for a page in a browser: a scenario in, its results out, as text.
//!
//! WebAssembly knows numbers alone, so that a text is handed over in memory: the page asks for room
//! ([`reserve`]), writes there, calls [`run`], which answers with the length of the answer, and reads
//! that at [`answer`]. Nothing is allocated for the page but these two texts, and no pointer is
//! followed here.

use std::cell::RefCell;

use scenario::{Scenario, ScenarioError};
use serde_json::{Map, Value, json};
use sim::results::table::{Column, Table};
use sim::{Outcome, Run};

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Where a question of `length` bytes is written.
#[expect(unsafe_code, reason = "its name is for the page")]
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(length, 0);
        question.as_mut_ptr()
    })
}

/// Runs the scenario that was written, TOML in UTF-8. Returns the bytes of the answer.
#[expect(unsafe_code, reason = "its name is for the page")]
#[unsafe(no_mangle)]
pub extern "C" fn run() -> usize {
    let text = QUESTION.with_borrow(|question| simulated(&String::from_utf8_lossy(question)));
    let length = text.len();
    ANSWER.set(text);
    length
}

/// Where the answer of the last [`run`] is.
#[expect(unsafe_code, reason = "its name is for the page")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// The results of a scenario as JSON: `decision_hash`, `scenario` (with every default written out), and
/// the tables `queues`, `flows` and `series`, each with an array for each column; or an `error` with
/// `line`, `key`, `problem`, `allowed` and `hint`.
pub fn simulated(text: &str) -> String {
    let answer = outcome(text).map_or_else(|e| error(&e), |outcome| tables(&outcome));
    answer.to_string()
}

/// What the scenario is called in errors.
const NAME: &str = "the scenario";

fn outcome(text: &str) -> Result<Outcome, ScenarioError> {
    let scenario = Scenario::from_toml(text, NAME)?;
    Ok(Run::new(scenario, text, NAME)?.finish())
}

fn error(error: &ScenarioError) -> Value {
    json!({"error": {
        "line": error.line, "key": error.key, "value": error.value,
        "problem": error.problem, "allowed": error.allowed, "hint": error.hint,
    }})
}

fn tables(outcome: &Outcome) -> Value {
    json!({
        "decision_hash": outcome.decision_hash,
        "scenario": outcome.scenario,
        "queues": columns(&outcome.queues),
        "flows": columns(&outcome.flows),
        "series": columns(&outcome.series),
    })
}

fn columns(table: &Table) -> Map<String, Value> {
    let value = |column: &Column| match column {
        Column::Count(values) => json!(values),
        Column::Real(values) => json!(values),
        Column::Text(values) => json!(values),
    };
    table.columns().map(|(name, column)| (name.into(), value(column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../sim/tests/golden/red-ecn.toml");

    /// As a page does it, but for the memory.
    #[test]
    fn an_answer_is_that_of_the_simulator() {
        let read = |text: &str| serde_json::from_str::<Value>(&simulated(text)).unwrap();
        let answer = read(TEXT);
        let scenario = Scenario::from_toml(TEXT, "x").unwrap();
        let outcome = Run::new(scenario, TEXT, "x").unwrap().finish();
        assert_eq!(answer["decision_hash"], outcome.decision_hash);
        let again = read(answer["scenario"].as_str().unwrap());
        assert_eq!(again["decision_hash"], answer["decision_hash"]);
        assert_eq!(again["queues"]["aqm"], json!(["red"]));
        let wrong = read(&TEXT.replace("aqm = \"red\"", "aqm = \"rde\""));
        assert_eq!(wrong["error"]["key"], "queue[0].aqm");
        assert!(wrong["error"]["hint"].as_str().unwrap().contains("red"), "{wrong}");
    }

    #[test]
    fn a_question_is_answered_in_memory() {
        let length = "no scenario".len();
        assert!(!reserve(length).is_null());
        let bytes = run();
        assert!(bytes > 20 && !answer().is_null());
        ANSWER.with_borrow(|answer| assert!(answer.len() == bytes && answer.contains("error")));
    }
}
