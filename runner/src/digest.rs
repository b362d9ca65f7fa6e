//! Digests of cases: two cases with equal digests send the same input. Titles and expectations are not included.

use counterproof_artifact::{CaseId, Sha256Digest};
use counterproof_cases::CaseSpec;
use serde_json::Value;

/// Returns the digest of a case's id and input.
pub(crate) fn case_digest(case: &CaseSpec) -> Sha256Digest {
    // JSON values and strings always serialise.
    // Sorted: two cases files that differ only in the order of keys are the same cases.
    let input = serde_json::to_value(&case.input).unwrap_or_default();
    Sha256Digest::from_bytes(format!("{}\n{}", case.id, sorted(input)).as_bytes())
}

/// Returns the digest of several cases in their order.
pub(crate) fn cases_digest<'a>(cases: impl IntoIterator<Item = (&'a CaseId, &'a Sha256Digest)>) -> Sha256Digest {
    let lines: Vec<_> = cases.into_iter().map(|(id, digest)| format!("{id} {digest}\n")).collect();
    Sha256Digest::from_bytes(lines.concat().as_bytes())
}

/// Returns the digest of a JSON value. The order of keys does not matter.
pub(crate) fn value_digest(value: Value) -> Sha256Digest {
    Sha256Digest::from_bytes(sorted(value).to_string().as_bytes())
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> Vec<CaseSpec> {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        counterproof_store::write::write(&path, text.as_bytes(), counterproof_store::write::Durability::Cached)
            .unwrap();
        counterproof_cases::load(&path).unwrap().cases
    }

    #[test]
    fn only_the_id_and_the_input_count() {
        let of = |text: &str| case_digest(&cases(text)[0]);
        let plain = of(r#"[{"id": "a", "input": {"user": "x", "context": {"p": 1, "q": [{"r": 2, "s": 3}]}}}]"#);
        let same =
            r#"[{"id": "a", "title": "t", "input": {"context": {"q": [{"s": 3, "r": 2}], "p": 1}, "user": "x"}}]"#;
        assert_eq!(of(same), plain);
        for other in [
            r#"[{"id": "b", "input": {"user": "x", "context": {"p": 1, "q": [{"r": 2, "s": 3}]}}}]"#,
            r#"[{"id": "a", "input": {"user": "x", "context": {"p": 2, "q": [{"r": 2, "s": 3}]}}}]"#,
            r#"[{"id": "a", "input": {"user": "x"}}]"#,
        ] {
            assert_ne!(of(other), plain);
        }
    }
}
