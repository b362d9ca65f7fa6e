//! For a program: `conformance-report.v1`.

use serde_json::{Value, json};

use super::Report;
use crate::Kind;

/// One document with everything.
pub fn json(report: &Report<'_>) -> Value {
    let subjects: Vec<Value> = report
        .subjects
        .iter()
        .enumerate()
        .map(|(place, subject)| {
            let kind = if subject.kind == Kind::Tool { "tool" } else { "wrapper" };
            let verdicts = report.verdicts.iter().filter(|verdict| verdict.subject == place);
            let results = verdicts.map(|verdict| {
                let status = match (&verdict.skipped, verdict.wrong.is_empty()) {
                    (Some(_), _) => "skipped",
                    (None, true) => "passed",
                    (None, false) => "failed",
                };
                json!({
                    "id": verdict.id, "name": verdict.name, "status": status, "reason": verdict.skipped, "wrong": verdict.wrong,
                })
            });
            json!({ "kind": kind, "path": subject.path, "results": results.collect::<Vec<_>>() })
        })
        .collect();
    let (passed, failed, skipped) = report.counts();
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
