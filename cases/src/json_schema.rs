//! `expected.json_schema`: a schema for the final output. It is compiled while the file is read, so that an error has its
//! position in the file. The evaluator compiles it again: a compiled schema is large, and a run does not need it.

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// Maximum length of a message about a schema, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// An invalid JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid JSON Schema: {message}")]
pub struct SchemaError {
    /// A JSON Pointer into the schema.
    pub pointer: String,
    /// The error of the schema compiler.
    pub message: String,
}

/// Compiles a schema. The draft is draft-07 unless the schema has `$schema`. Remote references are not fetched.
pub fn validator(schema: &Value) -> Result<Validator, SchemaError> {
    let options = jsonschema::options();
    let options = if schema.get("$schema").is_some() { options } else { options.with_draft(Draft::Draft7) };
    options.build(schema).map_err(|error| {
        let message = error.to_string();
        let message = match message.char_indices().nth(MAX_MESSAGE_CHARS) {
            Some((end, _)) => format!("{}…", &message[..end]),
            None => message,
        };
        SchemaError { pointer: error.instance_path().as_str().to_owned(), message }
    })
}
