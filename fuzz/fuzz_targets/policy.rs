//! See `src/policy.rs`.
#![no_main]

#[path = "../src/policy.rs"]
mod policy;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| policy::policy(bytes));
