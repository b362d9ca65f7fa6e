//! Tests of policies: files of calls with the decisions that are expected.

mod run;
mod types;

pub use run::{TEST_SCHEMA_SOURCE, TestReport, TestResult, test};
