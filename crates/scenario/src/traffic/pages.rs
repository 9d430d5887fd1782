//! Where the documentation's pages tell transports apart in words, every one of them is named.

use super::{AppName, Carrier, TransportName};

/// The words in code between two passages of a page, sorted.
fn named(page: &str, from: &str, to: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{page} without: {from}"));
    let (part, _) = rest.split_once(to).unwrap_or_else(|| panic!("{page} without: {to}"));
    let mut words: Vec<String> = part.split('`').skip(1).step_by(2).map(String::from).collect();
    words.sort();
    words
}

/// The transports that are so, without TCP, which pages name as a whole; sorted.
fn those(are: impl Fn(Carrier) -> bool) -> Vec<String> {
    let beside =
        |name: &&TransportName| !matches!(name.kind(), Carrier::Tcp(_)) && are(name.kind());
    let all = TransportName::ALL.iter().filter(beside);
    let mut names: Vec<String> = all.map(|name| name.name().into()).collect();
    names.sort();
    names
}

#[test]
fn the_page_says_whom_jain_compares() {
    let compared = named("metrics.md", "So these count: `infinite` flows over TCP, ", " that are");
    assert_eq!(compared, those(Carrier::is_greedy));
    let not = named("metrics.md", "the whole measured window. Calls, ", ", and `finite`, ");
    assert_eq!(not, those(|kind| !kind.is_greedy()));
}

#[test]
fn the_page_says_who_answers() {
    let answer = named("experiment-files.md", "closed-loop flows (TCP, ", ")");
    assert_eq!(answer, those(Carrier::answers));
    let not = named("experiment-files.md", "open-loop flows (", ")");
    assert_eq!(not, those(|kind| !kind.answers()));
}

#[test]
fn the_page_says_who_carries_nothing_but_infinite() {
    let only = |kind: Carrier| {
        let apps = [AppName::Finite, AppName::Pareto, AppName::Exponential, AppName::Periodic];
        apps.into_iter().chain([AppName::Web]).all(|app| kind.carries(app).is_err())
    };
    let named = named("traffic.md", "| `cbr` | `infinite`, `periodic` |\n", "| `infinite` |");
    assert_eq!(named, those(only));
}
