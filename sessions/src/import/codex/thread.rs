//! A thread: the state in which its next line is read, and the records so far.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::accounting::{CopyRule, Tokens, difference, key_of, tokens, uuid_time};
use super::kinds::{LEFT_OUT, MODEL_ITEMS, OUTPUT_ITEMS};
use super::tools::{Details, ToolItem};
use crate::event::{
    Api, EventBody, EventError, LlmCall, LlmRequest, LlmResponse, Opaque, SessionEvent, StateTransition, Usage,
};
use crate::import::imported::{Draft, Histories, ImportedSession, MessageId, time, title};
use crate::import::report::Outcome;
use crate::message::written_texts;
use crate::session::{Origin, SessionStatus};

pub(super) struct Thread {
    id: String,
    mask: &'static str,
    /// The thread at which copied lines begin, as far as it is known.
    root: String,
    parent: Option<String>,
    spawned_by: Option<String>,
    has_meta: bool,
    /// True while lines are copies of the parent's.
    is_copying: bool,
    copies: CopyRule,
    model: Option<String>,
    cwd: Option<String>,
    status: SessionStatus,
    title: Option<String>,
    named: Option<String>,
    time: Option<Timestamp>,
    times: Vec<Timestamp>,
    histories: Histories,
    current: Option<MessageId>,
    /// The end of the history before the last message of the user, and before each turn.
    before_prompt: Option<MessageId>,
    turns: Vec<Option<MessageId>>,
    pending: Pending,
    unanswered: Option<(Timestamp, Value)>,
    /// Calls that were counted, and the usage of the last one.
    counted: HashSet<(Tokens, Tokens)>,
    last_counted: Option<Tokens>,
    total: Option<Tokens>,
    details: Details,
    entries: Vec<Entry>,
    /// The records of lines that are taken for copies of lines of the parent.
    copied: Vec<Entry>,
    /// How often a key occurred that is made of a content.
    repeats: HashMap<String, u64>,
}

/// What a model made since the last call that was counted.
#[derive(Default)]
struct Pending {
    items: Vec<Value>,
    times: Vec<Timestamp>,
    /// Outputs that came before the call was counted.
    outputs: Vec<Value>,
}

/// A record whose key lacks the root of the thread.
struct Entry {
    key: String,
    time: Timestamp,
    content: Content,
}

enum Content {
    Body { body: Box<EventBody>, error: Option<EventError>, history: Option<MessageId> },
    Tool { item: ToolItem, cwd: Option<String> },
}

impl Thread {
    pub(super) fn new(id: String, mask: &'static str) -> Self {
        Self {
            root: id.clone(),
            id,
            mask,
            parent: None,
            spawned_by: None,
            has_meta: false,
            is_copying: false,
            copies: CopyRule::default(),
            model: None,
            cwd: None,
            status: SessionStatus::Completed,
            title: None,
            named: None,
            time: None,
            times: Vec::new(),
            histories: Histories::default(),
            current: None,
            before_prompt: None,
            turns: Vec::new(),
            pending: Pending::default(),
            unanswered: None,
            counted: HashSet::new(),
            last_counted: None,
            total: None,
            details: Details::default(),
            entries: Vec::new(),
            copied: Vec::new(),
            repeats: HashMap::new(),
        }
    }

    pub(super) fn begin_file(&mut self) {
        self.time = None;
    }

    /// The thread of which this one is a fork.
    pub(super) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// Adds a line. `is_copy` is whether the parent has it, if the parent is known. Returns the type of the line, and what
    /// became of it.
    pub(super) fn add(
        &mut self,
        line: &Value,
        is_copy: Option<bool>,
        roots: &HashMap<String, String>,
    ) -> (String, Outcome) {
        let stated = line.get("timestamp").and_then(Value::as_str).and_then(time);
        self.time = stated.or(self.time);
        let payload = line.get("payload").unwrap_or(&Value::Null);
        let kind = line.get("type").and_then(Value::as_str).unwrap_or("(none)");
        let of = payload.get("type").and_then(Value::as_str);
        let name = match (kind, of) {
            ("response_item" | "event_msg", Some(of)) => format!("{kind}/{of}"),
            _ => kind.to_owned(),
        };
        if kind == "session_meta" {
            let outcome = self.add_meta(payload, roots);
            return (name, outcome);
        }
        if self.is_copying && !is_copy.unwrap_or_else(|| self.copies.is_copy(line, stated)) {
            self.flush(None);
            self.is_copying = false;
        }
        let is_shared = self.is_copying;
        self.saw();
        let outcome = self.add_line(kind, of.unwrap_or_default(), &name, payload, line);
        (name, if is_shared { Outcome::LeftOut } else { outcome })
    }

    pub(super) fn add_unreadable(&mut self, data: Value) {
        let key = self.content_key("unreadable", &data);
        self.push(key, EventBody::Opaque(Opaque { data }), None, None);
    }

    fn add_meta(&mut self, payload: &Value, roots: &HashMap<String, String>) -> Outcome {
        let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
        if std::mem::replace(&mut self.has_meta, true) {
            // The header of the thread of which this is a fork, and so on.
            if self.parent.is_some() && text("id").as_ref() != Some(&self.id) {
                let older = text("forked_from_id").or_else(|| text("id"));
                if let Some(older) = older.filter(|_| !roots.contains_key(self.parent().unwrap_or_default())) {
                    self.root = older;
                }
            }
            return Outcome::LeftOut;
        }
        self.cwd = text("cwd");
        let started = text("timestamp").as_deref().and_then(time);
        self.time = self.time.or(started);
        self.copies = CopyRule {
            forked_at: started.or(self.time),
            header_at: self.time,
            thread: uuid_time(&self.id),
            first_ordinal: payload.get("subagent_history_start_ordinal").and_then(Value::as_u64),
        };
        self.saw();
        self.times.extend(started);
        self.parent = text("forked_from_id");
        self.spawned_by = text("parent_thread_id")
            .or_else(|| payload.pointer("/source/subagent/thread_spawn/parent_thread_id")?.as_str().map(str::to_owned));
        if let Some(parent) = &self.parent {
            self.is_copying = true;
            self.root = roots.get(parent).unwrap_or(parent).clone();
        }
        Outcome::Mapped
    }

    fn add_line(&mut self, kind: &str, of: &str, name: &str, payload: &Value, line: &Value) -> Outcome {
        let text = |name: &str| payload.get(name).and_then(Value::as_str);
        match (kind, of) {
            ("turn_context", _) => {
                self.model = text("model").map(str::to_owned).or(self.model.take());
                self.cwd = text("cwd").map(str::to_owned).or(self.cwd.take());
            }
            ("response_item", "message") if text("role") == Some("assistant") => self.add_item(payload),
            ("response_item", "message") => self.add_message(payload),
            ("response_item", of) if MODEL_ITEMS.contains(&of) => self.add_item(payload),
            ("response_item", of) if OUTPUT_ITEMS.contains(&of) => {
                self.details.add_output(payload);
                if self.pending.items.is_empty() {
                    self.current = self.histories.push(self.current, payload.clone());
                } else {
                    self.pending.outputs.push(payload.clone());
                }
            }
            ("compacted", _) => self.add_compaction(payload),
            ("event_msg", "token_count") => return self.add_token_count(payload),
            ("token_usage_record", _) => return self.add_usage_record(payload),
            ("event_msg", "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end") => {
                self.details.add_end(of, payload);
            }
            ("event_msg", "turn_aborted") => {
                self.flush(None);
                self.status = SessionStatus::Interrupted;
                self.add_transition("interrupted", "turn_aborted", payload);
            }
            ("event_msg", "thread_rolled_back") => {
                self.flush(None);
                let turns = payload.get("num_turns").and_then(Value::as_u64).unwrap_or(0);
                for _ in 0..turns.min(self.turns.len() as u64) {
                    self.current = self.turns.pop().flatten();
                }
                self.add_transition("running", "rollback", payload);
            }
            ("event_msg", "error" | "stream_error") => {
                let message = text("message").unwrap_or_default().to_owned();
                let status = payload.get("http_status_code").and_then(Value::as_u64);
                let status = status.and_then(|status| u16::try_from(status).ok());
                let error = EventError { kind: "source".to_owned(), status, message };
                let key = self.content_key("error", payload);
                let body = EventBody::LlmCall(LlmCall { request: self.request(), ..LlmCall::default() });
                self.push(key, body, Some(error), self.current);
                if of == "error" {
                    self.status = SessionStatus::Failed;
                }
            }
            ("event_msg", "thread_name_updated") => self.named = text("thread_name").and_then(title),
            ("inter_agent_communication", _) => self.add_transition("running", kind, payload),
            _ if LEFT_OUT.iter().any(|(known, _)| *known == name) => {
                if of == "user_message" {
                    self.turns.push(self.before_prompt);
                    self.title = self.title.take().or_else(|| title(text("message")?));
                }
                return Outcome::LeftOut;
            }
            _ => {
                let key = self.content_key("line", payload);
                self.push(key, EventBody::Opaque(Opaque { data: line.clone() }), None, None);
                return Outcome::Opaque;
            }
        }
        Outcome::Mapped
    }

    /// Adds what a model made to the answer that is not counted yet.
    fn add_item(&mut self, item: &Value) {
        // Files of older versions have no tokens. There, an item after the output of a tool begins another answer.
        if !self.pending.outputs.is_empty() && self.total.is_none() {
            self.flush(None);
        }
        self.last_counted = None;
        self.unanswered = None;
        self.status = SessionStatus::Completed;
        self.pending.times.push(self.now());
        self.pending.items.push(item.clone());
    }

    /// Adds a message of the user, the program or the developer.
    fn add_message(&mut self, item: &Value) {
        self.flush(None);
        if item.get("role").is_some_and(|role| role == "user") {
            self.before_prompt = self.current;
            let text = item_text(item);
            if !text.starts_with('<') && !text.starts_with("# AGENTS.md") {
                self.title = self.title.take().or_else(|| title(&text));
                self.unanswered = (!self.is_copying).then(|| (self.now(), item.clone()));
            }
        }
        self.current = self.histories.push(self.current, item.clone());
    }

    fn add_compaction(&mut self, payload: &Value) {
        self.flush(None);
        let message = payload.get("message").and_then(Value::as_str).filter(|text| !text.is_empty());
        let replaced = payload.get("replacement_history").and_then(Value::as_array);
        self.current = None;
        for item in replaced.into_iter().flatten() {
            self.current = self.histories.push(self.current, item.clone());
        }
        if let (None, Some(message)) = (replaced, message) {
            let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": message}]});
            self.current = self.histories.push(None, item);
        }
        let context = json!({"message": message, "messages": replaced.map(Vec::len)});
        let key = self.content_key("compaction", payload);
        self.push(key, transition("running", "compaction", context), None, None);
    }

    fn add_token_count(&mut self, payload: &Value) -> Outcome {
        let Some(info) = payload.get("info").filter(|info| info.is_object()) else { return Outcome::LeftOut };
        let total = tokens(info.get("total_token_usage"));
        let last = match info.get("last_token_usage") {
            Some(last) => tokens(Some(last)),
            // The first total of a fork has the tokens of its parent.
            None if self.parent.is_some() && self.total.is_none() => total.map(|_| None),
            None => difference(total, self.total),
        };
        let is_empty = last.iter().all(|number| number.unwrap_or(0) == 0);
        let is_known = is_empty || !self.counted.insert((last, total));
        if is_known || self.pending.items.is_empty() && self.last_counted == Some(last) {
            return Outcome::LeftOut;
        }
        self.total = Some(total);
        self.flush(Some((format!("tokens/{}/{}", key_of(last), key_of(total)), last)));
        self.last_counted = Some(last);
        Outcome::Mapped
    }

    fn add_usage_record(&mut self, payload: &Value) -> Outcome {
        let usage = tokens(payload.get("usage"));
        let is_empty = usage.iter().all(|number| number.unwrap_or(0) == 0);
        if is_empty || self.pending.items.is_empty() && self.last_counted == Some(usage) {
            return Outcome::LeftOut;
        }
        let response = payload.get("response_id").and_then(Value::as_str);
        let key = response.map_or_else(|| self.content_key("usage", payload), |id| format!("response/{id}"));
        self.total = self.total.or(Some(usage));
        self.flush(Some((key, usage)));
        self.last_counted = Some(usage);
        Outcome::Mapped
    }

    /// Adds the answer that is not recorded yet. Without tokens, there may be none.
    fn flush(&mut self, counted: Option<(String, Tokens)>) {
        let Pending { items, times, outputs } = std::mem::take(&mut self.pending);
        if items.is_empty() && counted.is_none() {
            return;
        }
        let history = self.current;
        for item in items.iter().chain(&outputs) {
            self.current = self.histories.push(self.current, item.clone());
        }
        let (key, usage) = match counted {
            Some((key, [prompt, cached, output, ..])) => (key, Some(Usage::new(prompt, output, cached))),
            None => (self.content_key("answer", items.first().unwrap_or(&Value::Null)), None),
        };
        let texts: Vec<String> =
            items.iter().filter(|item| item["type"] == "message").map(item_text).filter(|it| !it.is_empty()).collect();
        let tools: Vec<(Timestamp, ToolItem)> =
            times.iter().zip(&items).filter_map(|(time, item)| Some((*time, ToolItem::from_item(item)?))).collect();
        let response = LlmResponse {
            content: (!texts.is_empty()).then(|| texts.join("\n")),
            tool_calls: tools.iter().filter_map(|(_, tool)| tool.requested()).collect(),
            usage,
            finish_reason: None,
            model: None,
            body: json!({"output": items}),
        };
        let call = LlmCall { request: self.request(), response: Some(response), ..LlmCall::default() };
        let content = Content::Body { body: EventBody::LlmCall(call).into(), error: None, history };
        let time = times.first().copied().unwrap_or_else(|| self.now());
        self.push_entry(Entry { key, time, content });
        for (time, item) in tools {
            let key = match &item.call_id {
                Some(id) => format!("tool/{id}"),
                None => self.content_key("tool", &item.arguments),
            };
            let content = Content::Tool { item, cwd: self.cwd.clone() };
            self.push_entry(Entry { key, time, content });
        }
    }

    fn request(&self) -> LlmRequest {
        let (api, model) = (Some(Api::OpenaiResponses), self.model.clone());
        LlmRequest { api, model, messages: json!([]), ..LlmRequest::default() }
    }

    fn add_transition(&mut self, to: &str, trigger: &str, payload: &Value) {
        let key = self.content_key(trigger, payload);
        let mut context = payload.as_object().cloned().unwrap_or_else(Map::new);
        context.remove("type");
        self.push(key, transition(to, trigger, Value::Object(context)), None, None);
    }

    fn push(&mut self, key: String, body: EventBody, error: Option<EventError>, history: Option<MessageId>) {
        self.push_entry(Entry { key, time: self.now(), content: Content::Body { body: body.into(), error, history } });
    }

    fn push_entry(&mut self, entry: Entry) {
        if self.is_copying { self.copied.push(entry) } else { self.entries.push(entry) }
    }

    /// The key of a record that has no id: its content, and how often it occurred before.
    fn content_key(&mut self, kind: &str, content: &Value) -> String {
        let key = format!("{kind}/{}", Sha256Digest::from_bytes(content.to_string().as_bytes()));
        let count = self.repeats.entry(key.clone()).or_default();
        *count += 1;
        format!("{key}/{count}")
    }

    fn now(&self) -> Timestamp {
        self.time.or(self.times.last().copied()).unwrap_or(Timestamp::MIN)
    }

    /// Extends the time of the session.
    fn saw(&mut self) {
        if let Some(time) = self.time.filter(|_| !self.is_copying || self.times.is_empty()) {
            match self.times.as_mut_slice() {
                [first, last] => (*first, *last) = ((*first).min(time), (*last).max(time)),
                _ => self.times.push(time),
            }
        }
    }

    /// Completes the session. Returns its root as well.
    ///
    /// `has_parent` is whether the parent was read: only then it is certain which lines are copies.
    pub(super) fn finish(mut self, has_parent: bool, fallback: Timestamp) -> (String, ImportedSession) {
        self.flush(None);
        if self.is_copying && !has_parent && self.entries.is_empty() {
            // Rather a record twice than a session without any.
            self.entries = std::mem::take(&mut self.copied);
        }
        if let Some((time, item)) = self.unanswered.take() {
            let key = self.content_key("prompt", &item);
            let context = json!({"text": item_text(&item)});
            let body = transition("running", "prompt", context);
            let content = Content::Body { body: body.into(), error: None, history: None };
            self.entries.push(Entry { key, time, content });
        }
        let mut draft = Draft::new(self.id, Origin::Codex);
        draft.parent = self.parent.or(self.spawned_by);
        draft.title = self.named.or(self.title);
        draft.status = self.status;
        self.times.iter().for_each(|time| draft.saw(*time));
        for Entry { key, time, content } in self.entries {
            let key = format!("codex/{}/{key}", self.root);
            let time = if time == Timestamp::MIN { fallback } else { time };
            match content {
                Content::Body { body, error, history } => {
                    let mut event = SessionEvent::reconstructed(&key, time, *body);
                    event.error = error;
                    draft.add(event, history);
                }
                Content::Tool { item, cwd } => {
                    for (name, body) in self.details.records(item, cwd.as_deref(), self.mask) {
                        draft.add(SessionEvent::reconstructed(&format!("{key}/{name}"), time, body), None);
                    }
                }
            }
        }
        (self.root, draft.finish(Arc::new(self.histories), fallback))
    }
}

fn transition(to: &str, trigger: &str, context: Value) -> EventBody {
    let from_state = if trigger == "prompt" { "waiting" } else { "running" }.to_owned();
    let (to_state, trigger) = (to.to_owned(), trigger.to_owned());
    EventBody::StateTransition(StateTransition { from_state, to_state, trigger, context })
}

fn item_text(item: &Value) -> String {
    written_texts(&item["content"]).join("\n")
}
