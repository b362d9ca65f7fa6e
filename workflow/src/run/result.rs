//! The result of a run, as commands print it.

use counterproof_ledger::store::StoreError;
use counterproof_sessions::store::SessionStore;
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{ChangeKind, WorkspaceError, WorkspaceStore};
use serde::Serialize;
use serde_json::{Value, json};

use super::begin::Home;
use super::machine::Stopped;
use super::state::{CheckResult, Failure, FailureKind, Outcome, RunState, Workflow};

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

/// Returns the result of a run. The numbers are those of the store.
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
    let checks = &state.checks;
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
        implementation: if is_fix { None } else { Some(implementation(home, state)?) },
        capture,
        error: error(state, stopped),
    })
}

fn error(state: &RunState, stopped: &Stopped) -> Option<Failure> {
    match (stopped, &state.outcome) {
        (Stopped::Paused, _) => Some(Failure::new(FailureKind::Paused, "the run was paused")),
        (Stopped::Interrupted, _) => Some(Failure::new(FailureKind::Interrupted, "the run was interrupted")),
        (Stopped::Ended, Some(Outcome::Failure { failure, .. })) => Some(failure.clone()),
        (Stopped::Ended, _) => None,
    }
}

fn implementation(home: &Home, state: &RunState) -> Result<Implementation, WorkspaceError> {
    let publication = &state.publication;
    let Some(head) = publication.pushed.as_ref().or(publication.commits.last()) else {
        return Ok(Implementation::default());
    };
    let store = WorkspaceStore::new(home.repositories(), GitOptions::default());
    let mut found = Implementation { tests_added: state.checks.tests_added, ..Implementation::default() };
    for file in store.open(&state.base.repository)?.numstat(&state.base.commit, head)? {
        found.lines_added += file.added.unwrap_or(0);
        found.lines_removed += file.removed.unwrap_or(0);
        match file.status {
            ChangeKind::Created => found.files_created.push(file.path),
            ChangeKind::Modified => found.files_modified.push(file.path),
            ChangeKind::Deleted => {}
        }
    }
    Ok(found)
}

impl WorkflowResult {
    /// Returns the result as the document has it, with what is added to it.
    pub fn document(&self, parent: Option<&Value>) -> Value {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        document["session"] = json!({ "id": self.capture.session_id, "parent": parent });
        document
    }
}
