//! The places of an answer at which the runs of one case can differ.
//!
//! A place has the same key in every run and every case. It is a tool and an argument (a JSON Pointer without array indexes),
//! the order of the tools, or the output. Times, latencies and ids of calls and actions have no place: they differ between any
//! two runs.

use std::fmt;

use serde_json::json;

use crate::values::meaning_hash;
use crate::values::text;

/// A part of an answer at which runs can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place<'a> {
    /// Which tools are called, in their order.
    ToolSequence,
    /// An argument of the calls of a tool.
    Argument { tool: &'a str, path: &'a str },
    /// The other fields of the calls of a tool, such as their risk.
    Call { tool: &'a str },
    /// The results of a tool: an object by its leaves, any other value as a whole.
    Result { tool: &'a str, path: &'a str },
    /// The queries of retrievals, and the documents that they find.
    Retrieval,
    /// Events of a type that this version does not know.
    OtherEvent { kind: &'a str },
    /// The number of proposed actions that name a tool.
    Proposed { tool: &'a str },
    /// A parameter of the actions that name a tool.
    Param { tool: &'a str, path: &'a str },
    /// The type, risk and other fields of the actions that name a tool.
    Action { tool: &'a str },
    /// The targets of the evidence for the actions that name a tool.
    Evidence { tool: &'a str },
    /// The final output: a text as a whole, an object by its leaves.
    Output { path: &'a str },
}

/// The aspect of proposed actions that a place describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionAspect {
    /// Whether they are proposed.
    Existence,
    /// Their fields or their evidence.
    Content,
}

impl Place<'_> {
    /// The key of the place, equal in every run of every case.
    pub(super) fn key(self) -> u64 {
        // A JSON array keeps the parts apart: no tool name or path can produce the key of another place.
        let (kind, name, path) = self.parts();
        meaning_hash(&json!([kind, name, path]))
    }

    /// The key of the calls or the actions that the place is a part of, equal in every run of every case. A run without these
    /// calls or actions has no value at the place; their existence is another place.
    pub(super) fn owner(self) -> Option<u64> {
        let (kind, tool) = match self {
            Place::Argument { tool, .. } | Place::Call { tool } | Place::Result { tool, .. } => ("calls", tool),
            Place::Param { tool, .. } | Place::Action { tool } | Place::Evidence { tool } => ("actions", tool),
            Place::ToolSequence
            | Place::Retrieval
            | Place::OtherEvent { .. }
            | Place::Proposed { .. }
            | Place::Output { .. } => return None,
        };
        Some(meaning_hash(&json!([kind, tool])))
    }

    /// The aspect of proposed actions that the place describes; `None` for other places.
    pub(super) const fn action_aspect(&self) -> Option<ActionAspect> {
        match self {
            Place::Proposed { .. } => Some(ActionAspect::Existence),
            Place::Param { .. } | Place::Action { .. } | Place::Evidence { .. } => Some(ActionAspect::Content),
            _ => None,
        }
    }

    const fn parts(&self) -> (&str, &str, &str) {
        match *self {
            Place::ToolSequence => ("tool sequence", "", ""),
            Place::Argument { tool, path } => ("argument", tool, path),
            Place::Call { tool } => ("call", tool, ""),
            Place::Result { tool, path } => ("result", tool, path),
            Place::Retrieval => ("retrieval", "", ""),
            Place::OtherEvent { kind } => ("event", kind, ""),
            Place::Proposed { tool } => ("proposed", tool, ""),
            Place::Param { tool, path } => ("param", tool, path),
            Place::Action { tool } => ("action", tool, ""),
            Place::Evidence { tool } => ("evidence", tool, ""),
            Place::Output { path } => ("output", "", path),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = |tool: &str| text::one_line(tool, 60);
        let within = |path: &str| text::one_line(&path.trim_start_matches('/').replace('/', "."), 80);
        match *self {
            Place::ToolSequence => f.write_str("tool sequence"),
            Place::Argument { tool: name, path } => write!(f, "call of {} {}", tool(name), within(path)),
            Place::Call { tool: name } => write!(f, "call of {} risk or other fields", tool(name)),
            Place::Result { tool: name, path: "" } => write!(f, "result of {}", tool(name)),
            Place::Result { tool: name, path } => write!(f, "result of {} {}", tool(name), within(path)),
            Place::Retrieval => f.write_str("retrieval"),
            Place::OtherEvent { kind } => write!(f, "event {}", tool(kind)),
            Place::Proposed { tool: name } => write!(f, "{} proposed", tool(name)),
            Place::Param { tool: name, path } => write!(f, "{} {}", tool(name), within(path)),
            Place::Action { tool: name } => write!(f, "{} type, risk or other fields", tool(name)),
            Place::Evidence { tool: name } => write!(f, "evidence for {}", tool(name)),
            Place::Output { path: "" } => f.write_str("output"),
            Place::Output { path } => write!(f, "output {}", within(path)),
        }
    }
}
