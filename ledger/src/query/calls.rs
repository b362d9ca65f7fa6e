//! The tool calls of a ledger, and why they were refused or failed.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::events::EventFilter;
use super::events::EventPages;
use super::events::Fields;
use crate::event::{Action, CallStatus};
use crate::store::{EventStore, Query, StoreError};

/// Which calls are returned: those that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    pub run_id: Option<String>,
    pub server_name: Option<String>,
    pub tool_name: Option<String>,
    pub decision: Option<String>,
    pub status: Option<String>,
    pub args_hash: Option<String>,
    pub would_refuse: bool,
    /// True for previews in the records, and for the reasons of refused and failed calls.
    pub with_previews: bool,
    /// The earliest time, as [`sortable_time`](crate::line::sortable_time) writes it.
    pub since: Option<String>,
    /// Largest number of calls. The latest ones are returned.
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallRecord {
    pub ts: String,
    pub run_id: String,
    pub shim_id: Option<String>,
    pub call_id: String,
    pub server_name: Option<String>,
    pub tool_name: Option<String>,
    pub args_hash: Option<String>,
    pub decision: Option<String>,
    /// The rule that decided, or that would have decided in observe mode.
    pub rule_id: Option<String>,
    pub reason_code: Option<String>,
    /// What the rules would have decided, in observe mode.
    pub observed_action: Option<String>,
    /// How the call ended; `None` while it has not ended.
    pub status: Option<String>,
    pub error_class: Option<String>,
    pub latency_ms: Option<i64>,
    pub bytes_in: Option<i64>,
    pub bytes_out: Option<i64>,
    pub preview_truncated: bool,
    /// The arguments, if the filter asks for previews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_preview: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// Why the call was refused, if the filter asks for previews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_summary: Option<String>,
    /// The message of its error, if the filter asks for previews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

impl CallRecord {
    pub(super) fn is_refused(&self) -> bool {
        self.decision.as_deref().is_some_and(|decision| decision != Action::Allow.name())
    }

    pub(super) fn has_failed(&self) -> bool {
        self.status.as_deref().is_some_and(|status| status != CallStatus::Ok.name())
    }
}

const COLUMNS: &str = "created_at, run_id, shim_id, call_id, server_name, tool_name, args_hash, decision, rule_id, \
                       reason_code, observed_action, status, error_class, latency_ms, bytes_in, bytes_out, \
                       preview_truncated";

impl CallFilter {
    pub(crate) fn query(&self) -> Query {
        let mut query = Query::new(if self.with_previews {
            // Only on request: previews are most of the bytes, and a list of calls does not show them.
            let join = "LEFT JOIN previews USING (run_id, call_id)";
            format!("SELECT {COLUMNS}, args_preview, result_preview FROM tool_calls {join}")
        } else {
            format!("SELECT {COLUMNS} FROM tool_calls")
        });
        let conditions = [
            ("run_id =", &self.run_id),
            ("server_name =", &self.server_name),
            ("tool_name =", &self.tool_name),
            ("decision =", &self.decision),
            ("status =", &self.status),
            ("args_hash =", &self.args_hash),
            ("created_at >=", &self.since),
        ];
        let word = query.restrict(" WHERE", &conditions);
        if self.would_refuse {
            query.push(&format!("{word} observed_action <> '{}'", Action::Allow.name()));
        }
        let limit = query.bind(u64::from(self.limit));
        query.push(&format!(" ORDER BY created_at DESC LIMIT {limit}"));
        query
    }
}

pub(crate) fn failed_calls_query(run_id: &str) -> Query {
    let (allow, ok) = (Action::Allow.name(), CallStatus::Ok.name());
    let cancelled = CallStatus::Cancelled.name();
    let failed = "CASE WHEN decision = ?2 AND status NOT IN (?3, ?4) THEN 1 END";
    Query::new(format!("SELECT count({failed}) FROM tool_calls WHERE run_id = ?1"))
        .with(run_id)
        .with(allow)
        .with(ok)
        .with(cancelled)
}

pub fn failed_calls(store: &mut dyn EventStore, run_id: &str) -> Result<u64, StoreError> {
    // Cancelled calls did not fail.
    let rows = store.select(&failed_calls_query(run_id))?;
    Ok(rows.into_iter().next().map_or(0, |row| Fields::new(row).count()))
}

pub fn calls(store: &mut dyn EventStore, filter: &CallFilter) -> Result<Vec<CallRecord>, StoreError> {
    let rows = store.select(&filter.query())?;
    let record = |row| {
        let mut fields = Fields::new(row);
        CallRecord {
            ts: fields.required(),
            run_id: fields.required(),
            // Stored as an empty text, because the columns of a key cannot be NULL.
            shim_id: fields.text().filter(|id| !id.is_empty()),
            call_id: fields.required(),
            server_name: fields.text(),
            tool_name: fields.text(),
            args_hash: fields.text(),
            decision: fields.text(),
            rule_id: fields.text(),
            reason_code: fields.text(),
            observed_action: fields.text(),
            status: fields.text(),
            error_class: fields.text(),
            latency_ms: fields.integer(),
            bytes_in: fields.integer(),
            bytes_out: fields.integer(),
            preview_truncated: fields.integer() == Some(1),
            args_preview: fields.text(),
            result_preview: fields.text(),
            decision_summary: None,
            error_message: None,
        }
    };
    let mut calls: Vec<_> = rows.into_iter().map(record).collect();
    if filter.with_previews {
        add_messages(store, &mut calls)?;
    }
    Ok(calls)
}

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
        // The texts are only in the lines of events, so as few of them as possible are read.
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
        // An allowed call has a summary too, which says nothing more.
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
