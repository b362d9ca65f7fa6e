//! The contract from outside: every wire type is written, validated and read back.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod formats;
mod round_trip;
mod wire_types;
