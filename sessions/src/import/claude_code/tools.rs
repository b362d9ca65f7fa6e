//! Tool calls of Claude Code, and the commands and file operations that follow from them.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::confined_path;
use serde_json::{Map, Value};

use super::content::{ToolUse, blocks};
use crate::event::{EventBody, FileChange, FileOperation, ToolCall, ToolResult};
use crate::import::lines::Masker;
use crate::import::patches::{creation, operation, patch_from_hunks, patch_from_texts, relative};
use crate::message::content_text;
use crate::protocol::{is_shortened, milliseconds, shell_command, shell_output};

/// The start of a result that is stored in a file of its own.
const PERSISTED: &str = "<persisted-output>";

/// The folder of such files, within that of the session.
const RESULTS_FOLDER: &str = "tool-results";

/// Maximum size of such a file.
const MAX_RESULT_BYTES: u64 = 64 << 20;

/// The results of all tool calls of a transcript.
pub(super) struct Tools<'a> {
    /// The block with the result, and its line.
    results: HashMap<&'a str, (&'a Value, &'a Value)>,
    folder: &'a Utf8Path,
}

impl<'a> Tools<'a> {
    pub(super) fn new(lines: impl Iterator<Item = &'a Value>, folder: &'a Utf8Path) -> Self {
        let mut results = HashMap::new();
        for line in lines {
            for block in blocks(line.pointer("/message/content")) {
                if let Some(id) = block.get("tool_use_id").and_then(Value::as_str) {
                    results.entry(id).or_insert((block, line));
                }
            }
        }
        Self { results, folder }
    }

    /// Returns the records of a tool call, each with a name that is part of its key. `line` has the request.
    pub(super) fn records(
        &self,
        tool: &ToolUse<'_>,
        line: &Value,
        masker: &mut Masker<'_>,
    ) -> Vec<(String, EventBody)> {
        let found = self.results.get(tool.id).copied();
        // What the program knows about the result, next to what the model was given. With several results in a line, it is
        // not known to which it belongs.
        let details = found.and_then(|(_, line)| {
            let results = blocks(line.pointer("/message/content")).filter(|it| it.get("tool_use_id").is_some()).count();
            line.get("toolUseResult").filter(|_| results == 1)
        });
        let detail = |name: &str| details.and_then(|details| details.get(name));
        let result = found.map(|(block, _)| self.result(block, detail("persistedOutputPath"), masker));
        let result = result.unwrap_or_default();
        let latency_ms = ["durationMs", "totalDurationMs"]
            .iter()
            .find_map(|name| detail(name)?.as_u64())
            .or_else(|| detail("durationSeconds")?.as_f64().and_then(milliseconds));
        let cwd = line.get("cwd").and_then(Value::as_str);
        let call_id = (!tool.id.is_empty()).then(|| tool.id.to_owned());
        let mut records = Vec::new();
        let command = shell_command(tool.name, tool.input, cwd).map(|command| {
            let text = |name: &str| detail(name).and_then(Value::as_str).map(str::to_owned);
            let failure = result.error.as_deref().map(shell_output).unwrap_or_default();
            crate::event::Command {
                exit_code: failure.exit_code,
                stdout: text("stdout").or_else(|| result.content.clone()),
                stderr: text("stderr"),
                latency_ms,
                call_id: call_id.clone(),
                ..command
            }
        });
        let files = match result.success {
            Some(true) => file_operation(tool, details, cwd, masker.mask_text()),
            _ => None,
        };
        let call = ToolCall {
            tool_name: tool.name.to_owned(),
            arguments: tool.input.clone(),
            result,
            latency_ms,
            call_id,
            decision: None,
        };
        records.push(("tool".to_owned(), EventBody::ToolCall(call)));
        records.extend(command.map(|command| ("command".to_owned(), EventBody::Command(command))));
        records.extend(files.map(|operation| ("file".to_owned(), EventBody::FileOperation(operation))));
        records
    }

    fn result(&self, block: &Value, stored: Option<&Value>, masker: &mut Masker<'_>) -> ToolResult {
        let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let text = content_text(&block["content"]);
        let shortened = is_shortened(&text);
        let (content, truncated) = match self.persisted(&text, stored, masker) {
            Some(whole) => (whole, true),
            None => (text.clone(), shortened || text.starts_with(PERSISTED)),
        };
        ToolResult {
            success: Some(!is_error),
            content: Some(content),
            truncated: Some(truncated),
            error: is_error.then_some(text),
            sandbox: None,
        }
    }

    /// Returns the whole of a result that is stored in a file. Only the name of the file is used: a transcript must not make
    /// the import read other files.
    fn persisted(&self, text: &str, stored: Option<&Value>, masker: &mut Masker<'_>) -> Option<String> {
        if !text.starts_with(PERSISTED) {
            return None;
        }
        let path = stored.and_then(Value::as_str).or_else(|| {
            let (_, rest) = text.split_once("saved to: ")?;
            rest.lines().next()
        })?;
        let name = path.trim().rsplit(['/', '\\']).next().filter(|name| !name.is_empty())?;
        let folder: Utf8PathBuf = self.folder.join(RESULTS_FOLDER);
        let path = confined_path::resolve(&folder, name).ok()?;
        let whole = counterproof_store::read_file::read(&path, MAX_RESULT_BYTES).ok()?;
        Some(String::from_utf8_lossy(&masker.mask(&whole)).into_owned())
    }
}

/// Returns the file operation of a tool call that succeeded.
fn file_operation(tool: &ToolUse<'_>, details: Option<&Value>, cwd: Option<&str>, mask: &str) -> Option<FileOperation> {
    let input = |name: &str| tool.input.get(name).and_then(Value::as_str);
    let detail = |name: &str| details.and_then(|details| details.get(name));
    let path = relative(input("file_path").or_else(|| input("notebook_path"))?, cwd);
    let hunks = detail("structuredPatch").and_then(Value::as_array).filter(|hunks| !hunks.is_empty());
    let patch = hunks.and_then(|hunks| patch_from_hunks(&path, hunks));
    let modification = |patch: Option<String>| FileOperation { patch, ..operation(FileChange::Modify, path.clone()) };
    match tool.name {
        "Read" | "NotebookRead" => Some(operation(FileChange::Read, path)),
        "Write" => {
            let text = input("content")?;
            match detail("type").and_then(Value::as_str) {
                Some("create") => Some(creation(path, text, mask)),
                // Without details, it is not known whether the file existed.
                _ => Some(modification(patch)),
            }
        }
        "Edit" => {
            let (old, new) = (input("old_string").unwrap_or_default(), input("new_string").unwrap_or_default());
            if old.is_empty() && patch.is_none() {
                return Some(creation(path, new, mask));
            }
            let patch = patch.unwrap_or_else(|| patch_from_texts(&path, [(old, new)]));
            Some(modification(Some(patch)))
        }
        "MultiEdit" => {
            let edits = tool.input.get("edits").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let text = |edit: &'_ Map<String, Value>, name: &str| {
                edit.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let edits: Vec<(String, String)> = edits
                .iter()
                .filter_map(Value::as_object)
                .map(|edit| (text(edit, "old_string"), text(edit, "new_string")))
                .collect();
            let texts = edits.iter().map(|(old, new)| (old.as_str(), new.as_str()));
            let patch = patch.unwrap_or_else(|| patch_from_texts(&path, texts));
            Some(modification(Some(patch)))
        }
        "NotebookEdit" => Some(modification(patch)),
        _ => None,
    }
}
