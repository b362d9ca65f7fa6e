//! An index of an answer's events by the ids that refer to them, so that lookups do not scan all events.

use counterproof_artifact::{Event, EventBody, EvidenceTarget, ToolCall};

use crate::values::text_hash;

/// The positions of an answer's events by id. If two events have the same id, the first one counts.
#[derive(Debug, Default)]
pub struct EventIndex {
    calls: Positions,
    results: Positions,
    documents: Positions,
    ids: Positions,
    events: usize,
}

impl EventIndex {
    /// Indexes the events.
    pub fn new(events: &[Event]) -> Self {
        let mut index = Self { events: events.len(), ..Self::default() };
        for (position, event) in events.iter().enumerate() {
            match &event.body {
                EventBody::ToolCall(call) => index.calls.insert(&call.call_id, position),
                EventBody::ToolResult(result) => index.results.insert(&result.call_id, position),
                EventBody::Retrieval(found) => {
                    found.doc_ids.iter().for_each(|id| index.documents.insert(id, position));
                }
                EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
            }
            for key in ["event_id", "id"] {
                if let Some(id) = event.extra().get(key).and_then(|value| value.as_str()) {
                    index.ids.insert(id, position);
                }
            }
        }
        for positions in [&mut index.calls, &mut index.results, &mut index.documents, &mut index.ids] {
            positions.sort();
        }
        index
    }

    /// Returns the call with this id.
    pub fn call<'a>(&self, events: &'a [Event], call_id: &str) -> Option<&'a ToolCall> {
        match &events.get(self.call_position(call_id)?)?.body {
            EventBody::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the position of the call with this id.
    pub fn call_position(&self, call_id: &str) -> Option<usize> {
        self.calls.find(call_id)
    }

    /// Returns the position of the event that an evidence ref points at. `None` for assets and for unresolved refs.
    pub fn find(&self, target: &EvidenceTarget) -> Option<usize> {
        match target {
            EvidenceTarget::ToolResult { call_id } => self.results.find(call_id),
            EvidenceTarget::RetrievalDoc { doc_id } => self.documents.find(doc_id),
            EvidenceTarget::Event { id } => match event_position(id) {
                Some(position) => (position < self.events).then_some(position),
                None => self.ids.find(id),
            },
            EvidenceTarget::Asset { .. } => None,
        }
    }
}

/// Positions by hashed id. The hashes are keyed, so that no agent can construct colliding ids.
#[derive(Debug, Default)]
struct Positions(Vec<(u64, usize)>);

impl Positions {
    fn insert(&mut self, id: &str, position: usize) {
        self.0.push((text_hash(id), position));
    }

    /// Sorts the ids for binary search and keeps the first position of each.
    fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by_key(|(id, _)| *id);
    }

    fn find(&self, id: &str) -> Option<usize> {
        let hash = text_hash(id);
        let found = self.0.binary_search_by_key(&hash, |(id, _)| *id).ok()?;
        Some(self.0[found].1)
    }
}

/// Parses the contract's address of an event within its artifact: `events[3]`.
fn event_position(id: &str) -> Option<usize> {
    id.strip_prefix("events[")?.strip_suffix(']')?.parse().ok()
}
