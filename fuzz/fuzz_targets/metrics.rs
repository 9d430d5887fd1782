//! Any bytes as what comes at the port of the metrics: read once it is there, and only once.

#![no_main]

#[expect(dead_code, reason = "shared with other targets")]
#[path = "../../crates/gateway/tests/strangers/mod.rs"]
mod strangers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strangers::check_metrics(bytes));
