//! A case as messages of an OpenAI form.

use counterproof_cases::Input;
use serde_json::{Value, json};

/// The user's messages: the context first, where there is one, then what the user says.
pub(super) fn user_messages(input: &Input) -> impl Iterator<Item = Value> {
    let context = input.context.as_ref().filter(|context| !context.is_null()).map(|context| match context {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    context.into_iter().chain([input.user.clone()]).map(|text| json!({"role": "user", "content": text}))
}
