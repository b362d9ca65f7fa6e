//! The crate as another crate uses it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kit;
mod links;
mod properties;
mod report;
mod runs;
mod verdicts;
