//! Turns of a conversation: events that record what the user or the agent said.
//!
//! The contract has no type for them, so producers record them as events of their own type. They are recognised by their
//! `role`, or else by the type.

use counterproof_artifact::{Event, EventBody};
use serde_json::{Map, Value};

/// Who speaks in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The person that the agent serves. The turn is input.
    User,
    /// The agent. The turn is wording, like the final output.
    Assistant,
}

/// The fields that hold the text of a turn.
const TEXTS: [&str; 4] = ["content", "text", "message", "parts"];

/// Returns who speaks in an event; `None` for an event that is not a turn.
pub(crate) fn speaker(event: &Event) -> Option<Speaker> {
    let EventBody::Unknown { kind, fields } = &event.body else { return None };
    if !TEXTS.iter().any(|name| fields.contains_key(*name)) {
        return None;
    }
    match fields.get("role") {
        Some(role) => role.as_str().and_then(named),
        None => named(kind.split('_').next().unwrap_or_default()).filter(|_| is_turn(kind)),
    }
}

/// Returns the text of a turn; `None` for a turn of several parts, or without text.
pub(crate) fn text_of(fields: &Map<String, Value>) -> Option<&str> {
    TEXTS.iter().find_map(|name| fields.get(*name)?.as_str())
}

fn named(role: &str) -> Option<Speaker> {
    match role.to_ascii_lowercase().as_str() {
        "user" | "human" | "customer" => Some(Speaker::User),
        "assistant" | "agent" | "ai" | "model" | "bot" => Some(Speaker::Assistant),
        _ => None,
    }
}

/// True for types such as `user`, `user_message` and `assistant_turn`.
fn is_turn(kind: &str) -> bool {
    matches!(
        kind.split_once('_').map(|(_, rest)| rest),
        None | Some("message" | "turn" | "utterance" | "says" | "said")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn speaks(event: Value) -> Option<Speaker> {
        let event: Event = serde_json::from_value(event).unwrap();
        speaker(&event)
    }

    #[test]
    fn a_turn_is_recognised_by_its_role_or_its_type() {
        let turn = |kind: &str, role: &str| speaks(json!({"type": kind, "ts": 1, "role": role, "content": "hi"}));
        assert_eq!(turn("message", "user"), Some(Speaker::User));
        assert_eq!(turn("llm.turn", "Assistant"), Some(Speaker::Assistant));
        assert_eq!(turn("message", "system"), None);
        let typed = |kind: &str| speaks(json!({"type": kind, "ts": 1, "text": "hi"}));
        assert_eq!(typed("user_message"), Some(Speaker::User));
        assert_eq!(typed("assistant"), Some(Speaker::Assistant));
        assert_eq!(typed("agent_plan"), None);
        assert_eq!(speaks(json!({"type": "message", "ts": 1, "role": "user"})), None, "without text");
    }
}
