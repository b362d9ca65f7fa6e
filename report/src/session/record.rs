//! The records of a session, one after the other: new messages and the answer of each model call, tool calls, commands and
//! changes of files. What a record repeats of another is shown once.

use std::collections::HashMap;

use counterproof_artifact::one_line;
use counterproof_sessions::event::{
    Checkpoint, CheckpointState, Command, CommandLine, EventBody, FileChange, FileOperation, LlmCall, SessionEvent,
    StateTransition, ToolCall,
};
use counterproof_sessions::message::{Conversation, MessagePart, PartContent};
use counterproof_sessions::milestone::refusal_reason;
use counterproof_sessions::session::SessionHead;
use counterproof_sessions::summary::error_message;
use serde_json::{Map, Value};

use super::blocks::{ArgumentView, PatchView, TextView, argument_line, arguments};
use super::checkpoints::{CheckpointView, MarkView, changed_fields};
use super::overview::{change_word, duration, elapsed};
use crate::view::display::{number, visible};

/// Longest line of the timeline, and longest name, in characters.
const MAX_LINE: usize = 120;
const MAX_NAME: usize = 100;

/// Reasons to stop that a reader expects.
const USUAL_ENDS: [&str; 6] = ["stop", "tool_calls", "end_turn", "tool_use", "completed", "function_call"];

#[derive(Debug)]
pub(super) struct RecordView {
    /// The number in its address, from 1.
    pub(super) anchor: u64,
    pub(super) at: String,
    /// The subagent; empty for the main one.
    pub(super) agent: String,
    /// `model`, `tool`, `command`, `file` or `other`.
    pub(super) kind: &'static str,
    pub(super) has_failed: bool,
    pub(super) heading: String,
    /// What stands after the heading, such as a path.
    pub(super) line: String,
    /// Small facts, such as the duration.
    pub(super) facts: Vec<String>,
    /// One line in the timeline.
    pub(super) timeline: String,
    pub(super) error: TextView,
    pub(super) messages: Vec<MessageView>,
    pub(super) arguments: Vec<ArgumentView>,
    pub(super) texts: Vec<LabelledText>,
    pub(super) patch: Option<PatchView>,
    /// Another record that belongs to this one.
    pub(super) related: Option<u64>,
}

/// An entry of the conversation.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most are records; boxes would only cost allocations")]
pub(super) enum EntryView {
    Record(RecordView),
    /// Checkpoints between two other records.
    Checkpoints(Vec<MarkView>),
}

/// A message, or a call that a message asks for.
#[derive(Debug)]
pub(super) struct MessageView {
    /// `user`, `agent`, `system`, `tool`, `reasoning` or `call`.
    pub(super) class: &'static str,
    pub(super) who: String,
    pub(super) text: TextView,
    pub(super) arguments: Vec<ArgumentView>,
    /// The record of the call.
    pub(super) link: Option<u64>,
}

#[derive(Debug)]
pub(super) struct LabelledText {
    pub(super) label: &'static str,
    pub(super) text: TextView,
}

/// Names a call of a session: two agents can have calls of one id.
type CallKey<'a> = (Option<&'a str>, &'a str);

/// Builds the views of the records in their order.
pub(super) struct Records<'a> {
    head: &'a SessionHead,
    calls: HashMap<CallKey<'a>, (u64, &'a ToolCall)>,
    conversation: Conversation<'a>,
    /// The working folder with a slash, which is left out of lines; empty if it is not known.
    folder: String,
    tools: &'a Value,
    settings: Map<String, Value>,
    /// The last checkpoint: the next one repeats most of it.
    checkpoint: Option<&'a CheckpointState>,
}

impl<'a> Records<'a> {
    /// Returns the conversation, and the checkpoints in their order.
    pub(super) fn views(
        head: &'a SessionHead,
        events: &'a [SessionEvent],
        ledger: Option<&str>,
    ) -> (Vec<EntryView>, Vec<CheckpointView>) {
        let mut calls = HashMap::new();
        for (anchor, event) in (1_u64..).zip(events) {
            if let EventBody::ToolCall(call @ ToolCall { call_id: Some(id), .. }) = &event.body {
                calls.entry((event.agent.as_deref(), id.as_str())).or_insert((anchor, call));
            }
        }
        let folder = events.iter().find_map(|event| match &event.body {
            EventBody::Command(command) => command.cwd.as_deref().filter(|folder| folder.len() > 1),
            _ => None,
        });
        let folder = folder.map(|folder| format!("{}/", folder.trim_end_matches('/'))).unwrap_or_default();
        let mut records = Self {
            folder,
            head,
            calls,
            conversation: Conversation::default(),
            tools: &Value::Null,
            settings: Map::new(),
            checkpoint: None,
        };
        let mut entries = Vec::new();
        let mut found = Vec::new();
        for (anchor, event) in (1_u64..).zip(events) {
            let EventBody::Checkpoint(checkpoint) = &event.body else {
                entries.push(EntryView::Record(records.view(anchor, event)));
                continue;
            };
            found.push((anchor, event, checkpoint));
            let mark = MarkView { anchor, number: found.len() as u64 };
            match entries.last_mut() {
                Some(EntryView::Checkpoints(marks)) => marks.push(mark),
                _ => entries.push(EntryView::Checkpoints(vec![mark])),
            }
        }
        // Last: what a later request has too is a part of the conversation.
        let view = |(number, (anchor, event, checkpoint)): (u64, (u64, &'a SessionEvent, &'a Checkpoint))| {
            let mut view = records.view(anchor, event);
            records.checkpoint(&mut view, event, checkpoint);
            CheckpointView::new(number, checkpoint, ledger, view)
        };
        let checkpoints = (1_u64..).zip(found).map(view).collect();
        (entries, checkpoints)
    }

    fn view(&mut self, anchor: u64, event: &'a SessionEvent) -> RecordView {
        let mut view = RecordView {
            anchor,
            at: elapsed(self.head.started_at, event.timestamp),
            agent: event.agent.as_ref().map(|agent| one_line(agent, MAX_NAME)).unwrap_or_default(),
            kind: "other",
            has_failed: event.error.is_some(),
            heading: event.body.kind().replace('_', " "),
            line: String::new(),
            facts: Vec::new(),
            timeline: String::new(),
            error: TextView::new(&error_message(event).unwrap_or_default()),
            messages: Vec::new(),
            arguments: Vec::new(),
            texts: Vec::new(),
            patch: None,
            related: None,
        };
        match &event.body {
            EventBody::LlmCall(call) => self.model_call(&mut view, event, call),
            EventBody::ToolCall(call) => tool_call(&mut view, call),
            EventBody::Command(command) => self.command(&mut view, event, command),
            EventBody::FileOperation(file) => file_operation(&mut view, file),
            EventBody::StateTransition(transition) => state_transition(&mut view, transition),
            EventBody::Checkpoint(_) => {}
            EventBody::Opaque(opaque) => {
                "Record of unknown type".clone_into(&mut view.heading);
                view.add("data", TextView::folded_json(&opaque.data));
            }
        }
        if view.timeline.is_empty() {
            view.timeline.clone_from(&view.heading);
        }
        if !self.folder.is_empty() {
            for line in [&mut view.line, &mut view.timeline] {
                *line = line.replace(&self.folder, "");
            }
        }
        view
    }

    fn model_call(&mut self, view: &mut RecordView, event: &'a SessionEvent, call: &'a LlmCall) {
        let agent = event.agent.as_deref();
        view.kind = "model";
        "Model".clone_into(&mut view.heading);
        view.line = call.request.model.as_deref().map(|model| one_line(model, MAX_NAME)).unwrap_or_default();
        let parts = self.conversation.request(agent, &call.request);
        view.messages.extend(parts.into_iter().filter_map(|part| self.message(agent, part)));
        self.settings(view, call);
        view.facts.extend(call.latency_ms.map(duration));
        let mut wanted = Vec::new();
        if let Some(response) = &call.response {
            let usage = response.usage.unwrap_or_default();
            let tokens = [(usage.prompt_tokens, "prompt"), (usage.completion_tokens, "completion")];
            view.facts.extend(
                tokens.into_iter().filter_map(|(tokens, word)| Some(format!("{} {word} tokens", number(tokens?)))),
            );
            let end = response.finish_reason.as_deref().filter(|reason| !USUAL_ENDS.contains(reason));
            view.facts.extend(end.map(|reason| format!("ended with {}", one_line(reason, MAX_NAME))));
            for part in self.conversation.response(agent, response) {
                if let PartContent::ToolCall { name, .. } = &part.content {
                    wanted.push(one_line(name, MAX_NAME));
                }
                view.messages.extend(self.message(agent, part));
            }
            if !wanted.is_empty() {
                view.facts.push(format!("calls {}", wanted.join(", ")));
            } else if response.content.as_ref().is_none_or(String::is_empty) {
                view.facts.push("empty answer".to_owned());
            }
        } else {
            view.facts.push("no answer".to_owned());
        }
        let text = call.response.as_ref().and_then(|response| response.content.as_deref()).unwrap_or_default();
        let text = one_line(text.trim(), MAX_LINE);
        view.timeline = match (text.is_empty(), wanted.is_empty(), &event.error) {
            (_, _, Some(error)) => one_line(&format!("Model: {}", error.message), MAX_LINE),
            (false, ..) => text,
            (true, false, None) => format!("asks for {}", wanted.join(", ")),
            (true, true, None) => "Model".to_owned(),
        };
    }

    /// Adds the tools and the settings of a request, unless they are those of the request before.
    fn settings(&mut self, view: &mut RecordView, call: &'a LlmCall) {
        let request = &call.request;
        if !request.tools.is_null() && request.tools != *self.tools {
            self.tools = &request.tools;
            view.add("tools offered", TextView::folded_json(&request.tools));
        }
        let is_setting = |name: &str| {
            !matches!(
                name,
                "messages" | "input" | "system" | "instructions" | "tools" | "model" | "temperature" | "max_tokens"
            )
        };
        let body = request.body.as_object().into_iter().flatten();
        let mut settings: Map<String, Value> =
            body.filter(|(name, _)| is_setting(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, value) in [("temperature", &request.temperature), ("max_tokens", &request.max_tokens)] {
            if !value.is_null() {
                settings.insert(name.to_owned(), value.clone());
            }
        }
        if settings != self.settings {
            view.add("settings", TextView::folded_json(&Value::Object(settings.clone())));
            self.settings = settings;
        }
    }

    /// Returns a part of a message, unless its record shows the same.
    fn message(&self, agent: Option<&'a str>, part: MessagePart) -> Option<MessageView> {
        let recorded = |id: &Option<String>| {
            // The key lives shorter than those of the map.
            let calls: &HashMap<CallKey<'_>, _> = &self.calls;
            calls.get(&(agent, id.as_deref()?)).copied()
        };
        let is_of_model = part.is_of_model();
        let view = |class, who: &str, text| MessageView {
            class,
            who: who.to_owned(),
            text,
            arguments: Vec::new(),
            link: None,
        };
        Some(match part.content {
            PartContent::Text(text) if is_of_model => view("agent", "agent", TextView::new(&text)),
            PartContent::Text(text) => match part.role.as_str() {
                "system" | "developer" => view("system", "system", TextView::folded(&text)),
                "user" => view("user", "user", TextView::new(&text)),
                other => view("user", &one_line(other, MAX_NAME), TextView::new(&text)),
            },
            PartContent::Reasoning(text) => view("reasoning", "reasoning", TextView::folded(&text)),
            PartContent::ToolCall { id, name, arguments: wanted } => {
                let record = recorded(&id);
                if record.is_some_and(|(_, call)| call.arguments == wanted && call.tool_name == name) {
                    return None;
                }
                MessageView {
                    class: "call",
                    who: visible(&name),
                    text: TextView::default(),
                    arguments: arguments(&wanted),
                    link: record.map(|(anchor, _)| anchor),
                }
            }
            PartContent::ToolResult { id, text, .. } => {
                let record = recorded(&id);
                if record
                    .is_some_and(|(_, call)| call.result.content.as_deref().unwrap_or_default().trim() == text.trim())
                {
                    return None;
                }
                MessageView {
                    link: record.map(|(anchor, _)| anchor),
                    ..view("tool", "result that the model was given", TextView::new(&text))
                }
            }
            PartContent::Other(value) => view("tool", &one_line(&part.role, MAX_NAME), TextView::folded_json(&value)),
        })
    }

    fn command(&self, view: &mut RecordView, event: &'a SessionEvent, command: &'a Command) {
        view.kind = "command";
        "$".clone_into(&mut view.heading);
        let text = command.command.as_ref().map(CommandLine::text).unwrap_or_default();
        view.line = one_line(text.trim(), MAX_LINE);
        let call = command.call_id.as_deref().and_then(|id| self.calls.get(&(event.agent.as_deref(), id)));
        view.related = call.map(|(anchor, _)| *anchor);
        if text.trim() != view.line && !call.is_some_and(|(_, call)| shows(&call.arguments, &text)) {
            view.add("command", TextView::new(&text));
        }
        view.facts.push(match command.exit_code {
            Some(code) if command.expected_failure => format!("exit code {code}, as expected"),
            Some(code) => format!("exit code {code}"),
            None => "exit code not known".to_owned(),
        });
        view.facts.extend(command.latency_ms.map(duration));
        if let Some(folder) =
            command.cwd.as_ref().filter(|folder| folder.trim_end_matches('/') != self.folder.trim_end_matches('/'))
        {
            view.facts.push(format!("in {}", one_line(folder, MAX_NAME)));
        }
        view.has_failed |= command.has_failed();
        let given = call.and_then(|(_, call)| call.result.content.as_deref()).unwrap_or_default();
        for (label, text) in [("output", &command.stdout), ("errors", &command.stderr)] {
            let text = text.as_deref().filter(|text| !given.contains(text.trim_end()));
            if let Some(text) = text {
                view.add(label, TextView::new(text));
            }
        }
        view.timeline = format!("$ {}", view.line);
    }

    fn checkpoint(&mut self, view: &mut RecordView, event: &'a SessionEvent, checkpoint: &'a Checkpoint) {
        let state = &checkpoint.state;
        view.line = one_line(&checkpoint.checkpoint_id, MAX_LINE);
        // The line of the checkpoint has their start.
        let texts = [("reason", checkpoint.reason.as_deref()), ("step", Some(state.current_step.as_str()))];
        for (label, text) in texts.into_iter().chain([("checkpoint", Some(checkpoint.checkpoint_id.as_str()))]) {
            view.add(label, TextView::new(text.filter(|text| text.chars().count() > MAX_NAME).unwrap_or_default()));
        }
        let agent = event.agent.as_deref();
        let parts = self.conversation.history(agent, &state.message_history);
        view.messages.extend(parts.into_iter().filter_map(|part| self.message(agent, part)));
        let last = self.checkpoint.replace(state);
        let parts = [
            ("workspace", &state.workspace, last.map(|last| &last.workspace)),
            ("state of tools", &state.tool_state, last.map(|last| &last.tool_state)),
        ];
        for (label, value, last) in parts {
            let changed = changed_fields(value, last);
            if !is_empty(&changed) {
                view.add(label, TextView::folded_json(&changed));
            }
        }
    }
}

impl RecordView {
    fn add(&mut self, label: &'static str, text: TextView) {
        if !text.is_empty() {
            self.texts.push(LabelledText { label, text });
        }
    }
}

/// Whether the arguments of a call show a text as it is.
fn shows(arguments: &Value, text: &str) -> bool {
    arguments.as_object().is_some_and(|fields| fields.values().any(|value| value.as_str() == Some(text)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn tool_call(view: &mut RecordView, call: &ToolCall) {
    view.kind = "tool";
    view.heading = one_line(&call.tool_name, MAX_NAME);
    view.line = argument_line(&call.arguments, MAX_LINE);
    view.timeline = one_line(&format!("{} {}", call.tool_name, view.line), MAX_LINE);
    if call.tool_name.chars().count() > MAX_NAME {
        view.add("tool", TextView::new(&call.tool_name));
    }
    view.arguments = arguments(&call.arguments);
    let result = &call.result;
    view.has_failed |= result.success == Some(false);
    view.facts.push(
        match result.success {
            Some(true) => "ok",
            Some(false) => "failed",
            None => "result not known",
        }
        .to_owned(),
    );
    view.facts.extend(call.latency_ms.map(duration));
    if result.truncated == Some(true) {
        view.facts.push("cut for the model".to_owned());
    }
    if let Some(decision) = call.decision.as_ref().filter(|decision| decision["action"] != "ALLOW") {
        view.has_failed = true;
        view.facts.push("refused".to_owned());
        view.add("refusal", TextView::new(&refusal_reason(decision)));
        view.add("decision of the guard", TextView::folded_json(decision));
    }
    view.add("error", TextView::new(result.error.as_deref().unwrap_or_default()));
    view.add("result", TextView::new(result.content.as_deref().unwrap_or_default()));
}

fn file_operation(view: &mut RecordView, file: &FileOperation) {
    view.kind = "file";
    view.heading = format!("File {}", change_word(file.operation));
    view.line = one_line(&file.path, MAX_LINE);
    if view.line != file.path {
        view.add("path", TextView::new(&file.path));
    }
    if let Some(from) = &file.from_path {
        view.add("earlier path", TextView::new(from));
    }
    view.patch = file.patch.as_deref().filter(|patch| !patch.is_empty()).map(PatchView::new);
    match &view.patch {
        Some(patch) => view.facts.push(patch.counts()),
        // Its content is in the result of the call.
        None if file.operation == FileChange::Read => {}
        None => view.facts.push("content not recorded".to_owned()),
    }
    view.timeline = format!("{} {}", change_word(file.operation), view.line);
}

fn state_transition(view: &mut RecordView, transition: &StateTransition) {
    view.heading = one_line(&transition.trigger, MAX_NAME);
    view.line = one_line(&format!("{} → {}", transition.from_state, transition.to_state), MAX_LINE);
    view.timeline = format!("{}: {}", view.heading, view.line);
    let longest = [&transition.trigger, &transition.from_state, &transition.to_state]
        .iter()
        .map(|text| text.chars().count())
        .max();
    if longest.unwrap_or_default() > MAX_NAME / 2 {
        view.add("from", TextView::new(&transition.from_state));
        view.add("to", TextView::new(&transition.to_state));
        view.add("trigger", TextView::new(&transition.trigger));
    }
    if !is_empty(&transition.context) {
        view.add("context", TextView::folded_json(&transition.context));
    }
}
