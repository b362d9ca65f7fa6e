//! Turns the lines of a transcript into sessions.

use std::collections::HashMap;
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::content::{Answer, ToolUse, blocks};
use super::kinds::{Kind, is_api_error, is_synthetic};
use super::tools::Tools;
use super::transcript::{Line, Lines};
use super::tree::{Agent, Lane, TreeLine, lanes};
use crate::event::{Api, EventBody, EventError, LlmCall, LlmRequest, Opaque, SessionEvent, StateTransition};
use crate::import::imported::{Draft, Histories, ImportedSession, MessageId, title};
use crate::import::lines::Masker;
use crate::message::written_texts;
use crate::session::{Origin, SessionStatus};

/// How the program answers for a user who interrupts the model.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Builds the sessions of a transcript. `folder` is that of the session, next to its file.
pub(super) fn sessions(
    lines: &Lines,
    folder: &Utf8Path,
    masker: &mut Masker<'_>,
    fallback: Timestamp,
) -> Vec<ImportedSession> {
    let mut builder = Builder::new(lines, folder);
    builder.add_lines(masker);
    builder.add_unreadable(&lines.unreadable);
    let Builder { drafts, histories, .. } = builder;
    let histories = Arc::new(histories);
    let finished = drafts.into_iter().map(|draft| draft.draft.finish(Arc::clone(&histories), fallback));
    finished.collect()
}

/// A session, and how good the source of its title is.
struct DraftSession {
    draft: Draft,
    title_rank: u8,
}

struct Builder<'a> {
    lines: &'a Lines,
    lane_of: Vec<usize>,
    lanes: Vec<Lane>,
    /// The parts of each model call: the lines of a lane with the same message and request.
    calls: HashMap<(usize, usize), Vec<usize>>,
    call_of: Vec<Option<usize>>,
    call_keys: Vec<String>,
    tools: Tools<'a>,
    histories: Histories,
    /// The last message of each lane.
    current: Vec<Option<MessageId>>,
    /// The last message after each line.
    after: Vec<Option<MessageId>>,
    drafts: Vec<DraftSession>,
    by_id: HashMap<String, usize>,
}

impl<'a> Builder<'a> {
    fn new(lines: &'a Lines, folder: &'a Utf8Path) -> Self {
        let all = &lines.all;
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut call_keys = Vec::new();
        let call_of: Vec<Option<usize>> = all
            .iter()
            .map(|line| {
                let key =
                    (line.kind == Kind::Assistant && !is_synthetic(&line.value)).then(|| call_key(line, lines))?;
                Some(*numbers.entry(key).or_insert_with_key(|key| {
                    call_keys.push(key.clone());
                    call_keys.len() - 1
                }))
            })
            .collect();
        let tree: Vec<TreeLine> = all
            .iter()
            .zip(&call_of)
            .map(|(line, call)| TreeLine {
                parent: line.parent.as_ref().and_then(|parent| lines.by_uuid.get(parent).copied()),
                time: line.time,
                agent: line.agent.clone(),
                call: *call,
                is_turn: call.is_some() || prompt(line).is_some(),
            })
            .collect();
        let (lane_of, lanes) = lanes(&tree);
        let mut calls: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for (index, call) in call_of.iter().enumerate() {
            if let Some(call) = call {
                calls.entry((lane_of[index], *call)).or_default().push(index);
            }
        }
        Self {
            tools: Tools::new(all.iter().map(|line| &line.value), folder),
            current: vec![None; lanes.len()],
            after: vec![None; all.len()],
            histories: Histories::default(),
            drafts: Vec::new(),
            by_id: HashMap::new(),
            lines,
            lane_of,
            lanes,
            calls,
            call_of,
            call_keys,
        }
    }

    fn add_lines(&mut self, masker: &mut Masker<'_>) {
        let mut has_begun = vec![false; self.lanes.len()];
        let mut unanswered: Vec<Option<usize>> = vec![None; self.lanes.len()];
        for index in 0..self.lines.all.len() {
            let lane = self.lane_of[index];
            if !std::mem::replace(&mut has_begun[lane], true)
                && let Some(point) = self.lanes[lane].fork_point
            {
                self.current[lane] = self.after[point];
            }
            let line = &self.lines.all[index];
            if prompt(line).is_some() && line.seen_in.is_none() {
                if let Some(before) = unanswered[lane].replace(index) {
                    self.add_prompt(before);
                }
            } else if line.kind == Kind::Assistant {
                unanswered[lane] = None;
            }
            self.add_line(index, masker);
            self.after[index] = self.current[lane];
        }
        for prompt in unanswered.into_iter().flatten() {
            self.add_prompt(prompt);
        }
    }

    fn add_line(&mut self, index: usize, masker: &mut Masker<'_>) {
        let lines = self.lines;
        let line = &lines.all[index];
        let lane = self.lane_of[index];
        let value = &line.value;
        match line.kind {
            Kind::LeftOut => return,
            Kind::Assistant => self.add_answer(index, masker),
            Kind::User if value.get("isVisibleInTranscriptOnly").and_then(Value::as_bool) != Some(true) => {
                let content = value.pointer("/message/content").cloned().unwrap_or(Value::Null);
                self.push(lane, json!({"role": "user", "content": content}));
            }
            Kind::QueuedPrompt => {
                let content = value.pointer("/attachment/prompt").cloned().unwrap_or(Value::Null);
                self.push(lane, json!({"role": "user", "content": content}));
            }
            Kind::Compaction => self.current[lane] = None,
            _ => {}
        }
        if line.seen_in.is_some() {
            return;
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        match line.kind {
            Kind::Compaction => {
                self.add_transition(index, "compaction", context(value, &["content", "compactMetadata"]));
            }
            Kind::MicroCompaction => {
                self.add_transition(index, "micro_compaction", context(value, &["content", "microcompactMetadata"]));
            }
            Kind::PullRequest => {
                let context = json!({"number": value.get("prNumber"), "url": value.get("prUrl"), "repository": value.get("prRepository")});
                self.add_transition(index, "pull_request", context);
            }
            Kind::ApiError => {
                let error = value.get("error").or_else(|| value.get("cause")).cloned().unwrap_or(Value::Null);
                let message = text("content").map_or_else(|| error_message(&error), str::to_owned);
                let status = error.get("status").and_then(Value::as_u64).and_then(|it| u16::try_from(it).ok());
                let status = status.or_else(|| status_in(&message));
                self.add_failed_call(index, status, message);
            }
            Kind::Title => {
                let ranks = [("customTitle", 3), ("aiTitle", 2), ("title", 2), ("summary", 1)];
                if let Some((found, rank)) = ranks.iter().find_map(|(name, rank)| Some((text(name)?, *rank))) {
                    let rank = if text("type") == Some("custom-title") { 3 } else { rank };
                    self.set_title(index, found, rank);
                }
            }
            Kind::Unknown => {
                let event = SessionEvent::reconstructed(
                    &self.key("line", index),
                    line.time,
                    EventBody::Opaque(Opaque { data: value.clone() }),
                );
                self.add(index, event, None);
            }
            Kind::User => {
                self.draft(index);
                let prompt = prompt(line);
                if let Some(prompt) = prompt.as_deref().filter(|_| line.agent.is_main()) {
                    let is_command = prompt.starts_with('<') || prompt.starts_with("Caveat:");
                    if !is_command && !prompt.starts_with(INTERRUPTED) {
                        self.set_title(index, prompt, 0);
                    }
                }
                if line.agent.is_main() {
                    let is_interrupted = user_text(value).is_some_and(|text| text.starts_with(INTERRUPTED));
                    let status = if is_interrupted { SessionStatus::Interrupted } else { SessionStatus::Completed };
                    self.draft(index).draft.status = status;
                }
            }
            _ => {}
        }
    }

    /// Adds the model call of an answer, with the tool calls in it, at its first line.
    fn add_answer(&mut self, index: usize, masker: &mut Masker<'_>) {
        let lines = self.lines;
        let line = &lines.all[index];
        let lane = self.lane_of[index];
        let message = line.value.get("message").unwrap_or(&Value::Null);
        let Some(call) = self.call_of[index] else {
            let content = message.get("content").cloned().unwrap_or(Value::Null);
            self.push(lane, json!({"role": "assistant", "content": content}));
            return;
        };
        if is_api_error(&line.value) {
            if line.seen_in.is_none() {
                let text = written_texts(&message["content"]).join("\n");
                self.add_failed_call(index, status_in(&text), text);
                if line.agent.is_main() {
                    self.draft(index).draft.status = SessionStatus::Failed;
                }
            }
            return;
        }
        let parts = self.calls.get(&(lane, call)).cloned().unwrap_or_default();
        if parts.first() != Some(&index) {
            return;
        }
        let answer = Answer::new(parts.iter().map(|part| &lines.all[*part].value));
        let history = self.current[lane];
        self.push(lane, json!({"role": "assistant", "content": answer.content}));
        if line.seen_in.is_some() {
            return;
        }
        if line.agent.is_main() {
            self.draft(index).draft.status = SessionStatus::Completed;
        }
        let key = self.call_keys[call].clone();
        let event = SessionEvent::reconstructed(
            &format!("claude-code/call/{key}"),
            line.time,
            EventBody::LlmCall(answer.call()),
        );
        self.add(index, event, history);
        for part in parts {
            let line = &lines.all[part];
            let uses = blocks(line.value.pointer("/message/content")).filter_map(ToolUse::from_block);
            for tool in uses.collect::<Vec<_>>() {
                for (suffix, body) in self.tools.records(&tool, &line.value, masker) {
                    let key = format!("claude-code/{suffix}/{key}/{}", tool.id);
                    self.add(part, SessionEvent::reconstructed(&key, line.time, body), None);
                }
            }
        }
    }

    fn add_failed_call(&mut self, index: usize, status: Option<u16>, message: String) {
        let line = &self.lines.all[index];
        let request = LlmRequest { api: Some(Api::AnthropicMessages), messages: json!([]), ..LlmRequest::default() };
        let body = EventBody::LlmCall(LlmCall { request, ..LlmCall::default() });
        let mut event = SessionEvent::reconstructed(&self.key("error", index), line.time, body);
        event.error = Some(EventError { kind: "source".to_owned(), status, message });
        let history = self.current[self.lane_of[index]];
        self.add(index, event, history);
    }

    /// Adds a prompt that was never answered: all others are in the history of the next call.
    fn add_prompt(&mut self, index: usize) {
        let line = &self.lines.all[index];
        let text = prompt(line);
        let body = transition("waiting", "running", "prompt", json!({"text": text}));
        let event = SessionEvent::reconstructed(&self.key("prompt", index), line.time, body);
        self.add(index, event, None);
    }

    fn add_transition(&mut self, index: usize, trigger: &str, context: Value) {
        let body = transition("running", "running", trigger, context);
        let event = SessionEvent::reconstructed(&self.key(trigger, index), self.lines.all[index].time, body);
        self.add(index, event, None);
    }

    fn add_unreadable(&mut self, lines: &[(usize, Timestamp, String)]) {
        for (number, (session, time, text)) in lines.iter().enumerate() {
            let id = self.lines.sessions.get(*session).cloned().unwrap_or_default();
            let digest = Sha256Digest::from_bytes(text.as_bytes());
            let key = format!("claude-code/unreadable/{id}/{number}/{digest}");
            let body = EventBody::Opaque(Opaque { data: text.as_str().into() });
            let event = SessionEvent::reconstructed(&key, *time, body);
            let draft = self.draft_of(&id, None);
            self.drafts[draft].draft.add(event, None);
        }
    }

    /// The key of a record that one line makes.
    fn key(&self, kind: &str, index: usize) -> String {
        let line = &self.lines.all[index];
        if let Some(uuid) = &line.uuid {
            return format!("claude-code/{kind}/{uuid}");
        }
        let session = self.lines.sessions.get(line.session).map_or("", String::as_str);
        let digest = Sha256Digest::from_bytes(line.value.to_string().as_bytes());
        format!("claude-code/{kind}/{session}/{digest}")
    }

    fn push(&mut self, lane: usize, message: Value) {
        self.current[lane] = self.histories.push(self.current[lane], message);
    }

    fn add(&mut self, index: usize, mut event: SessionEvent, last_message: Option<MessageId>) {
        let line = &self.lines.all[index];
        if let Agent::Sub(agent) = &line.agent {
            event.agent = Some(agent.clone().unwrap_or_else(|| {
                let head = &self.lines.all[self.lanes[self.lane_of[index]].head];
                format!("sidechain-{}", short(head.uuid.as_deref().unwrap_or_default()))
            }));
        }
        self.draft(index).draft.add(event, last_message);
    }

    fn set_title(&mut self, index: usize, text: &str, rank: u8) {
        let session = self.draft(index);
        // The newest title that a person or a model gave, but the first prompt.
        if session.draft.title.is_none() || rank > 0 && rank >= session.title_rank {
            session.draft.title = title(text).or(session.draft.title.take());
            session.title_rank = rank;
        }
    }

    /// Returns the session of a line, which begins with its first line.
    fn draft(&mut self, index: usize) -> &mut DraftSession {
        let line = &self.lines.all[index];
        let id = self.session_of(index);
        let parent = line.parent.as_ref().and_then(|parent| self.lines.by_uuid.get(parent).copied());
        let parent = parent.filter(|_| line.agent.is_main()).map(|parent| match &self.lines.all[parent].seen_in {
            Some(session) => session.clone(),
            None => self.session_of(parent),
        });
        let draft = self.draft_of(&id, parent);
        self.drafts[draft].draft.saw(line.time);
        &mut self.drafts[draft]
    }

    fn draft_of(&mut self, id: &str, parent: Option<String>) -> usize {
        if let Some(known) = self.by_id.get(id) {
            return *known;
        }
        let mut draft = Draft::new(id.to_owned(), Origin::ClaudeCode);
        draft.parent = parent.filter(|parent| parent != id);
        self.drafts.push(DraftSession { draft, title_rank: 0 });
        self.by_id.insert(id.to_owned(), self.drafts.len() - 1);
        self.drafts.len() - 1
    }

    /// Returns the id of the session of a line. A fork within a file has the id of the session and of its first line.
    fn session_of(&self, index: usize) -> String {
        let line = &self.lines.all[index];
        let stated = self.lines.sessions.get(line.session).cloned().unwrap_or_default();
        let lane = &self.lanes[self.lane_of[index]];
        let head = &self.lines.all[lane.head];
        match lane.fork_point.map(|point| &self.lines.all[point]) {
            Some(point) if point.session == head.session && head.session == line.session => {
                format!("{stated}-fork-{}", short(head.uuid.as_deref().unwrap_or_default()))
            }
            _ => stated,
        }
    }
}

/// The identity of a model call. Programs that stand between the agent and the model may leave out the request.
fn call_key(line: &Line, lines: &Lines) -> String {
    let id = line.value.pointer("/message/id").and_then(Value::as_str);
    let request = line.value.get("requestId").and_then(Value::as_str);
    match (id, request, &line.uuid) {
        (Some(id), Some(request), _) if !is_api_error(&line.value) => format!("{id}/{request}"),
        (Some(id), None, _) if !is_api_error(&line.value) => {
            format!("{}/{id}", lines.sessions.get(line.session).map_or("", String::as_str))
        }
        (_, _, Some(uuid)) => uuid.clone(),
        _ => Sha256Digest::from_bytes(line.value.to_string().as_bytes()).to_string(),
    }
}

/// Returns the text of a prompt that a person wrote.
fn prompt(line: &Line) -> Option<String> {
    let is_flagged = |name: &str| line.value.get(name).and_then(Value::as_bool).unwrap_or(false);
    let flags = ["isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"];
    if line.kind != Kind::User || flags.into_iter().any(is_flagged) {
        return None;
    }
    let text = user_text(&line.value)?;
    (!text.starts_with(INTERRUPTED)).then_some(text)
}

/// Returns the text of a user line that is not a tool result.
fn user_text(line: &Value) -> Option<String> {
    let content = line.pointer("/message/content");
    let has_result = blocks(content).any(|block| block.get("type").is_some_and(|kind| kind == "tool_result"));
    let text = written_texts(content.unwrap_or(&Value::Null)).join("\n");
    (!has_result && !text.is_empty()).then_some(text)
}

fn transition(from: &str, to: &str, trigger: &str, context: Value) -> EventBody {
    let (from_state, to_state, trigger) = (from.to_owned(), to.to_owned(), trigger.to_owned());
    EventBody::StateTransition(StateTransition { from_state, to_state, trigger, context })
}

fn context(line: &Value, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), line.get(name)?.clone())));
    Value::Object(fields.collect())
}

fn error_message(error: &Value) -> String {
    let message = ["/error/error/message", "/error/message", "/message", "/cause/code", "/code"];
    let found = message.iter().find_map(|name| error.pointer(name)?.as_str());
    found.map_or_else(
        || if error.is_string() { error.as_str().unwrap_or_default().to_owned() } else { error.to_string() },
        str::to_owned,
    )
}

/// Returns the HTTP status in a message such as `API Error: 529 …`.
fn status_in(message: &str) -> Option<u16> {
    let words = message.split(|it: char| !it.is_ascii_alphanumeric());
    words.take(6).filter_map(|word| word.parse().ok()).find(|status| (400..600).contains(status))
}

/// Returns the start of an id.
fn short(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).take(8).collect()
}
