//! Which events an agent wrote itself, and which are turns of the user.

use serde_json::{Map, Value};

/// Roles of an agent in a conversation.
const AGENT_ROLES: [&str; 5] = ["assistant", "agent", "model", "ai", "bot"];

/// Roles of the person that an agent talks to.
const USER_ROLES: [&str; 3] = ["user", "human", "customer"];

/// Types of events that hold what an agent wrote or thought.
const AGENT_EVENTS: [&str; 9] = [
    "assistant_message",
    "agent_message",
    "ai_message",
    "model_message",
    "thought",
    "thinking",
    "reasoning",
    "plan",
    "reflection",
];

/// Types of events that hold what the user said.
const USER_EVENTS: [&str; 3] = ["user_message", "user_turn", "human_message"];

/// True if the agent wrote the fields of an event of an unknown type.
pub(super) fn is_by_agent(kind: &str, fields: &Map<String, Value>) -> bool {
    has_role(fields, &AGENT_ROLES) || is_one_of(kind, &AGENT_EVENTS)
}

/// True if an event of an unknown type is a turn of the user.
pub(super) fn is_user_turn(kind: &str, fields: &Map<String, Value>) -> bool {
    has_role(fields, &USER_ROLES) || is_one_of(kind, &USER_EVENTS)
}

fn has_role(fields: &Map<String, Value>, roles: &[&str]) -> bool {
    fields.get("role").and_then(Value::as_str).is_some_and(|role| is_one_of(role, roles))
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
