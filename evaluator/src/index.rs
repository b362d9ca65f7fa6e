//! An answer's events by what refers to them: built once, so that many refs to many events cost no more than reading them.

use std::collections::HashMap;

use counterproof_artifact::{Event, EventBody, EvidenceTarget, ToolCall};

/// Where the events of an answer are, by their ids. Of two with one id, the first counts.
#[derive(Debug, Default)]
pub struct EventIndex {
    calls: HashMap<String, usize>,
    results: HashMap<String, usize>,
    documents: HashMap<String, usize>,
    ids: HashMap<String, usize>,
    events: usize,
}

impl EventIndex {
    /// Indexes the events.
    pub fn of(events: &[Event]) -> Self {
        let mut index = Self { events: events.len(), ..Self::default() };
        for (place, event) in events.iter().enumerate() {
            match &event.body {
                EventBody::ToolCall(call) => enter(&mut index.calls, &call.call_id, place),
                EventBody::ToolResult(result) => enter(&mut index.results, &result.call_id, place),
                EventBody::Retrieval(found) => {
                    found.doc_ids.iter().for_each(|id| enter(&mut index.documents, id, place));
                }
                EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
            }
            for key in ["event_id", "id"] {
                if let Some(id) = event.extra().get(key).and_then(|value| value.as_str()) {
                    enter(&mut index.ids, id, place);
                }
            }
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
        self.calls.get(call_id).copied()
    }

    /// The event that an evidence ref leads to; `None` for assets, and for what leads nowhere.
    pub fn find(&self, target: &EvidenceTarget) -> Option<usize> {
        match target {
            EvidenceTarget::ToolResult { call_id } => self.results.get(call_id).copied(),
            EvidenceTarget::RetrievalDoc { doc_id } => self.documents.get(doc_id).copied(),
            EvidenceTarget::Event { id } => match event_place(id) {
                Some(place) => (place < self.events).then_some(place),
                None => self.ids.get(id).copied(),
            },
            EvidenceTarget::Asset { .. } => None,
        }
    }
}

fn enter(map: &mut HashMap<String, usize>, id: &str, place: usize) {
    if !map.contains_key(id) {
        map.insert(id.to_owned(), place);
    }
}

/// An event's count within its artifact, as the contract addresses it: `events[3]`.
fn event_place(id: &str) -> Option<usize> {
    id.strip_prefix("events[")?.strip_suffix(']')?.parse().ok()
}
