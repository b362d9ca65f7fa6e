//! The contract from outside: whole run folders, broken one rule at a time, and every wire type there and back.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bytes;
mod documents;
mod kit;
mod places;
mod power_cuts;
mod round_trip;
mod rules;
mod wire_types;
