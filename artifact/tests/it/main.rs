//! The contract from outside: whole run folders, broken one rule at a time, and every wire type there and back.

mod bytes;
mod documents;
mod kit;
mod places;
mod round_trip;
mod rules;
