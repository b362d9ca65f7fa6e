//! The report of a conformance run as text, as JSON and as `JUnit` XML.

use std::fmt::Write as _;

use counterproof_artifact::escape_invisible;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

use crate::{Subject, SubjectKind, VectorResult, VectorStatus, Vectors};

pub fn json(report: &Report<'_>) -> Value {
    let subjects: Vec<Value> = report.by_subject().map(|(subject, results)| subject_json(subject, &results)).collect();
    let Counts { passed, failed, skipped } = report.counts();
    let out_of_scope = report.vectors.out_of_scope.iter().map(|(group, id)| json!({ "group": group, "id": id }));
    json!({
        "schema_version": "conformance-report.v1",
        "contract": report.vectors.contract,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "subjects": subjects,
        "out_of_scope": out_of_scope.collect::<Vec<_>>(),
    })
}

fn subject_json(subject: &Subject, results: &[&VectorResult]) -> Value {
    let kind = if subject.kind == SubjectKind::Tool { "tool" } else { "wrapper" };
    let results: Vec<Value> = results.iter().map(|result| result_json(result)).collect();
    json!({ "kind": kind, "path": subject.path, "results": results })
}

fn result_json(result: &VectorResult) -> Value {
    let (status, reason) = match &result.status {
        VectorStatus::Passed => ("passed", None),
        VectorStatus::Failed(_) => ("failed", None),
        VectorStatus::Skipped(reason) => ("skipped", Some(reason)),
    };
    json!({ "id": result.id, "name": result.name, "status": status, "reason": reason, "wrong": result.problems() })
}

#[derive(Debug, thiserror::Error)]
#[error("failed to write the JUnit report")]
pub struct JunitError(#[from] quick_junit::SerializeError);

pub fn junit(report: &Report<'_>) -> Result<String, JunitError> {
    let mut document = quick_junit::Report::new("conformance");
    for (subject, results) in report.by_subject() {
        // XML cannot contain control characters, and a path or an output may have them.
        let name = escape_invisible(&subject.to_string());
        let mut suite = TestSuite::new(&name);
        suite.add_test_cases(results.into_iter().map(|result| test_case(&name, result)));
        document.add_test_suite(suite);
    }
    // Listed as skipped: a CI server would count a vector that is left out as passed.
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

#[derive(Debug)]
pub struct Report<'a> {
    pub vectors: &'a Vectors,
    pub subjects: &'a [Subject],
    pub results: &'a [VectorResult],
}

impl Report<'_> {
    pub fn passes(&self) -> bool {
        !self.results.iter().any(VectorResult::is_failed)
    }

    fn counts(&self) -> Counts {
        // Counted and not stored, so that the numbers cannot contradict the results.
        let skipped = self.results.iter().filter(|result| result.is_skipped()).count();
        let failed = self.results.iter().filter(|result| result.is_failed()).count();
        Counts { passed: self.results.len() - skipped - failed, failed, skipped }
    }

    fn by_subject(&self) -> impl Iterator<Item = (&Subject, Vec<&VectorResult>)> {
        self.subjects.iter().enumerate().map(|(index, subject)| {
            let results = self.results.iter().filter(move |result| result.subject == index);
            (subject, results.collect())
        })
    }
}

struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Returns one line per vector, its problems in the lines below it, and the counts in the last line.
pub fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (subject, results) in report.by_subject() {
        let _ = writeln!(text, "{subject}");
        for result in results {
            let (word, reason) = match &result.status {
                VectorStatus::Passed => ("pass", String::new()),
                VectorStatus::Failed(_) => ("FAIL", String::new()),
                VectorStatus::Skipped(reason) => ("skip", format!(" ({reason})")),
            };
            let _ = writeln!(text, "  {word}  {}  {}{reason}", result.id, result.name);
            for line in result.problems().iter().flat_map(|problem| problem.lines()) {
                let _ = writeln!(text, "        {line}");
            }
        }
    }
    for (group, id) in &report.vectors.out_of_scope {
        let _ = writeln!(text, "out of scope: {id} ({group})");
    }
    let Counts { passed, failed, skipped } = report.counts();
    let out = report.vectors.out_of_scope.len();
    let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped, {out} out of scope");
    text
}
