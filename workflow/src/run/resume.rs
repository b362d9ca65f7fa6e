//! How a session goes on: from its newest checkpoint, from an older one, or as a fork.

use counterproof_ledger::store::StoreError;
use counterproof_sessions::event::{Checkpoint, EventBody, SessionEvent, StateTransition};
use counterproof_sessions::recorder::HeldSession;
use counterproof_sessions::session::{Coverage, Origin, Parent, SessionHead, SessionStatus};
use counterproof_sessions::store::{EventFilter, SessionStore};
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{CHECKPOINTS, Snapshot, WorkspaceStore};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::begin::{
    BeginError, Begun, Home, LAST_RECORDS, Opened, Secrets, begin, branch, coverage, parts, record_failed, recorder,
};
use super::journal::{JournalError, checkpoint};
use super::machine::Control;
use super::replay::{Patcher, REWOUND};
use super::state::{Outcome, Phase, Publication, RunState, Settings, Spent};
use super::turns::{close_command, close_masked_calls, close_running_call, has_ended};
use crate::tools::Sandbox;

/// How a session goes on.
#[derive(Debug)]
pub struct ResumeOptions {
    /// Go on in the session itself, also from an older checkpoint. Otherwise, an older one is forked.
    pub rewinds: bool,
    pub settings: Settings,
    /// The settings that are not those of the checkpoint, for the record.
    pub replaced: Value,
}

/// Returns the settings of a checkpoint, or of the newest one of a session.
pub fn stored_settings(store: &mut SessionStore, id: &str) -> Result<Settings, BeginError> {
    Found::read(store, id).map(|found| found.state.settings)
}

/// A session that goes on, or that has ended and does not.
pub enum Resumed<'a> {
    Begun(Box<Begun<'a>>),
    /// The session, and its state at the end.
    Ended(String, Box<RunState>),
}

/// Goes on from a checkpoint, or from the newest one of a session.
pub fn resume<'a>(
    home: &Home,
    store: &mut SessionStore,
    id: &str,
    options: ResumeOptions,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Resumed<'a>, BeginError> {
    let ResumeOptions { rewinds, settings, replaced } = options;
    let found = Found::read(store, id)?;
    if !found.is_newest && !rewinds {
        let found = Found { state: RunState { settings, ..found.state }, ..found };
        found.check_forkable()?;
        // A fork that cannot begin would be left behind.
        drop(parts(home, &found.state, secrets, &control)?);
        let session_id = fork_of(home, store, found)?;
        let held = hold(home, &session_id)?;
        let forked = Found::read(store, &session_id)?;
        return continue_run(
            home,
            store,
            forked,
            held,
            Entry { trigger: "resumed", replaced: &replaced, closed: None },
            secrets,
            control,
        );
    }
    // Held before it is read and before its files are restored: another process may go on with it.
    let held = hold(home, &found.session_id)?;
    let mut found = Found::read(store, id)?;
    if !found.is_newest && !rewinds {
        let session_id = found.session_id;
        return Err(BeginError::Continued(session_id));
    }
    found.state.settings = settings;
    if found.is_newest && found.state.outcome.is_some() {
        match found.state.continuation() {
            Some(phase) => found.state.phase = phase,
            None => return Ok(Resumed::Ended(found.session_id, Box::new(found.state))),
        }
        found.state.outcome = None;
    }
    found.check_resumable()?;
    let mut closed = None;
    if !found.is_newest {
        closed = found.close_command(store)?;
        found.rewind(Found::read(store, &found.session_id)?.state.publication);
    }
    let trigger = if found.is_newest { "resumed" } else { REWOUND };
    continue_run(home, store, found, held, Entry { trigger, replaced: &replaced, closed }, secrets, control)
}

fn hold(home: &Home, session_id: &str) -> Result<HeldSession, BeginError> {
    HeldSession::new(&home.spool, session_id).map_err(|error| record_failed(home, error))
}

/// What the record says about how the session goes on.
struct Entry<'a> {
    trigger: &'a str,
    replaced: &'a Value,
    /// The record of a call that is not run again.
    closed: Option<SessionEvent>,
}

fn continue_run<'a>(
    home: &Home,
    store: &mut SessionStore,
    mut found: Found,
    held: HeldSession,
    entry: Entry<'_>,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Resumed<'a>, BeginError> {
    let summary = store.find(&found.session_id)?.and_then(|summary| summary.head());
    let head = summary.ok_or_else(|| BeginError::Unknown(found.session_id.clone()))?;
    let last_state = store.last_state(&found.session_id)?.unwrap_or_else(|| Phase::Created.word().to_owned());
    let repository = home.store(&control).open(&found.snapshot.repository)?;
    let workspace = repository.restore(&found.snapshot, &home.workspace(&found.session_id))?;
    // Killed on another machine, so that no command has marked it.
    let was_killed = head.status == SessionStatus::Running;
    let coverage = if was_killed { head.coverage.interrupted() } else { head.coverage };
    let head = SessionHead { status: SessionStatus::Running, ended_at: None, coverage, ..head };
    let closed = match entry.closed {
        None if found.is_newest => close_running_call(&mut found.state, &mut found.messages),
        closed => closed,
    };
    found.state.is_running = false;
    let masked = close_masked_calls(&mut found.state, &mut found.messages);
    let opened = Opened { repository, workspace, head, last_state, held: Some(held) };
    let (state, messages) = (found.state, found.messages);
    let mut begun = begin(home, opened, state, messages, secrets, control)?;
    let run = &mut begun.run;
    let context = json!({ "checkpoint_id": found.checkpoint_id, "replaced": entry.replaced });
    run.journal.go_on(run.state.phase, entry.trigger, context);
    for event in closed.into_iter().chain(masked) {
        run.journal.add(event);
    }
    run.journal.checkpoint(&run.state, &run.messages, None)?;
    Ok(Resumed::Begun(Box::new(begun)))
}

/// Creates a session that goes on from a checkpoint, in a workspace, a branch and a pull request of its own. Returns its id and its
/// parent.
pub fn fork(home: &Home, store: &mut SessionStore, id: &str) -> Result<(String, Parent), BeginError> {
    let found = Found::read(store, id)?;
    found.check_forkable()?;
    let parent = Parent { session_id: found.session_id.clone(), checkpoint_id: Some(found.checkpoint_id.clone()) };
    Ok((fork_of(home, store, found)?, parent))
}

fn fork_of(home: &Home, store: &mut SessionStore, mut found: Found) -> Result<String, BeginError> {
    let summary = store.find(&found.session_id)?;
    let session_id = uuid::Uuid::now_v7().to_string();
    let closed = found.close_command(store)?;
    let mut state = found.state;
    state.publication.branch = branch(&state.settings, &session_id);
    state.publication.pushed = None;
    state.publication.pull_request = None;
    state.publication.ci = None;
    // The call ran in another workspace. This one is as it was before the call.
    state.is_running = false;
    state.publication.former = Vec::new();
    // The branch of the fork is not pushed yet.
    state.go_on_before_push();
    let repository =
        WorkspaceStore::new(home.repositories(), GitOptions::default()).open(&found.snapshot.repository)?;
    let commit = &found.snapshot.commit;
    repository.keep(&format!("{CHECKPOINTS}{session_id}/{commit}"), commit)?;
    let now = Timestamp::now();
    let head = SessionHead {
        session_id: session_id.clone(),
        title: summary.and_then(|summary| summary.title),
        origin: Origin::Workflow,
        workflow: Some(state.settings.workflow.word().to_owned()),
        status: SessionStatus::Paused,
        started_at: now,
        ended_at: None,
        parent: Some(Parent { session_id: found.session_id.clone(), checkpoint_id: Some(found.checkpoint_id.clone()) }),
        coverage: coverage(&state.settings),
    };
    // The messages of a checkpoint are masked already.
    let recorder = recorder(home, &head, &Secrets::default(), None)?;
    let forked = StateTransition {
        from_state: Phase::Created.word().to_owned(),
        to_state: Phase::Paused.word().to_owned(),
        trigger: "forked".to_owned(),
        context: json!({ "session_id": found.session_id, "checkpoint_id": found.checkpoint_id }),
    };
    let forked = SessionEvent::captured(now, EventBody::StateTransition(forked));
    let start = checkpoint(&state, &found.messages, &found.snapshot, None).map_err(JournalError::from)?;
    recorder.record([Some(forked), closed, Some(start)].into_iter().flatten().collect())?;
    recorder.finish(&head, LAST_RECORDS)?;
    Ok(session_id)
}

/// A checkpoint as it is stored.
pub(super) struct Found {
    pub(super) session_id: String,
    pub(super) checkpoint_id: String,
    /// The number of its record.
    pub(super) seq: u64,
    is_newest: bool,
    /// Why it cannot be resumed.
    unresumable: Option<String>,
    pub(super) state: RunState,
    pub(super) messages: Vec<Value>,
    pub(super) snapshot: Snapshot,
}

impl Found {
    /// Reads a checkpoint, or the newest one of a session.
    pub(super) fn read(store: &mut SessionStore, id: &str) -> Result<Self, BeginError> {
        let found = store.checkpoint(id)?;
        let session_id = match &found {
            Some((session_id, _)) => session_id.clone(),
            None if store.find(id)?.is_some() => id.to_owned(),
            None => return Err(BeginError::Unknown(id.to_owned())),
        };
        let newest = store.newest_checkpoint(&session_id)?;
        let newest = newest.ok_or_else(|| BeginError::NoCheckpoint(id.to_owned()))?;
        let event = found.map_or_else(|| newest.clone(), |(_, event)| event);
        let is_newest = event.event_id == newest.event_id;
        let EventBody::Checkpoint(Checkpoint { checkpoint_id, state, resumable, reason }) = event.body else {
            return Err(BeginError::NoState(None));
        };
        let of_workflow = |error| BeginError::NoState(Some(error));
        Ok(Self {
            session_id,
            checkpoint_id,
            seq: event.seq.unwrap_or(0),
            is_newest,
            unresumable: (!resumable).then(|| reason.unwrap_or_else(|| "no reason is recorded".to_owned())),
            state: serde_json::from_value(state.tool_state).map_err(of_workflow)?,
            messages: state.message_history,
            snapshot: serde_json::from_value(state.workspace).map_err(of_workflow)?,
        })
    }

    fn check_resumable(&self) -> Result<(), BeginError> {
        let session_id = self.session_id.clone();
        self.unresumable.clone().map_or(Ok(()), |reason| Err(BeginError::NotResumable { session_id, reason }))
    }

    /// Fails for a checkpoint at an end that is final.
    fn check_forkable(&self) -> Result<(), BeginError> {
        self.check_resumable()?;
        match &self.state.outcome {
            Some(Outcome::Failure { failure, .. }) if !self.state.can_continue() => {
                let (session_id, reason) = (self.session_id.clone(), failure.message.clone());
                Err(BeginError::Final { session_id, reason })
            }
            _ => Ok(()),
        }
    }

    /// Answers the call that was running, if it is a command without a sandbox that did not end in the session: a fork and a rewound
    /// session would otherwise run it a second time.
    fn close_command(&mut self, store: &mut SessionStore) -> Result<Option<SessionEvent>, BeginError> {
        if !self.state.is_running || Sandbox::detect(self.state.settings.sandbox)? != Sandbox::None {
            return Ok(None);
        }
        let types = ["tool_call", "state_transition"].map(str::to_owned).to_vec();
        let filter = EventFilter { types, ..EventFilter::default() };
        // The first record of a call is that of the one that was running, unless the session was rewound before it.
        let (mut ended, mut is_known) = (false, false);
        store.for_each(&self.session_id, &filter, self.seq, None, |_, event| {
            let event = event.filter(|_| !is_known).and_then(|it| serde_json::from_value::<SessionEvent>(it).ok());
            match event.map(|event| event.body) {
                Some(EventBody::ToolCall(call)) => (ended, is_known) = (has_ended(&call), true),
                Some(EventBody::StateTransition(transition)) if transition.trigger == REWOUND => is_known = true,
                _ => {}
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(if ended { None } else { close_command(&mut self.state, &mut self.messages) })
    }

    /// Keeps what the session has made public after the checkpoint: it stays its own.
    fn rewind(&mut self, newest: Publication) {
        let publication = &mut self.state.publication;
        publication.former = newest.former.into_iter().chain(newest.commits).chain(newest.pushed).collect();
        publication.pushed = None;
        publication.pull_request = newest.pull_request;
        publication.ci = None;
        self.state.go_on_before_push();
    }
}

/// Begins a run that only finds out whether the checks pass, with the repositories of another place.
pub(super) fn begin_trial<'a>(
    home: &Home,
    trial: &Home,
    found: &Found,
    settings: &Settings,
    patcher: Patcher,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Begun<'a>, BeginError> {
    let session_id = uuid::Uuid::now_v7().to_string();
    let repository = home.store(&control).open(&found.snapshot.repository)?;
    let workspace = repository.restore(&found.snapshot, &trial.workspace(&session_id))?;
    let head = SessionHead {
        session_id,
        title: None,
        origin: Origin::Workflow,
        workflow: None,
        status: SessionStatus::Running,
        started_at: Timestamp::now(),
        ended_at: None,
        parent: None,
        coverage: Coverage::default(),
    };
    let mut state = RunState { settings: settings.clone(), outcome: None, is_running: false, ..found.state.clone() };
    // The limits are those of a trial, and not what is left of those of the run.
    state.spent = Spent::default();
    // One attempt: whether the model does it now, and not whether it does it at last.
    state.settings.limits.iterations = state.red_checks + 1;
    let last_state = Phase::Created.word().to_owned();
    let opened = Opened { repository, workspace, head, last_state, held: None };
    let mut begun = begin(trial, opened, state, found.messages.clone(), secrets, control)?;
    begun.run.patcher = patcher;
    Ok(begun)
}
