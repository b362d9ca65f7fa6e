//! The arguments of a call, as a model writes them: often right, sometimes not JSON.

use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    #[error("the arguments are not valid JSON: {0}")]
    Syntax(String),
    #[error("the arguments must be a JSON object")]
    NotAnObject,
    #[error("the argument `{0}` is missing")]
    Missing(&'static str),
    #[error("the argument `{name}` must be {expected}")]
    Type { name: &'static str, expected: &'static str },
}

/// The arguments of one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads the text of a model. No text is an empty object, which some servers send for a call without arguments.
    pub(super) fn parse(text: &str) -> Result<Self, ArgumentError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ArgumentError::NotAnObject),
            Err(error) => Err(ArgumentError::Syntax(error.to_string())),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub(super) fn text(&self, name: &'static str) -> Result<&str, ArgumentError> {
        self.optional_text(name)?.ok_or(ArgumentError::Missing(name))
    }

    pub(super) fn optional_text(&self, name: &'static str) -> Result<Option<&str>, ArgumentError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ArgumentError::Type { name, expected: "a string" }),
        }
    }

    /// Returns a whole number from 1.
    pub(super) fn optional_number(&self, name: &'static str) -> Result<Option<u64>, ArgumentError> {
        let expected = "a whole number from 1";
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().or_else(|| whole(value.as_f64()?)) {
                Some(number) if number > 0 => Ok(Some(number)),
                _ => Err(ArgumentError::Type { name, expected }),
            },
        }
    }
}

/// Some models write `10.0` for 10.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked before")]
fn whole(number: f64) -> Option<u64> {
    ((1.0..1e9).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_with_their_types() {
        let arguments = Arguments::parse(r#"{"path": "a", "limit": 3.0, "offset": null, "extra": []}"#).unwrap();
        assert_eq!((arguments.text("path"), arguments.optional_text("other")), (Ok("a"), Ok(None)));
        assert_eq!(arguments.optional_number("limit"), Ok(Some(3)));
        assert_eq!(arguments.optional_number("offset"), Ok(None));
        assert_eq!(arguments.text("content"), Err(ArgumentError::Missing("content")));
        assert!(matches!(arguments.text("extra"), Err(ArgumentError::Type { name: "extra", .. })));
        for limit in ["0", "-1", "1.5", "1e300", "\"3\"", "true", "[]"] {
            let arguments = Arguments::parse(&format!("{{\"limit\": {limit}}}")).unwrap();
            assert!(arguments.optional_number("limit").is_err(), "{limit}");
        }
    }

    #[test]
    fn a_text_that_is_not_an_object_is_an_error() {
        assert_eq!(Arguments::parse(" "), Ok(Arguments::default()));
        for text in ["[]", "1", "\"{}\"", "null"] {
            assert_eq!(Arguments::parse(text), Err(ArgumentError::NotAnObject), "{text}");
        }
        let deep = "[".repeat(100_000);
        for text in ["{", "{\"a\": }", "{} {}", "rm -rf /", &deep] {
            assert!(matches!(Arguments::parse(text), Err(ArgumentError::Syntax(_))));
        }
    }
}
