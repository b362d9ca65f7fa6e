//! Rollouts of Codex: one or several files of lines for each thread.
//!
//! A thread is read as a stream: the lines of its files one after the other, as if they were one file.

mod accounting;
mod kinds;
mod thread;
mod tools;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use serde_json::{Value, json};

use super::lines::{Masker, Record, read_lines};
use super::report::Outcome;
use super::source::{CodexThread, ReadResult, read_files};
pub(super) use kinds::{LEFT_OUT, LINE_TYPES};
use thread::Thread;

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
                let parent = thread.parent().and_then(|parent| seen.lines.get(parent));
                let is_copy = if source.has_forks || parent.is_some() {
                    let payload = line.get("payload").unwrap_or(&Value::Null).to_string();
                    let hash = seen.hasher.hash_one((line.get("type").and_then(Value::as_str), payload));
                    if source.has_forks {
                        own.insert(hash);
                    }
                    parent.map(|lines| lines.contains(&hash))
                } else {
                    None
                };
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
