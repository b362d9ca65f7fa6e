//! The id of a JSON-RPC request.

use std::hash::{Hash, Hasher};

use counterproof_artifact::canonical_json::canonical_json;
use serde_json::Value;

/// The id of a request: a number or a string. `7` and `"7"` are different ids; `"a"` and `"\u0061"` are the same.
#[derive(Debug, Clone)]
pub struct RequestId {
    /// The canonical form, by which ids are compared. The text itself if no parser can represent it, such as `1e999`.
    key: String,
    /// The text in the request, which an answer repeats.
    text: String,
}

impl RequestId {
    /// Reads an id from its JSON text. Returns `None` for `null` and for other values, which MCP does not allow as ids.
    pub fn parse(json: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(json).ok()?.trim_ascii();
        let is_id = text.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
        let key = serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value: Value| canonical_json(&value));
        is_id.then(|| Self { key, text: text.to_owned() })
    }

    /// Returns the id of a value; see [`RequestId::parse`].
    pub fn from_value(value: &Value) -> Option<Self> {
        Self::parse(value.to_string().as_bytes())
    }

    /// The JSON text.
    pub fn as_json(&self) -> &str {
        &self.text
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_by_value_and_type() {
        let id = |json: &str| RequestId::parse(json.as_bytes());
        assert_eq!(id(r#""ab""#), id(r#""a\u0062""#));
        assert_ne!(id("7"), id(r#""7""#));
        assert_ne!(id("9007199254740993"), id("9007199254740992"));
        assert_eq!((id("null"), id("[1]"), id("")), (None, None, None));
    }

    #[test]
    fn an_answer_repeats_the_text_of_the_id() {
        for text in ["1e999", r#""\ud800""#, "12345678901234567890123", r#""a\u0062""#] {
            assert_eq!(RequestId::parse(text.as_bytes()).unwrap().as_json(), text);
        }
    }
}
