//! An answer's events by what refers to them: built once, so that many refs to many events cost no more than reading them.

use counterproof_artifact::{Event, EventBody, EvidenceTarget, ToolCall};

use crate::values::text_hash;

/// Where the events of an answer are, by their ids. Of two with one id, the first counts.
#[derive(Debug, Default)]
pub struct EventIndex {
    calls: Places,
    results: Places,
    documents: Places,
    ids: Places,
    events: usize,
}

impl EventIndex {
    /// Indexes the events.
    pub fn of(events: &[Event]) -> Self {
        let mut index = Self { events: events.len(), ..Self::default() };
        for (place, event) in events.iter().enumerate() {
            match &event.body {
                EventBody::ToolCall(call) => index.calls.enter(&call.call_id, place),
                EventBody::ToolResult(result) => index.results.enter(&result.call_id, place),
                EventBody::Retrieval(found) => {
                    found.doc_ids.iter().for_each(|id| index.documents.enter(id, place));
                }
                EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
            }
            for key in ["event_id", "id"] {
                if let Some(id) = event.extra().get(key).and_then(|value| value.as_str()) {
                    index.ids.enter(id, place);
                }
            }
        }
        for places in [&mut index.calls, &mut index.results, &mut index.documents, &mut index.ids] {
            places.sort();
        }
        index
    }

    /// The call with this id.
    pub fn call<'a>(&self, events: &'a [Event], call_id: &str) -> Option<&'a ToolCall> {
        match &events.get(self.call_place(call_id)?)?.body {
            EventBody::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// The index of the call with this id.
    pub fn call_place(&self, call_id: &str) -> Option<usize> {
        self.calls.find(call_id)
    }

    /// The event that an evidence ref leads to; `None` for assets, and for what leads nowhere.
    pub fn find(&self, target: &EvidenceTarget) -> Option<usize> {
        match target {
            EvidenceTarget::ToolResult { call_id } => self.results.find(call_id),
            EvidenceTarget::RetrievalDoc { doc_id } => self.documents.find(doc_id),
            EvidenceTarget::Event { id } => match event_place(id) {
                Some(place) => (place < self.events).then_some(place),
                None => self.ids.find(id),
            },
            EvidenceTarget::Asset { .. } => None,
        }
    }
}

/// Places by the hashes of ids, which are keyed so that no agent can make two collide on purpose.
#[derive(Debug, Default)]
struct Places(Vec<(u64, usize)>);

impl Places {
    fn enter(&mut self, id: &str, place: usize) {
        self.0.push((text_hash(id), place));
    }

    /// Brings the ids into their order, each with its first place.
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

/// An event's count within its artifact, as the contract addresses it: `events[3]`.
fn event_place(id: &str) -> Option<usize> {
    id.strip_prefix("events[")?.strip_suffix(']')?.parse().ok()
}
