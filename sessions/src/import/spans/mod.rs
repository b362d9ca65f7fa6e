//! Traces of model calls and tool calls: the conventions of OpenTelemetry for generative AI, and `OpenInference`.

mod model_call;
mod span;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use jiff::Timestamp;
use serde_json::Value;

use super::imported::{Draft, Histories, ImportedSession, title};
use super::lines::{Masker, Record, read_documents};
use super::report::{Outcome, Tally};
use super::source::{Format, ReadResult, read_files};
use crate::event::{Command, EventBody, EventError, Opaque, RequestedCall, SessionEvent, ToolCall, ToolResult};
use crate::protocol::{ShellOutput, shell_command, shell_output};
use crate::session::SessionStatus;
use model_call::{ModelCall, gen_ai, message_text, open_inference, requested_calls, tool_results};
pub(super) use span::is_span;
use span::{Span, spans_of, structured};

/// Operations that are left out on purpose, with the reason. `docs/session-import.md` has the same table.
pub(super) const LEFT_OUT_OTLP: [(&str, &str); 13] = [
    ("create_agent", "the set-up of an agent"),
    ("embeddings", "a call without messages"),
    ("invoke_agent", "a sum of other spans"),
    ("invoke_workflow", "a sum of other spans"),
    ("plan", "a sum of other spans"),
    ("resourceLogs", "a signal without spans"),
    ("resourceMetrics", "a signal without spans"),
    ("retrieval", "a call without messages"),
    ("create_memory_store", "a call without messages"),
    ("delete_memory", "a call without messages"),
    ("search_memory", "a call without messages"),
    ("update_memory", "a call without messages"),
    ("(other span)", "a span without attributes of a model or a tool"),
];

/// Kinds of spans that are left out on purpose, with the reason. `docs/session-import.md` has the same table.
pub(super) const LEFT_OUT_OPENINFERENCE: [(&str, &str); 11] = [
    ("AGENT", "a sum of other spans"),
    ("CHAIN", "a sum of other spans"),
    ("EMBEDDING", "a call without messages"),
    ("EVALUATOR", "a judgement about other spans"),
    ("GUARDRAIL", "a judgement about other spans"),
    ("PROMPT", "a template; the messages are in the model call"),
    ("RERANKER", "a call without messages"),
    ("RETRIEVER", "a call without messages"),
    ("resourceLogs", "a signal without spans"),
    ("resourceMetrics", "a signal without spans"),
    ("(other span)", "a span without attributes of a model or a tool"),
];

/// Operations of the conventions of OpenTelemetry that are model calls.
const MODEL_OPERATIONS: [&str; 5] = ["chat", "generate_content", "text_completion", "completion", "message"];

const OTHER_SPAN: &str = "(other span)";

/// Recognizes the conventions of the first span that follows one of them.
pub(super) fn detect(document: &Value) -> Format {
    let spans = spans_of(document.clone()).unwrap_or_default();
    for span in spans.into_iter().filter_map(Span::new) {
        if span.attributes.keys().any(|name| name.starts_with("gen_ai.")) {
            return Format::Otlp;
        }
        if span.attributes.contains_key("openinference.span.kind") {
            return Format::Openinference;
        }
    }
    Format::Otlp
}

/// What a span is for the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Tool,
    LeftOut,
    Unknown,
}

fn classify(span: &Span) -> (String, Kind) {
    if let Some(kind) = span.text("openinference.span.kind") {
        let kind = kind.to_ascii_uppercase();
        let of = match kind.as_str() {
            "LLM" => Kind::Model,
            "TOOL" => Kind::Tool,
            other => left_out_or_unknown(other, &LEFT_OUT_OPENINFERENCE),
        };
        return (kind, of);
    }
    if let Some(operation) = span.text("gen_ai.operation.name") {
        let of = match operation {
            "execute_tool" => Kind::Tool,
            operation if MODEL_OPERATIONS.contains(&operation) => Kind::Model,
            other => left_out_or_unknown(other, &LEFT_OUT_OTLP),
        };
        return (operation.to_owned(), of);
    }
    // Before the conventions had operations.
    let is_older = ["gen_ai.system", "gen_ai.request.model"].iter().any(|name| span.attributes.contains_key(*name));
    match (is_older, span.attributes.contains_key("gen_ai.tool.name")) {
        (_, true) => ("execute_tool".to_owned(), Kind::Tool),
        (true, _) => (span.text("llm.request.type").unwrap_or("chat").to_owned(), Kind::Model),
        _ => (OTHER_SPAN.to_owned(), Kind::LeftOut),
    }
}

fn left_out_or_unknown(kind: &str, list: &[(&str, &str)]) -> Kind {
    if list.iter().any(|(known, _)| *known == kind) { Kind::LeftOut } else { Kind::Unknown }
}

/// The spans of a file that become records.
#[derive(Default)]
struct Spans {
    found: Vec<(Span, Kind)>,
    ids: HashSet<(String, String)>,
    opaque: Vec<Value>,
}

/// Reads the sessions of a file.
pub(super) fn read(path: &Utf8Path, format: Format, masker: &mut Masker<'_>) -> ReadResult {
    let mut result = ReadResult::default();
    let mut spans = Spans::default();
    let path = path.to_owned();
    read_files(std::iter::once(&path), &mut result, masker, |path, masker, budget, tally| {
        read_documents(path, masker, budget, &mut |record| spans.add(record, tally))
    });
    let stem = path.file_stem().unwrap_or_default();
    result.sessions = sessions(spans, format, stem, result.fallback_time);
    result
}

impl Spans {
    fn add(&mut self, record: Record, tally: &mut Tally) {
        let document = match record {
            Record::Value(value) => value,
            Record::Unreadable(text) => {
                tally.count("(unreadable)", Outcome::Opaque);
                return self.opaque.push(text.into());
            }
        };
        let sources = match spans_of(document) {
            Ok(sources) => sources,
            Err(other) => {
                let signal = ["resourceMetrics", "resourceLogs"].into_iter().find(|name| other.get(name).is_some());
                tally.count(
                    signal.unwrap_or("(unknown)"),
                    if signal.is_some() { Outcome::LeftOut } else { Outcome::Opaque },
                );
                if signal.is_none() {
                    self.opaque.push(other);
                }
                return;
            }
        };
        for source in sources {
            let is_object = source.is_object();
            let copy = if is_object { Value::Null } else { source.clone() };
            let Some(span) = Span::new(source) else {
                tally.count("(no ids)", Outcome::Opaque);
                self.opaque.push(copy);
                continue;
            };
            let (name, kind) = classify(&span);
            let is_new = self.ids.insert((span.trace_id.clone(), span.id.clone()));
            tally.count(
                &name,
                match kind {
                    Kind::LeftOut => Outcome::LeftOut,
                    Kind::Unknown => Outcome::Opaque,
                    // A span that was exported twice.
                    _ if !is_new => Outcome::LeftOut,
                    _ => Outcome::Mapped,
                },
            );
            if is_new {
                self.found.push((span, kind));
            }
        }
    }
}

/// Assigns spans to sessions: by the conversation that they or another span of their trace state, else by their trace.
fn sessions(spans: Spans, format: Format, stem: &str, fallback: Timestamp) -> Vec<ImportedSession> {
    let conversation = |span: &Span| {
        ["gen_ai.conversation.id", "session.id"].iter().find_map(|name| span.text(name)).map(str::to_owned)
    };
    let mut of_trace: HashMap<String, String> = HashMap::new();
    for (span, _) in &spans.found {
        if let Some(id) = conversation(span) {
            of_trace.entry(span.trace_id.clone()).or_insert(id);
        }
    }
    let mut groups: BTreeMap<_, Vec<(Span, Kind)>> = BTreeMap::new();
    let mut starts: HashMap<String, Option<Timestamp>> = HashMap::new();
    let mut assigned = Vec::new();
    for (span, kind) in spans.found {
        let id = conversation(&span).or_else(|| of_trace.get(&span.trace_id).cloned());
        let id = id.unwrap_or_else(|| span.trace_id.clone());
        let start = starts.entry(id.clone()).or_insert(span.start);
        *start = (*start).min(span.start);
        assigned.push((id, span, kind));
    }
    for (id, span, kind) in assigned {
        let start = starts.get(&id).copied().flatten();
        groups.entry((start, id)).or_default().push((span, kind));
    }
    groups.retain(|_, spans| spans.iter().any(|(_, kind)| *kind != Kind::LeftOut));
    let mut opaque = spans.opaque;
    let mut sessions: Vec<ImportedSession> = Vec::new();
    for ((_, id), spans) in groups {
        let mut session = SessionBuilder::new(Draft::new(id, format.origin()), fallback);
        session.add_opaque(std::mem::take(&mut opaque));
        sessions.push(session.build(spans));
    }
    if !opaque.is_empty() {
        // Nothing of the file was understood.
        let mut session = SessionBuilder::new(Draft::new(stem.to_owned(), format.origin()), fallback);
        session.add_opaque(opaque);
        sessions.push(session.build(Vec::new()));
    }
    sessions
}

struct SessionBuilder {
    draft: Draft,
    histories: Histories,
    fallback: Timestamp,
    /// Tool calls that models asked for, by id.
    requested: HashMap<String, (Timestamp, RequestedCall)>,
    answered: HashSet<String>,
}

impl SessionBuilder {
    fn new(draft: Draft, fallback: Timestamp) -> Self {
        let (requested, answered) = (HashMap::new(), HashSet::new());
        Self { draft, histories: Histories::default(), fallback, requested, answered }
    }

    fn add_opaque(&mut self, values: Vec<Value>) {
        for (number, data) in values.into_iter().enumerate() {
            let digest = Sha256Digest::from_bytes(data.to_string().as_bytes());
            let key = format!("span/{}/{number}/{digest}", self.draft.session_id);
            self.draft.add(SessionEvent::reconstructed(&key, self.fallback, EventBody::Opaque(Opaque { data })), None);
        }
    }

    fn build(mut self, mut spans: Vec<(Span, Kind)>) -> ImportedSession {
        spans.sort_by_key(|(span, _)| span.start);
        // Calls with spans of their own are not rebuilt from messages.
        let spanned = spans.iter().filter(|(_, kind)| *kind == Kind::Tool).filter_map(|(span, _)| call_id(span));
        self.answered = spanned.map(str::to_owned).collect();
        for (span, kind) in spans {
            [span.start, span.end].into_iter().flatten().for_each(|time| self.draft.saw(time));
            if span.is_root && span.failure.is_some() {
                self.draft.status = SessionStatus::Failed;
            }
            match kind {
                Kind::Model => self.add_call(&span),
                Kind::Tool => self.add_tool(&span),
                Kind::Unknown => {
                    let time = self.time(&span);
                    let key = format!("span/{}/{}", span.trace_id, span.id);
                    let body = EventBody::Opaque(Opaque { data: span.source });
                    self.draft.add(SessionEvent::reconstructed(&key, time, body), None);
                }
                Kind::LeftOut => {}
            }
        }
        self.draft.finish(Arc::new(self.histories), self.fallback)
    }

    fn time(&self, span: &Span) -> Timestamp {
        span.start.or(span.end).unwrap_or(self.fallback)
    }

    fn add_call(&mut self, span: &Span) {
        let is_open_inference = span.text("openinference.span.kind").is_some();
        let ModelCall { mut call, messages } = if is_open_inference { open_inference(span) } else { gen_ai(span) };
        let time = self.time(span);
        if self.draft.title.is_none() {
            let prompt = messages.iter().find(|message| message.get("role").is_some_and(|role| role == "user"));
            self.draft.title = prompt.and_then(message_text).as_deref().and_then(title);
        }
        for message in &messages {
            for (id, content) in tool_results(message) {
                self.add_rebuilt_tool(&id, content);
            }
        }
        let mut last = None;
        for message in messages {
            for requested in requested_calls(&message) {
                self.remember(time, requested);
            }
            last = self.histories.push(last, message);
        }
        let error = failure(span);
        if error.is_some()
            && call.response.as_ref().is_some_and(|response| response.usage.is_none() && response.content.is_none())
        {
            call.response = None;
        }
        for requested in call.response.iter().flat_map(|response| &response.tool_calls) {
            self.remember(time, requested.clone());
        }
        let key = format!("span/{}/{}", span.trace_id, span.id);
        let mut event = SessionEvent::reconstructed(&key, time, EventBody::LlmCall(call));
        event.error = error;
        self.draft.add(event, last);
    }

    fn remember(&mut self, time: Timestamp, requested: RequestedCall) {
        if let Some(id) = requested.id.clone() {
            self.requested.entry(id).or_insert((time, requested));
        }
    }

    fn add_rebuilt_tool(&mut self, id: &str, content: String) {
        let Some((time, requested)) = self.requested.get(id) else { return };
        if !self.answered.insert(id.to_owned()) {
            return;
        }
        let source = &requested.function.arguments;
        let arguments = serde_json::from_str(source).unwrap_or_else(|_| source.as_str().into());
        let call = ToolCall {
            tool_name: requested.function.name.clone(),
            arguments,
            result: ToolResult {
                success: Some(true),
                content: Some(content),
                truncated: Some(false),
                error: None,
                sandbox: None,
            },
            call_id: Some(id.to_owned()),
            ..ToolCall::default()
        };
        let key = format!("span-tool/{}/{id}", self.draft.session_id);
        let time = *time;
        self.add_tool_call(&key, time, call);
    }

    fn add_tool(&mut self, span: &Span) {
        let value = |names: &[&str]| names.iter().find_map(|name| span.attributes.get(*name));
        let arguments = value(&["gen_ai.tool.call.arguments", "tool.parameters", "input.value"]).map(structured);
        let content = value(&["gen_ai.tool.call.result", "output.value"]);
        let content = content.map(|content| content.as_str().map_or_else(|| content.to_string(), str::to_owned));
        let name = value(&["gen_ai.tool.name", "tool.name"]).and_then(Value::as_str);
        let name = name.unwrap_or_else(|| span.name.strip_prefix("execute_tool ").unwrap_or(&span.name));
        let error = failure(span);
        let call = ToolCall {
            tool_name: name.to_owned(),
            arguments: arguments.unwrap_or(Value::Null),
            result: ToolResult {
                success: Some(error.is_none()),
                error: error.map(|error| error.message),
                truncated: content.as_ref().map(|_| false),
                content,
                sandbox: None,
            },
            latency_ms: span.latency_ms(),
            call_id: call_id(span).map(str::to_owned),
            decision: None,
        };
        let time = self.time(span);
        self.add_tool_call(&format!("span/{}/{}", span.trace_id, span.id), time, call);
    }

    fn add_tool_call(&mut self, key: &str, time: Timestamp, call: ToolCall) {
        let command = shell_command(&call.tool_name, &call.arguments, None).map(|command| {
            let ShellOutput { exit_code, stdout, stderr, latency_ms, .. } =
                call.result.content.as_deref().map(shell_output).unwrap_or_default();
            let (latency_ms, call_id) = (call.latency_ms.or(latency_ms), call.call_id.clone());
            Command { exit_code, stdout, stderr, latency_ms, call_id, ..command }
        });
        self.draft.add(SessionEvent::reconstructed(key, time, EventBody::ToolCall(call)), None);
        if let Some(command) = command {
            let event = SessionEvent::reconstructed(&format!("{key}/command"), time, EventBody::Command(command));
            self.draft.add(event, None);
        }
    }
}

fn call_id(span: &Span) -> Option<&str> {
    span.text("gen_ai.tool.call.id").or_else(|| span.text("tool_call.id"))
}

fn failure(span: &Span) -> Option<EventError> {
    let kind = span.text("error.type");
    let exception = span.events.iter().find(|event| event.name == "exception");
    let exception = exception.and_then(|event| event.attributes.get("exception.message")?.as_str());
    if span.failure.is_none() && kind.is_none() {
        return None;
    }
    let stated = span.failure.as_deref().filter(|message| !message.is_empty());
    let message = stated.or(exception).or(kind).unwrap_or_default().to_owned();
    let status = span.attributes.get("http.response.status_code").and_then(model_call::whole_number);
    let status = status.or_else(|| kind?.parse().ok()).and_then(|status| u16::try_from(status).ok());
    Some(EventError { kind: "source".to_owned(), status, message })
}
