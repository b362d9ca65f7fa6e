//! How a run begins.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_guard::http::UpstreamUrl;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::store::StoreError;
use counterproof_redaction::Applied;
use counterproof_sessions::recorder::{HeldSession, RecordError, RecorderOptions, SessionRecorder, SessionSpool};
use counterproof_sessions::session::{Coverage, Origin, SessionHead, SessionStatus, Share};
use counterproof_sessions::store::redactor;
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{
    CHECKPOINTS, RepositoryId, SnapshotOptions, Start, StoredRepository, Workspace, WorkspaceError, WorkspaceStore,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::credentials::ModelUrlRequired;
use super::journal::{Journal, JournalError};
use super::machine::{Control, Run, RunError};
use super::messages::first_names;
use super::publish::UNGUARDED;
use super::replay::Patcher;
use super::state::{Base, Checks, ForgeKind, Phase, Publication, RunState, Settings, Spent, Workflow};
use crate::forge::{Forge, ForgeError, GitHubForge, GitHubOptions, LocalForge, Token};
use crate::model::{ApiKey, ModelClient, ModelError, ModelOptions};
use crate::suite::{Commands, Overrides, Shell, Target, TargetError, detect, files_with_tests};
use crate::tools::{AgentPolicy, Sandbox, SandboxError, ToolOptions, Tools};

/// Where the sessions, workspaces and pull requests of a ledger are.
#[derive(Debug, Clone)]
pub struct Home {
    pub ledger: LedgerLocation,
    pub spool: SessionSpool,
    /// The folder with the copies of repositories, the workspaces, and the pull requests of the local forge.
    pub folder: Utf8PathBuf,
}

impl Home {
    pub(super) fn store(&self, control: &Control<'_>) -> WorkspaceStore {
        WorkspaceStore::new(self.repositories(), git_options(control)).cancelled_by(&control.cancel)
    }

    pub(super) fn repositories(&self) -> Utf8PathBuf {
        self.folder.join("repositories")
    }

    /// Returns the folder in which a session works.
    pub fn workspace(&self, session_id: &str) -> Utf8PathBuf {
        self.folder.join("sessions").join(session_id).join("tree")
    }

    /// Removes the workspace of a session. Its checkpoints have all files.
    pub fn remove(&self, session_id: &str) {
        let _ = std::fs::remove_dir_all(self.folder.join("sessions").join(session_id));
    }

    /// Removes the workspace and all snapshots of a session that was deleted from the ledger.
    pub fn forget(&self, session_id: &str) -> Result<(), WorkspaceError> {
        // Those of workflows have such an id. Others are from files, and could be names of other folders.
        if uuid::Uuid::try_parse(session_id).is_err() {
            return Ok(());
        }
        self.remove(session_id);
        self.repository_store().release(&format!("{CHECKPOINTS}{session_id}/"))
    }

    /// Returns the space of snapshots that were removed. Only while no session runs.
    pub fn compact(&self) -> Result<(), WorkspaceError> {
        self.repository_store().compact()
    }

    fn repository_store(&self) -> WorkspaceStore {
        WorkspaceStore::new(self.repositories(), GitOptions::default())
    }

    /// Returns the folder of the local forge of a repository.
    fn forge(&self, repository: &RepositoryId) -> Utf8PathBuf {
        self.folder.join("forge").join(repository.as_str())
    }

    /// Returns the bare repository with the branches of the pull requests of the local forge.
    pub fn forge_repository(&self, repository: &RepositoryId) -> Utf8PathBuf {
        self.forge(repository).join("repository.git")
    }

    fn private(&self, session_id: &str) -> Utf8PathBuf {
        self.folder.join("sessions").join(session_id).join("private")
    }
}

/// What a run needs and no checkpoint has.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub api_key: Option<ApiKey>,
    pub github_token: Option<Token>,
    /// The address of the interface of GitHub, unless it is the public one.
    pub github_url: Option<String>,
    /// The URL of the model, if the settings have it without its credentials.
    pub model_url: Option<String>,
    /// The servers of OpenAI and Anthropic requests of an agent command without a model URL. `None` is the public one.
    pub upstreams: [Option<String>; 2],
    /// The URL of the repository, if the settings have it without its credentials.
    pub repository_url: Option<String>,
    /// Values that are masked in all records and messages.
    pub masked: Vec<String>,
    /// The policy that the settings name.
    pub policy: Option<AgentPolicy>,
}

#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    ModelUrl(#[from] ModelUrlRequired),
    #[error("the built-in agent needs `{0}`")]
    NoModel(&'static str),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("the repository has no branch checked out that a pull request could be for")]
    NoBranch,
    #[error("the {0} command has a secret, which is not stored: put it into a file or a variable")]
    SecretCommand(&'static str),
    #[error(
        "`{0}` is masked in checkpoints, because a part of it looks like a secret or is the value of a secret variable"
    )]
    SecretName(String),
    #[error("the GitHub forge needs a token in `GITHUB_TOKEN`")]
    NoToken,
    #[error("interrupted before the session began")]
    Interrupted,
    #[error("cannot use the forge")]
    Forge(#[from] ForgeError),
    #[error("no command that runs {0} was found in the repository")]
    NoCommand(&'static str),
    #[error("there is no checkpoint or session `{0}`")]
    Unknown(String),
    #[error("the session `{0}` has no checkpoint")]
    NoCheckpoint(String),
    #[error("the session `{session_id}` is run by the process {}", .holder.map_or("of another machine".to_owned(), |id| id.to_string()))]
    Held { session_id: String, holder: Option<u32> },
    #[error("the session `{0}` was continued meanwhile, and the checkpoint is not its newest one")]
    Continued(String),
    #[error("the checkpoint cannot be resumed: {reason}")]
    NotResumable { session_id: String, reason: String },
    #[error("a fork of the checkpoint could never run: the run has ended there, because {reason}")]
    Final { session_id: String, reason: String },
    #[error("the checkpoint was not written by a workflow")]
    NoState(#[source] Option<serde_json::Error>),
}

impl From<JournalError> for BeginError {
    fn from(error: JournalError) -> Self {
        BeginError::Run(error.into())
    }
}

/// A run that has begun, and the session that it is.
pub struct Begun<'a> {
    pub head: SessionHead,
    pub recorder: Arc<SessionRecorder>,
    pub run: Run<'a>,
}

/// Begins a run of a new session.
pub fn start<'a>(
    home: &Home,
    settings: Settings,
    title: Option<String>,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Begun<'a>, BeginError> {
    let session_id = uuid::Uuid::now_v7().to_string();
    let cancel = control.cancel.clone();
    start_session(home, &session_id, settings, title, secrets, control).map_err(|error| {
        // Nothing is lost: no work was done.
        home.remove(&session_id);
        if cancel.is_cancelled() { BeginError::Interrupted } else { error }
    })
}

fn start_session<'a>(
    home: &Home,
    session_id: &str,
    settings: Settings,
    title: Option<String>,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Begun<'a>, BeginError> {
    check_commands(&settings, secrets)?;
    let store = home.store(&control);
    let source = secrets.repository_url.as_deref().unwrap_or(&settings.source);
    let start = store.import(source, settings.branch.as_deref())?;
    if settings.forge == ForgeKind::Github && start.branch.is_none() {
        return Err(BeginError::NoBranch);
    }
    let repository = store.open(&start.repository)?;
    let folder = home.workspace(session_id);
    let workspace = repository.create(&start.commit, &folder)?;
    let (commands, target) = commands(&settings, &folder, &control)?;
    let target_files = target.as_ref().map(|target| target.files(&folder)).unwrap_or_default();
    let target_files: Vec<String> = target_files.into_iter().map(Utf8PathBuf::into_string).collect();
    let mut is_unguarded = false;
    if target.is_some() && target_files.is_empty() {
        let guarded: Vec<String> = files_with_tests(&folder).into_iter().map(Utf8PathBuf::into_string).collect();
        is_unguarded = guarded.is_empty();
        (control.progress)(&guarded_text(&guarded));
    }
    let head = SessionHead {
        session_id: session_id.to_owned(),
        title: title.or_else(|| Some(default_title(&settings))),
        origin: Origin::Workflow,
        workflow: Some(settings.workflow.word().to_owned()),
        status: SessionStatus::Running,
        started_at: Timestamp::now(),
        ended_at: None,
        parent: None,
        coverage: coverage(&settings),
    };
    let state = RunState { target_files, is_unguarded, ..new_state(settings, start, commands, target, session_id) };
    forge(home, &state, secrets, &control)?.check_base(&state.base.branch, &state.base.commit, &control.cancel)?;
    let last_state = Phase::Created.word().to_owned();
    let opened = Opened { repository, workspace, head, last_state, held: None };
    let mut begun = begin(home, opened, state, Vec::new(), secrets, control)?;
    let context = json!({ "commit": begun.run.state.base.commit, "sandbox": begun.run.tools.sandbox().name() });
    begun.run.journal.transition(Phase::Checkout, "started", context);
    begun.run.journal.checkpoint(&begun.run.state, &begun.run.messages, None)?;
    Ok(begun)
}

/// States which files are guarded where that of the target test is not known.
fn guarded_text(files: &[String]) -> String {
    if files.is_empty() {
        return UNGUARDED.to_owned();
    }
    format!(
        "the file of the test is not known: the tests of these files have to stay as they are: {}",
        first_names(files, 5)
    )
}

/// How long the question for a module of Python may take.
const DETECTION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// The time limit of a CI command without `--ci-timeout`.
pub(super) const DEFAULT_CI_TIMEOUT: std::time::Duration = std::time::Duration::from_hours(1);

/// How long the last records may take to reach the ledger.
pub(super) const LAST_RECORDS: std::time::Duration = std::time::Duration::from_secs(10);

/// The parts of a session that exist before its run.
pub(super) struct Opened {
    pub(super) repository: StoredRepository,
    pub(super) workspace: Workspace,
    pub(super) head: SessionHead,
    pub(super) last_state: String,
    /// `None` for a session that begins.
    pub(super) held: Option<HeldSession>,
}

pub(super) fn begin<'a>(
    home: &Home,
    opened: Opened,
    state: RunState,
    messages: Vec<Value>,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Begun<'a>, BeginError> {
    let Opened { repository, workspace, head, last_state, held } = opened;
    let Parts { agent_upstreams, model, sandbox, forge } = parts(home, &state, secrets, &control)?;
    let settings = &state.settings;
    let (private, api_key) = (home.private(&head.session_id), secrets.api_key.clone());
    let tools = Tools::new(ToolOptions {
        supervisor: control.supervisor.clone(),
        policy: secrets.policy.clone(),
        // The `.git` of the workspace borrows its objects.
        readable: vec![repository.path().to_owned()],
        ..ToolOptions::new(workspace.folder(), private.clone(), sandbox)
    });
    let options = SnapshotOptions {
        reference: format!("{CHECKPOINTS}{}", head.session_id),
        include_ignored: settings.include_ignored.clone(),
        max_bytes: settings.max_snapshot_bytes,
    };
    let recorder = Arc::new(recorder(home, &head, secrets, held)?);
    let journal = Journal::new(recorder.clone(), repository, workspace, options, last_state)?;
    (control.progress)(&format!("sandbox of the agent's commands: {}", sandbox.description()));
    Ok(Begun {
        head,
        recorder,
        run: Run {
            state,
            messages,
            journal,
            model,
            tools,
            forge,
            control,
            private,
            api_key,
            agent_upstreams,
            has_pause: false,
            patcher: Patcher::default(),
        },
    })
}

/// The parts of a run that depend on its settings and on this machine.
pub(super) struct Parts {
    agent_upstreams: Option<[UpstreamUrl; 2]>,
    model: ModelClient,
    sandbox: Sandbox,
    forge: Box<dyn Forge>,
}

/// Fails if a run with these settings cannot begin here. Creates nothing.
pub(super) fn parts(
    home: &Home,
    state: &RunState,
    secrets: &Secrets,
    control: &Control<'_>,
) -> Result<Parts, BeginError> {
    let settings = &state.settings;
    let agent_upstreams = match settings.agent_command {
        Some(_) => Some(secrets.upstreams(&settings.model)?),
        None => None,
    };
    let (model_url, model_name) = match &agent_upstreams {
        // The client sends nothing.
        Some([openai, _]) => (openai.recorded(), String::new()),
        None => secrets.model(&settings.model).map(|(url, name)| (url.to_owned(), name.to_owned()))?,
    };
    let model = ModelClient::new(ModelOptions {
        api_key: secrets.api_key.clone(),
        stream: settings.model.is_streaming,
        price: settings.model.price,
        ..ModelOptions::new(&model_url, &model_name)
    })?;
    let sandbox = Sandbox::detect(settings.sandbox)?;
    Ok(Parts { agent_upstreams, model, sandbox, forge: forge(home, state, secrets, control)? })
}

pub(super) fn recorder(
    home: &Home,
    head: &SessionHead,
    secrets: &Secrets,
    held: Option<HeldSession>,
) -> Result<SessionRecorder, BeginError> {
    let started = SessionRecorder::start(RecorderOptions {
        ledger: home.ledger.clone(),
        spool: home.spool.clone(),
        head: head.clone(),
        continues: held.is_some(),
        held,
        // What is not stored could not be resumed.
        requires_store: true,
        secrets: secrets.masked.clone(),
        warn: Box::new(|_| {}),
    });
    started.map_err(|error| record_failed(home, error))
}

pub(super) fn record_failed(home: &Home, error: RecordError) -> BeginError {
    match error {
        RecordError::Running(session_id) => {
            let holder = home.spool.holder(&session_id);
            BeginError::Held { session_id, holder }
        }
        error => error.into(),
    }
}

fn forge(
    home: &Home,
    state: &RunState,
    secrets: &Secrets,
    control: &Control<'_>,
) -> Result<Box<dyn Forge>, BeginError> {
    let settings = &state.settings;
    match settings.forge {
        ForgeKind::Local => {
            let ci = settings.ci_command.clone();
            let ci = ci.or_else(|| state.commands.as_ref().and_then(|commands| commands.suite.clone()));
            let folder = home.forge(&state.base.repository);
            let mut shell = Shell::new(DEFAULT_CI_TIMEOUT, control.cancel.clone());
            shell.supervisor.clone_from(&control.supervisor);
            Ok(Box::new(LocalForge { folder, ci_line: ci, shell, git: git_options(control) }))
        }
        ForgeKind::Github => {
            let url = state.base.origin.as_deref().unwrap_or(&settings.source);
            let token = secrets.github_token.clone().ok_or(BeginError::NoToken)?;
            let options = GitHubOptions {
                api_url: secrets.github_url.clone(),
                git: git_options(control),
                ..GitHubOptions::new(token, url)
            };
            Ok(Box::new(GitHubForge::new(options)?))
        }
    }
}

/// Refuses commands and names that could not be used after a resume, because a part of them is masked in the checkpoint.
fn check_commands(settings: &Settings, secrets: &Secrets) -> Result<(), BeginError> {
    let values: std::collections::BTreeSet<String> = secrets.masked.iter().cloned().collect();
    let redactor = redactor(Origin::Workflow, &values).map_err(RecordError::from)?;
    let Settings { test_command, suite_command, lint_command, ci_command, agent_command, .. } = settings;
    let commands = [
        ("test", test_command),
        ("suite", suite_command),
        ("lint", lint_command),
        ("CI", ci_command),
        ("agent", agent_command),
    ];
    let is_masked = |text: &String| redactor.text(text, &mut Applied::default()) != *text;
    for (name, command) in commands {
        if command.as_ref().is_some_and(is_masked) {
            return Err(BeginError::SecretCommand(name));
        }
    }
    let mut names =
        settings.test.iter().chain(&settings.branch).chain(&settings.target_files).chain(&settings.examples);
    names
        .find(|name| is_masked(name))
        .map_or(Ok(()), |name| Err(BeginError::SecretName(redactor.text(name, &mut Applied::default()))))
}

fn git_options(control: &Control<'_>) -> GitOptions {
    GitOptions { supervisor: control.supervisor.clone(), ..GitOptions::default() }
}

fn commands(
    settings: &Settings,
    folder: &Utf8Path,
    control: &Control<'_>,
) -> Result<(Commands, Option<Target>), BeginError> {
    let mut shell = Shell::new(DETECTION_TIMEOUT, control.cancel.clone());
    shell.supervisor.clone_from(&control.supervisor);
    let detected = detect(folder, &|module| shell.has_python_module(module));
    let commands = detected.with(Overrides {
        test: settings.test_command.clone(),
        suite: settings.suite_command.clone(),
        lint: settings.lint_command.clone(),
    });
    for line in commands.to_string().lines() {
        (control.progress)(line);
    }
    if commands.suite.is_none() {
        return Err(BeginError::NoCommand("all tests"));
    }
    let target = match (settings.workflow, &settings.test) {
        (Workflow::FixFailingTest, Some(test)) => Some(Target::parse(test, folder)?),
        _ => None,
    };
    if let Some(target) = &target {
        commands.test_line(target, folder)?;
    }
    Ok((commands, target))
}

fn new_state(
    settings: Settings,
    start: Start,
    commands: Commands,
    target: Option<Target>,
    session_id: &str,
) -> RunState {
    let Start { repository, commit, branch: base_branch, author, origin } = start;
    let publication = Publication { branch: branch(&settings, session_id), ..Publication::default() };
    // A pull request needs the name of a branch.
    let base = base_branch.unwrap_or_else(|| "HEAD".to_owned());
    RunState {
        base: Base { repository, commit, branch: base, author, origin },
        phase: Phase::Checkout,
        commands: Some(commands),
        target,
        target_files: Vec::new(),
        is_unguarded: false,
        is_linted: false,
        before: None,
        reproduced: None,
        spent: Spent { cost: settings.model.price.map(|_| 0.0), ..Spent::default() },
        red_checks: 0,
        pending: Vec::new(),
        is_running: false,
        checks: Checks::default(),
        last_text: None,
        publication,
        outcome: None,
        settings,
    }
}

/// Returns the branch of a session. The end of the id is its random part.
pub(super) fn branch(settings: &Settings, session_id: &str) -> String {
    let task = settings.workflow.word().replace('_', "-");
    let end = session_id.len().saturating_sub(12);
    format!("counterproof/{task}-{}", session_id.get(end..).unwrap_or(session_id))
}

fn default_title(settings: &Settings) -> String {
    let text = settings.test.as_deref().or(settings.specification.as_deref()).unwrap_or_default();
    counterproof_artifact::one_line(text, 80)
}

pub(super) fn coverage(settings: &Settings) -> Coverage {
    if settings.agent_command.is_some() {
        let partial = Share::Partial;
        return Coverage { llm_calls: partial, tool_calls: partial, files: partial, commands: partial };
    }
    Coverage { llm_calls: Share::All, tool_calls: Share::All, files: Share::All, commands: Share::All }
}

impl Begun<'_> {
    /// Ends the records of the session.
    pub fn finish(self, status: SessionStatus) -> Result<(), RecordError> {
        let ended_at = (status != SessionStatus::Running).then(Timestamp::now);
        let mut coverage = self.head.coverage;
        if status == SessionStatus::Interrupted {
            // A test or a check that was stopped has no record.
            coverage.commands = coverage.commands.min(Share::Partial);
        }
        let head = SessionHead { status, ended_at, coverage, ..self.head };
        drop(self.run);
        self.recorder.finish(&head, LAST_RECORDS).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_of_the_guarded_files_are_named() {
        let files = |count: usize| (0..count).map(|it| format!("t{it}")).collect::<Vec<_>>();
        assert!(guarded_text(&files(2)).ends_with("have to stay as they are: t0, t1"));
        assert!(guarded_text(&files(1000)).ends_with(": t0, t1, t2, t3, t4 and 995 more"));
        assert!(guarded_text(&[]).ends_with("a weakened test is not detected"));
    }
}
