//! Any bytes as a scenario: read, or refused with a reason, but never a panic.

#![no_main]

#[expect(dead_code, reason = "shared with the other target")]
#[path = "../../crates/sim/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz::check_read(&String::from_utf8_lossy(bytes));
});
