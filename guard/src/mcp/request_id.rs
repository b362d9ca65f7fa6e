//! The id of a JSON-RPC request.

use counterproof_artifact::canonical_json::canonical_json;
use serde_json::Value;

/// The id of a request: a number or a string. `7` and `"7"` are different ids; `"a"` and `"\u0061"` are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Reads an id from its JSON text. Returns `None` for `null` and for other values, which MCP does not allow as ids.
    pub fn parse(json: &[u8]) -> Option<Self> {
        Self::from_value(&serde_json::from_slice(json).ok()?)
    }

    /// Returns the id of a value; see [`RequestId::parse`].
    pub fn from_value(value: &Value) -> Option<Self> {
        matches!(value, Value::String(_) | Value::Number(_)).then(|| Self(canonical_json(value)))
    }

    /// The JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
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
}
