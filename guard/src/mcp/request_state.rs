//! The state of a request that the client sends again.

use serde_json::Value;

/// The text of a state that the server gave to the client and gets back.
pub(super) fn state_text(state: &Value) -> String {
    state.as_str().map_or_else(|| state.to_string(), str::to_owned)
}
