//! A session from a file: its head, its records, and the histories of its model calls, which share their messages.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::event::{EventBody, EventId, SessionEvent};
use crate::session::{Coverage, Origin, Parent, SessionHead, SessionStatus, Share};

/// Length of a title in characters.
const MAX_TITLE_CHARS: usize = 80;

/// Maximum length of the id of a session.
const MAX_ID_BYTES: usize = 200;

/// A session with its records in their order.
///
/// The histories of model calls are stored once: a session of n turns takes memory in proportion to n, not to n². [`events`]
/// builds whole events one at a time.
///
/// [`events`]: ImportedSession::events
#[derive(Debug)]
pub struct ImportedSession {
    pub head: SessionHead,
    /// Places that were masked.
    pub secrets: u64,
    records: Vec<ImportedRecord>,
    histories: Arc<Histories>,
}

/// A record, without the history of a model call.
#[derive(Debug)]
pub struct ImportedRecord {
    /// `request.messages` of a model call is an empty array.
    pub event: SessionEvent,
    /// The last message of the request of a model call.
    pub last_message: Option<MessageId>,
}

/// A message in [`Histories`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(u32);

/// Messages, each of which continues the history of another one.
#[derive(Debug, Default)]
pub struct Histories {
    messages: Vec<(Option<MessageId>, Value)>,
}

impl Histories {
    /// Adds a message to the history that ends with `previous`.
    pub(super) fn push(&mut self, previous: Option<MessageId>, message: Value) -> Option<MessageId> {
        // More than 2³² messages do not fit into the memory that a session may take.
        let Ok(id) = u32::try_from(self.messages.len()) else { return previous };
        self.messages.push((previous, message));
        Some(MessageId(id))
    }

    /// Returns a message and the one before it.
    pub fn message(&self, id: MessageId) -> Option<(&Value, Option<MessageId>)> {
        let (previous, message) = self.messages.get(id.0 as usize)?;
        Some((message, *previous))
    }

    /// Returns the history that ends with a message, from its start.
    pub fn history(&self, last: Option<MessageId>) -> Vec<&Value> {
        let mut messages = Vec::new();
        let mut at = last;
        while let Some((message, previous)) = at.and_then(|id| self.message(id)) {
            messages.push(message);
            at = previous;
        }
        messages.reverse();
        messages
    }
}

impl ImportedSession {
    /// The records, of which histories can be looked up in [`ImportedSession::histories`].
    pub fn records(&self) -> &[ImportedRecord] {
        &self.records
    }

    pub fn histories(&self) -> &Histories {
        &self.histories
    }

    /// Builds whole events, one at a time.
    pub fn events(&self) -> impl Iterator<Item = SessionEvent> + '_ {
        self.records.iter().map(|record| {
            let mut event = record.event.clone();
            if let EventBody::LlmCall(call) = &mut event.body {
                call.request.messages = self.histories.history(record.last_message).into_iter().cloned().collect();
            }
            event
        })
    }
}

/// What is known about a session while it is read.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) session_id: String,
    pub(super) origin: Origin,
    pub(super) parent: Option<String>,
    pub(super) title: Option<String>,
    pub(super) status: SessionStatus,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    records: Vec<ImportedRecord>,
    ids: HashSet<EventId>,
}

impl Draft {
    pub(super) fn new(session_id: String, origin: Origin) -> Self {
        Self {
            session_id,
            origin,
            parent: None,
            title: None,
            status: SessionStatus::Completed,
            started_at: None,
            ended_at: None,
            records: Vec::new(),
            ids: HashSet::new(),
        }
    }

    /// Extends the time of the session.
    pub(super) fn saw(&mut self, time: Timestamp) {
        self.started_at = Some(self.started_at.map_or(time, |start| start.min(time)));
        self.ended_at = Some(self.ended_at.map_or(time, |end| end.max(time)));
    }

    /// Adds a record, unless the session has one with its id.
    pub(super) fn add(&mut self, event: SessionEvent, last_message: Option<MessageId>) {
        if self.ids.insert(event.event_id.clone()) {
            self.records.push(ImportedRecord { event, last_message });
        }
    }

    /// Orders the records by time, and completes the head. `fallback` is the time of a session without any.
    pub(super) fn finish(mut self, histories: Arc<Histories>, fallback: Timestamp) -> ImportedSession {
        self.records.sort_by_key(|record| record.event.timestamp);
        let seen = |kind: &str| {
            // Files of other programs do not have everything that happened, such as requests that were not answered.
            let found = self.records.iter().any(|record| record.event.body.kind() == kind);
            if found { Share::Partial } else { Share::None }
        };
        let coverage = Coverage {
            llm_calls: seen("llm_call"),
            tool_calls: seen("tool_call"),
            files: seen("file_operation"),
            commands: seen("command"),
        };
        let head = SessionHead {
            title: self.title,
            session_id: safe_id(self.session_id),
            origin: self.origin,
            workflow: None,
            status: self.status,
            started_at: self.started_at.unwrap_or(fallback),
            ended_at: Some(self.ended_at.unwrap_or(fallback)),
            parent: self.parent.map(|id| Parent { session_id: safe_id(id), checkpoint_id: None }),
            coverage,
        };
        ImportedSession { head, secrets: 0, records: self.records, histories }
    }
}

impl ImportedSession {
    /// Removes the records that `is_repeated` recognizes.
    pub(super) fn remove(&mut self, mut is_repeated: impl FnMut(&EventId) -> bool) {
        self.records.retain(|record| !is_repeated(&record.event.event_id));
    }
}

/// Returns an id that can be typed and printed: that of the file, unless it is hostile.
fn safe_id(id: String) -> String {
    let is_safe = !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control);
    if is_safe { id } else { EventId::from_key(&id).as_str().to_owned() }
}

/// Returns the start of a text as a title: its first line that is not blank.
pub(super) fn title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut characters = line.chars().map(|it| if it.is_control() { ' ' } else { it });
    let title: String = characters.by_ref().take(MAX_TITLE_CHARS).collect();
    match characters.next() {
        Some(_) => Some(title.chars().take(MAX_TITLE_CHARS - 1).chain(['…']).collect()),
        None => Some(title),
    }
}

/// Reads a time of RFC 3339 that can be printed as one.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    in_range(text.parse().ok()?)
}

/// Reads a time in nanoseconds since 1970.
pub(super) fn time_from_nanoseconds(nanoseconds: i128) -> Option<Timestamp> {
    in_range(Timestamp::from_nanosecond(nanoseconds).ok()?)
}

fn in_range(time: Timestamp) -> Option<Timestamp> {
    // Years before 0 and after 9999 are not part of RFC 3339. No agent ran before 1970.
    (time > Timestamp::UNIX_EPOCH).then_some(time)
}
