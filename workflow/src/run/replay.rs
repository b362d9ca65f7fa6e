//! Asks the model again from a checkpoint, several times with and without a change, to find out whether the change matters.
//!
//! In a strict replay, tool results come from the recording, and a call that was not recorded ends the trial. With live tools, each trial
//! works in a copy of the workspace until its checks are done. Neither pushes, opens a pull request, or adds records to the session.

use std::collections::{BTreeMap, HashMap, VecDeque};

use camino::Utf8PathBuf;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::store::StoreError;
use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::{EventBody, RequestedCall, SessionEvent};
use counterproof_sessions::recorder::SessionSpool;
use counterproof_sessions::session::SessionStatus;
use counterproof_sessions::store::{EventFilter, SessionStore};
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{CHECKPOINTS, WorkspaceStore};
use serde::Serialize;
use serde_json::Value;

use super::begin::{BeginError, Home, Secrets};
use super::machine::{Control, RunError};
use super::messages::tool_result;
use super::resume::{Found, begin_trial};
use super::state::{Outcome, Phase, Settings};
use crate::model::{AskError, Attempts, ModelClient, ModelError, ModelOptions, RecordError};
use crate::tools::Tools;

/// Most requests of a trial.
const MAX_REQUESTS: u64 = 200;

/// The trigger of the transition with which a session goes on from an older checkpoint.
pub(super) const REWOUND: &str = "rewound";

/// Checkpoints of a page.
const PAGE: u32 = 1000;

#[derive(Debug)]
pub struct ReplayOptions {
    pub times: u64,
    pub patch: Option<Patch>,
    /// Another model, for a second arm.
    pub other_model: Option<String>,
    pub settings: Settings,
    pub uses_live_tools: bool,
}

/// Another result for a recorded tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The number of the `tool_call` record.
    pub seq: u64,
    pub content: String,
}

/// The trials of one variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Arm {
    pub name: &'static str,
    pub trials: u64,
    pub succeeded: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Begin(#[from] BeginError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model did not answer: {0}")]
    Ask(#[source] AskError),
    #[error("the model did not answer: {0}")]
    NoAnswer(String),
    #[error("the checkpoint was made in the state `{0}`, and nothing is left to replay after it")]
    NothingLeft(Phase),
    #[error("the record {0} of the session is not a tool call after the checkpoint")]
    NoCall(u64),
    #[error("the history of the session has a tool result without a call")]
    NoCallOfResult,
    #[error("cannot create a folder for the trials")]
    Folder(#[source] std::io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("interrupted")]
    Interrupted,
}

/// Replays from a checkpoint. Returns the id of the checkpoint, and one arm, or two if there is a change.
pub fn replay<'a>(
    home: &Home,
    store: &mut SessionStore,
    id: &str,
    options: &ReplayOptions,
    secrets: &Secrets,
    control: impl Fn() -> Control<'a>,
) -> Result<(String, Vec<Arm>), ReplayError> {
    let mut found = Found::read(store, id)?;
    if let Some(Outcome::Failure { stopped_in, .. }) = found.state.outcome {
        found.state.phase = stopped_in;
    }
    if matches!(found.state.phase, Phase::Commit | Phase::Push | Phase::PullRequest | Phase::Ci | Phase::Succeeded) {
        return Err(ReplayError::NothingLeft(found.state.phase));
    }
    let recording = Recording::read(store, &found)?;
    let patched = options.patch.as_ref().map(|patch| recording.call_of(patch)).transpose()?;
    let mut arms = vec![("recorded", options.settings.model.name.clone(), None)];
    if let Some(patched) = &patched {
        arms.push(("patched", options.settings.model.name.clone(), Some(patched)));
    }
    if let Some(model) = &options.other_model {
        arms.push(("other_model", Some(model.clone()), None));
    }
    let mut results = Vec::new();
    for (name, model, patched) in arms {
        let mut settings = options.settings.clone();
        settings.model.name = model;
        let mut succeeded = 0;
        for _ in 0..options.times {
            let is_success = if options.uses_live_tools {
                live_trial(home, &found, &settings, patched, secrets, control())?
            } else {
                strict_trial(&found, &recording, &settings, patched, secrets, &control().cancel)?
            };
            succeeded += u64::from(is_success);
        }
        results.push(Arm { name, trials: options.times, succeeded });
    }
    Ok((found.checkpoint_id, results))
}

/// A call as a recording knows it: the tool and its arguments.
type CallKey = (String, String);

/// A call with its id, and the result as the model received it.
type RecordedResult = (CallKey, Option<String>, String);

/// The calls of a session after a checkpoint.
struct Recording {
    /// By the number of the record, with their ids.
    calls: BTreeMap<u64, (CallKey, Option<String>)>,
    results: Vec<RecordedResult>,
}

/// A patched call: which one it is among the equal calls of the recording, and its other result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchedCall {
    key: CallKey,
    number: usize,
    content: String,
}

impl Recording {
    /// Reads the branch of the session that the checkpoint belongs to: up to the next time that the session was rewound.
    fn read(store: &mut SessionStore, found: &Found) -> Result<Self, ReplayError> {
        let filter = |kind: &str| EventFilter { types: vec![kind.to_owned()], ..EventFilter::default() };
        let mut end = u64::MAX;
        store.for_each(&found.session_id, &filter("state_transition"), found.seq, None, |seq, event| {
            if event.is_some_and(|event| event["trigger"] == REWOUND) {
                end = end.min(seq);
            }
            Ok::<_, StoreError>(())
        })?;
        let mut calls = BTreeMap::new();
        store.for_each(&found.session_id, &filter("tool_call"), found.seq, None, |seq, event| {
            let event =
                event.filter(|_| seq < end).and_then(|event| serde_json::from_value::<SessionEvent>(event).ok());
            if let Some(EventBody::ToolCall(call)) = event.map(|event| event.body) {
                calls.insert(seq, (key(&call.tool_name, &call.arguments), call.call_id));
            }
            Ok::<_, StoreError>(())
        })?;
        // The last history has all messages. What a tool printed is in the records, and what the model received is here.
        let messages = match last_checkpoint(store, found, end)?.map(|event| event.body) {
            Some(EventBody::Checkpoint(checkpoint)) => checkpoint.state.message_history,
            _ => Vec::new(),
        };
        let start = found.messages.len().min(messages.len());
        Ok(Self { calls, results: results(&messages, start)? })
    }

    fn call_of(&self, patch: &Patch) -> Result<PatchedCall, ReplayError> {
        let call = self.calls.get(&patch.seq).ok_or(ReplayError::NoCall(patch.seq))?;
        // A model may use an id again, also for an equal call.
        let before = self.calls.range(..patch.seq).filter(|(_, other)| *other == call).count();
        let (key, call_id) = call;
        let equal = self.results.iter().filter(|(found, ..)| found == key).enumerate();
        let place = equal.filter(|(_, (_, id, _))| id == call_id).nth(before).map(|(number, _)| number);
        let number = place.ok_or(ReplayError::NoCall(patch.seq))?;
        Ok(PatchedCall { key: key.clone(), number, content: patch.content.clone() })
    }
}

/// Returns the last checkpoint of a session before a record.
fn last_checkpoint(store: &mut SessionStore, found: &Found, end: u64) -> Result<Option<SessionEvent>, StoreError> {
    if end == u64::MAX {
        return store.newest_checkpoint(&found.session_id);
    }
    let (mut last, mut cursor) = (found.checkpoint_id.clone(), Some(found.seq.to_string()));
    while let Some(after) = cursor {
        // The cursor is a number.
        let Ok(page) = store.checkpoints(&found.session_id, PAGE, Some(&after))? else { break };
        let before: Vec<_> = page.checkpoints.into_iter().take_while(|it| it.seq < end).collect();
        cursor = page.next.filter(|_| before.len() == PAGE as usize);
        last = before.into_iter().last().map_or(last, |it| it.checkpoint_id);
    }
    Ok(store.checkpoint(&last)?.map(|(_, event)| event))
}

/// Returns the tool results of a history from a message on. The calls may be before it.
fn results(messages: &[Value], start: usize) -> Result<Vec<RecordedResult>, ReplayError> {
    let mut open: VecDeque<(CallKey, Option<String>)> = VecDeque::new();
    let mut results = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let arguments = function["arguments"].as_str().unwrap_or_default();
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
            let id = call["id"].as_str().map(str::to_owned);
            open.push_back((key(function["name"].as_str().unwrap_or_default(), &arguments), id));
        }
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str();
            let place = open.iter().position(|(_, of_call)| of_call.as_deref() == id);
            let call = place.and_then(|place| open.remove(place));
            let (key, id) = call.ok_or(ReplayError::NoCallOfResult)?;
            if number >= start {
                results.push((key, id, message["content"].as_str().unwrap_or_default().to_owned()));
            }
        }
    }
    Ok(results)
}

fn key(tool: &str, arguments: &Value) -> CallKey {
    (tool.to_owned(), canonical_hash(arguments).to_string())
}

pub(super) fn key_of(call: &RequestedCall) -> CallKey {
    let arguments = &call.function.arguments;
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments.as_str()));
    key(&call.function.name, &arguments)
}

/// Counts the calls of a trial, and knows which one has another result.
#[derive(Debug, Clone, Default)]
pub(super) struct Patcher {
    patched: Option<PatchedCall>,
    seen: HashMap<CallKey, usize>,
}

impl Patcher {
    pub(super) fn new(patched: Option<&PatchedCall>) -> Self {
        Self { patched: patched.cloned(), seen: HashMap::new() }
    }

    /// Returns the number of the call among the equal ones, and its other result.
    fn next(&mut self, call: &RequestedCall) -> (CallKey, usize, Option<String>) {
        let key = key_of(call);
        let seen = self.seen.entry(key.clone()).or_default();
        let number = std::mem::replace(seen, *seen + 1);
        let patched = self.patched.as_ref().filter(|patched| patched.key == key && patched.number == number);
        (key, number, patched.map(|patched| patched.content.clone()))
    }

    pub(super) fn content(&mut self, call: &RequestedCall) -> Option<String> {
        // A run without a patch does not count its calls.
        self.patched.as_ref()?;
        self.next(call).2
    }
}

fn strict_trial(
    found: &Found,
    recording: &Recording,
    settings: &Settings,
    patched: Option<&PatchedCall>,
    secrets: &Secrets,
    cancel: &Cancellation,
) -> Result<bool, ReplayError> {
    let (model_url, model_name) = secrets.model(&settings.model)?;
    let client = ModelClient::new(ModelOptions {
        api_key: secrets.api_key.clone(),
        stream: settings.model.is_streaming,
        ..ModelOptions::new(model_url, model_name)
    })?;
    let mut recorded: HashMap<&CallKey, Vec<&str>> = HashMap::new();
    for (key, _, content) in &recording.results {
        recorded.entry(key).or_default().push(content);
    }
    let mut patcher = Patcher::new(patched);
    let mut messages = found.messages.clone();
    let mut pending: VecDeque<RequestedCall> = found.state.pending.iter().cloned().collect();
    let mut attempts = Unrecorded { left: MAX_REQUESTS };
    loop {
        while let Some(call) = pending.pop_front() {
            let (key, number, patched) = patcher.next(&call);
            // A call that is repeated more often than in the recording gets its last result.
            let of_key = recorded.get(&key).and_then(|results| results.get(number).or_else(|| results.last()));
            let Some(content) = patched.or_else(|| of_key.map(|content| (*content).to_owned())) else {
                return Ok(false);
            };
            messages.push(tool_result(call.id.as_deref(), &content));
        }
        let body = client.body(&messages, &Tools::definitions());
        let answer = match client.ask(&body, cancel, &mut attempts) {
            Ok(answer) => answer,
            Err(AskError::Budget) => return Ok(false),
            Err(AskError::Cancelled) => return Err(ReplayError::Interrupted),
            Err(error) => return Err(ReplayError::Ask(error)),
        };
        messages.push(answer.message);
        if answer.calls.is_empty() {
            return Ok(true);
        }
        pending = answer.calls.into();
    }
}

struct Unrecorded {
    left: u64,
}

impl Attempts for Unrecorded {
    fn may_send(&mut self) -> bool {
        let may_send = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may_send
    }

    fn record(&mut self, _event: SessionEvent) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Runs a trial in a workspace and a ledger of its own, until the checks are done.
fn live_trial(
    home: &Home,
    found: &Found,
    settings: &Settings,
    patched: Option<&PatchedCall>,
    secrets: &Secrets,
    control: Control<'_>,
) -> Result<bool, ReplayError> {
    let folder = tempfile::Builder::new().prefix("counterproof-replay-").tempdir().map_err(ReplayError::Folder)?;
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned())
        .map_err(|_| ReplayError::Folder(std::io::Error::other("the folder for temporary files is not UTF-8")))?;
    let trial = Home {
        ledger: LedgerLocation::SqliteFile(path.join("ledger.db")),
        spool: SessionSpool::new(&path.join("ledger.db.spool")),
        folder: path.join("workspaces"),
    };
    let git = GitOptions { supervisor: control.supervisor.clone(), ..GitOptions::default() };
    let mut begun = begin_trial(home, &trial, found, settings, Patcher::new(patched), secrets, control)?;
    let reference = format!("{CHECKPOINTS}{}", begun.head.session_id);
    let is_success = begun.run.drive_checks();
    let failure = begun.run.model.unanswered().map(str::to_owned);
    begun.finish(SessionStatus::Completed).map_err(BeginError::from)?;
    // The snapshots of the trial are in the store of the session.
    let store = WorkspaceStore::new(home.repositories(), git);
    store
        .open(&found.state.base.repository)
        .and_then(|it| it.release(&format!("{reference}/")))
        .map_err(BeginError::from)?;
    match (is_success?, failure) {
        (false, Some(failure)) => Err(ReplayError::NoAnswer(failure)),
        (is_success, _) => Ok(is_success),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn results_belong_to_the_calls_with_their_ids_also_if_an_id_is_used_twice() {
        let messages = [
            json!({"role": "assistant", "tool_calls": [call("a", "read", r#"{"path":"x"}"#), call("b", "read", r#"{"path":"y"}"#)]}),
            json!({"role": "tool", "tool_call_id": "b", "content": "Y"}),
            json!({"role": "tool", "tool_call_id": "a", "content": "X"}),
            json!({"role": "assistant", "tool_calls": [call("a", "read", r#"{ "path" : "x" }"#)]}),
            json!({"role": "tool", "tool_call_id": "a", "content": "X2"}),
        ];
        let found = results(&messages, 0).unwrap();
        let x = key("read", &json!({"path": "x"}));
        let of_x: Vec<_> = found.iter().filter(|(key, ..)| *key == x).map(|(_, _, content)| content.as_str()).collect();
        assert_eq!(of_x, ["X", "X2"]);
        assert_eq!(results(&messages, 3).unwrap().len(), 1);
        assert!(matches!(results(&messages[4..], 0), Err(ReplayError::NoCallOfResult)));
    }

    #[test]
    fn only_the_patched_one_of_equal_calls_has_another_result() {
        let of = |path: &str| RequestedCall::new(None, "read".to_owned(), format!(r#"{{"path":"{path}"}}"#));
        let patched = PatchedCall { key: key("read", &json!({"path": "x"})), number: 1, content: "patched".to_owned() };
        let mut patcher = Patcher::new(Some(&patched));
        let contents = ["x", "y", "x", "x"].map(|path| patcher.content(&of(path)));
        assert_eq!(contents, [None, None, Some("patched".to_owned()), None]);
    }

    #[test]
    fn a_patched_call_is_found_among_calls_with_the_same_id() {
        let call = |path: &str, id: &str| (key("read", &json!({"path": path})), Some(id.to_owned()));
        let recorded = [(3, call("x", "a")), (5, call("x", "b")), (7, call("y", "a")), (9, call("x", "a"))];
        let results = recorded[..4].iter().map(|(_, (key, id))| (key.clone(), id.clone(), String::new())).collect();
        // A call that was recorded, and was undone before the model received its result.
        let undone = (11, call("x", "c"));
        let recording = Recording { calls: recorded.into_iter().chain([undone]).collect(), results };
        let number = |seq| recording.call_of(&Patch { seq, content: String::new() }).map(|call| call.number).ok();
        assert_eq!([3, 5, 7, 9, 11, 12].map(number), [Some(0), Some(1), Some(0), Some(2), None, None]);
    }
}
