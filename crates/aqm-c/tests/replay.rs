//! A program in C decides as the test vectors of `aqm` say, and survives every misuse.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use bluewater_aqm::ffi::{ERROR, guarded};
use serde_json::Value;

use crate::{checked, compile, root, run};

/// The calls of one case as `story.c` reads them, and what it has to print.
fn script(case: &Value, calls: &mut String, answers: &mut String) {
    let object = |key: &str| -> String {
        let pairs = case[key].as_object().expect("an object").iter();
        let texts = pairs.map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            number => format!("{key}={number}"),
        });
        texts.collect::<Vec<_>>().join(",")
    };
    let name = case["discipline"].as_str().expect("a name");
    let mut parameters = object("parameters");
    if let Some(preset) = case["preset"].as_str() {
        parameters = format!("preset={preset}");
    } else if parameters.is_empty() {
        parameters = ",".into();
    }
    let _ = writeln!(calls, "new {name} {parameters} {} {}", object("link"), case["seed"]);
    let [mut arrived, mut departed, mut dropped, mut marked] = [0; 4];
    for event in case["events"].as_array().expect("a list") {
        let number = |key: &str| event[key].as_u64().unwrap_or(0);
        let listed = |key: &str| event[key].as_array().map_or(&[][..], |list| list);
        let has = |key: &str, id: &Value| listed(key).iter().any(|signal| signal[0] == *id);
        dropped += listed("drop").len();
        marked += listed("mark").len();
        let (at, id) = (&event["t"], &event["in"]);
        if id.is_u64() {
            arrived += 1;
            let of =
                ["flow", "len", "ecn", "dscp", "host", "peer"].map(|key| number(key).to_string());
            let _ = writeln!(calls, "in {at} {id} {}", of.join(" "));
            let verdict = if has("drop", id) { 2 } else { u8::from(has("mark", id)) };
            let _ = write!(answers, "{verdict}");
        } else if let Some(out) = event.get("out") {
            let _ = writeln!(calls, "out {at}");
            if out.is_null() {
                answers.push('-');
            } else {
                departed += 1;
                let _ = write!(answers, "{out}/{}", event["ecn"]);
            }
        } else {
            assert!(listed("drop").is_empty(), "a timer drops nothing here");
            continue;
        }
        for signal in listed("drop") {
            let causes = ["overflow", "early", "penalty", "policed"];
            let cause = causes.iter().position(|cause| signal[1] == **cause).expect("a cause");
            let _ = write!(answers, " {}:{}", signal[0], cause + 1);
        }
        answers.push('\n');
    }
    let _ = writeln!(calls, "end");
    let _ = writeln!(answers, "{arrived} {departed} 0 {dropped} {marked}");
}

/// Of all vectors that `wanted` chooses by their file's name, the calls and the answers.
fn scripts(wanted: impl Fn(&str) -> bool) -> (String, String) {
    let (mut calls, mut answers) = (String::new(), String::new());
    let folder = root().join("../aqm/vectors");
    for entry in fs::read_dir(folder).expect("the vectors") {
        let file = entry.expect("a file").path();
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        if name.strip_suffix(".json").is_some_and(&wanted) {
            let text = fs::read_to_string(&file).expect("a file");
            let cases: Value = serde_json::from_str(&text).expect("JSON");
            let cases = cases.as_array().expect("a list");
            cases.iter().for_each(|case| script(case, &mut calls, &mut answers));
        }
    }
    (calls, answers)
}

#[test]
fn c_decides_as_the_vectors_say() {
    let story = compile(&root().join("tests/story.c"), "story");
    let some = ["droptail", "red", "codel", "fq-codel", "dualpi2"];
    let all = scripts(|_| true);
    assert!(all.1.lines().count() > 10_000, "all disciplines are there");
    let few = scripts(|name| some.contains(&name)); // valgrind takes fifty times as long
    let ways = [(run(Command::new(&story), &all.0), all.1), (checked(&story, &few.0), few.1)];
    for (said, answers) in ways {
        let wrong = said.lines().zip(answers.lines()).zip(1..).find(|((c, vector), _)| c != vector);
        assert!(said == answers, "C, the vector, the line: {wrong:?}");
    }
}

#[test]
fn the_example_of_the_page_runs() {
    let page = fs::read_to_string(root().join("../../docs/embed.md")).expect("the page");
    let (_, code) = page.split_once("```c title=\"example.c\"\n").expect("an example in C");
    let (code, rest) = code.split_once("```").expect("its end");
    let (_, output) = rest.split_once("```text\n").expect("what it prints");
    let (output, _) = output.split_once("```").expect("its end");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("example.c");
    fs::write(&source, code).expect("a file");
    assert_eq!(run(Command::new(compile(&source, "example")), ""), output);
}

#[test]
fn the_page_has_the_example_of_the_front_page() {
    let read = |path: &str| fs::read_to_string(root().join("../..").join(path)).expect("a page");
    let front = read("crates/aqm/README.md");
    let (_, example) = front.split_once("```rust\n").expect("an example in Rust");
    let (example, _) = example.split_once("```").expect("its end");
    assert!(read("docs/embed.md").contains(example));
}

#[test]
fn a_panic_becomes_an_error() {
    assert_eq!(guarded(ERROR, || panic!("on purpose")), ERROR);
}
