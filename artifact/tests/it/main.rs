//! Tests of the wire types through the public API.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod evaluation_types;
mod formats;
mod round_trip;
mod wire_types;
