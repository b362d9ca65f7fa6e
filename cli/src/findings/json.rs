//! Findings as one JSON document, `validation.v1`. `docs/validate.md` documents the format; fields are only ever added.

use counterproof_validation::Report;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: &'static str,
    summary: Summary,
    findings: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Summary {
    findings: usize,
    files: usize,
    run_folders: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct Finding<'a> {
    code: &'static str,
    file: &'a str,
    pointer: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    message: &'a str,
    expected: &'a str,
    remedy: &'a str,
}

pub(super) fn render(report: &Report) -> String {
    let findings = report.findings.iter().map(|finding| Finding {
        code: finding.code.as_str(),
        file: finding.file.as_str(),
        pointer: &finding.pointer,
        line: finding.position.map(|position| position.line),
        column: finding.position.map(|position| position.column),
        message: &finding.message,
        expected: &finding.expected,
        remedy: &finding.remedy,
    });
    crate::json_text::to_json(&Document {
        schema_version: "validation.v1",
        summary: Summary {
            findings: report.findings.len(),
            files: report.files,
            run_folders: report.runs,
            skipped: report.skipped,
        },
        findings: findings.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture;

    #[test]
    fn the_document_has_the_documented_fields() {
        insta::assert_snapshot!(super::render(&fixture::report()), @r#"
        {
          "schema_version": "validation.v1",
          "summary": {
            "findings": 2,
            "files": 12,
            "run_folders": 1,
            "skipped": 3
          },
          "findings": [
            {
              "code": "wrong-value",
              "file": "runs/new/r 1/a,b:c.json",
              "pointer": "/version\u202e",
              "line": 7,
              "column": 14,
              "message": "100% wrong",
              "expected": "one of `baseline`, `new`",
              "remedy": "write one of the allowed values"
            },
            {
              "code": "unreadable",
              "file": "b.json",
              "pointer": "",
              "message": "permission denied",
              "expected": "a file that can be read",
              "remedy": "check that it exists and that you have permission to read it"
            }
          ]
        }
        "#);
    }
}
