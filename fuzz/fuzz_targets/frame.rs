//! Any bytes as a frame from the network: read without harm, marked without changing more than
//! the mark.

#![no_main]

#[path = "../../crates/wire/tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::check_frame(bytes));
