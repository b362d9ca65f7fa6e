//! What a run records: transitions, calls, file changes and checkpoints. A checkpoint and the records before it are stored together.

use counterproof_redaction::Redactor;
use counterproof_sessions::event::{
    Checkpoint, CheckpointState, EventBody, FileChange, FileOperation, SessionEvent, StateTransition,
};
use counterproof_sessions::recorder::{RecordError, SessionRecorder};
use counterproof_workspace::{
    ChangeKind, Snapshot, SnapshotOptions, StoredRepository, TreeChange, Workspace, WorkspaceError,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

use super::state::{Phase, RunState};

/// The files of a run, the records of its session, and the records that wait for the next checkpoint.
pub(super) struct Journal {
    recorder: Arc<SessionRecorder>,
    repository: StoredRepository,
    workspace: Workspace,
    snapshot: Snapshot,
    options: SnapshotOptions,
    /// The `to_state` of the last transition.
    last_state: String,
    waiting: Vec<SessionEvent>,
}

/// Records or files that cannot be stored. The run cannot go on: what it does could not be resumed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("failed to serialise the state of the run")]
    Serialise(#[from] serde_json::Error),
}

impl Journal {
    /// `last_state` is the state in which the records of the session end.
    pub(super) fn new(
        recorder: Arc<SessionRecorder>,
        repository: StoredRepository,
        mut workspace: Workspace,
        options: SnapshotOptions,
        last_state: String,
    ) -> Result<Self, JournalError> {
        let snapshot = workspace.snapshot(&options)?;
        Ok(Self { recorder, repository, workspace, snapshot, options, last_state, waiting: Vec::new() })
    }

    pub(super) fn recorder(&self) -> &Arc<SessionRecorder> {
        &self.recorder
    }

    pub(super) fn repository(&self) -> &StoredRepository {
        &self.repository
    }

    pub(super) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(super) fn redactor(&self) -> Redactor {
        self.recorder.redactor()
    }

    /// Masks secrets as they are masked in records. A message that is stored otherwise than it was sent could not be sent again.
    pub(super) fn masked(&self, value: Value) -> Value {
        self.recorder.masked(value)
    }

    /// Adds a record, which is stored with the next checkpoint.
    pub(super) fn add(&mut self, event: SessionEvent) {
        self.waiting.push(event);
    }

    /// Marks the command that was added last, if it failed: the run expects that.
    pub(super) fn expect_failure(&mut self) {
        let last = self.waiting.iter_mut().rev().find_map(|event| match &mut event.body {
            EventBody::Command(command) => Some(command),
            _ => None,
        });
        if let Some(command) = last {
            command.expected_failure = command.exit_code != Some(0);
        }
    }

    /// Adds a transition unless the run is in that state.
    pub(super) fn transition(&mut self, to: Phase, trigger: &str, context: Value) {
        if self.last_state != to.word() {
            self.go_on(to, trigger, context);
        }
    }

    /// Adds a transition, also to the state in which the records end: a killed run goes on in it.
    pub(super) fn go_on(&mut self, to: Phase, trigger: &str, context: Value) {
        let from_state = std::mem::replace(&mut self.last_state, to.word().to_owned());
        let body = StateTransition { from_state, to_state: to.word().to_owned(), trigger: trigger.to_owned(), context };
        self.add(SessionEvent::captured(Timestamp::now(), EventBody::StateTransition(body)));
    }

    /// Takes a snapshot, and adds what has changed since the last one. Returns whether something has.
    pub(super) fn observe(&mut self) -> Result<bool, JournalError> {
        let snapshot = self.workspace.snapshot(&self.options)?;
        let before = std::mem::replace(&mut self.snapshot, snapshot);
        if before.tree == self.snapshot.tree {
            return Ok(before.empty_folders != self.snapshot.empty_folders);
        }
        let changes = self.repository.changes(&before.tree, &self.snapshot.tree)?;
        let now = Timestamp::now();
        self.waiting.extend(changes.into_iter().map(|change| file_operation(now, change)));
        Ok(true)
    }

    /// Undoes what a command of the repository has changed: its outputs are no part of the work.
    pub(super) fn undo_changes(&mut self) -> Result<(), JournalError> {
        if self.workspace.has_changed_since(&self.snapshot)? {
            let folder = self.workspace.folder().to_owned();
            self.workspace = self.repository.restore(&self.snapshot, &folder)?;
        }
        Ok(())
    }

    /// Stores all records that wait, and a checkpoint after them.
    pub(super) fn checkpoint(
        &mut self,
        state: &RunState,
        messages: &[Value],
        unresumable: Option<&str>,
    ) -> Result<(), JournalError> {
        self.waiting.push(checkpoint(state, messages, &self.snapshot, unresumable)?);
        self.flush()
    }

    /// Stores all records that wait.
    pub(super) fn flush(&mut self) -> Result<(), JournalError> {
        if !self.waiting.is_empty() {
            self.recorder.record(std::mem::take(&mut self.waiting))?;
        }
        Ok(())
    }
}

/// Creates the record of a checkpoint.
pub(super) fn checkpoint(
    state: &RunState,
    messages: &[Value],
    snapshot: &Snapshot,
    unresumable: Option<&str>,
) -> Result<SessionEvent, serde_json::Error> {
    let body = Checkpoint {
        checkpoint_id: uuid::Uuid::now_v7().to_string(),
        state: CheckpointState {
            message_history: messages.to_vec(),
            current_step: state.phase.word().to_owned(),
            workspace: serde_json::to_value(snapshot)?,
            tool_state: serde_json::to_value(state)?,
        },
        resumable: unresumable.is_none(),
        reason: unresumable.map(str::to_owned),
    };
    Ok(SessionEvent::captured(Timestamp::now(), EventBody::Checkpoint(body)))
}

fn file_operation(at: Timestamp, change: TreeChange) -> SessionEvent {
    let operation = match change.change {
        ChangeKind::Created => FileChange::Create,
        ChangeKind::Modified => FileChange::Modify,
        ChangeKind::Deleted => FileChange::Delete,
    };
    let body = FileOperation {
        operation,
        path: change.path,
        from_path: None,
        before_sha256: change.before_sha256.and_then(|digest| digest.parse().ok()),
        after_sha256: change.after_sha256.and_then(|digest| digest.parse().ok()),
        patch: change.patch,
    };
    SessionEvent::captured(at, EventBody::FileOperation(body))
}

/// Returns the context of a transition with a message.
pub(super) fn message(text: &str) -> Value {
    json!({ "message": text })
}
