//! The same scenario gives the same decisions: twice, in threads, in slices, and in every build.
//!
//! Each file under `pinned` names its decision hash in its first line. It was written once and is
//! compared by every build that runs it: these tests (assertions on), and the Python package's
//! tests, which run the optimised build without assertions. A changed hash means that the simulator
//! decides differently; `CONTRIBUTING.md` says what to do then. `BLUEWATER_PIN=1` writes the
//! present hashes into the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use aqm::Duration;
use sim::{Run, Scenario};

const MARK: &str = "# decision hash: ";

fn pinned() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pinned");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "pinned scenarios are missing");
    files
}

fn start(text: &str) -> Run {
    let scenario = Scenario::from_toml(text, "pinned").unwrap();
    Run::new(scenario, text, "pinned").unwrap()
}

fn hash(text: &str) -> String {
    start(text).finish().decision_hash
}

#[test]
fn decisions_are_those_that_were_pinned() {
    for file in pinned() {
        let text = fs::read_to_string(&file).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let now = hash(&text);
        if std::env::var_os("BLUEWATER_PIN").is_some() {
            fs::write(&file, format!("{MARK}{now}\n{rest}")).unwrap();
        } else {
            assert_eq!(first.strip_prefix(MARK), Some(now.as_str()), "{}", file.display());
        }
    }
}

#[test]
fn twice_and_in_two_threads_at_once() {
    let texts: Vec<String> = pinned().iter().map(|f| fs::read_to_string(f).unwrap()).collect();
    let all = || texts.iter().map(|text| hash(text)).collect::<Vec<_>>();
    let (one, two) = thread::scope(|scope| {
        let threads = [scope.spawn(all), scope.spawn(all)];
        let [a, b] = threads.map(|t| t.join().unwrap());
        (a, b)
    });
    assert_eq!(one, two);
    assert_eq!(one, all());
}

/// How far a run is advanced at a time, and what is sampled meanwhile, changes nothing.
#[test]
fn in_slices_and_sampled() {
    for file in pinned() {
        let text = fs::read_to_string(&file).unwrap();
        let mut run = start(&text);
        let mut slice = Duration::from_nanos(1);
        while run.advance(slice) {
            slice = Duration::from_nanos(slice.as_nanos() % 70_000_000 * 3 + 12_345);
        }
        let whole = start(&text.replace("[measure]\ninterval = \"100ms\"", "")).finish();
        assert_eq!(run.finish().decision_hash, whole.decision_hash, "{}", file.display());
    }
}

/// A canonical scenario is the scenario.
#[test]
fn read_back_from_the_echo() {
    for file in pinned() {
        let text = fs::read_to_string(&file).unwrap();
        let outcome = start(&text).finish();
        assert_eq!(hash(&outcome.scenario), outcome.decision_hash, "{}", file.display());
    }
}

/// Another seed is another run: the hash is not blind.
#[test]
fn seeds_differ() {
    for file in pinned() {
        let text = fs::read_to_string(&file).unwrap();
        let mut scenario = Scenario::from_toml(&text, "pinned").unwrap();
        scenario.seed += 1000;
        let other = Run::new(scenario, &text, "pinned").unwrap().finish().decision_hash;
        assert_ne!(other, hash(&text), "{}", file.display());
    }
}
