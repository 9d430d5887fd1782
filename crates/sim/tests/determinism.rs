//! The same scenario gives the same decisions: twice, in threads, in slices, and in every build.
//!
//! The scenarios are those of `golden.rs`, which pins their hashes. The Python package's tests
//! compare the optimised build with the same pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use aqm::Duration;
use sim::{Run, Scenario};

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "scenarios are missing");
    files
}

fn start(text: &str) -> Run {
    let scenario = Scenario::from_toml(text, "golden").unwrap();
    Run::new(scenario, text, "golden").unwrap()
}

fn hash(text: &str) -> String {
    start(text).finish().decision_hash
}

#[test]
fn twice_and_in_two_threads_at_once() {
    let texts: Vec<String> = scenarios().iter().map(|f| fs::read_to_string(f).unwrap()).collect();
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
    for file in scenarios() {
        let text = fs::read_to_string(&file).unwrap();
        let mut run = start(&text);
        let mut slice = Duration::from_nanos(1);
        while run.advance(slice) {
            slice = Duration::from_nanos(slice.as_nanos() % 70_000_000 * 3 + 12_345);
        }
        let mut scenario = Scenario::from_toml(&text, "golden").unwrap();
        scenario.measure.interval = None;
        let whole = Run::new(scenario, &text, "golden").unwrap().finish();
        assert_eq!(run.finish().decision_hash, whole.decision_hash, "{}", file.display());
    }
}

/// A share of a short run may be no nanosecond: whoever advances by that comes to an end, too.
#[test]
fn a_slice_of_nothing_is_a_nanosecond() {
    let mut run = start(
        "duration = \"3ns\"\nnetwork = { preset = \"dumbbell\" }\n\
         [[queue]]\naqm = \"droptail\"\nbuffer = \"9p\"\n[[traffic]]\ntransport = \"sack\"\n",
    );
    let left = (0..9).take_while(|_| run.advance(Duration::ZERO)).count();
    assert_eq!(left, 2);
}

/// A canonical scenario is the scenario.
#[test]
fn read_back_from_the_echo() {
    for file in scenarios() {
        let text = fs::read_to_string(&file).unwrap();
        let outcome = start(&text).finish();
        assert_eq!(hash(&outcome.scenario), outcome.decision_hash, "{}", file.display());
    }
}

/// Another seed is another run: the hash is not blind.
#[test]
fn seeds_differ() {
    for file in scenarios() {
        let text = fs::read_to_string(&file).unwrap();
        let mut scenario = Scenario::from_toml(&text, "golden").unwrap();
        scenario.seed += 1000;
        let other = Run::new(scenario, &text, "golden").unwrap().finish().decision_hash;
        assert_ne!(other, hash(&text), "{}", file.display());
    }
}
