//! The workload in `SUB_WORKLOAD`.

use std::collections::BTreeMap;

use counterproof_artifact::one_line;
use counterproof_ledger::event::Workload;
use serde_json::Value;

use super::IdentityWarning;
use super::variables::WORKLOAD;

/// Longest name of a field in a warning, in characters.
const FIELD_CHARS: usize = 80;

/// Parses a workload. One wrong field does not discard the others, because policies select by them.
pub(super) fn parse_workload(text: &str, warnings: &mut Vec<IdentityWarning>) -> Option<Workload> {
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => {
            warnings.push(IdentityWarning::NotAnObject { variable: WORKLOAD });
            return None;
        }
        Err(error) => {
            warnings.push(IdentityWarning::InvalidJson { variable: WORKLOAD, column: error.column() });
            return None;
        }
    };
    let mut workload = Workload::default();
    for (name, value) in fields {
        let place = match name.as_str() {
            "user" => &mut workload.user,
            "repo_path" => &mut workload.repo_path,
            "ci_provider" => &mut workload.ci_provider,
            "job_id" => &mut workload.job_id,
            "repo" => &mut workload.repo,
            "branch" => &mut workload.branch,
            "namespace" => &mut workload.namespace,
            "service_account" => &mut workload.service_account,
            "pod" => &mut workload.pod,
            "labels" => {
                workload.labels = labels(value, warnings);
                continue;
            }
            // A newer program may set fields that this version does not know.
            _ => continue,
        };
        match scalar_text(value) {
            Ok(text) => *place = text,
            Err(expected) => warnings.push(invalid_field(&name, expected)),
        }
    }
    Some(workload)
}

fn labels(value: Value, warnings: &mut Vec<IdentityWarning>) -> BTreeMap<String, String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return BTreeMap::new(),
        _ => {
            warnings.push(invalid_field("labels", "an object of texts"));
            return BTreeMap::new();
        }
    };
    let mut labels = BTreeMap::new();
    for (name, value) in fields {
        match scalar_text(value) {
            Ok(Some(text)) => drop(labels.insert(name, text)),
            Ok(None) => {}
            Err(expected) => warnings.push(invalid_field(&format!("labels.{name}"), expected)),
        }
    }
    labels
}

/// Returns the text of a scalar. Programs often write ids, such as those of jobs, as numbers.
fn scalar_text(value: Value) -> Result<Option<String>, &'static str> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(value) => Ok(Some(value.to_string())),
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => Err("a text"),
    }
}

fn invalid_field(field: &str, expected: &'static str) -> IdentityWarning {
    IdentityWarning::InvalidField { variable: WORKLOAD, field: one_line(field, FIELD_CHARS), expected }
}
