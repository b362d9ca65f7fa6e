//! The stored form of records: large texts and message histories are taken out, and secrets are masked.
//!
//! A value that is stored elsewhere is replaced by a reference: `{"$asset": DIGEST}` for a JSON text, and
//! `{"$history": NODE}` for a list of messages. An object of an agent that has such a key is wrapped as `{"$literal": …}`.

use std::collections::{BTreeSet, HashSet};

use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_ledger::line::sortable_time;
use counterproof_redaction::{Applied, RedactError, Redactor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::event::{EventBody, FileChange, SessionEvent};
use crate::milestone::milestones;
use crate::session::Origin;
use crate::summary::error_message;

pub(crate) const ASSET: &str = "$asset";
pub(crate) const HISTORY: &str = "$history";
pub(crate) const LITERAL: &str = "$literal";

/// The size of a value as JSON text from which it is stored once, under its digest.
const ASSET_BYTES: usize = 8 * 1024;

/// The same for the fields of a request and of a checkpoint, which most others of a session repeat.
const REPEATED_BYTES: usize = 256;

/// What replaces a secret.
pub const MASK: &str = "[REDACTED]";

/// Compiles the search for secrets in what is stored of a session: the given values, and keys of known formats. The records of a
/// workflow are read by its model and go into files and test ids, so that ordinary text such as `password_reset` must stay.
pub fn redactor(origin: Origin, secrets: &BTreeSet<String>) -> Result<Redactor, RedactError> {
    let values = secrets.iter().map(String::as_str);
    let redactor = if origin == Origin::Workflow { Redactor::new(values) } else { Redactor::broad(values) };
    Ok(redactor?.with_mask(MASK))
}

/// A record as a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredEvent {
    pub(crate) event_id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) ts: String,
    /// The tool of a call, the path of a file that was changed, the id of a checkpoint.
    pub(crate) name: Option<String>,
    /// The digest of the arguments of a tool call.
    pub(crate) call_key: Option<String>,
    pub(crate) error: Option<String>,
    /// The milestones as a JSON array.
    pub(crate) milestone: Option<String>,
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) completion_tokens: Option<u64>,
    pub(crate) total_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) cost_nanos: Option<u64>,
    pub(crate) data: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asset {
    pub(crate) digest: String,
    pub(crate) text: String,
}

/// The history that ends with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistoryNode {
    pub(crate) node: String,
    pub(crate) parent: Option<String>,
    pub(crate) message: String,
}

/// Records of one session in their stored form, with the assets that the store may not have yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredEvents {
    pub(crate) events: Vec<StoredEvent>,
    pub(crate) assets: Vec<Asset>,
    pub(crate) nodes: Vec<HistoryNode>,
}

impl Asset {
    fn new(text: String) -> Self {
        Self { digest: Sha256Digest::from_bytes(text.as_bytes()).to_string(), text }
    }

    pub(super) fn is_right(&self) -> bool {
        Sha256Digest::from_bytes(self.text.as_bytes()).to_string() == self.digest
    }
}

impl HistoryNode {
    fn new(parent: Option<String>, message: String) -> Self {
        let link = format!("{}{message}", parent.as_deref().unwrap_or_default());
        // Half of the digits: a node is only compared with the others of its session.
        let node = Sha256Digest::from_bytes(link.as_bytes()).to_string()[..32].to_owned();
        Self { node, parent, message }
    }

    pub(super) fn is_right(&self) -> bool {
        Self::new(self.parent.clone(), self.message.clone()).node == self.node
    }
}

impl StoredEvents {
    pub(crate) fn append(&mut self, mut other: Self) {
        self.events.append(&mut other.events);
        self.assets.append(&mut other.assets);
        self.nodes.append(&mut other.nodes);
    }
}

/// Converts the records of one session. Remembers what it has handed out, so that each asset is handed out once.
#[derive(Debug)]
pub(crate) struct Encoder {
    redactor: Redactor,
    known: HashSet<String>,
    /// The messages of the last history as they were sent, with their nodes: the next one repeats most of them.
    last: Vec<(Value, String)>,
}

impl Encoder {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, known: HashSet::new(), last: Vec::new() }
    }

    /// Uses another redactor from now on.
    pub(crate) fn set_redactor(&mut self, redactor: Redactor) {
        self.redactor = redactor;
        self.last.clear();
    }

    /// Forgets what was handed out, because the store may not have it.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.last.clear();
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(crate) fn mask(&self, text: &str) -> String {
        self.redactor.text(text, &mut Applied::default())
    }

    pub(crate) fn mask_json(&self, value: &mut Value) {
        self.redactor.json(value, &mut Applied::default());
    }

    pub(crate) fn encode(&mut self, events: Vec<SessionEvent>) -> Result<StoredEvents, serde_json::Error> {
        let mut stored = StoredEvents::default();
        for event in events {
            let event = self.event(event, &mut stored)?;
            stored.events.push(event);
        }
        Ok(stored)
    }

    fn event(&mut self, mut event: SessionEvent, stored: &mut StoredEvents) -> Result<StoredEvent, serde_json::Error> {
        event.seq = None;
        let mut columns = columns(&event);
        let messages = take_messages(&mut event.body);
        let mut data = serde_json::to_value(&event)?;
        self.redactor.json(&mut data, &mut Applied::default());
        for text in [&mut columns.name, &mut columns.error, &mut columns.milestone].into_iter().flatten() {
            *text = self.mask(text);
        }
        escape_references(&mut data);
        if let Some(messages) = messages {
            self.put_messages(messages, &mut data, stored);
        }
        for path in ["/request", "/state/workspace", "/state/tool_state"] {
            if let Some(repeated) = data.pointer_mut(path) {
                self.share(repeated, REPEATED_BYTES, stored);
            }
        }
        self.share(&mut data, ASSET_BYTES, stored);
        columns.data = data.to_string();
        Ok(columns)
    }

    /// Replaces large values by references.
    fn share(&mut self, value: &mut Value, limit: usize, stored: &mut StoredEvents) {
        let Value::Object(fields) = value else { return };
        let is_wrapper = fields.len() == 1 && fields.contains_key(LITERAL);
        let fields = match fields.get_mut(LITERAL) {
            // Never the object within a wrapper: a reference there would be taken for a text of the agent.
            Some(Value::Object(inner)) if is_wrapper => inner,
            _ => fields,
        };
        for field in fields.values_mut() {
            if is_reference(field) || shorter(field, limit) {
                continue;
            }
            // Below a field of a large object, only the large part: a patch, or an output.
            if limit == ASSET_BYTES && matches!(field, Value::Object(_)) {
                self.share(field, limit, stored);
                // A history is found only in the row of its record.
                if shorter(field, limit) || has_history(field) {
                    continue;
                }
            }
            // The fields of the body are repeated one by one.
            if limit == REPEATED_BYTES && matches!(field, Value::Object(_)) {
                self.share(field, limit, stored);
                continue;
            }
            let digest = self.asset(field.to_string(), stored);
            *field = json!({ ASSET: digest });
        }
    }

    fn asset(&mut self, text: String, stored: &mut StoredEvents) -> String {
        let asset = Asset::new(text);
        let digest = asset.digest.clone();
        if self.known.insert(digest.clone()) {
            stored.assets.push(asset);
        }
        digest
    }

    fn put_messages(&mut self, messages: Messages, data: &mut Value, stored: &mut StoredEvents) {
        let Messages { list, place, in_body } = messages;
        let reference = match list {
            Value::Array(list) => json!({ HISTORY: self.history(list, stored) }),
            mut other => {
                // Some APIs take a text in place of a list.
                self.redactor.json(&mut other, &mut Applied::default());
                escape_references(&mut other);
                if shorter(&other, REPEATED_BYTES) {
                    other
                } else {
                    json!({ ASSET: self.asset(other.to_string(), stored) })
                }
            }
        };
        if let Some(field) = in_body.and_then(|name| data.pointer_mut("/request/body")?.get_mut(name)) {
            *field = reference.clone();
        }
        if let Some(field) = data.pointer_mut(place) {
            *field = reference;
        }
    }

    /// Returns the node of a list of messages; `null` for an empty list.
    fn history(&mut self, list: Vec<Value>, stored: &mut StoredEvents) -> Option<String> {
        let repeated = list.iter().zip(&self.last).take_while(|(message, (last, _))| *message == last).count();
        self.last.truncate(repeated);
        for message in list.into_iter().skip(repeated) {
            let mut masked = message.clone();
            self.redactor.json(&mut masked, &mut Applied::default());
            escape_references(&mut masked);
            let digest = self.asset(masked.to_string(), stored);
            let parent = self.last.last().map(|(_, node)| node.clone());
            let found = HistoryNode::new(parent, digest);
            let node = found.node.clone();
            if self.known.insert(node.clone()) {
                stored.nodes.push(found);
            }
            self.last.push((message, node));
        }
        self.last.last().map(|(_, node)| node.clone())
    }
}

/// The messages of a request or of a checkpoint, which are stored one by one.
struct Messages {
    list: Value,
    /// Where a reference replaces them.
    place: &'static str,
    /// The field of the body that has the same list.
    in_body: Option<&'static str>,
}

/// Takes the messages out of a request, and leaves `null`. Of a checkpoint, takes the history and leaves an empty list.
fn take_messages(body: &mut EventBody) -> Option<Messages> {
    let call = match body {
        EventBody::LlmCall(call) => call,
        EventBody::Checkpoint(checkpoint) => {
            let list = Value::Array(std::mem::take(&mut checkpoint.state.message_history));
            return Some(Messages { list, place: "/state/message_history", in_body: None });
        }
        _ => return None,
    };
    let list = call.request.messages.take();
    if list.is_null() {
        return None;
    }
    let body = call.request.body.as_object_mut();
    let in_body = body.and_then(|body| {
        let name = ["messages", "input"].into_iter().find(|name| body.get(*name).is_some_and(|it| *it == list))?;
        body.insert(name.to_owned(), Value::Null);
        Some(name)
    });
    Some(Messages { list, place: "/request/messages", in_body })
}

fn columns(event: &SessionEvent) -> StoredEvent {
    let (mut name, mut call_key, mut usage, mut cost) = (None, None, None, None);
    match &event.body {
        EventBody::LlmCall(call) => {
            usage = call.response.as_ref().and_then(|response| response.usage);
            cost = call.cost;
        }
        EventBody::ToolCall(call) => {
            name = Some(call.tool_name.clone());
            call_key = Some(canonical_hash(&call.arguments).to_string());
        }
        EventBody::FileOperation(file) if file.operation != FileChange::Read => name = Some(file.path.clone()),
        EventBody::Checkpoint(checkpoint) => name = Some(checkpoint.checkpoint_id.clone()),
        _ => {}
    }
    let usage = usage.unwrap_or_default();
    StoredEvent {
        event_id: event.event_id.as_str().to_owned(),
        kind: event.body.kind().to_owned(),
        ts: sortable_time(event.timestamp),
        name: name.map(|name| indexable(&name)),
        call_key,
        error: error_message(event).map(|text| storable(&text)),
        milestone: Some(milestones(event)).filter(|it| !it.is_empty()).and_then(|it| serde_json::to_string(&it).ok()),
        prompt_tokens: count(usage.prompt_tokens),
        completion_tokens: count(usage.completion_tokens),
        total_tokens: count(usage.total_tokens),
        cached_tokens: count(usage.cached_tokens),
        cost_nanos: count(cost.and_then(nanos)),
        data: String::new(),
    }
}

/// Largest number that is added to a sum. A larger one is an error of its source, and would let the sum overflow.
const MAX_COUNT: u64 = 1_000_000_000_000_000;

fn count(number: Option<u64>) -> Option<u64> {
    number.filter(|number| *number <= MAX_COUNT)
}

/// Longest name in bytes. PostgreSQL indexes at most 2,704 bytes of a row.
const MAX_NAME_BYTES: usize = 512;

/// Cuts a name that is too long for an index.
fn indexable(name: &str) -> String {
    let end = name.floor_char_boundary(MAX_NAME_BYTES);
    if end < name.len() { format!("{}…", storable(&name[..end])) } else { storable(name) }
}

/// PostgreSQL cannot store NUL characters in a text. In JSON they are escaped.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Converts an amount to billionths, which can be added without rounding.
fn nanos(cost: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
    (cost.is_finite() && cost >= 0.0).then(|| (cost * 1e9).round() as u64)
}

/// Returns true if a value is shorter than a number of bytes as JSON text.
fn shorter(value: &Value, limit: usize) -> bool {
    fn measure(value: &Value, left: usize) -> Option<usize> {
        match value {
            Value::String(text) => left.checked_sub(text.len() + 2),
            Value::Array(items) => items.iter().try_fold(left, |left, item| measure(item, left.checked_sub(1)?)),
            Value::Object(fields) => {
                fields.iter().try_fold(left, |left, (name, field)| measure(field, left.checked_sub(name.len() + 4)?))
            }
            _ => left.checked_sub(4),
        }
    }
    measure(value, limit).is_some()
}

/// Returns true if a field of an object is a history.
fn has_history(value: &Value) -> bool {
    let is_history = |field: &Value| is_reference(field) && field.get(HISTORY).is_some();
    value.as_object().is_some_and(|fields| fields.values().any(is_history))
}

fn is_reference(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|fields| fields.len() == 1 && [ASSET, HISTORY].into_iter().any(|name| fields.contains_key(name)))
}

/// Wraps the objects that look like a reference.
fn escape_references(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(escape_references),
        Value::Object(fields) => {
            fields.values_mut().for_each(escape_references);
            if [ASSET, HISTORY, LITERAL].into_iter().any(|name| fields.contains_key(name)) {
                let inner = Value::Object(std::mem::take(fields));
                *value = Value::Object(Map::from_iter([(LITERAL.to_owned(), inner)]));
            }
        }
        _ => {}
    }
}
