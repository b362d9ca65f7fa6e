//! The proposal for an answer: its text, documents, usage and error by the names that many agents share.

use serde_json::Value;

use super::calls;
use super::walk::{Node, key_of, nodes};
use crate::agent::http_mapping::{ActionsMapping, DocumentsMapping, HttpMapping, UsageMapping};
use crate::agent::mapping_path::{AnswerPath, ElementPath};

/// Names of the answer's text, the likeliest first.
const OUTPUTS: [&str; 22] = [
    "reply",
    "final_output",
    "final_answer",
    "answer",
    "output_text",
    "output",
    "response",
    "completion",
    "generated_text",
    "result",
    "text",
    "content",
    "message",
    "say",
    "assistant",
    "bot",
    "finalOutput",
    "outputText",
    "speech",
    "data",
    "value",
    "summary",
];

/// Names of the pieces of a text in a stream.
const PIECES: [&str; 8] = ["delta", "token", "text", "content", "chunk", "output", "response", "message"];

/// Names of fields that hold a text other than the answer.
const OTHER_TEXTS: [&str; 18] = [
    "id",
    "session",
    "session_id",
    "thread_id",
    "conversation_id",
    "request_id",
    "model",
    "status",
    "created",
    "created_at",
    "timestamp",
    "version",
    "type",
    "role",
    "name",
    "url",
    "object",
    "finish_reason",
];

/// Names of lists of documents.
const DOCUMENTS: [&str; 12] = [
    "documents",
    "sources",
    "citations",
    "docs",
    "retrieved",
    "retrieved_documents",
    "source_documents",
    "references",
    "contexts",
    "passages",
    "chunks",
    "hits",
];

/// Names of the id of a document, as pointers.
const DOCUMENT_IDS: [&str; 9] =
    ["/doc_id", "/document_id", "/id", "/docId", "/metadata/id", "/metadata/source", "/source", "/url", "/title"];

/// Names of the tokens that a model read and wrote.
const INPUT_TOKENS: [&str; 7] =
    ["input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "in", "input", "request_tokens"];
const OUTPUT_TOKENS: [&str; 7] =
    ["output_tokens", "completion_tokens", "outputTokens", "completionTokens", "out", "output", "response_tokens"];

/// Names of the objects that hold them.
const USAGES: [&str; 7] = ["usage", "usage_metadata", "token_usage", "tokens", "tok", "tokenUsage", "metrics"];

/// Proposes a mapping for an answer to `user`. Keys that nothing in the answer suggests are absent.
pub fn propose(answer: &Value, user: &str) -> HttpMapping {
    let nodes = nodes(answer);
    let calls = calls::propose(answer, &nodes);
    HttpMapping {
        output: calls::conversation_output(answer, &nodes, user).or_else(|| output(answer, &nodes, user)),
        calls,
        actions: actions(&nodes),
        documents: documents(&nodes),
        usage: usage(&nodes),
        error: error(answer),
        ..HttpMapping::default()
    }
}

pub(super) fn path(text: impl Into<String>) -> Option<AnswerPath> {
    AnswerPath::try_from(text.into()).ok()
}

pub(super) fn within(text: impl Into<String>) -> Option<ElementPath> {
    ElementPath::try_from(text.into()).ok()
}

/// Returns the path of the text that looks most like an answer.
fn output(answer: &Value, nodes: &[Node<'_>], user: &str) -> Option<AnswerPath> {
    match answer {
        Value::String(_) => return path(""),
        Value::Array(_) => return pieces(nodes),
        _ => {}
    }
    if let Some(text) = answer.pointer("/choices/0/message/content").or_else(|| answer.pointer("/choices/0/text")) {
        let at = if answer.pointer("/choices/0/message").is_some() {
            "/choices/0/message/content"
        } else {
            "/choices/0/text"
        };
        return (text.is_string() || text.is_null()).then(|| path(at)).flatten();
    }
    // The Responses API, and content blocks of Anthropic's API.
    for parts in ["/output/*/content/*/text", "/content/*/text"] {
        if nodes.iter().any(|node| node.at == parts && node.value.is_string()) {
            return path(parts);
        }
    }
    let texts = nodes.iter().filter(|node| {
        // An endpoint may repeat the question.
        !node.at.contains('*') && node.value.as_str().is_some_and(|text| !text.is_empty() && text != user)
    });
    let rank = |node: &&Node<'_>| {
        let name = OUTPUTS.iter().position(|name| *name == key_of(&node.at));
        name.map(|name| (node.at.matches('/').count(), name))
    };
    if let Some(best) = texts.clone().filter(|node| rank(node).is_some()).min_by_key(rank) {
        return path(best.at.clone());
    }
    // An agent that answers with an object, such as `{"answer": {"action": …}}`.
    let object = nodes.iter().filter(|node| node.value.is_object() && !node.at.contains('*') && !node.at.is_empty());
    let plain = texts.filter(|node| !OTHER_TEXTS.contains(&key_of(&node.at)));
    let longest = plain.max_by_key(|node| node.value.as_str().map_or(0, str::len));
    let is_sentence = |node: &&Node<'_>| node.value.as_str().is_some_and(|text| text.contains(' '));
    let named = object.filter(|node| rank(node).is_some()).min_by_key(rank);
    longest.filter(is_sentence).or(named).or(longest).and_then(|node| path(node.at.clone()))
}

/// Returns the path of the pieces of a text in a stream: the one with the most pieces.
fn pieces(nodes: &[Node<'_>]) -> Option<AnswerPath> {
    if nodes.iter().any(|node| node.at == "/*/choices/*/delta/content") {
        return path("/*/choices/*/delta/content");
    }
    if !nodes.iter().any(|node| node.at.starts_with("/*/")) {
        // Events that are texts themselves.
        return nodes.iter().any(|node| node.at == "/*" && node.value.is_string()).then(|| path("/*")).flatten();
    }
    let is_piece = |node: &&Node<'_>| node.value.is_string() && PIECES.contains(&key_of(&node.at));
    let count = |at: &str| nodes.iter().filter(|node| node.at == at && node.value.is_string()).count();
    // Of equally frequent ones, the first.
    let best = nodes.iter().filter(is_piece).rev().max_by_key(|node| count(&node.at))?;
    path(best.at.clone())
}

/// Returns the paths of proposed actions: a list with that name whose elements look like calls.
fn actions(nodes: &[Node<'_>]) -> Option<ActionsMapping> {
    let node = nodes.iter().find(|node| matches!(key_of(&node.at), "proposed_actions" | "pending_actions"))?;
    let list = node.value.as_array()?;
    let fields = calls::fields(&list.iter().collect::<Vec<_>>())?;
    Some(ActionsMapping { path: path(node.at.clone())?, name: fields.name, arguments: fields.arguments })
}

fn documents(nodes: &[Node<'_>]) -> Option<DocumentsMapping> {
    let mut named = nodes.iter().filter(|node| DOCUMENTS.contains(&key_of(&node.at)));
    named.find_map(|node| {
        let list = node.value.as_array().filter(|list| !list.is_empty())?;
        if list.iter().all(Value::is_string) {
            return Some(DocumentsMapping { path: path(node.at.clone())?, id: None });
        }
        let is_id =
            |id: &&&str| list.iter().all(|item| item.pointer(id).is_some_and(|id| id.is_string() || id.is_number()));
        let id = DOCUMENT_IDS.iter().find(is_id)?;
        Some(DocumentsMapping { path: path(node.at.clone())?, id: within(*id) })
    })
}

fn usage(nodes: &[Node<'_>]) -> Option<UsageMapping> {
    let node = nodes.iter().find(|node| {
        let has = |names: &[&str]| names.iter().any(|name| node.value.get(name).is_some_and(Value::is_number));
        USAGES.contains(&key_of(&node.at)) && (has(&INPUT_TOKENS) || has(&OUTPUT_TOKENS))
    })?;
    let count = |names: &[&str]| {
        let name = names.iter().find(|name| node.value.get(name).is_some_and(Value::is_number))?;
        path(format!("{}/{name}", node.at))
    };
    Some(UsageMapping {
        input_tokens: count(&INPUT_TOKENS),
        output_tokens: count(&OUTPUT_TOKENS),
        cached_tokens: None,
        cost: count(&["cost", "cost_usd", "total_cost"]),
    })
}

fn error(answer: &Value) -> Option<AnswerPath> {
    let name = ["error", "err", "error_message"].into_iter().find(|name| answer.get(name).is_some())?;
    path(format!("/{name}"))
}

impl HttpMapping {
    /// Returns the keys that read an answer as lines of TOML.
    pub fn toml_lines(&self) -> Vec<String> {
        self.answer_document().into_iter().map(|(key, value)| format!("{key} = {}", toml_value(&value))).collect()
    }

    /// Returns the keys that read an answer, as in the configuration.
    pub fn answer_document(&self) -> serde_json::Map<String, Value> {
        let mut document = match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let keys = self.answer_keys();
        document.retain(|key, _| keys.contains(&key.as_str()));
        document
    }
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key} = {}", toml_value(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        // A literal string needs no escapes, which keeps expressions readable.
        Value::String(text) if text.contains('"') && !text.contains(['\'', '\n', '\r']) => format!("'{text}'"),
        // A JSON string is a basic string of TOML as well.
        other => other.to_string(),
    }
}
