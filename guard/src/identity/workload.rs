//! The workload in `SUB_WORKLOAD`.

use std::collections::BTreeMap;

use counterproof_artifact::one_line;
use counterproof_ledger::event::Workload;
use serde_json::{Map, Value};

use super::IdentityWarning;
use super::variables::WORKLOAD;

/// Longest name of a field in a warning, in characters.
const FIELD_CHARS: usize = 80;

/// A workload to which no label can be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot add the label `{label}` to `{WORKLOAD}`: it must be a JSON object whose field `labels` is an object")]
pub struct InvalidWorkload {
    label: String,
}

/// Adds a label to the text of a workload. Other fields and labels stay, also those that this version does not know.
pub fn workload_with_label(workload: Option<&str>, label: &str, value: &str) -> Result<String, InvalidWorkload> {
    let labelled = || {
        let mut workload: Value = serde_json::from_str(workload.unwrap_or("{}")).ok()?;
        let labels = workload.as_object_mut()?.entry("labels").or_insert(Value::Null);
        if labels.is_null() {
            *labels = Value::Object(Map::new());
        }
        labels.as_object_mut()?.insert(label.to_owned(), Value::from(value));
        Some(workload.to_string())
    };
    labelled().ok_or_else(|| InvalidWorkload { label: label.to_owned() })
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_is_added_to_a_workload_and_the_rest_stays() {
        let labelled = |workload: Option<&str>| {
            let text = workload_with_label(workload, "case_id", "refund").ok()?;
            Some(serde_json::from_str::<Value>(&text).unwrap())
        };
        assert_eq!(labelled(None), Some(json!({"labels": {"case_id": "refund"}})));
        let known = r#"{"repo": "shop", "future": [1], "labels": {"team": "a", "case_id": "old"}}"#;
        let expected = json!({"repo": "shop", "future": [1], "labels": {"team": "a", "case_id": "refund"}});
        assert_eq!(labelled(Some(known)), Some(expected));
        assert_eq!(labelled(Some(r#"{"labels": null}"#)), Some(json!({"labels": {"case_id": "refund"}})));
        for invalid in ["", "[]", "{", r#"{"labels": 7}"#] {
            assert_eq!(labelled(Some(invalid)), None, "{invalid}");
        }
    }
}
