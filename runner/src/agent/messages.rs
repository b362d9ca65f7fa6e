//! The input of a case as OpenAI messages.

use counterproof_cases::Input;
use serde_json::{Value, json};

/// Returns the user messages: the context if there is one, then the user's text.
pub(super) fn user_messages(input: &Input) -> impl Iterator<Item = Value> {
    let context = input.context.as_ref().filter(|context| !context.is_null()).map(|context| match context {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    context.into_iter().chain([input.user.clone()]).map(|text| json!({"role": "user", "content": text}))
}
