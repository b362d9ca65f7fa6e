//! The events of one run: by call, by the process that recorded them, and how the run ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use counterproof_ledger::event::{AGENT_SOURCE, SOURCE_KIND};
use counterproof_ledger::query::{EventFilter, EventPages, RunRecord, RunState};
use counterproof_ledger::store::{EventStore, StoreError};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Default)]
pub(super) struct RecordedRun {
    pub(super) calls: Vec<RecordedCall>,
    pub(super) sources: RecordedSources,
}

impl RecordedRun {
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

#[derive(Default)]
struct Builder {
    run: RecordedRun,
    positions: HashMap<String, usize>,
}

impl Builder {
    /// Adds a line. Lines that are no event, and events that no call can be made of, are skipped.
    fn add(&mut self, id: i64, line: &str) {
        // A ledger can have lines of other producers, and one of them must not prevent the export.
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
        // By time and not by arrival: several processes write to one ledger.
        self.run.calls.sort_by(|one, other| one.began().cmp(&other.began()));
        self.run
    }
}

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
        // Producers may repeat an event, and events arrive in any order.
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
        // Clocks of two processes can differ, and a negative duration would be invalid.
        self.end.as_ref().map(|end| &end.key).max(self.end.as_ref().and_then(|_| self.began()))
    }

    /// Returns a field of the object `call`, from the first event that has it.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let events = [&self.start, &self.decision, &self.end].into_iter().flatten();
        events.map(|event| &event.event["call"][name]).find(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.field(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn decision(&self) -> Option<&Value> {
        self.decision.as_ref().map(|event| &event.event["decision"]).filter(|decision| decision.is_object())
    }

    pub(super) fn end(&self) -> Option<&Value> {
        self.end.as_ref().map(|event| &event.event)
    }
}

/// Bytes of the hash of a policy in a text. They are enough to tell policies apart.
const HASH_BYTES: usize = 12;

#[derive(Debug, Clone, Default)]
pub(super) struct RecordedSources(BTreeMap<String, RecordedSource>);

#[derive(Debug, Clone, Default)]
struct RecordedSource {
    is_agent: bool,
    program: Option<String>,
    server_name: Option<String>,
    mode: Option<String>,
    policy: BTreeMap<&'static str, String>,
    status: Option<String>,
    exit: Value,
}

impl RecordedSource {
    fn status(&self, without_end: &RecordedStatus) -> RecordedStatus {
        self.status.as_deref().map_or_else(|| without_end.clone(), RecordedStatus::new)
    }

    /// Returns the policy with its mode, in a few words: `shop version 2 (guardrails, hash 1f3870be274f)`.
    fn policy_text(&self) -> Option<String> {
        let field = |name| self.policy.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let version = field("policy_version").map(|version| format!(" version {version}")).unwrap_or_default();
        let hash = field("policy_hash").map(|hash| format!("hash {}", &hash[..hash.floor_char_boundary(HASH_BYTES)]));
        let details: Vec<_> = self.mode.clone().into_iter().chain(hash).collect();
        Some(format!("{}{version} ({})", field("policy_id")?, details.join(", ")))
    }

    fn exit_text(&self) -> Option<String> {
        let code = self.exit["code"].as_i64().map(|code| format!("exit code {code}"));
        let signal = || self.exit["signal"].as_i64().map(|signal| format!("signal {signal}"));
        code.or_else(signal).or_else(|| self.exit["not_started"].as_str().map(str::to_owned))
    }
}

impl RecordedSources {
    pub(super) fn add(&mut self, shim_id: &str, event: &Value) {
        let source = self.0.entry(shim_id.to_owned()).or_default();
        let run = &event["run"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match event["type"].as_str() {
            Some("run_start") => {
                source.is_agent = run["meta"][SOURCE_KIND] == AGENT_SOURCE;
                source.program = text(&run["meta"]["program"]);
                source.server_name = text(&run["meta"]["server_name"]);
                source.mode = text(&run["mode"]);
                let fields = ["policy_id", "policy_version", "policy_hash"];
                let fields = fields.into_iter().filter_map(|field| Some((field, text(&run["policy"][field])?)));
                source.policy = fields.collect();
            }
            Some("run_end") => {
                // A second end without a status must not hide the first one.
                source.status = text(&run["status"]).or(source.status.take());
                source.exit = run["exit"].clone();
            }
            _ => {}
        }
    }

    /// Returns true if a process recorded the calls of a server, as shims and proxies do.
    pub(super) fn has_guard(&self) -> bool {
        self.0.values().any(|source| !source.is_agent)
    }

    pub(super) fn policies(&self) -> BTreeSet<String> {
        self.0.values().filter(|source| !source.is_agent).filter_map(RecordedSource::policy_text).collect()
    }

    /// Returns the servers that did not succeed, each with the worst status of its processes. `without_end` is the status of a
    /// process without an end.
    pub(super) fn failed_servers(&self, without_end: &RecordedStatus) -> Map<String, Value> {
        let mut failed: BTreeMap<&str, RecordedStatus> = BTreeMap::new();
        for source in self.0.values() {
            let Some(server) = source.server_name.as_deref() else { continue };
            let status = source.status(without_end);
            if status.is_success() {
                continue;
            }
            // A server can have several processes, and one that failed is not excused by one that did not.
            let worst = failed.get(server).cloned().max(Some(status));
            failed.extend(worst.map(|worst| (server, worst)));
        }
        failed.into_iter().map(|(server, status)| (server.to_owned(), json!(status.as_str()))).collect()
    }

    /// Returns how the agent ended, if it did not succeed: its exit code, the signal that killed it, or else its status. If the run
    /// has several agents, this is the one with the worst status.
    pub(super) fn failed_agent(&self, without_end: &RecordedStatus) -> Option<String> {
        let agents = self.0.values().filter(|source| source.is_agent);
        let (status, agent) =
            agents.map(|agent| (agent.status(without_end), agent)).max_by(|one, other| one.0.cmp(&other.0))?;
        // Only for a failure: a cancelled agent has an exit code too, which says less than the status.
        let stated = || agent.exit_text().filter(|_| status.as_str() == FAILED);
        (!status.is_success()).then(|| stated().unwrap_or_else(|| status.as_str().to_owned()))
    }

    pub(super) fn facts(&self) -> Value {
        let facts = self.0.iter().map(|(shim_id, source)| {
            json!({
                "shim_id": shim_id,
                "kind": if source.is_agent { AGENT_SOURCE } else { "server" },
                "program": source.program,
                "server_name": source.server_name,
                "mode": source.mode,
                "policy": source.policy,
                "status": source.status,
                "exit": source.exit,
            })
        });
        facts.collect()
    }
}

/// The status of a run that ended as it should.
pub(super) const SUCCEEDED: &str = "SUCCEEDED";

pub(super) const FAILED: &str = "FAILED";

/// How a run or a process of it ended: as the events state it, or `LOST` or `NOT_ENDED` without an end. A worse status is greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordedStatus {
    severity: u8,
    text: String,
}

impl RecordedStatus {
    pub(super) fn new(text: &str) -> Self {
        let severity = match text {
            SUCCEEDED => 0,
            "CANCELLED" => 2,
            "TERMINATED" => 3,
            FAILED => 4,
            "LOST" | "NOT_ENDED" => 5,
            // A status of another producer.
            _ => 1,
        };
        Self { severity, text: text.to_owned() }
    }

    pub(super) fn of_run(run: &RunRecord) -> Self {
        Self::new(match run.state() {
            RunState::Ended => run.status.as_deref().filter(|status| !status.is_empty()).unwrap_or("UNKNOWN"),
            RunState::Lost => "LOST",
            RunState::Open => "NOT_ENDED",
        })
    }

    pub(super) fn without_end(run: &RunRecord) -> Self {
        Self::new(if run.state() == RunState::Lost { "LOST" } else { "NOT_ENDED" })
    }

    pub(super) fn is_success(&self) -> bool {
        self.text == SUCCEEDED
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
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
