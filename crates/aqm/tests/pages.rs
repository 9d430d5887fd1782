//! The pages under `docs/algorithms` keep step with the code: same headings, a place for the
//! generated table, every signal named, every test that they cite exists.

use std::fs;
use std::path::{Path, PathBuf};

use aqm::{About, CATALOG};

const HEADINGS: [&str; 7] = [
    "## What to expect",
    "## The algorithm",
    "## Parameters",
    "## What the paper leaves open",
    "## Signals",
    "## Validation",
    "## Sources",
];

fn crate_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// The page of each algorithm.
fn pages() -> Vec<(&'static About, String)> {
    let folder = crate_dir().join("../../docs/algorithms");
    let text = |name| {
        let path = folder.join(format!("{name}.md"));
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    CATALOG.iter().map(|e| (e, text(e.name))).collect()
}

/// All Rust text of the crate, and the comparisons with other programs.
fn sources() -> String {
    fn read(folder: &Path, text: &mut String) {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                read(&path, text);
            } else if path.extension().is_some_and(|e| e == "rs") {
                *text += &fs::read_to_string(path).unwrap();
            }
        }
    }
    let mut text = String::new();
    ["src", "tests", "../validation/tests"]
        .iter()
        .for_each(|folder| read(&crate_dir().join(folder), &mut text));
    text
}

#[test]
fn pages_have_the_same_headings_and_a_place_for_the_parameters() {
    for (entry, text) in pages() {
        let headings: Vec<&str> = text.lines().filter(|l| l.starts_with("## ")).collect();
        assert_eq!(headings, HEADINGS, "{}", entry.name);
        assert!(text.starts_with(&format!("# {}\n", entry.name)));
        assert!(
            text.contains(&format!("\n<!-- parameters:{} -->\n", entry.name)),
            "{}",
            entry.name
        );
    }
}

/// A student reads this paragraph first, and perhaps no other.
#[test]
fn pages_begin_with_one_short_paragraph() {
    for (entry, text) in pages() {
        let introduction = text.lines().nth(2).unwrap();
        let words = introduction.split_whitespace().count();
        assert!((25..=120).contains(&words), "{}: {words} words", entry.name);
    }
}

#[test]
fn pages_name_every_signal() {
    for (entry, text) in pages() {
        let (_, rest) = text.split_once("## Signals").unwrap();
        let (section, _) = rest.split_once("## ").unwrap();
        for signal in entry.signals {
            let name = signal.name;
            assert!(section.contains(&format!("`{name}`")), "{}: {name}", entry.name);
        }
    }
}

#[test]
fn tests_that_pages_cite_exist() {
    let sources = sources();
    for (entry, text) in pages() {
        let (_, rest) = text.split_once("## Validation").unwrap();
        let (section, _) = rest.split_once("## ").unwrap();
        // Words in backquotes, but not names of files.
        let cited: Vec<&str> =
            section.split('`').skip(1).step_by(2).filter(|w| !w.contains('.')).collect();
        assert!(!cited.is_empty(), "{} cites no test", entry.name);
        for name in cited {
            assert!(sources.contains(&format!("fn {name}(")), "{}: {name}", entry.name);
        }
    }
}

/// A default that is not that of what an algorithm builds on has another source, too.
#[test]
fn defaults_of_its_own_are_not_attributed_to_the_included_algorithm() {
    let of = |name: &str| (About::of(name).unwrap().parameters)();
    let red = of("red");
    for name in ["ared", "ared-feng", "wred", "red-penalty-box", "sfq", "choke"] {
        for own in of(name) {
            let Some(base) = red.iter().find(|base| base.name == own.name) else { continue };
            if own.default != base.default && base.source != "ours" {
                assert_ne!(own.source, base.source, "{name}: {}", own.name);
            }
        }
    }
}
