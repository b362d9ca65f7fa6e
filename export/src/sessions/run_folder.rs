//! The run folder and the cases of exported sessions.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{
    Answer, Case, CaseId, Count, Extra, NameError, Outcome, RunId, Side, Usage, derived_id, one_line,
};
use counterproof_sessions::event::{EventBody, SessionEvent};
use counterproof_sessions::message::{PartContent, history_parts};
use counterproof_sessions::milestone::MilestoneKind;
use counterproof_sessions::session::{SessionHead, SessionStatus, Share};
use counterproof_sessions::summary::{MilestoneRecord, Summary};
use counterproof_store::write::WriteError;
use counterproof_store::{CaseList, CaseListError, CreateError};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::actions::Actions;
use super::masked::Masker;
use super::steps::{Step, at_least_epoch, case_events, steps};
use crate::cases_file::{self, CasesFileError, Existing};
use crate::run_builder::{Destination, RunBuilder, RunFacts, answer, attempt, millis};

/// The name of the producer in the run document, instead of the URL of an agent.
const PRODUCER: &str = "sessions";

/// The case of a session without a title.
const UNNAMED_CASE: &str = "session";

/// Longest request of a user in the cases file, and longest title, in characters.
const MAX_REQUEST: usize = 8_000;
const MAX_TITLE: usize = 200;

/// Most digits of a cost that a document can state: more is an error of its source.
const MAX_COST: f64 = 1e15;

/// What the case id of a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKey {
    /// The whole title.
    Title,
    /// The key of the task in the title: `[key] …` or `key: …`.
    Task,
}

/// Sessions that could not be exported. No run folder is left.
#[derive(Debug, thiserror::Error)]
pub enum SessionExportError {
    #[error("the sessions {} have the same case id `{case_id}`", quoted(.sessions))]
    DuplicateCaseId { case_id: CaseId, sessions: Vec<String> },
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn quoted(sessions: &[String]) -> String {
    let quoted: Vec<_> = sessions.iter().map(|session| format!("`{session}`")).collect();
    quoted.join(", ")
}

/// A session that was exported as a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedSession {
    pub case_id: CaseId,
    pub session_id: String,
    pub title: String,
    /// What the user asked for first, if a model call has it.
    pub request: Option<String>,
    /// How the session ended: `SUCCEEDED`, `FAILED`, `LOST` or `NOT_ENDED`.
    pub status: &'static str,
    pub calls: usize,
    pub actions: usize,
    /// How the last test run ended, if the session ran tests and an exit code is known.
    pub tests: Option<bool>,
    /// Whether a refused call would have been recorded.
    pub has_guard: bool,
    model: Option<String>,
    started_at: Timestamp,
}

/// A run folder of sessions under construction. It appears complete or not at all.
#[derive(Debug)]
pub struct SessionExport {
    builder: RunBuilder,
    side: Side,
    sessions: Vec<ExportedSession>,
}

impl SessionExport {
    pub fn new(destination: &Destination<'_>) -> Result<Self, SessionExportError> {
        let builder = RunBuilder::staged(destination)?;
        Ok(Self { builder, side: destination.side, sessions: Vec::new() })
    }

    /// Adds a session with its records in the order of their numbers. Only one session has to be in memory.
    pub fn add(
        &mut self,
        head: &SessionHead,
        events: &[SessionEvent],
        case_id: CaseId,
    ) -> Result<(), SessionExportError> {
        let (case, exported) = case(head, events, case_id, self.side);
        self.builder.add_with_assets(case)?;
        self.sessions.push(exported);
        Ok(())
    }

    /// Completes the folder. `cases_path` is relative to it. Returns the path of the folder and its sessions.
    pub fn finish(self, cases_path: String) -> Result<(Utf8PathBuf, Vec<ExportedSession>), SessionExportError> {
        let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
        for session in &self.sessions {
            *statuses.entry(session.status).or_default() += 1;
        }
        let mut models: Vec<_> = self.sessions.iter().filter_map(|session| session.model.as_ref()).collect();
        models.sort_unstable();
        models.dedup();
        let model =
            (!models.is_empty()).then(|| models.iter().map(|model| model.as_str()).collect::<Vec<_>>().join(", "));
        let started = self.sessions.iter().map(|session| session.started_at).min();
        let folder = self.builder.finish(RunFacts {
            producer: PRODUCER,
            cases_path,
            started_at: started.unwrap_or(Timestamp::UNIX_EPOCH),
            stats: Extra::from_iter([("statuses".to_owned(), json!(statuses))]),
            extra: Extra::from_iter(model.map(|model| ("model".to_owned(), json!(model)))),
        })?;
        Ok((folder, self.sessions))
    }
}

/// Checks, before anything is written, that each session is a case of its own. Repeats of a task are runs of their own.
pub fn check_distinct<'a>(selected: impl IntoIterator<Item = (&'a CaseId, &'a str)>) -> Result<(), SessionExportError> {
    let mut known: BTreeMap<String, (&CaseId, Vec<&str>)> = BTreeMap::new();
    for (case_id, session) in selected {
        // By the key and not by the id: some file systems do not distinguish upper and lower case.
        known.entry(case_id.collision_key()).or_insert_with(|| (case_id, Vec::new())).1.push(session);
    }
    match known.into_values().find(|(_, sessions)| sessions.len() > 1) {
        Some((case_id, sessions)) => Err(SessionExportError::DuplicateCaseId {
            case_id: case_id.clone(),
            sessions: sessions.into_iter().map(str::to_owned).collect(),
        }),
        None => Ok(()),
    }
}

/// Returns the case of a session: its title or the key of its task, or else `session`. The id of the session is not used,
/// because both sides of a comparison need the same case id.
pub fn case_id(head: &SessionHead, key: CaseKey) -> Result<CaseId, NameError> {
    let title = head.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let name = match key {
        CaseKey::Title => title,
        CaseKey::Task => title.map(task_key),
    };
    let name = name.unwrap_or(UNNAMED_CASE);
    match name.parse::<CaseId>() {
        Ok(id) if id.check_new().is_ok() => Ok(id),
        _ => derived_id("case", name, name).parse(),
    }
}

/// Returns the key of a task: the text in brackets with which a title begins, or the text before its first colon. A title
/// without one is its own key.
fn task_key(title: &str) -> &str {
    let bracketed = title.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(key, _)| key);
    let key = bracketed.or_else(|| title.split_once(':').map(|(key, _)| key)).map(str::trim);
    key.filter(|key| !key.is_empty()).unwrap_or(title)
}

/// Returns the id of an exported run: that of the session, or one that is derived from it if it cannot name a folder.
pub fn run_id(head: &SessionHead) -> Result<RunId, NameError> {
    match head.session_id.parse::<RunId>() {
        Ok(id) if id.check_new().is_ok() => Ok(id),
        _ => derived_id("run", &head.session_id, &head.session_id).parse(),
    }
}

/// Checks, before anything is exported, that cases can be added to a cases file.
pub fn check_cases(path: &Utf8Path) -> Result<(), CaseListError> {
    CaseList::check(path)
}

/// Adds the cases of these sessions to a cases file. With them, `compare` reports a session as worse if it fails, if its last
/// test run fails, or if a policy refuses one of its calls. Cases that the file has stay as they are.
pub fn write_cases(path: &Utf8Path, sessions: &[ExportedSession]) -> Result<(), CasesFileError> {
    cases_file::write(
        path,
        Existing::Keep,
        sessions.iter().map(|session| {
            let mut expect = vec![
                json!({"name": "the session succeeds", "expr": "final_output.content.status == 'SUCCEEDED'"}),
                json!({"name": "the last model call succeeds", "expr": "!has(final_output.content.error)"}),
            ];
            if session.tests.is_some() {
                expect.push(
                    json!({"name": "the last test run passes", "expr": "final_output.content.tests == 'passed'"}),
                );
            }
            let mut expected = json!({ "expect": expect });
            if session.has_guard {
                expected["no_refused_calls"] = json!(true);
            }
            let user = session.request.as_ref().unwrap_or(&session.title);
            let case =
                json!({"id": session.case_id, "title": session.title, "input": {"user": user}, "expected": expected});
            Ok((session.case_id.clone(), case))
        }),
    )
}

fn case(head: &SessionHead, events: &[SessionEvent], case_id: CaseId, side: Side) -> (Case, ExportedSession) {
    let masker = Masker::new(&head.session_id, events);
    let summary = Summary::new(events);
    let steps = steps(events);
    let actions = Actions::new(events, &steps, &masker);
    let case_events = case_events(&steps, &masker, |number| actions.of_step(number));
    let tests = summary.milestones.iter().rev().find(|milestone| milestone.kind == MilestoneKind::Tests);
    let started_at = at_least_epoch(head.started_at);
    let last = events.iter().map(|event| event.timestamp).max().into_iter();
    let ended = head.ended_at.into_iter().chain(last).max().map(millis).unwrap_or_default();
    // The final output must be the last event.
    let ended = case_events.iter().map(|(at, _)| *at).fold(ended.max(millis(started_at)), u64::max);
    let output = final_output(head, events, &masker, tests);
    let mut outcome = answer(case_events, ended, output);
    if let Outcome::Ok(Answer { proposed_actions, .. }) = &mut outcome {
        proposed_actions.clone_from(&actions.proposed);
    }
    let has_guard = has_guard(head, events);
    let title = head
        .title
        .as_deref()
        .map_or_else(|| format!("Session of {}", head.origin.word()), |title| one_line(title, MAX_TITLE));
    let exported = ExportedSession {
        case_id: case_id.clone(),
        session_id: head.session_id.clone(),
        title: title.clone(),
        request: request(events).map(|text| masker.text(&text).chars().take(MAX_REQUEST).collect()),
        status: status(head.status),
        calls: steps.len(),
        actions: actions.proposed.len(),
        tests: tests.and_then(|milestone| milestone.succeeded),
        has_guard,
        model: model(events).map(str::to_owned),
        started_at,
    };
    let case = Case {
        case_id,
        version: side,
        workflow_id: Some(head.workflow.clone().unwrap_or_else(|| head.origin.word().to_owned())),
        attempts: Some(vec![attempt(started_at, Some(ended.saturating_sub(millis(started_at))), &outcome)]),
        usage: usage(&summary),
        outcome,
        extra: Extra::from_iter([
            ("title".to_owned(), json!(title)),
            ("recorded_run".to_owned(), facts(head, &summary, &steps, has_guard)),
        ]),
    };
    (case, exported)
}

/// Returns the word that the exports of recorded runs use.
const fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Completed => "SUCCEEDED",
        SessionStatus::Failed => "FAILED",
        SessionStatus::Interrupted => "LOST",
        SessionStatus::Running | SessionStatus::Paused => "NOT_ENDED",
    }
}

/// Returns how the session ended, and the last text of its model.
fn final_output(
    head: &SessionHead,
    events: &[SessionEvent],
    masker: &Masker<'_>,
    tests: Option<&MilestoneRecord>,
) -> Map<String, Value> {
    let tests = match tests.map(|tests| tests.succeeded) {
        Some(Some(true)) => "passed",
        Some(Some(false)) => "failed",
        Some(None) => "unknown",
        None => "not_run",
    };
    let mut output =
        Map::from_iter([("status".to_owned(), json!(status(head.status))), ("tests".to_owned(), json!(tests))]);
    // Answers of subagents go to the main agent, and not to the user.
    let mut calls = events.iter().rev().filter(|event| event.agent.is_none()).filter_map(|event| match &event.body {
        EventBody::LlmCall(call) => Some((event, call)),
        _ => None,
    });
    let last_error = calls.clone().next().and_then(|(event, _)| event.error.as_ref());
    // Without the message, which may name a request or a time.
    output.extend(last_error.map(|error| ("error".to_owned(), json!({"kind": error.kind, "status": error.status}))));
    let text =
        calls.find_map(|(_, call)| call.response.as_ref()?.content.as_deref().filter(|text| !text.trim().is_empty()));
    output.extend(text.map(|text| ("text".to_owned(), json!(masker.output(text)))));
    output
}

/// Returns what the user asked for first.
fn request(events: &[SessionEvent]) -> Option<String> {
    events.iter().find_map(|event| match &event.body {
        EventBody::LlmCall(call) => {
            history_parts(&call.request.messages).into_iter().find_map(|part| match part.content {
                PartContent::Text(text) if part.role == "user" && !text.trim().is_empty() => Some(text),
                _ => None,
            })
        }
        _ => None,
    })
}

fn model(events: &[SessionEvent]) -> Option<&str> {
    events.iter().find_map(|event| match &event.body {
        EventBody::LlmCall(call) => call.request.model.as_deref(),
        _ => None,
    })
}

fn has_guard(head: &SessionHead, events: &[SessionEvent]) -> bool {
    let is_decided = |event: &SessionEvent| matches!(&event.body, EventBody::ToolCall(call) if call.decision.is_some());
    head.coverage.tool_calls == Share::All || events.iter().any(is_decided)
}

fn usage(summary: &Summary) -> Option<Usage> {
    let usage = Usage {
        input_tokens: summary.tokens.prompt_tokens.map(Count::from),
        output_tokens: summary.tokens.completion_tokens.map(Count::from),
        cached_tokens: summary.tokens.cached_tokens.map(Count::from),
        cost: summary.cost.filter(|cost| (0.0..MAX_COST).contains(cost)),
        currency: None,
        extra: Extra::new(),
    };
    (usage != Usage::default()).then_some(usage)
}

/// Returns what a reader may want to know about the session, and what differs between any two sessions. It is not compared.
fn facts(head: &SessionHead, summary: &Summary, steps: &[Step<'_>], has_guard: bool) -> Value {
    let numbers: Vec<_> = steps.iter().map(|step| step.event.seq).collect();
    let sources: Vec<_> = has_guard.then(|| json!({"kind": "server"})).into_iter().collect();
    json!({
        "session_id": head.session_id,
        "origin": head.origin,
        "started_at": head.started_at,
        "ended_at": head.ended_at,
        "coverage": head.coverage,
        "model_calls": summary.llm_calls,
        "failed_model_calls": summary.errors.len(),
        "sources": sources,
        "call_seqs": numbers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_task_is_in_brackets_or_before_the_first_colon() {
        for (title, key) in [
            ("[dates-1] Parse dates", "dates-1"),
            ("dates-1: Parse dates: all of them", "dates-1"),
            ("Parse dates", "Parse dates"),
            ("[unclosed", "[unclosed"),
            ("[] empty", "[] empty"),
            (": no key", ": no key"),
        ] {
            assert_eq!(task_key(title), key);
        }
    }
}
