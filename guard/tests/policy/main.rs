//! Tests of policies: files, decisions and findings.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod checklist;
mod docs;
mod documents;
mod dry_runs;
mod engine;
mod hostile;
mod kit;
mod lints;
mod properties;
mod tests_of_policies;
