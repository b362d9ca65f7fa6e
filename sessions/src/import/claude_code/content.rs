//! The content of messages: a text, or blocks.

use serde_json::Value;

pub(super) fn blocks(content: Option<&Value>) -> impl Iterator<Item = &Value> {
    content.and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn text_block(block: &Value) -> Option<&str> {
    if block.get("type")? == "text" { block.get("text")?.as_str() } else { None }
}

/// Returns the text of a content: a string, or blocks.
pub(super) fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        content => blocks(content).filter_map(text_block).collect::<Vec<_>>().join("\n"),
    }
}

/// A request of the model for a tool call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolUse<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) input: &'a Value,
}

impl<'a> ToolUse<'a> {
    pub(super) fn from_block(block: &'a Value) -> Option<Self> {
        let kind = block.get("type")?.as_str()?;
        if !matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use") {
            return None;
        }
        Some(Self {
            id: block.get("id").and_then(Value::as_str).unwrap_or_default(),
            name: block.get("name")?.as_str()?,
            input: block.get("input").unwrap_or(&Value::Null),
        })
    }
}
