//! The key of a model server, which no output shows.

use std::fmt;

use serde_json::Value;

/// What replaces a key in a text of the server.
const MASK: &str = "[REDACTED]";

/// A shorter key is part of ordinary words, and replacing it would only damage texts.
const MIN_MASKED_BYTES: usize = 4;

/// A key whose `Debug` is masked; neither `Display` nor serialisation exists.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Returns `None` for a blank text. White space around the key, such as the line feed of a file, is removed.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the key itself. Only code that sends or masks it may call this.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key in a text.
    pub(super) fn mask_text(&self, text: &mut String) {
        if self.0.len() >= MIN_MASKED_BYTES && text.contains(&self.0) {
            *text = text.replace(&self.0, MASK);
        }
    }

    /// Replaces the key in all texts and names of a value.
    pub(super) fn mask(&self, value: &mut Value) {
        // The depth is that of parsed JSON, which the parser limits.
        match value {
            Value::String(text) => self.mask_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| name.contains(&self.0)) {
                    let masked = std::mem::take(fields).into_iter().map(|(mut name, value)| {
                        self.mask_text(&mut name);
                        (name, value)
                    });
                    *fields = masked.collect();
                }
                fields.values_mut().for_each(|value| self.mask(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}
