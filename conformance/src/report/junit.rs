//! The report as `JUnit` XML for CI systems, with one suite per program.

use counterproof_artifact::escape_invisible;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::Report;
use crate::{VectorResult, VectorStatus};

/// A report that could not be serialized.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the JUnit report")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// Returns the whole file.
pub fn junit(report: &Report<'_>) -> Result<String, JunitError> {
    let mut document = quick_junit::Report::new("conformance");
    for (subject, results) in report.by_subject() {
        let name = escape_invisible(&subject.to_string());
        let mut suite = TestSuite::new(&name);
        suite.add_test_cases(results.into_iter().map(|result| test_case(&name, result)));
        document.add_test_suite(suite);
    }
    if !report.vectors.out_of_scope.is_empty() {
        let mut suite = TestSuite::new("out of scope");
        for (group, id) in &report.vectors.out_of_scope {
            let mut status = TestCaseStatus::skipped();
            status.set_message("out of scope");
            let mut case = TestCase::new(escape_invisible(id), status);
            case.set_classname(escape_invisible(group));
            suite.add_test_case(case);
        }
        document.add_test_suite(suite);
    }
    Ok(document.to_string()?)
}

fn test_case(suite: &str, result: &VectorResult) -> TestCase {
    let status = match &result.status {
        VectorStatus::Passed => TestCaseStatus::success(),
        VectorStatus::Failed(problems) => {
            // The first line is the message that CI systems show in their lists; the description has all lines.
            let first = problems.first().and_then(|problem| problem.lines().next()).unwrap_or_default();
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(escape_invisible(first));
            let lines = problems.iter().flat_map(|problem| problem.lines()).map(escape_invisible);
            status.set_description(lines.collect::<Vec<_>>().join("\n"));
            status
        }
        VectorStatus::Skipped(reason) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(escape_invisible(reason));
            status
        }
    };
    let mut case = TestCase::new(escape_invisible(&format!("{}: {}", result.id, result.name)), status);
    case.set_classname(suite);
    case
}
