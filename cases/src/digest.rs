//! Digests of cases: what two runs asked can be compared without the cases file. Titles, tags and suites are not included.

use counterproof_artifact::{CaseId, Sha256Digest};
use serde_json::{Value, json};

use crate::CaseSpec;

impl CaseSpec {
    /// The SHA-256 of the id, the input, the turns and the results of tools. Cases with equal digests send the same request.
    pub fn input_digest(&self) -> Sha256Digest {
        // JSON values and strings always serialise.
        let mut input = serde_json::to_value(&self.input).unwrap_or_default();
        // Only where a case has them: the digests of other cases are those of earlier versions.
        if let Some(fields) = input.as_object_mut()
            && !(self.turns.is_empty() && self.tool_results.is_empty())
        {
            let turns: Vec<_> = self.turns.iter().map(|turn| json!([turn.user, turn.tool_results])).collect();
            fields.insert("\u{0}conversation".to_owned(), json!([turns, self.tool_results]));
        }
        Sha256Digest::from_bytes(format!("{}\n{}", self.id, sorted(input)).as_bytes())
    }

    /// The SHA-256 of the expectations. Answers to cases with equal digests are judged alike.
    pub fn expectation_digest(&self) -> Sha256Digest {
        let expected = serde_json::to_value(&self.expected).unwrap_or_default();
        if self.turns.iter().all(|turn| turn.expected.is_empty()) {
            return value_digest(expected);
        }
        let turns: Vec<_> = self.turns.iter().map(|turn| &turn.expected).collect();
        value_digest(json!([expected, turns]))
    }
}

/// Returns the digest of several cases in their order. Shards of one run have it in common.
pub fn cases_digest<'a>(cases: impl IntoIterator<Item = (&'a CaseId, &'a Sha256Digest)>) -> Sha256Digest {
    let lines: Vec<_> = cases.into_iter().map(|(id, digest)| format!("{id} {digest}\n")).collect();
    Sha256Digest::from_bytes(lines.concat().as_bytes())
}

/// Returns the digest of a JSON value. The order of keys does not matter: files that differ only in it have the same values.
pub fn value_digest(value: Value) -> Sha256Digest {
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

    fn case(text: &str) -> CaseSpec {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8Path::from_path(folder.path()).unwrap().join("cases.json");
        counterproof_store::write::write(&path, text.as_bytes(), counterproof_store::write::Durability::Cached)
            .unwrap();
        crate::load(&path).unwrap().cases.remove(0)
    }

    #[test]
    fn only_the_id_and_the_input_count_for_the_input() {
        let of = |text: &str| case(text).input_digest();
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

    #[test]
    fn only_the_expectations_count_for_the_expectations() {
        let of = |text: &str| case(text).expectation_digest();
        let plain = of(r#"[{"id": "a", "input": {"user": "x"}, "expected": {"must_include": ["p"]}}]"#);
        let same = r#"[{"id": "b", "title": "t", "expected": {"must_include": ["p"]}, "input": {"user": "y"}}]"#;
        assert_eq!(of(same), plain);
        assert_ne!(of(r#"[{"id": "a", "input": {"user": "x"}, "expected": {"must_include": ["q"]}}]"#), plain);
        assert_ne!(of(r#"[{"id": "a", "input": {"user": "x"}}]"#), plain);
    }

    #[test]
    fn turns_and_results_of_tools_count_where_a_case_has_them() {
        let plain = case(r#"[{"id": "a", "input": {"user": "x"}}]"#);
        let turn = case(r#"[{"id": "a", "turns": [{"user": "x"}]}]"#);
        let other = case(r#"[{"id": "a", "turns": [{"user": "x", "tool_results": {"t": 1}}]}]"#);
        let judged = case(r#"[{"id": "a", "turns": [{"user": "x", "expected": {"max_steps": 1}}]}]"#);
        let results = case(r#"[{"id": "a", "input": {"user": "x"}, "tool_results": {"t": 1}}]"#);
        let digests: std::collections::HashSet<_> =
            [&plain, &turn, &other, &results].map(|case| case.input_digest().to_string()).into();
        assert_eq!(digests.len(), 4);
        assert_eq!(turn.input_digest(), judged.input_digest());
        assert_eq!(turn.expectation_digest(), plain.expectation_digest());
        assert_ne!(judged.expectation_digest(), plain.expectation_digest());
    }
}
