//! See `framing::framing`.
#![no_main]

#[path = "../src/framing.rs"]
mod framing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| framing::framing(bytes));
