//! Runs small vectors with scripts that behave well or badly.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod golden;
mod kit;
mod report;
mod results;
