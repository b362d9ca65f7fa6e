//! The report as JSON: `conformance-report.v1`.

use serde_json::{Value, json};

use super::Report;
use super::summary::Counts;
use crate::{Subject, SubjectKind, VectorResult, VectorStatus};

/// Returns the report as one document.
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
