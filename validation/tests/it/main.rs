//! Validation from outside: whole run folders, broken one rule at a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bytes;
mod documents;
mod kit;
mod places;
mod power_cuts;
mod rules;
