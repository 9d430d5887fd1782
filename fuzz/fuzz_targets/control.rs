//! Any bytes as a line at the control socket: a request, or refused with a reason.

#![no_main]

#[expect(dead_code, reason = "shared with other targets")]
#[path = "../../crates/gateway/tests/strangers/mod.rs"]
mod strangers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| strangers::check_control(bytes));
