//! What results mean for a task: whether the target passes, which tests fail newly, and how many were added.

use super::report::TestReport;
use super::target::Target;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetVerdict {
    Passed,
    Failed,
    NotFound,
    /// The test exists and did not run, with the reason.
    NotRun(String),
}

/// Judges the run of the target alone.
pub fn target_verdict(report: &TestReport, target: &Target) -> TargetVerdict {
    let _ = (report, target);
    TargetVerdict::NotFound
}

/// Judges the run of the target after the change. In addition to [`target_verdict`], each test of the target that ran before must have
/// run and passed.
pub fn target_verdict_after(before: &TestReport, after: &TestReport, target: &Target) -> TargetVerdict {
    let _ = before;
    target_verdict(after, target)
}

/// Returns the tests that fail after a change and did not fail before, and those that passed before and are missing or skipped now. Of a
/// runner that is not known, the lines that failed.
pub fn new_failures(before: &TestReport, after: &TestReport) -> Vec<String> {
    let _ = (before, after);
    Vec::new()
}

/// Returns the number of tests that were not there before.
pub fn tests_added(before: &TestReport, after: &TestReport) -> u64 {
    let _ = (before, after);
    0
}
