//! `expected.json_schema`: what the output has to look like. It is compiled where it is read, so that what is wrong with it is
//! told with its place in the file, and again where outputs are judged: a compiled schema is large, and a run needs none.

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// Longest message about a schema, in characters.
const MESSAGE_UP_TO: usize = 200;

/// What is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON Schema that can be used: {message}")]
pub struct SchemaError {
    /// A JSON Pointer into the schema.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

/// A schema that outputs can be held against. Agents' cases are written for draft-07, unless the schema itself says
/// otherwise; nothing is fetched.
pub fn validator(schema: &Value) -> Result<Validator, SchemaError> {
    let options = jsonschema::options();
    let options = if schema.get("$schema").is_some() { options } else { options.with_draft(Draft::Draft7) };
    options.build(schema).map_err(|error| {
        let message = error.to_string();
        let message = match message.char_indices().nth(MESSAGE_UP_TO) {
            Some((end, _)) => format!("{}…", &message[..end]),
            None => message,
        };
        SchemaError { pointer: error.instance_path().as_str().to_owned(), message }
    })
}
