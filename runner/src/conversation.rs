//! Joins the answers of a conversation and the results of its tool calls into one artifact. Pure: requests and tools are elsewhere
//! (`run/conversation_runner.rs`, `tools`).

use std::collections::{HashMap, HashSet};

use counterproof_artifact::{
    Answer, Case, CaseId, Content, ContentType, Count, Event, EventBody, EvidenceRef, EvidenceTarget, Extra,
    FinalOutput, Millis, Outcome, Side, ToolResult, ToolStatus, Usage,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::tools::ToolOutput;

/// The field of events, actions and attempts with the number of the turn, counted from 1. Cases without turns lack it.
pub(crate) const TURN: &str = "turn";

/// The field of the artifact with the answer of each turn.
const TURNS: &str = "turns";

/// The message of a failure names at most this many calls.
const MAX_CALLS_LISTED: usize = 20;

/// The conversation of a case so far.
#[derive(Debug)]
pub(crate) struct Transcript {
    answer: Answer,
    /// The number of the current turn, in a case with turns.
    turn: Option<usize>,
    turns: Vec<Value>,
    call_ids: HashSet<String>,
    action_ids: HashSet<String>,
    /// The calls whose result the model has.
    results: Vec<String>,
    usages: Vec<Option<Usage>>,
    /// How many of them belong to earlier turns.
    counted: usize,
    /// The fields of the latest answer that events and actions do not have.
    workflow_id: Option<String>,
    extra: Extra,
}

/// What an answer is to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The runner executes the calls of the answer, and sends their results.
    Step,
    /// The last answer of a turn in which the runner executes calls.
    End,
    /// The agent executed its calls itself.
    Whole,
}

/// The result of a tool call.
#[derive(Debug)]
pub(crate) struct FinishedCall<'a> {
    /// The call in the artifact.
    pub(crate) call_id: &'a str,
    /// The output, with secrets masked.
    pub(crate) output: &'a ToolOutput,
    pub(crate) at: Timestamp,
    pub(crate) latency_ms: u64,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        // The first answer replaces the output.
        let final_output = FinalOutput {
            content_type: ContentType::Text,
            content: Content::Text(String::new()),
            output_hash: None,
            redactions_applied: None,
            extra: Extra::new(),
        };
        Self {
            answer: Answer { proposed_actions: Vec::new(), events: Vec::new(), final_output },
            turn: None,
            turns: Vec::new(),
            call_ids: HashSet::new(),
            action_ids: HashSet::new(),
            results: Vec::new(),
            usages: Vec::new(),
            counted: 0,
            workflow_id: None,
            extra: Extra::new(),
        }
    }

    /// Starts a turn of a case with turns.
    pub(crate) fn start_turn(&mut self, number: usize, user: &str, at: Timestamp) {
        self.turn = Some(number);
        let fields = Map::from_iter([("content".to_owned(), user.into())]);
        self.add_event(Event { ts: millis(at), body: EventBody::Unknown { kind: "user_message".to_owned(), fields } });
    }

    /// Adds an answer. Returns the ids of the calls to execute.
    pub(crate) fn add_answer(&mut self, case: Case, received: Timestamp, place: Place) -> Vec<String> {
        let Case { outcome, usage, extra, workflow_id, .. } = case;
        let Outcome::Ok(mut answer) = outcome else { return Vec::new() };
        self.rename_ids(&mut answer);
        let mut calls = Vec::new();
        for mut event in answer.events {
            if place != Place::Whole {
                // The time of the answer has no milliseconds, and would precede the results before it.
                event.ts = millis(received);
            }
            match &mut event.body {
                EventBody::ToolCall(call) if call.action_id.is_some() => calls.push(call.call_id.clone()),
                EventBody::FinalOutput(said) if place == Place::Step => {
                    let mut fields = Map::from_iter([("content".to_owned(), json!(said.content))]);
                    fields.extend(std::mem::take(&mut said.extra));
                    event.body = EventBody::Unknown { kind: "assistant_message".to_owned(), fields };
                }
                _ => {}
            }
            self.add_event(event);
        }
        for mut action in answer.proposed_actions {
            if place != Place::Whole {
                action.evidence_refs = self.results.iter().map(|call_id| evidence(call_id)).collect();
            }
            self.mark(&mut action.extra);
            self.answer.proposed_actions.push(action);
        }
        self.answer.final_output = answer.final_output;
        self.usages.push(usage);
        self.workflow_id = workflow_id;
        self.extra = extra;
        calls
    }

    /// Adds the result of a call.
    pub(crate) fn add_result(&mut self, finished: &FinishedCall<'_>) {
        let FinishedCall { call_id, output, at, latency_ms } = *finished;
        let mut calls = self.answer.events.iter().filter_map(Event::tool_call);
        let action_id = calls.find(|call| call.call_id == *call_id).and_then(|call| call.action_id.clone());
        let payload = match &output.value {
            Value::Object(fields) => Content::Json(fields.clone()),
            _ => Content::Text(output.text()),
        };
        let result = ToolResult {
            call_id: call_id.to_owned(),
            action_id,
            status: if output.is_error { ToolStatus::Error } else { ToolStatus::Ok },
            latency_ms: latency_ms.into(),
            payload_summary: Some(payload),
            payload_asset_href: None,
            payload_asset_sha256: None,
            extra: Extra::new(),
        };
        self.add_event(Event { ts: millis(at), body: EventBody::ToolResult(result) });
        self.results.push(call_id.to_owned());
    }

    /// Notes that the model still called tools after the last request that it may have.
    pub(crate) fn stop_at(&mut self, max_turns: u32, at: Timestamp) {
        let message = format!("the model still called tools after {max_turns} requests (max_turns)");
        let fields = Map::from_iter([("message".to_owned(), message.into())]);
        self.add_event(Event { ts: millis(at), body: EventBody::Unknown { kind: "max_turns".to_owned(), fields } });
        self.extra.insert("finish_reason".to_owned(), "max_turns".into());
    }

    /// Ends a turn of a case with turns.
    pub(crate) fn end_turn(&mut self, latency_ms: u64) {
        if let Some(number) = self.turn {
            let output = &self.answer.final_output;
            let mut turn = json!({TURN: number, "final_output": output, "latency_ms": latency_ms});
            if let Some(usage) = sum(&self.usages[self.counted..]) {
                turn["usage"] = json!(usage);
            }
            self.counted = self.usages.len();
            self.turns.push(turn);
        }
    }

    /// Returns the answered turns and the calls so far, for the message of a failure. `None` without any.
    pub(crate) fn steps(&self) -> Option<String> {
        let calls: Vec<_> =
            self.answer.events.iter().filter_map(Event::tool_call).map(|call| call.tool.as_str()).collect();
        let mut steps = Vec::new();
        if !self.turns.is_empty() {
            steps.push(format!("answered turns: {}", self.turns.len()));
        }
        if !calls.is_empty() {
            let more = calls.len().saturating_sub(MAX_CALLS_LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let listed = calls[..calls.len().min(MAX_CALLS_LISTED)].join(", ");
            steps.push(format!("calls: {listed}{more}"));
        }
        (!steps.is_empty()).then(|| steps.join("; "))
    }

    /// Returns the text of the latest answer.
    pub(crate) fn latest_text(&self) -> String {
        match &self.answer.final_output.content {
            Content::Text(text) => text.clone(),
            Content::Json(fields) => Value::Object(fields.clone()).to_string(),
        }
    }

    /// Returns the artifact. `like` has the case and the side.
    pub(crate) fn finish(self, like: &CaseEnvelope) -> Case {
        let mut extra = self.extra;
        if self.usages.len() > 1 {
            // The last request alone is not the usage of the case.
            extra.remove("reported_usage");
            extra.insert("requests".to_owned(), self.usages.len().into());
        }
        if !self.turns.is_empty() {
            extra.insert(TURNS.to_owned(), self.turns.into());
        }
        Case {
            case_id: like.case_id.clone(),
            version: like.side,
            workflow_id: self.workflow_id,
            attempts: None,
            usage: sum(&self.usages),
            outcome: Outcome::Ok(self.answer),
            extra,
        }
    }

    fn add_event(&mut self, mut event: Event) {
        let turn = self.turn;
        let extra = match &mut event.body {
            EventBody::ToolCall(body) => &mut body.extra,
            EventBody::ToolResult(body) => &mut body.extra,
            EventBody::Retrieval(body) => &mut body.extra,
            EventBody::FinalOutput(body) => &mut body.extra,
            EventBody::Unknown { fields, .. } => fields,
        };
        extra.extend(turn.map(|turn| (TURN.to_owned(), turn.into())));
        self.answer.events.push(event);
    }

    fn mark(&self, extra: &mut Extra) {
        extra.extend(self.turn.map(|turn| (TURN.to_owned(), turn.into())));
    }

    /// Makes the ids of calls and actions unique in the conversation, and moves refs to events by their position.
    fn rename_ids(&mut self, answer: &mut Answer) {
        let calls = answer.events.iter().filter_map(Event::tool_call).map(|call| call.call_id.as_str());
        let calls = unique(calls, &mut self.call_ids);
        let actions = answer.proposed_actions.iter().map(|action| action.action_id.as_str());
        let actions = unique(actions, &mut self.action_ids);
        let rename = |id: &mut String, names: &HashMap<String, String>| {
            if let Some(name) = names.get(id) {
                id.clone_from(name);
            }
        };
        for event in &mut answer.events {
            let (call_id, action_id) = match &mut event.body {
                EventBody::ToolCall(call) => (&mut call.call_id, &mut call.action_id),
                EventBody::ToolResult(result) => (&mut result.call_id, &mut result.action_id),
                _ => continue,
            };
            rename(call_id, &calls);
            if let Some(id) = action_id {
                rename(id, &actions);
            }
        }
        let before = self.answer.events.len();
        for action in &mut answer.proposed_actions {
            rename(&mut action.action_id, &actions);
            for evidence in &mut action.evidence_refs {
                match &mut evidence.target {
                    EvidenceTarget::ToolResult { call_id } => rename(call_id, &calls),
                    EvidenceTarget::Event { id } => {
                        let position = id.strip_prefix("events[").and_then(|rest| rest.strip_suffix(']'));
                        if let Some(position) = position.and_then(|position| position.parse::<usize>().ok()) {
                            *id = format!("events[{}]", position + before);
                        }
                    }
                    EvidenceTarget::RetrievalDoc { .. } | EvidenceTarget::Asset { .. } => {}
                }
            }
        }
    }
}

/// The case and the side of an artifact.
#[derive(Debug)]
pub(crate) struct CaseEnvelope {
    pub(crate) case_id: CaseId,
    pub(crate) side: Side,
}

/// Returns new names for ids that an earlier answer has, and adds all ids.
fn unique<'a>(ids: impl Iterator<Item = &'a str>, known: &mut HashSet<String>) -> HashMap<String, String> {
    let mut names = HashMap::new();
    let ids: Vec<_> = ids.collect();
    let earlier = known.clone();
    for id in ids {
        let mut name = id.to_owned();
        for number in 2.. {
            if !earlier.contains(&name) {
                break;
            }
            name = format!("{id}_{number}");
        }
        known.insert(name.clone());
        if name != id {
            names.insert(id.to_owned(), name);
        }
    }
    names
}

fn evidence(call_id: &str) -> EvidenceRef {
    EvidenceRef { target: EvidenceTarget::ToolResult { call_id: call_id.to_owned() }, extra: Extra::new() }
}

fn millis(at: Timestamp) -> Millis {
    u64::try_from(at.as_millisecond()).unwrap_or(0).into()
}

/// Adds up the usage of all requests. A number that one request lacks is unknown for the case, except for cached tokens.
fn sum(usages: &[Option<Usage>]) -> Option<Usage> {
    let known: Vec<_> = usages.iter().flatten().collect();
    let (Some(first), true) = (known.first(), known.len() == usages.len()) else { return None };
    let counts = |of: fn(&Usage) -> Option<Count>| {
        let counts: Option<Vec<u64>> = known.iter().map(|usage| of(usage).map(Count::get)).collect();
        counts.map(|counts| Count::from(counts.into_iter().sum::<u64>()))
    };
    let is_cached = known.iter().any(|usage| usage.cached_tokens.is_some());
    let cached = known.iter().filter_map(|usage| usage.cached_tokens).map(Count::get).sum::<u64>();
    let is_one_currency = known.iter().all(|usage| usage.currency == first.currency);
    let cost: Option<Vec<f64>> = known.iter().map(|usage| usage.cost).collect();
    let extra = first.extra.keys().filter_map(|name| {
        let values: Option<Vec<u64>> = known.iter().map(|usage| usage.extra.get(name)?.as_u64()).collect();
        Some((name.clone(), values?.into_iter().sum::<u64>().into()))
    });
    let extra = if known.len() == 1 { first.extra.clone() } else { extra.collect() };
    Some(Usage {
        input_tokens: counts(|usage| usage.input_tokens),
        output_tokens: counts(|usage| usage.output_tokens),
        cached_tokens: is_cached.then(|| cached.into()),
        cost: cost.filter(|_| is_one_currency).map(|costs| costs.into_iter().sum()),
        currency: first.currency.clone().filter(|_| is_one_currency),
        extra,
    })
}
