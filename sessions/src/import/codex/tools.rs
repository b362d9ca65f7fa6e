//! Tool calls of Codex, and the commands and file operations that follow from them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::event::{Command, CommandLine, EventBody, FileChange, FileOperation, RequestedCall, ToolCall, ToolResult};
use crate::import::patches::{creation, find_patch, modification, operation, patch_operations, relative};
use crate::protocol::{ShellOutput, output_text, shell_command, shell_output};

/// A response item that asks for a tool call.
pub(super) struct ToolItem {
    pub(super) call_id: Option<String>,
    name: String,
    pub(super) arguments: Value,
    /// The arguments as the model wrote them.
    text: String,
    /// True for a tool that runs at the provider: no output follows.
    is_remote: bool,
}

impl ToolItem {
    pub(super) fn from_item(item: &Value) -> Option<Self> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let kind = text("type")?;
        let (name, arguments, source, is_remote) = match kind {
            "function_call" | "mcp_call" => {
                let source = text("arguments").unwrap_or_default();
                let arguments = serde_json::from_str(source).unwrap_or_else(|_| source.into());
                (text("name")?, arguments, source.to_owned(), false)
            }
            "custom_tool_call" => {
                let input = text("input").unwrap_or_default();
                (text("name")?, json!({"input": input}), input.to_owned(), false)
            }
            "local_shell_call" => {
                let action = item.get("action").cloned().unwrap_or(Value::Null);
                let source = action.to_string();
                (kind, action, source, false)
            }
            "web_search_call" | "tool_search_call" | "image_generation_call" => {
                let action = item.get("action").or_else(|| item.get("arguments")).cloned().unwrap_or(Value::Null);
                let source = action.to_string();
                (kind.trim_end_matches("_call"), action, source, true)
            }
            _ => return None,
        };
        let call_id = text("call_id").or_else(|| text("id")).filter(|id| !id.is_empty()).map(str::to_owned);
        Some(Self { call_id, name: name.to_owned(), arguments, text: source, is_remote })
    }

    /// The request as the answer states it. The provider does not ask for calls that it makes itself.
    pub(super) fn requested(&self) -> Option<RequestedCall> {
        (!self.is_remote).then(|| RequestedCall::new(self.call_id.clone(), self.name.clone(), self.text.clone()))
    }
}

/// What other lines state about tool calls, by the id of the call.
#[derive(Default)]
pub(super) struct Details {
    outputs: HashMap<String, Value>,
    commands: HashMap<String, Value>,
    patches: HashMap<String, Value>,
    servers: HashMap<String, Value>,
}

impl Details {
    pub(super) fn add_output(&mut self, item: &Value) {
        let output = item.get("output").or_else(|| item.get("result")).cloned().unwrap_or(Value::Null);
        if let Some(id) = item.get("call_id").and_then(Value::as_str) {
            self.outputs.entry(id.to_owned()).or_insert(output);
        }
    }

    pub(super) fn add_end(&mut self, kind: &str, payload: &Value) {
        let ends = match kind {
            "exec_command_end" => &mut self.commands,
            "patch_apply_end" => &mut self.patches,
            _ => &mut self.servers,
        };
        if let Some(id) = payload.get("call_id").and_then(Value::as_str) {
            ends.insert(id.to_owned(), payload.clone());
        }
    }

    /// Returns the records of a tool call, each with a name that is part of its key.
    pub(super) fn records(&self, item: ToolItem, cwd: Option<&str>, mask: &str) -> Vec<(String, EventBody)> {
        let id = item.call_id.as_deref().unwrap_or_default();
        let ended = self.commands.get(id);
        let patched = self.patches.get(id);
        let output = self.outputs.get(id);
        let text = output.map(output_text);
        let mut facts = text.as_deref().map(shell_output).unwrap_or_default();
        let number = |name: &str| ended.and_then(|ended| ended.get(name)?.as_i64());
        facts.exit_code = number("exit_code").or(facts.exit_code);
        let latency =
            [ended, self.servers.get(id)].into_iter().flatten().find_map(|end| duration(end.get("duration")?));
        facts.latency_ms = latency.or(facts.latency_ms);
        let success = text.as_ref().map(|_| is_success(output, patched, &facts));
        let command = shell_command(&item.name, &item.arguments, cwd).map(|command| {
            let stream = |name: &str| ended.and_then(|ended| ended.get(name)?.as_str()).map(str::to_owned);
            Command {
                exit_code: facts.exit_code,
                stdout: stream("stdout").or_else(|| facts.stdout.clone()),
                stderr: stream("stderr").or_else(|| facts.stderr.clone()),
                latency_ms: facts.latency_ms,
                call_id: item.call_id.clone(),
                ..command
            }
        });
        let files = if success == Some(true) || patched.is_some_and(is_applied) {
            file_operations(&item, command.as_ref(), patched, cwd, mask)
        } else {
            Vec::new()
        };
        let result = ToolResult {
            error: text.clone().filter(|_| success == Some(false)),
            success: success.or(item.is_remote.then_some(true)),
            truncated: text.as_ref().map(|_| facts.is_truncated),
            content: text,
            sandbox: None,
        };
        let call = ToolCall {
            tool_name: item.name,
            arguments: item.arguments,
            result,
            latency_ms: facts.latency_ms,
            call_id: item.call_id,
            decision: None,
        };
        let mut records = vec![("call".to_owned(), EventBody::ToolCall(call))];
        records.extend(command.map(|command| ("command".to_owned(), EventBody::Command(command))));
        let files = files.into_iter().enumerate();
        records.extend(files.map(|(at, operation)| (format!("file/{at}"), EventBody::FileOperation(operation))));
        records
    }
}

fn is_success(output: Option<&Value>, patched: Option<&Value>, facts: &ShellOutput) -> bool {
    let stated = output.and_then(|output| output.get("success")?.as_bool());
    let stated = stated.or_else(|| patched.and_then(|patched| patched.get("success")?.as_bool()));
    stated.unwrap_or(facts.exit_code.unwrap_or(0) == 0)
}

fn is_applied(patched: &Value) -> bool {
    patched.get("success").and_then(Value::as_bool).unwrap_or(false)
}

/// `{"secs": …, "nanos": …}`
fn duration(duration: &Value) -> Option<u64> {
    let seconds = duration.get("secs")?.as_u64()?;
    let nanoseconds = duration.get("nanos").and_then(Value::as_u64).unwrap_or(0);
    Some(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000))
}

fn file_operations(
    item: &ToolItem,
    command: Option<&Command>,
    patched: Option<&Value>,
    cwd: Option<&str>,
    mask: &str,
) -> Vec<FileOperation> {
    if let Some(changes) = patched.and_then(|patched| patched.get("changes")?.as_object()) {
        return changes.iter().map(|(path, change)| stated_change(path, change, cwd, mask)).collect();
    }
    let text = match command.and_then(|command| command.command.as_ref()) {
        Some(CommandLine::Shell(text)) => Some(text.as_str()),
        Some(CommandLine::Arguments(words)) => words.iter().map(String::as_str).find(|word| find_patch(word).is_some()),
        None if item.name == "apply_patch" => {
            item.arguments.get("input").or_else(|| item.arguments.get("patch")).and_then(Value::as_str)
        }
        None => None,
    };
    text.and_then(find_patch).map(|patch| patch_operations(patch, cwd, mask)).unwrap_or_default()
}

/// A change as the program states it after it applied a patch: `{"update": {"unified_diff", "move_path"}}`, or with `type`.
fn stated_change(path: &str, change: &Value, cwd: Option<&str>, mask: &str) -> FileOperation {
    let (kind, fields) = match change.get("type").and_then(Value::as_str) {
        Some(kind) => (kind, change),
        None => {
            change.as_object().and_then(|it| it.iter().next()).map_or(("", change), |(kind, it)| (kind.as_str(), it))
        }
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let path = relative(path, cwd);
    match kind {
        "add" => creation(path, text("content").unwrap_or_default(), mask),
        "delete" => operation(FileChange::Delete, path),
        _ => modification(path, text("move_path").map(|target| relative(target, cwd)), text("unified_diff")),
    }
}
