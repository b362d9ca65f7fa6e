//! The parts of a recording from the start of the agent to its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::observer::Observer;
use crate::event::{EventBody, SessionEvent, StateTransition};
use crate::observe::WorkingTree;
use crate::proxy::{ProxyCounts, RecordError, Records, Secret};
use crate::recorder::{RecorderSummary, SessionRecorder};
use crate::session::{Coverage, SessionHead, SessionStatus, Share};

/// How a warning reaches the user while the agent has the terminal.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// The parts of a recording while the agent runs.
pub struct SessionRecording {
    recorder: Arc<SessionRecorder>,
    observer: Mutex<Option<Observer>>,
    tool_calls: AtomicU64,
    commands: AtomicU64,
    warn: Warn,
}

/// How the agent of a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOutcome {
    pub status: SessionStatus,
    /// How it ended, such as `{"exit_code": 0}`.
    pub context: Value,
    /// Number of calls that the guard saw.
    pub guard_calls: u64,
}

impl SessionRecording {
    /// Records the start of the agent. Without a working tree, no file changes are seen.
    pub fn start(
        recorder: Arc<SessionRecorder>,
        program: &str,
        tree: Option<WorkingTree>,
        commands: camino::Utf8PathBuf,
        warn: Warn,
    ) -> Result<Self, crate::recorder::RecordError> {
        recorder.record(vec![transition("created", "running", "agent started", json!({ "program": program }))])?;
        let to_user = warn.clone();
        let observer = Observer::start(recorder.clone(), tree, commands, move |text| to_user(text)).ok();
        let (tool_calls, commands) = Default::default();
        Ok(Self { recorder, observer: Mutex::new(observer), tool_calls, commands, warn })
    }

    /// Records the end of the agent. `counts` are those of the proxy, which has ended.
    pub fn finish(
        &self,
        head: SessionHead,
        is_git: bool,
        counts: ProxyCounts,
        outcome: &AgentOutcome,
        limit: Duration,
    ) -> Result<RecorderSummary, crate::recorder::RecordError> {
        let observed = self.observer().take().map_or(0, Observer::finish);
        let coverage = Coverage {
            llm_calls: match counts.model_requests {
                0 => Share::None,
                requests if requests == counts.recorded && counts.failures == 0 => Share::All,
                _ => Share::Partial,
            },
            tool_calls: some(self.tool_calls.load(Ordering::Relaxed) + outcome.guard_calls),
            files: if is_git { Share::Partial } else { Share::None },
            commands: some(self.commands.load(Ordering::Relaxed) + observed),
        };
        let to_state = if outcome.status == SessionStatus::Completed { "completed" } else { "failed" };
        let ended = transition("running", to_state, "agent ended", outcome.context.clone());
        let ended_at = Some(ended.timestamp);
        let recorded = self.recorder.record(vec![ended]);
        let head = SessionHead { status: outcome.status, ended_at, coverage, ..head };
        let summary = self.recorder.finish(&head, limit)?;
        recorded.map(|()| summary)
    }

    fn observer(&self) -> MutexGuard<'_, Option<Observer>> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some were seen, and others may have been missed.
const fn some(count: u64) -> Share {
    if count > 0 { Share::Partial } else { Share::None }
}

fn transition(from_state: &str, to_state: &str, trigger: &str, context: Value) -> SessionEvent {
    let [from_state, to_state, trigger] = [from_state, to_state, trigger].map(str::to_owned);
    let body = EventBody::StateTransition(StateTransition { from_state, to_state, trigger, context });
    SessionEvent::captured(Timestamp::now(), body)
}

impl Records for SessionRecording {
    fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError> {
        for event in &events {
            match event.body {
                EventBody::ToolCall(_) => self.tool_calls.fetch_add(1, Ordering::Relaxed),
                EventBody::Command(_) => self.commands.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
        }
        self.recorder.record(events).map_err(|error| RecordError(Box::new(error)))
    }

    fn turn_begins(&self) {
        if let Some(observer) = &*self.observer() {
            observer.turn_begins();
        }
    }

    fn saw_secret(&self, secret: &Secret) {
        if let Err(error) = self.recorder.mask(secret.expose()) {
            (self.warn)(&counterproof_artifact::with_causes(&error));
        }
    }

    fn warn(&self, message: &str) {
        (self.warn)(message);
    }
}
