//! The results of a test command, as its output states them.

use std::collections::BTreeMap;

use counterproof_redaction::{Applied, Redactor};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// A format of test output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Libtest,
    Nextest,
    Pytest,
    Unittest,
    Jest,
    Vitest,
    Mocha,
    NodeTest,
    Tap,
    Go,
}

/// Why tests did not run, as a line of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "line")]
pub enum Problem {
    /// The code or a test file could not be compiled, imported or collected.
    Broken(String),
    /// The runner found no test of the requested name.
    NotFound(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// `None` if the command was killed.
    pub exit_code: Option<i32>,
    pub timed_out: bool,
    /// The formats that the output is in; empty for an unknown runner.
    pub formats: Vec<Format>,
    /// By the ids of the runner. A runner that lists only failures has only those here.
    pub tests: BTreeMap<String, Verdict>,
    /// The failed test that the output lists first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failed: Option<String>,
    /// The number of tests that ran, skipped ones included, as summaries state it. `None` without a summary.
    pub ran: Option<u64>,
    /// The number of tests that were skipped, as summaries state it.
    pub skipped: u64,
    pub problem: Option<Problem>,
    /// Lines that look like failures, for runners that are not known. Bounded.
    pub failed_lines: Vec<String>,
    /// The end of both streams in the order in which they were read. Bounded.
    pub output: String,
}

impl TestReport {
    /// Reports whether the command succeeded: it ended in time with exit code 0.
    pub fn is_success(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out
    }

    /// Masks secrets in the ids of tests and in the lines of failures, as they are masked in a stored report, so that two reports can
    /// be compared. Of tests with the same masked id, the failed one counts.
    pub fn mask_ids(&mut self, redactor: &Redactor) {
        let mask = |text: String| redactor.text(&text, &mut Applied::default());
        for (id, verdict) in std::mem::take(&mut self.tests) {
            let known = self.tests.entry(mask(id)).or_insert(verdict);
            if verdict == Verdict::Failed {
                *known = verdict;
            }
        }
        let others = self.first_failed.iter_mut().chain(&mut self.failed_lines);
        others.for_each(|text| *text = mask(std::mem::take(text)));
    }

    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(|(_, verdict)| **verdict == Verdict::Failed).map(|(id, _)| id.as_str())
    }
}
