//! How refused calls are answered. Decisions do not depend on it.

use serde::{Deserialize, Serialize};

/// How refused calls are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Responses {
    /// The kind of answer.
    pub deny_as: DenyAs,
    pub codes: DenyCodes,
}

/// The kind of answer to a refused call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyAs {
    /// An error in protocol revisions with `initialize`, and a tool result in later ones, which reserve the default codes.
    #[default]
    Auto,
    /// A JSON-RPC error.
    Error,
    /// A tool result with `isError`.
    ToolResult,
}

/// The codes of JSON-RPC errors, by action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DenyCodes {
    /// `BLOCK`.
    pub blocked: i32,
    /// `THROTTLE`.
    pub throttled: i32,
    /// `REJECT_WITH_HINT`.
    pub hint: i32,
    /// `TERMINATE_RUN`.
    pub terminated: i32,
}

impl Default for DenyCodes {
    fn default() -> Self {
        Self { blocked: -32081, throttled: -32082, hint: -32083, terminated: -32084 }
    }
}

impl DenyCodes {
    /// Codes that JSON-RPC defines: parse error, invalid request, unknown method, invalid parameters, internal error.
    pub const RESERVED: [i32; 5] = [-32700, -32600, -32601, -32602, -32603];

    /// The codes with their names in a policy.
    pub const fn named(&self) -> [(&'static str, i32); 4] {
        [("blocked", self.blocked), ("throttled", self.throttled), ("hint", self.hint), ("terminated", self.terminated)]
    }
}
