//! Why calls were refused or failed: texts that only the lines of their events have.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::calls::CallRecord;
use super::event_pages::EventPages;
use super::events::EventFilter;
use crate::store::{EventStore, StoreError};

/// The fields of a decision or of an end that state a reason.
#[derive(Deserialize)]
struct Reasons {
    call: CallKey,
    decision: Option<Decision>,
    error: Option<ErrorText>,
}

#[derive(Deserialize)]
struct CallKey {
    call_id: String,
}

#[derive(Deserialize)]
struct Decision {
    explain: Option<Explanation>,
}

#[derive(Deserialize)]
struct Explanation {
    summary: Option<String>,
}

#[derive(Deserialize)]
struct ErrorText {
    message: Option<String>,
}

/// The calls of one run that have a reason.
#[derive(Default)]
struct CallsOfRun<'a> {
    /// The time of the first one. No event of the others is read before it.
    since: String,
    by_id: HashMap<String, &'a mut CallRecord>,
}

/// Adds the summaries of refusals and the messages of errors to calls.
pub(super) fn add_messages(store: &mut dyn EventStore, calls: &mut [CallRecord]) -> Result<(), StoreError> {
    let mut runs: BTreeMap<String, CallsOfRun<'_>> = BTreeMap::new();
    for call in calls.iter_mut().filter(|call| call.is_refused() || call.has_failed()) {
        let of_run = runs.entry(call.run_id.clone()).or_default();
        if of_run.by_id.is_empty() || call.ts < of_run.since {
            of_run.since.clone_from(&call.ts);
        }
        of_run.by_id.insert(call.call_id.clone(), call);
    }
    for (run_id, mut of_run) in runs {
        let filter = EventFilter { run_id: Some(run_id), since: Some(std::mem::take(&mut of_run.since)) };
        let mut pages = EventPages::new(store, filter)?;
        loop {
            let events = pages.next_page(store)?;
            if events.is_empty() {
                break;
            }
            let events = events.iter().filter(|it| matches!(&*it.kind, "tool_call_decision" | "tool_call_end"));
            // Lines with another structure state no reason.
            for reasons in events.filter_map(|event| serde_json::from_str::<Reasons>(&event.line).ok()) {
                if let Some(call) = of_run.by_id.get_mut(&reasons.call.call_id) {
                    reasons.add_to(call);
                }
            }
        }
    }
    Ok(())
}

impl Reasons {
    fn add_to(self, call: &mut CallRecord) {
        let summary = self.decision.and_then(|decision| decision.explain?.summary);
        if call.is_refused() {
            add(&mut call.decision_summary, summary);
        }
        add(&mut call.error_message, self.error.and_then(|error| error.message));
    }
}

/// Adds a text. If events contradict each other, the smaller text counts, as in the tables.
fn add(text: &mut Option<String>, other: Option<String>) {
    let before = text.take();
    *text = [before, other].into_iter().flatten().min();
}
