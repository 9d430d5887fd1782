//! Any bytes as what the kernel hands to the gateway, all the way through a link.

#![no_main]

#[path = "../../crates/gateway/tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::check_path(bytes));
