//! Any bytes as a capture: read without harm, each packet counted once.

#![no_main]

#[path = "../../crates/trace/tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::check_capture(bytes));
