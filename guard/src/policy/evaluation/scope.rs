//! What counts together, as a key of fixed size.

use counterproof_artifact::Sha256Digest;

use crate::policy::model::Scope;

/// A scope of one run. Names are hashed, so that long ones take no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ScopeKey {
    Run,
    /// The names that the digest covers.
    Names(Sha256Digest),
    /// All names beyond the largest number of keys.
    Others,
}

/// The keys of one pair of names.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScopeKeys {
    tool: ScopeKey,
    server_tool: ScopeKey,
}

impl ScopeKeys {
    pub(super) fn new(server_name: &str, tool_name: &str) -> Self {
        Self { tool: hash("", tool_name), server_tool: hash(server_name, tool_name) }
    }

    pub(super) const fn key(&self, scope: Scope) -> ScopeKey {
        match scope {
            Scope::Run => ScopeKey::Run,
            Scope::Tool => self.tool,
            Scope::ServerTool => self.server_tool,
        }
    }
}

fn hash(server_name: &str, tool_name: &str) -> ScopeKey {
    // The length separates the names.
    let text = format!("{}:{server_name}{tool_name}", server_name.len());
    ScopeKey::Names(Sha256Digest::from_bytes(text.as_bytes()))
}
