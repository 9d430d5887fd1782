//! Scenarios that nobody would write. A bounded number of them; `fuzz/` goes on without an end.

use std::time::{Duration, Instant};

use crate::fuzz::{Draw, check_read, check_run, scenario, spoil};
use proptest::prelude::*;

#[expect(clippy::disallowed_methods, reason = "reading a scenario has to end soon")]
fn now() -> Instant {
    Instant::now()
}

/// This many cases, or more if `PROPTEST_CASES` asks for them.
fn cases(usual: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(usual.max(wanted.unwrap_or(0)))
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn spoilt_scenarios_are_read_or_refused_with_a_reason(a in bytes(), b in bytes()) {
        let text = spoil(&mut Draw(&a), &scenario(&mut Draw(&b)).text);
        let began = now();
        check_read(&text);
        prop_assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[test]
    fn any_bytes_are_refused_with_a_reason(bytes in bytes()) {
        check_read(&String::from_utf8_lossy(&bytes));
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn scenarios_balance_their_accounts_and_repeat(bytes in bytes()) {
        quic::register();
        check_run(&scenario(&mut Draw(&bytes)));
    }
}

/// The generator is worth something: most of what it makes can be run.
#[test]
fn most_generated_scenarios_run() {
    quic::register();
    let mut rng = aqm::Rng::new(1, 0);
    // A fifth or so; how many just these draws give changes with each new transport or discipline.
    let ran = (0..1000)
        .filter(|_| {
            let bytes: Vec<u8> = (0..400).map(|_| rng.bits() as u8).collect();
            check_run(&scenario(&mut Draw(&bytes)))
        })
        .count();
    assert!(ran >= 150, "{ran} of 1000");
}
