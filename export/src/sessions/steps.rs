//! The steps of a case: tool calls, and commands that no tool call of the session ran.

use std::collections::HashMap;

use counterproof_artifact::{Content, Count, EventBody as CaseEvent, Millis, ToolStatus};
use counterproof_sessions::event::{Command, EventBody, SessionEvent, ToolCall};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::masked::Masker;
use crate::ledger::{decision_facts, is_refusal};
use crate::run_builder::{self, millis, object};

/// The tool of a command that no tool call ran.
pub(super) const COMMAND: &str = "command";

/// The tool of a call without a name.
const UNNAMED: &str = "unknown";

/// Longest name of a tool, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// A tool call or a command, and the record of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) event: &'a SessionEvent,
    pub(super) call: Option<&'a ToolCall>,
    pub(super) command: Option<&'a Command>,
    /// From 1, in the order of the start.
    pub(super) number: usize,
}

/// Names a call of a session: two agents can have calls of one id.
type CallKey<'a> = (Option<&'a str>, &'a str);

/// Returns the steps in the order of their start.
pub(super) fn steps(events: &[SessionEvent]) -> Vec<Step<'_>> {
    let mut commands: HashMap<CallKey<'_>, &Command> = HashMap::new();
    for event in events {
        if let EventBody::Command(command) = &event.body
            && let Some(id) = &command.call_id
        {
            commands.entry((event.agent.as_deref(), id)).or_insert(command);
        }
    }
    let mut calls: Vec<CallKey<'_>> = Vec::new();
    let mut steps = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ToolCall(call) => {
                let key = call.call_id.as_deref().map(|id| (event.agent.as_deref(), id));
                let command = key.and_then(|key| commands.get(&key).copied());
                calls.extend(key);
                steps.push(Step { event, call: Some(call), command, number: 0 });
            }
            EventBody::Command(command) => steps.push(Step { event, call: None, command: Some(command), number: 0 }),
            _ => {}
        }
    }
    let calls: std::collections::HashSet<_> = calls.into_iter().collect();
    // The command of a tool call is that call.
    steps.retain(|step| {
        let id = step.command.and_then(|command| command.call_id.as_deref());
        step.call.is_some() || !id.is_some_and(|id| calls.contains(&(step.event.agent.as_deref(), id)))
    });
    // Stable: of two steps that began at once, the one that was recorded first comes first.
    steps.sort_by_key(|step| step.event.timestamp);
    for (index, step) in steps.iter_mut().enumerate() {
        step.number = index + 1;
    }
    steps
}

impl Step<'_> {
    /// Returns the id of the step. The recorded ids are random, and would differ between any two sessions.
    pub(super) fn call_id(&self) -> String {
        format!("call-{}", self.number)
    }

    pub(super) fn tool(&self) -> String {
        let name = self.call.map_or(COMMAND, |call| call.tool_name.as_str());
        match &name[..name.floor_char_boundary(MAX_NAME_BYTES)] {
            "" => UNNAMED.to_owned(),
            whole if whole.len() == name.len() => whole.to_owned(),
            part => format!("{part}…"),
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        self.call.and_then(|call| call.decision.as_ref()).is_some_and(is_refusal)
    }

    pub(super) fn has_failed(&self) -> bool {
        let of_call = |call: &ToolCall| call.result.success == Some(false);
        let of_command = |command: &Command| command.exit_code.is_some_and(|code| code != 0);
        self.event.error.is_some()
            || self.call.is_some_and(of_call)
            || self.command.is_some_and(of_command)
            || self.is_refused()
    }

    /// Whether the arguments name a file.
    pub(super) fn names(&self, file: &str) -> bool {
        match (self.call, self.command.and_then(|command| command.command.as_ref())) {
            (Some(call), _) => call.arguments.to_string().contains(file),
            (None, Some(line)) => line.text().contains(file),
            (None, None) => false,
        }
    }

    fn latency(&self) -> Option<u64> {
        self.call.and_then(|call| call.latency_ms).or_else(|| self.command.and_then(|command| command.latency_ms))
    }

    fn args(&self, masker: &Masker<'_>) -> Map<String, Value> {
        match (self.call, self.command) {
            (Some(call), _) => match masker.value(&call.arguments) {
                Value::Object(fields) => fields,
                Value::Null => Map::new(),
                // A text that is not valid JSON.
                other => Map::from_iter([("text".to_owned(), other)]),
            },
            (None, command) => {
                let line = command.and_then(|command| command.command.as_ref()).map(|line| masker.text(&line.text()));
                Map::from_iter([("command".to_owned(), json!(line))])
            }
        }
    }

    fn payload(&self, masker: &Masker<'_>) -> Option<Content> {
        let decision = self.call.and_then(|call| call.decision.as_ref()).filter(|decision| is_refusal(decision));
        if let Some(decision) = decision {
            return Some(Content::Json(object(json!({ "decision": decision_facts(decision) }))));
        }
        let output = |text: &Option<String>| text.as_ref().map(|text| json!(masker.output(text)));
        let exit_code = self.command.and_then(|command| command.exit_code).map(|code| json!(code));
        let fields = match (self.call, self.command) {
            (Some(call), _) => {
                let text = call.result.content.as_ref().map(|text| masker.output(text));
                let error = output(&call.result.error);
                if exit_code.is_none() && error.is_none() {
                    return text.map(Content::Text);
                }
                vec![("exit_code", exit_code), ("output", text.map(Value::from)), ("error", error)]
            }
            (None, Some(command)) => {
                vec![("exit_code", exit_code), ("stdout", output(&command.stdout)), ("stderr", output(&command.stderr))]
            }
            (None, None) => Vec::new(),
        };
        let fields: Map<_, _> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        (!fields.is_empty()).then_some(Content::Json(fields))
    }
}

/// Returns the events of a case with their times. `action` returns the action that a step carries out.
pub(super) fn case_events(
    steps: &[Step<'_>],
    masker: &Masker<'_>,
    action: impl Fn(usize) -> Option<String>,
) -> Vec<(u64, CaseEvent)> {
    let mut events = Vec::new();
    for step in steps {
        let began = millis(step.event.timestamp);
        let latency = step.latency().unwrap_or_default();
        let mut call = run_builder::tool_call(step.call_id(), step.tool(), step.args(masker));
        call.action_id = action(step.number);
        let agent = step.event.agent.as_ref().map(|agent| ("agent".to_owned(), json!(agent)));
        // Not compared: many agents name their subagents with random ids.
        call.annotations = agent.map(|agent| Map::from_iter([agent]));
        let status = if step.has_failed() { ToolStatus::Error } else { ToolStatus::Ok };
        let latency_ms = Millis::from(Count::from(latency).get());
        let mut result = run_builder::tool_result(step.call_id(), status, latency_ms, step.payload(masker));
        result.action_id.clone_from(&call.action_id);
        events.push(((began, step.number, false), CaseEvent::ToolCall(call)));
        events.push(((began.saturating_add(latency), step.number, true), CaseEvent::ToolResult(result)));
    }
    // A result whose time is that of its call comes after it.
    events.sort_by_key(|(key, _)| *key);
    events.into_iter().map(|((at, _, _), event)| (at, event)).collect()
}

/// An artifact cannot state times before 1970.
pub(super) fn at_least_epoch(time: Timestamp) -> Timestamp {
    time.max(Timestamp::UNIX_EPOCH)
}
