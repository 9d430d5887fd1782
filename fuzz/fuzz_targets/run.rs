//! Any bytes as decisions that make a small scenario: it runs to its end, its accounts balance all
//! the way, and a second run decides alike.

#![no_main]

#[expect(dead_code, reason = "shared with the other target")]
#[path = "../../crates/sim/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz::check_run(&fuzz::scenario(&mut fuzz::Draw(bytes)));
});
