//! Any bytes as a recording: replayed as far as it goes, in bounded time and memory.

#![no_main]

#[expect(dead_code, reason = "shared with other targets")]
#[path = "../../crates/gateway/tests/strangers/mod.rs"]
mod strangers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strangers::check_recording(bytes));
