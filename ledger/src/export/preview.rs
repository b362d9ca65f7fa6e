//! Previews of arguments and results as JSON values.

use serde_json::{Map, Value, json};

/// The preview of a payload that was too large to be inspected. It has no content.
const TRUNCATED: &str = "[TRUNCATED]";

/// Nesting of a value that is taken over. A document may have 127 levels, and the artifact adds some around the value.
const MAX_DEPTH: usize = 100;

/// A preview of an event.
#[derive(Debug, Clone, Default)]
pub(super) struct Preview {
    /// The text, if there is one.
    pub(super) text: Option<String>,
    /// True if the text is not whole.
    pub(super) is_truncated: bool,
}

impl Preview {
    /// Reads the preview of an event, whose text has another name for arguments and for results.
    pub(super) fn new(preview: &Value, name: &str) -> Self {
        let text = preview[name].as_str().map(str::to_owned);
        Self { text, is_truncated: preview["truncated"].as_bool().unwrap_or_default() }
    }

    /// Returns the whole value, if the preview has it and it is an object.
    pub(super) fn object(&self) -> Option<Map<String, Value>> {
        match serde_json::from_str(self.text.as_ref().filter(|_| !self.is_truncated)?) {
            Ok(value @ Value::Object(_)) if depth(&value) > MAX_DEPTH => None,
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        }
    }

    /// Returns an object with the part of a value that the preview has, and a fact that identifies the whole value.
    pub(super) fn part(&self, fact: Option<(&str, Value)>) -> Map<String, Value> {
        let mut part = Map::from_iter([("truncated".to_owned(), json!(self.is_truncated || self.text.is_none()))]);
        part.extend(fact.map(|(name, value)| (name.to_owned(), value)));
        let text = self.text.as_ref().filter(|text| *text != TRUNCATED);
        part.extend(text.map(|text| ("preview".to_owned(), json!(text))));
        part
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Preview {
        Preview { text: Some(text.to_owned()), is_truncated: false }
    }

    #[test]
    fn only_a_whole_object_is_taken_over() {
        assert_eq!(whole(r#"{"a": 1}"#).object(), json!({"a": 1}).as_object().cloned());
        let cut = Preview { is_truncated: true, ..whole(r#"{"a": 1}"#) };
        for preview in [whole("[1]"), whole("{"), whole("1e999"), whole(""), Preview::default(), cut] {
            assert_eq!(preview.object(), None, "{preview:?}");
        }
    }

    #[test]
    fn a_value_that_is_too_deep_for_an_artifact_stays_a_text() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(whole(&nested(99)).object().is_some());
        assert!(whole(&nested(100)).object().is_none());
        assert_eq!(whole(&nested(100)).part(None)["preview"], nested(100));
    }

    #[test]
    fn a_part_states_what_is_known() {
        let part = |preview: Preview| Value::Object(preview.part(Some(("sha256", json!("abc")))));
        let cut = Preview { text: Some("{\"a".to_owned()), is_truncated: true };
        assert_eq!(part(cut), json!({"truncated": true, "sha256": "abc", "preview": "{\"a"}));
        assert_eq!(part(Preview::default()), json!({"truncated": true, "sha256": "abc"}));
        assert_eq!(part(whole(TRUNCATED)), json!({"truncated": false, "sha256": "abc"}));
        assert_eq!(part(whole("[1]")), json!({"truncated": false, "sha256": "abc", "preview": "[1]"}));
    }
}
