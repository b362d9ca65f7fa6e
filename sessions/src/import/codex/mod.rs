//! Rollouts of Codex: one or several files of lines for each thread.
//!
//! A thread is read as a stream: the lines of its files one after the other, as if they were one file.

mod thread;
mod tools;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use serde_json::{Value, json};

use super::lines::{Masker, Record, read_lines};
use super::report::Outcome;
use super::sources::{CodexThread, ReadResult, read_files};
use thread::Thread;

/// The types of lines. A line has its content in `payload`.
pub(super) const LINE_TYPES: [&str; 9] = [
    "session_meta",
    "response_item",
    "compacted",
    "turn_context",
    "event_msg",
    "token_usage_record",
    "world_state",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
];

/// Types that are left out on purpose, with the reason. `docs/session-import.md` has the same table.
pub(super) const LEFT_OUT: [(&str, &str); 30] = [
    ("event_msg/agent_message", "a copy of a response item"),
    ("event_msg/agent_reasoning", "a copy of a response item"),
    ("event_msg/agent_reasoning_raw_content", "a copy of a response item"),
    ("event_msg/agent_reasoning_section_break", "a copy of a response item"),
    ("event_msg/background_event", "a message to the user"),
    ("event_msg/context_compacted", "a copy of `compacted`"),
    ("event_msg/entered_review_mode", "a setting of the program"),
    ("event_msg/exec_command_begin", "a copy of a response item"),
    ("event_msg/exited_review_mode", "a setting of the program"),
    ("event_msg/item_completed", "a copy of a response item"),
    ("event_msg/item_started", "a copy of a response item"),
    ("event_msg/mcp_tool_call_begin", "a copy of a response item"),
    ("event_msg/patch_apply_begin", "a copy of a response item"),
    ("event_msg/plan_update", "a copy of a response item"),
    ("event_msg/task_complete", "the end of a turn; its last message is a response item"),
    ("event_msg/task_started", "the start of a turn"),
    ("event_msg/turn_complete", "the end of a turn; its last message is a response item"),
    ("event_msg/turn_diff", "a sum of the patches of a turn"),
    ("event_msg/turn_started", "the start of a turn"),
    ("event_msg/undo_completed", "a command of the user interface"),
    ("event_msg/undo_started", "a command of the user interface"),
    ("event_msg/user_message", "a copy of a response item"),
    ("event_msg/view_image_tool_call", "a copy of a response item"),
    ("event_msg/warning", "a message to the user"),
    ("event_msg/web_search_begin", "a copy of a response item"),
    ("event_msg/web_search_end", "a copy of a response item"),
    ("inter_agent_communication_metadata", "an addition to `inter_agent_communication`"),
    ("response_item/ghost_snapshot", "a backup for undo"),
    ("state", "a position of the recorder in older files"),
    ("world_state", "the environment as the program sees it"),
];

/// The lines of threads of which others are forks, and the thread at which each line of forks begins.
#[derive(Debug, Default)]
pub(super) struct SeenThreads {
    hasher: RandomState,
    /// The hashes of the lines of a thread, without their times.
    lines: HashMap<String, HashSet<u64>>,
    roots: HashMap<String, String>,
}

/// Reads a thread.
pub(super) fn read(source: &CodexThread, seen: &mut SeenThreads, masker: &mut Masker<'_>) -> ReadResult {
    let mut result = ReadResult::default();
    let stem = source.files.first().and_then(|file| file.file_stem()).unwrap_or_default();
    let id = source.id.clone().unwrap_or_else(|| stem.to_owned());
    let mut thread = Thread::new(id.clone(), masker.mask_text());
    let mut own = HashSet::new();
    read_files(source.files.iter(), &mut result, masker, |path, masker, budget, tally| {
        thread.begin_file();
        read_lines(path, masker, budget, &mut |record| match record {
            Record::Value(value @ Value::Object(_)) => {
                let line = unwrap_older(value);
                let payload = line.get("payload").unwrap_or(&Value::Null);
                let hash = seen.hasher.hash_one((line.get("type").and_then(Value::as_str), payload.to_string()));
                if source.has_forks {
                    own.insert(hash);
                }
                let parent = thread.parent().and_then(|parent| seen.lines.get(parent));
                let is_copy = parent.map(|lines| lines.contains(&hash));
                let (kind, outcome) = thread.add(&line, is_copy, &seen.roots);
                tally.count(&kind, outcome);
            }
            Record::Value(other) => {
                thread.add_unreadable(other);
                tally.count("(not an object)", Outcome::Opaque);
            }
            Record::Unreadable(text) => {
                thread.add_unreadable(text.into());
                tally.count("(unreadable)", Outcome::Opaque);
            }
        })
    });
    if source.has_forks {
        seen.lines.insert(id.clone(), own);
    }
    let has_parent = thread.parent().is_some_and(|parent| seen.lines.contains_key(parent));
    let (root, session) = thread.finish(has_parent, result.fallback_time);
    seen.roots.insert(id, root);
    result.sessions.push(session);
    result
}

/// Returns a line in the current form. Older files have response items without `payload`, and their first line has no type.
fn unwrap_older(line: Value) -> Value {
    if line.get("payload").is_some() {
        return line;
    }
    let kind = line.get("type").and_then(Value::as_str);
    let kind = match kind {
        Some(kind) if LINE_TYPES.contains(&kind) => return line,
        Some("message" | "reasoning" | "function_call" | "function_call_output" | "local_shell_call") => {
            "response_item"
        }
        None if line.get("record_type").is_some() => "state",
        None if line.get("id").is_some() && line.get("timestamp").is_some() => "session_meta",
        _ => return line,
    };
    json!({"timestamp": line.get("timestamp"), "type": kind, "payload": line})
}
