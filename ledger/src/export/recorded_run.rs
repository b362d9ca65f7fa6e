//! The events of one run, by call.

use std::collections::HashMap;

use serde_json::Value;

use super::recorded_call::{CallEvent, EventKey, RecordedCall};
use super::recorded_source::RecordedSources;
use crate::query::{EventFilter, EventPages};
use crate::store::{EventStore, StoreError};

/// The calls and the processes of a run. The calls are in the order of their start.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedRun {
    pub(super) calls: Vec<RecordedCall>,
    pub(super) sources: RecordedSources,
}

impl RecordedRun {
    /// Reads the events of a run, page by page.
    pub(super) fn read(store: &mut dyn EventStore, run_id: &str) -> Result<Self, StoreError> {
        let filter = EventFilter { run_id: Some(run_id.to_owned()), since: None };
        let mut pages = EventPages::new(store, filter)?;
        let mut builder = Builder::default();
        loop {
            let page = pages.next_page(store)?;
            if page.is_empty() {
                return Ok(builder.finish());
            }
            for event in page {
                builder.add(event.id, &event.line);
            }
        }
    }
}

/// The calls so far.
#[derive(Default)]
struct Builder {
    run: RecordedRun,
    /// The position of each call with an id.
    positions: HashMap<String, usize>,
}

impl Builder {
    /// Adds a line. Lines that are no event, and events that no call can be made of, are skipped.
    fn add(&mut self, id: i64, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let Some(key) = EventKey::new(&event, id) else { return };
        let kind = event["type"].as_str().unwrap_or_default();
        if matches!(kind, "run_start" | "run_end") {
            self.run.sources.add(&key.shim_id, &event);
        } else if RecordedCall::has_kind(kind) {
            self.add_to_call(CallEvent { key, event });
        }
    }

    fn add_to_call(&mut self, event: CallEvent) {
        let calls = &mut self.run.calls;
        let position = match event.event["call"]["call_id"].as_str() {
            Some(call_id) => *self.positions.entry(call_id.to_owned()).or_insert(calls.len()),
            // Another event cannot name this call.
            None if event.event["type"] == "tool_call_start" => calls.len(),
            None => return,
        };
        if position == calls.len() {
            calls.push(RecordedCall::default());
        }
        calls[position].add(event);
    }

    fn finish(mut self) -> RecordedRun {
        self.run.calls.sort_by(|one, other| one.began().cmp(&other.began()));
        self.run
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(events: &[Value]) -> RecordedRun {
        let mut builder = Builder::default();
        for (id, event) in (1..).zip(events) {
            builder.add(id, &event.to_string());
        }
        builder.finish()
    }

    fn event(kind: &str, second: u64, shim: &str, call_id: &str) -> Value {
        let ts = format!("2026-01-31T12:00:{second:02}Z");
        json!({"type": kind, "ts": ts, "seq": second, "source": {"shim_id": shim}, "call": {"call_id": call_id, "tool_name": call_id}})
    }

    fn tools(run: &RecordedRun) -> Vec<&str> {
        run.calls.iter().map(|call| call.text("tool_name").unwrap()).collect()
    }

    #[test]
    fn the_calls_of_all_processes_are_in_the_order_of_their_start() {
        let run = run(&[
            event("tool_call_end", 9, "b", "late"),
            event("tool_call_start", 3, "b", "late"),
            event("tool_call_start", 2, "a", "second"),
            event("tool_call_start", 2, "A", "first"),
            event("tool_call_end", 4, "a", "second"),
        ]);
        assert_eq!(tools(&run), ["first", "second", "late"]);
        assert!(run.calls[0].end().is_none() && run.calls[1].end().is_some());
    }

    #[test]
    fn of_two_ends_the_first_counts_and_an_end_without_a_start_is_a_call() {
        let ends = [event("tool_call_end", 5, "a", "x"), event("tool_call_end", 4, "a", "x")];
        let run = run(&ends);
        assert_eq!(run.calls.len(), 1);
        assert_eq!(run.calls[0].end(), Some(&ends[1]));
        assert_eq!(run.calls[0].began(), run.calls[0].ended());
    }

    #[test]
    fn an_end_is_not_before_its_start() {
        let run = run(&[event("tool_call_start", 5, "a", "x"), event("tool_call_end", 4, "a", "x")]);
        assert_eq!(run.calls[0].began(), run.calls[0].ended());
    }

    #[test]
    fn events_without_a_call_id_or_a_time_are_no_problem() {
        let start = json!({"type": "tool_call_start", "ts": "2026-01-31T12:00:00Z", "call": {"tool_name": "t"}});
        let without = json!({"type": "tool_call_end", "ts": "2026-01-31T12:00:00Z"});
        let odd = [json!([1]), json!({"type": "tool_call_start"}), json!({"type": 7, "ts": "2026-01-31T12:00:00Z"})];
        let run = run(&[&[start.clone(), start, without][..], &odd].concat());
        assert_eq!(tools(&run), ["t", "t"]);
    }
}
