//! The types of lines of a transcript of Claude Code.

use serde_json::Value;

/// Types that are left out on purpose, with the reason. `docs/session-import.md` has the same table.
pub(crate) const LEFT_OUT: [(&str, &str); 18] = [
    ("agent-name", "a setting of the program"),
    ("agent-setting", "a setting of the program"),
    ("attachment", "context that the program adds; the file does not have the text that the model gets"),
    ("bridge-session", "the connection to another program"),
    ("file-history-snapshot", "backups for undo; the edits are file operations"),
    ("last-prompt", "a copy of a user line"),
    ("mode", "a setting of the program"),
    ("permission-mode", "a setting of the program"),
    ("progress", "intermediate output; the whole output is in the tool result"),
    ("queue-operation", "a prompt that waits; it is a user line when the model gets it"),
    ("system/away_summary", "a message to the user"),
    ("system/bridge_status", "the connection to another program"),
    ("system/informational", "a message to the user"),
    ("system/local_command", "a command of the user interface, which the model does not see"),
    ("system/scheduled_task_fire", "the prompt is a user line"),
    ("system/stop_hook_summary", "a message to the user about hooks"),
    ("system/turn_duration", "a sum for the user; records have their own times"),
    ("worktree-state", "a setting of the program"),
];

/// The model of answers that the program wrote itself.
const SYNTHETIC: &str = "<synthetic>";

/// What a line is for the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    /// The start of the history after a compaction.
    Compaction,
    /// Tool results were removed from the history.
    MicroCompaction,
    /// A model call that failed and is retried.
    ApiError,
    /// A prompt that the user sent while the model worked.
    QueuedPrompt,
    Title,
    PullRequest,
    LeftOut,
    Unknown,
}

/// Returns the type of a line, as it is counted, and its kind.
pub(super) fn classify(line: &Value) -> (String, Kind) {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let Some(kind) = text("type") else { return ("(none)".to_owned(), Kind::Unknown) };
    let has_message = line.get("message").is_some_and(Value::is_object);
    match kind {
        "user" if has_message => (kind.to_owned(), Kind::User),
        "assistant" if has_message => (kind.to_owned(), Kind::Assistant),
        "summary" | "ai-title" | "custom-title" => (kind.to_owned(), Kind::Title),
        "pr-link" => (kind.to_owned(), Kind::PullRequest),
        "attachment" => {
            let of = line.pointer("/attachment/type").and_then(Value::as_str);
            let is_prompt = of == Some("queued_command");
            (kind.to_owned(), if is_prompt { Kind::QueuedPrompt } else { Kind::LeftOut })
        }
        "system" => {
            let kind = format!("system/{}", text("subtype").unwrap_or("(none)"));
            let of = match kind.as_str() {
                "system/compact_boundary" => Kind::Compaction,
                "system/microcompact_boundary" => Kind::MicroCompaction,
                "system/api_error" => Kind::ApiError,
                other => left_out_or_unknown(other),
            };
            (kind, of)
        }
        other => (other.to_owned(), left_out_or_unknown(other)),
    }
}

fn left_out_or_unknown(kind: &str) -> Kind {
    if LEFT_OUT.iter().any(|(known, _)| *known == kind) { Kind::LeftOut } else { Kind::Unknown }
}

/// Whether a line of the type `assistant` was written by the program, not by a model.
pub(super) fn is_synthetic(line: &Value) -> bool {
    line.pointer("/message/model").and_then(Value::as_str) == Some(SYNTHETIC) && !is_api_error(line)
}

pub(super) fn is_api_error(line: &Value) -> bool {
    line.get("isApiErrorMessage").and_then(Value::as_bool).unwrap_or(false)
}
