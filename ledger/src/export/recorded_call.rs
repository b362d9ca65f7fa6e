//! The events of one call.

use jiff::Timestamp;
use serde_json::Value;

/// The position of an event among those of a run: by its time, then by its source and number, then by its arrival.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventKey {
    pub(super) at: Timestamp,
    pub(super) shim_id: String,
    pub(super) seq: u64,
    pub(super) id: i64,
}

impl EventKey {
    /// Reads the position of an event. Returns `None` if it has no time.
    pub(super) fn new(event: &Value, id: i64) -> Option<Self> {
        let at = event["ts"].as_str()?.parse().ok()?;
        let shim_id = event["source"]["shim_id"].as_str().unwrap_or_default().to_owned();
        Some(Self { at, shim_id, seq: event["seq"].as_u64().unwrap_or_default(), id })
    }

    /// Returns the time in milliseconds since 1970.
    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.at.as_millisecond()).unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub(super) struct CallEvent {
    pub(super) key: EventKey,
    pub(super) event: Value,
}

/// The events of one call. Any of them may be missing.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedCall {
    start: Option<CallEvent>,
    decision: Option<CallEvent>,
    end: Option<CallEvent>,
}

impl RecordedCall {
    /// Returns true if events of this type belong to calls.
    pub(super) fn has_kind(kind: &str) -> bool {
        matches!(kind, "tool_call_start" | "tool_call_decision" | "tool_call_end")
    }

    /// Adds an event. Of several events of one type, the first counts.
    pub(super) fn add(&mut self, event: CallEvent) {
        let place = match event.event["type"].as_str() {
            Some("tool_call_start") => &mut self.start,
            Some("tool_call_decision") => &mut self.decision,
            _ => &mut self.end,
        };
        if place.as_ref().is_none_or(|known| event.key < known.key) {
            *place = Some(event);
        }
    }

    /// Returns when the call began: its start, or else its first event.
    pub(super) fn began(&self) -> Option<&EventKey> {
        let first = || [&self.decision, &self.end].into_iter().flatten().map(|event| &event.key).min();
        self.start.as_ref().map(|start| &start.key).or_else(first)
    }

    /// Returns when the call ended, not before it began.
    pub(super) fn ended(&self) -> Option<&EventKey> {
        self.end.as_ref().map(|end| &end.key).max(self.end.as_ref().and_then(|_| self.began()))
    }

    /// Returns a field of the object `call`, from the first event that has it.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let events = [&self.start, &self.decision, &self.end].into_iter().flatten();
        events.map(|event| &event.event["call"][name]).find(|value| !value.is_null())
    }

    /// Returns a field of the object `call` that is a text and not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.field(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns the decision, unless the event of it is missing.
    pub(super) fn decision(&self) -> Option<&Value> {
        self.decision.as_ref().map(|event| &event.event["decision"]).filter(|decision| decision.is_object())
    }

    /// Returns the event of the end.
    pub(super) fn end(&self) -> Option<&Value> {
        self.end.as_ref().map(|event| &event.event)
    }
}
