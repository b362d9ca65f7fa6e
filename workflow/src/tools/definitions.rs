//! The tools as the model sees them: names, descriptions, and schemas of their arguments.

use serde_json::{Value, json};

use super::file_tools::DEFAULT_LINES;
use super::shell::{MAX_OUTPUT_CHARS, MAX_TIMEOUT};

/// Returns the `tools` of a request. The value is always the same.
pub(super) fn definitions() -> Value {
    let path = |what: &str| json!({"type": "string", "description": format!("{what}, relative to the workspace")});
    let text = |what: &str| json!({"type": "string", "description": what});
    let number = |what: &str| json!({"type": "integer", "minimum": 1, "description": what});
    let read = format!("Read a text file. Without `limit`, at most {DEFAULT_LINES} lines are returned.");
    let shell = format!(
        "Run a command with `sh -c` in the workspace. Returns its output, at most {MAX_OUTPUT_CHARS} characters, and a last \
         line `exit code N`. There may be no network, and files outside of the workspace may be read-only."
    );
    let timeout = format!("The time limit in seconds, at most {}", MAX_TIMEOUT.as_secs());
    json!([
        tool(
            "read",
            &read,
            &["path"],
            &json!({
                "path": path("A file"),
                "offset": number("The first line, from 1"),
                "limit": number("The most lines"),
            })
        ),
        tool(
            "write",
            "Write a whole file. Missing folders are created.",
            &["path", "content"],
            &json!({
                "path": path("A file"),
                "content": text("The new content"),
            })
        ),
        tool(
            "edit",
            "Replace a text in a file.",
            &["path", "old_string", "new_string"],
            &json!({
                "path": path("A file"),
                "old_string": text("The text to replace, which must occur exactly once in the file"),
                "new_string": text("The text that replaces it"),
            })
        ),
        tool(
            "search",
            "Search for a regular expression. Returns lines `path:line:text`.",
            &["pattern"],
            &json!({
                "pattern": text("A regular expression, matched against each line"),
                "path": path("A file or folder; the whole workspace if left out"),
            })
        ),
        tool(
            "shell",
            &shell,
            &["command"],
            &json!({
                "command": text("The command"),
                "timeout_s": number(&timeout),
            })
        ),
    ])
}

fn tool(name: &str, description: &str, required: &[&str], properties: &Value) -> Value {
    json!({"type": "function", "function": {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
    }})
}
