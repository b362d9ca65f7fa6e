//! The result of a run, as commands print it.

use counterproof_ledger::store::StoreError;
use counterproof_sessions::event::{Checkpoint, EventBody, SessionEvent};
use counterproof_sessions::session::{Parent, SessionStatus};
use counterproof_sessions::store::{EventFilter, SessionStore};
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{ChangeKind, FileStat, Snapshot, StoredRepository, WorkspaceError, WorkspaceStore};
use serde::Serialize;

use super::begin::Home;
use super::machine::Stopped;
use super::publish::warnings;
use super::state::{CheckResult, Failure, FailureKind, Outcome, Phase, RunState, Workflow};

/// The measurable outputs of a workflow. `error` is `None` if it succeeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkflowResult {
    pub workflow: Workflow,
    pub status: &'static str,
    pub pr_url: Option<String>,
    pub ci_status: Option<CheckResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_results: Option<TestResults>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implementation: Option<Implementation>,
    pub capture: Capture,
    pub error: Option<Failure>,
    /// What the contract of the outputs does not have.
    pub session: SessionResult,
}

/// How the session stands, and what a person may do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionResult {
    pub id: String,
    pub parent: Option<Parent>,
    pub status: SessionStatus,
    /// The newest checkpoint.
    pub checkpoint_id: Option<String>,
    /// Whether the session can be resumed from it.
    #[serde(skip)]
    pub is_resumable: bool,
    /// The newest checkpoint before it that can be resumed, if the session cannot go on from its end.
    #[serde(skip)]
    pub earlier: Option<String>,
    /// The command that goes on with the session.
    pub resume: Option<String>,
    /// The command that fetches the pull request of a local forge and shows its change.
    pub fetch: Option<String>,
    pub warnings: Vec<String>,
    /// The files that were changed in the workspace of a run without a commit.
    pub uncommitted: Option<Changes>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub files_created: Vec<String>,
    pub files_modified: Vec<String>,
    pub files_deleted: Vec<String>,
    pub lines_added: u64,
    pub lines_removed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestResults {
    pub target_test: Option<CheckResult>,
    pub regression_tests: Option<CheckResult>,
    /// The ids of the runner; `None` as long as the suite did not run after the change.
    pub new_failures: Option<Vec<String>>,
}

/// The change from the base to the head of the pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Implementation {
    pub files_created: Vec<String>,
    pub files_modified: Vec<String>,
    pub tests_added: u64,
    pub lines_added: u64,
    pub lines_removed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capture {
    pub session_id: String,
    pub total_llm_calls: u64,
    pub total_tool_calls: u64,
    pub total_tokens: u64,
    pub checkpoints: u64,
    pub duration_seconds: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

/// Returns the status of the session of a run.
pub fn status(state: &RunState, stopped: &Stopped) -> SessionStatus {
    match stopped {
        Stopped::Ended => state.status(),
        Stopped::Paused => SessionStatus::Paused,
        Stopped::Interrupted => SessionStatus::Interrupted,
    }
}

/// Returns the result of a run. The numbers are those of the store. The commands of the part `session` are those of the caller.
pub fn result(
    home: &Home,
    store: &mut SessionStore,
    session_id: &str,
    state: &RunState,
    stopped: &Stopped,
) -> Result<WorkflowResult, ResultError> {
    let overview = store.overview(session_id)?;
    let capture = Capture {
        session_id: session_id.to_owned(),
        total_llm_calls: overview.as_ref().map_or(0, |it| it.total_llm_calls),
        total_tool_calls: overview.as_ref().map_or(0, |it| it.total_tool_calls),
        total_tokens: overview.as_ref().and_then(|it| it.total_tokens).unwrap_or(0),
        checkpoints: overview.as_ref().map_or(0, |it| it.checkpoints_available),
        duration_seconds: overview.as_ref().and_then(|it| it.duration_seconds).unwrap_or(0.0),
    };
    let newest = store.newest_checkpoint(session_id)?.and_then(|event| match event.body {
        EventBody::Checkpoint(checkpoint) => Some(checkpoint),
        _ => None,
    });
    let repositories = WorkspaceStore::new(home.repositories(), GitOptions::default());
    let repository = repositories.open(&state.base.repository)?;
    let publication = &state.publication;
    let committed = match publication.pushed.as_ref().or(publication.commits.last()) {
        Some(head) => repository.numstat(&state.base.commit, head)?,
        None => Vec::new(),
    };
    let checks = &state.checks;
    let session = SessionResult {
        id: session_id.to_owned(),
        parent: store.find(session_id)?.and_then(|summary| summary.parent),
        status: status(state, stopped),
        resume: None,
        fetch: None,
        warnings: {
            let paths: Vec<&str> = committed.iter().map(|file| file.path.as_str()).collect();
            warnings(state, &paths)
        },
        uncommitted: newest.as_ref().map(|it| uncommitted(&repository, state, it)).transpose()?.flatten(),
        earlier: None,
        is_resumable: newest.as_ref().is_some_and(|it| it.resumable),
        checkpoint_id: newest.map(|it| it.checkpoint_id),
    };
    let session = SessionResult { earlier: earlier(store, &session, state)?, ..session };
    let is_fix = state.settings.workflow == Workflow::FixFailingTest;
    Ok(WorkflowResult {
        workflow: state.settings.workflow,
        status: if state.outcome == Some(Outcome::Success) { "success" } else { "failure" },
        pr_url: state.publication.pull_request.as_ref().map(|it| it.url.clone()),
        ci_status: state.publication.ci,
        test_results: is_fix.then(|| TestResults {
            target_test: checks.target,
            regression_tests: checks.suite,
            new_failures: checks.new_failures.clone(),
        }),
        implementation: (!is_fix).then(|| implementation(state, committed)),
        capture,
        error: error(state, stopped),
        session,
    })
}

/// Returns the newest checkpoint that can be resumed where that of the end cannot. Of a run that weakened a test, it is one before the
/// change: an attempt has changed no file before the state `edit`, and all earlier attempts were checked.
fn earlier(store: &mut SessionStore, session: &SessionResult, state: &RunState) -> Result<Option<String>, StoreError> {
    let is_tampered =
        matches!(&state.outcome, Some(Outcome::Failure { failure, .. }) if failure.kind == FailureKind::TestTampered);
    if session.is_resumable && !is_tampered {
        return Ok(None);
    }
    let filter = EventFilter { types: vec!["checkpoint".to_owned()], ..EventFilter::default() };
    let mut found = None;
    store.for_each(&session.id, &filter, 0, None, |_, event| {
        let event = event.and_then(|event| serde_json::from_value::<SessionEvent>(event).ok());
        if let Some(EventBody::Checkpoint(checkpoint)) = event.map(|event| event.body)
            && checkpoint.resumable
        {
            let state = serde_json::from_value::<RunState>(checkpoint.state.tool_state).ok();
            let is_clean = state.is_some_and(|it| {
                matches!(it.phase, Phase::Localise | Phase::Understand) && it.pending.is_empty() && it.outcome.is_none()
            });
            if is_clean || !is_tampered {
                found = Some(checkpoint.checkpoint_id);
            }
        }
        Ok::<_, StoreError>(())
    })?;
    Ok(found)
}

fn error(state: &RunState, stopped: &Stopped) -> Option<Failure> {
    match (stopped, &state.outcome) {
        (Stopped::Paused, _) => Some(Failure::new(FailureKind::Paused, "the run was paused")),
        (Stopped::Interrupted, _) => Some(Failure::new(FailureKind::Interrupted, "the run was interrupted")),
        (Stopped::Ended, Some(Outcome::Failure { failure, .. })) => Some(failure.clone()),
        (Stopped::Ended, _) => None,
    }
}

fn implementation(state: &RunState, committed: Vec<FileStat>) -> Implementation {
    // No test is added without a commit.
    let tests_added = if committed.is_empty() { 0 } else { state.checks.tests_added };
    let Changes { files_created, files_modified, lines_added, lines_removed, .. } = changes(committed);
    Implementation { files_created, files_modified, tests_added, lines_added, lines_removed }
}

fn changes(files: Vec<FileStat>) -> Changes {
    let mut found = Changes::default();
    for file in files {
        found.lines_added += file.added.unwrap_or(0);
        found.lines_removed += file.removed.unwrap_or(0);
        match file.status {
            ChangeKind::Created => found.files_created.push(file.path),
            ChangeKind::Modified => found.files_modified.push(file.path),
            ChangeKind::Deleted => found.files_deleted.push(file.path),
        }
    }
    found
}

fn uncommitted(
    repository: &StoredRepository,
    state: &RunState,
    newest: &Checkpoint,
) -> Result<Option<Changes>, WorkspaceError> {
    let snapshot = serde_json::from_value::<Snapshot>(newest.state.workspace.clone()).ok();
    let Some(snapshot) = snapshot.filter(|_| state.publication.commits.is_empty()) else { return Ok(None) };
    let files = repository.numstat(&state.base.commit, &repository.publishable_tree(&snapshot)?)?;
    Ok((!files.is_empty()).then(|| changes(files)))
}
