//! How a run begins: anew, from a checkpoint, or as a fork of one.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::store::StoreError;
use counterproof_sessions::event::{Checkpoint, EventBody, SessionEvent, StateTransition};
use counterproof_sessions::recorder::{RecordError, RecorderOptions, SessionRecorder, SessionSpool};
use counterproof_sessions::session::{Coverage, Origin, Parent, SessionHead, SessionStatus, Share};
use counterproof_sessions::store::SessionStore;
use counterproof_workspace::git::GitOptions;
use counterproof_workspace::{
    Snapshot, SnapshotOptions, Start, StoredRepository, Workspace, WorkspaceError, WorkspaceStore,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::credentials::ModelUrlRequired;
use super::journal::{Journal, JournalError, checkpoint};
use super::machine::{Control, Run, RunError};
use super::replay::Patcher;
use super::state::{Base, Checks, ForgeKind, Phase, Publication, RunState, Settings, Spent, Workflow};
use super::turns::close_running_call;
use crate::forge::{Forge, ForgeError, GitHubForge, GitHubOptions, LocalForge, Token};
use crate::model::{ApiKey, ModelClient, ModelError, ModelOptions};
use crate::suite::{Commands, Overrides, Shell, Target, TargetError, detect};
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
        WorkspaceStore::new(self.repositories(), git_options(control))
    }

    pub(super) fn repositories(&self) -> Utf8PathBuf {
        self.folder.join("repositories")
    }

    /// Returns the folder in which a session works.
    pub fn workspace(&self, session_id: &str) -> Utf8PathBuf {
        self.folder.join("sessions").join(session_id).join("tree")
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
    Store(#[from] StoreError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    ModelUrl(#[from] ModelUrlRequired),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("the GitHub forge needs a token in `GITHUB_TOKEN`")]
    NoToken,
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
    #[error("the checkpoint cannot be resumed: {0}")]
    NotResumable(String),
    #[error("the checkpoint was not written by a workflow")]
    NoState(#[source] Option<serde_json::Error>),
}

impl From<JournalError> for BeginError {
    fn from(error: JournalError) -> Self {
        BeginError::Run(error.into())
    }
}

impl From<WorkspaceError> for BeginError {
    fn from(error: WorkspaceError) -> Self {
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
    let store = home.store(&control);
    let start =
        store.import(secrets.repository_url.as_deref().unwrap_or(&settings.source), settings.branch.as_deref())?;
    let repository = store.open(&start.repository)?;
    let session_id = uuid::Uuid::now_v7().to_string();
    let folder = home.workspace(&session_id);
    let workspace = repository.create(&start.commit, &folder)?;
    let (commands, target) = commands(&settings, &folder, &control).inspect_err(|_| remove(home, &session_id))?;
    let target_file = target.as_ref().and_then(|target| target.file(&folder)).map(Utf8PathBuf::into_string);
    let head = SessionHead {
        session_id: session_id.clone(),
        title: title.or_else(|| Some(default_title(&settings))),
        origin: Origin::Workflow,
        workflow: Some(settings.workflow.word().to_owned()),
        status: SessionStatus::Running,
        started_at: Timestamp::now(),
        ended_at: None,
        parent: None,
        coverage: coverage(&settings),
    };
    let state = RunState { target_file, ..new_state(settings, start, commands, target, &session_id) };
    let opened = Opened { repository, workspace, head, last_state: Phase::Created.word().to_owned() };
    let mut begun = begin(home, opened, state, Vec::new(), secrets, control, false)?;
    let context = json!({ "commit": begun.run.state.base.commit, "sandbox": begun.run.tools.sandbox().name() });
    begun.run.journal.transition(Phase::Checkout, "started", context);
    begun.run.journal.checkpoint(&begun.run.state, &begun.run.messages, None)?;
    Ok(begun)
}

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
    let mut found = Found::read(store, id)?;
    found.state.settings = settings;
    let is_fork = !found.is_newest && !rewinds;
    if !is_fork {
        // Before the question whether there is work: a session that runs has a holder, not a result.
        if home.spool.is_running(&found.session_id) == Some(true) {
            let holder = home.spool.holder(&found.session_id);
            return Err(BeginError::Held { session_id: found.session_id, holder });
        }
        if found.state.outcome.is_some() {
            match found.state.continuation() {
                Some(phase) => found.state.phase = phase,
                None => return Ok(Resumed::Ended(found.session_id, Box::new(found.state))),
            }
            found.state.outcome = None;
        }
    }
    if let Some(reason) = found.unresumable {
        return Err(BeginError::NotResumable(reason));
    }
    if is_fork {
        let session_id = fork_of(home, store, &found)?;
        let forked = Found::read(store, &session_id)?;
        return continue_run(home, store, forked, "resumed", &replaced, secrets, control);
    }
    let trigger = if found.is_newest { "resumed" } else { "rewound" };
    if !found.is_newest {
        // What the session has made public stays its own.
        let newest = Found::read(store, &found.session_id)?.state.publication;
        let publication = &mut found.state.publication;
        publication.pushed = newest.pushed.or_else(|| newest.commits.last().cloned());
        publication.pull_request = newest.pull_request;
        publication.ci = None;
    }
    continue_run(home, store, found, trigger, &replaced, secrets, control)
}

fn continue_run<'a>(
    home: &Home,
    store: &mut SessionStore,
    mut found: Found,
    trigger: &str,
    replaced: &Value,
    secrets: &Secrets,
    control: Control<'a>,
) -> Result<Resumed<'a>, BeginError> {
    let summary = store.find(&found.session_id)?.and_then(|summary| summary.head());
    let head = summary.ok_or_else(|| BeginError::Unknown(found.session_id.clone()))?;
    let last_state = store.last_state(&found.session_id)?.unwrap_or_else(|| Phase::Created.word().to_owned());
    let repository = home.store(&control).open(&found.snapshot.repository)?;
    let workspace = repository.restore(&found.snapshot, &home.workspace(&found.session_id))?;
    let head = SessionHead { status: SessionStatus::Running, ended_at: None, ..head };
    let closed = if found.is_newest { close_running_call(&mut found.state, &mut found.messages) } else { None };
    found.state.is_running = false;
    let opened = Opened { repository, workspace, head, last_state };
    let (state, messages) = (found.state, found.messages);
    let mut begun = begin(home, opened, state, messages, secrets, control, true)?;
    let run = &mut begun.run;
    let context = json!({ "checkpoint_id": found.checkpoint_id, "replaced": replaced });
    run.journal.transition(run.state.phase, trigger, context);
    if let Some(closed) = closed {
        run.journal.add(closed);
    }
    run.journal.checkpoint(&run.state, &run.messages, None)?;
    Ok(Resumed::Begun(Box::new(begun)))
}

/// Creates a session that goes on from a checkpoint, in a workspace, a branch and a pull request of its own. Returns its id and its
/// parent.
pub fn fork(home: &Home, store: &mut SessionStore, id: &str) -> Result<(String, Parent), BeginError> {
    let found = Found::read(store, id)?;
    if let Some(reason) = found.unresumable {
        return Err(BeginError::NotResumable(reason));
    }
    let parent = Parent { session_id: found.session_id.clone(), checkpoint_id: Some(found.checkpoint_id.clone()) };
    Ok((fork_of(home, store, &found)?, parent))
}

fn fork_of(home: &Home, store: &mut SessionStore, found: &Found) -> Result<String, BeginError> {
    let summary = store.find(&found.session_id)?;
    let session_id = uuid::Uuid::now_v7().to_string();
    let mut state = found.state.clone();
    state.publication.branch = branch(&state.settings, &session_id);
    state.publication.pushed = None;
    state.publication.pull_request = None;
    state.publication.ci = None;
    // The call ran in another workspace. This one is as it was before the call.
    state.is_running = false;
    let is_published = matches!(state.phase, Phase::PullRequest | Phase::Ci | Phase::Succeeded);
    if is_published {
        // The branch of the fork is not pushed yet.
        state.phase = Phase::Push;
        state.outcome = None;
    } else if let Some(phase) = state.continuation() {
        state.phase = phase;
        state.outcome = None;
    }
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
    let recorder = recorder(home, &head, &Secrets::default(), false)?;
    let forked = StateTransition {
        from_state: Phase::Created.word().to_owned(),
        to_state: Phase::Paused.word().to_owned(),
        trigger: "forked".to_owned(),
        context: json!({ "session_id": found.session_id, "checkpoint_id": found.checkpoint_id }),
    };
    let forked = SessionEvent::captured(now, EventBody::StateTransition(forked));
    let start = checkpoint(&state, &found.messages, &found.snapshot, None).map_err(JournalError::from)?;
    recorder.record(vec![forked, start])?;
    recorder.finish(&head, LAST_RECORDS)?;
    Ok(session_id)
}

/// How long the question for a module of Python may take.
const DETECTION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// The time limit of a CI command without `--ci-timeout`.
const DEFAULT_CI_TIMEOUT: std::time::Duration = std::time::Duration::from_hours(1);

/// How long the last records may take to reach the ledger.
pub(super) const LAST_RECORDS: std::time::Duration = std::time::Duration::from_secs(10);

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
    snapshot: Snapshot,
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
    // One attempt: whether the model does it now, and not whether it does it at last.
    state.settings.limits.iterations = state.red_checks + 1;
    let opened = Opened { repository, workspace, head, last_state: Phase::Created.word().to_owned() };
    let mut begun = begin(trial, opened, state, found.messages.clone(), secrets, control, false)?;
    begun.run.patcher = patcher;
    Ok(begun)
}

/// The parts of a session that exist before its run.
struct Opened {
    repository: StoredRepository,
    workspace: Workspace,
    head: SessionHead,
    last_state: String,
}

fn begin<'a>(
    home: &Home,
    opened: Opened,
    state: RunState,
    messages: Vec<Value>,
    secrets: &Secrets,
    control: Control<'a>,
    continues: bool,
) -> Result<Begun<'a>, BeginError> {
    let Opened { repository, workspace, head, last_state } = opened;
    let settings = &state.settings;
    let model = ModelClient::new(ModelOptions {
        api_key: secrets.api_key.clone(),
        stream: settings.model.is_streaming,
        price: settings.model.price,
        ..ModelOptions::new(secrets.model_url(&settings.model)?, &settings.model.name)
    })?;
    let (private, api_key) = (home.private(&head.session_id), secrets.api_key.clone());
    let sandbox = Sandbox::detect(settings.sandbox)?;
    let tools = Tools::new(ToolOptions {
        supervisor: control.supervisor.clone(),
        policy: secrets.policy.clone(),
        // The `.git` of the workspace borrows its objects.
        readable: vec![repository.path().to_owned()],
        ..ToolOptions::new(workspace.folder(), private.clone(), sandbox)
    });
    let forge = forge(home, &state, secrets, &control)?;
    let options = SnapshotOptions {
        reference: format!("refs/counterproof/checkpoints/{}", head.session_id),
        include_ignored: settings.include_ignored.clone(),
        max_bytes: settings.max_snapshot_bytes,
    };
    let recorder = Arc::new(recorder(home, &head, secrets, continues)?);
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
            patcher: Patcher::default(),
        },
    })
}

fn recorder(
    home: &Home,
    head: &SessionHead,
    secrets: &Secrets,
    continues: bool,
) -> Result<SessionRecorder, BeginError> {
    let started = SessionRecorder::start(RecorderOptions {
        ledger: home.ledger.clone(),
        spool: home.spool.clone(),
        head: head.clone(),
        continues,
        // What is not stored could not be resumed.
        requires_store: true,
        secrets: secrets.masked.clone(),
        warn: Box::new(|_| {}),
    });
    started.map_err(|error| match error {
        RecordError::Running(session_id) => {
            let holder = home.spool.holder(&session_id);
            BeginError::Held { session_id, holder }
        }
        error => error.into(),
    })
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
            let folder = home.folder.join("forge").join(state.base.repository.as_str());
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
        target_file: None,
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
fn branch(settings: &Settings, session_id: &str) -> String {
    let task = settings.workflow.word().replace('_', "-");
    let end = session_id.len().saturating_sub(12);
    format!("counterproof/{task}-{}", session_id.get(end..).unwrap_or(session_id))
}

fn default_title(settings: &Settings) -> String {
    let text = settings.test.as_deref().or(settings.specification.as_deref()).unwrap_or_default();
    counterproof_artifact::one_line(text, 80)
}

fn coverage(settings: &Settings) -> Coverage {
    if settings.agent_command.is_some() {
        let partial = Share::Partial;
        return Coverage { llm_calls: partial, tool_calls: partial, files: partial, commands: partial };
    }
    Coverage { llm_calls: Share::All, tool_calls: Share::All, files: Share::All, commands: Share::All }
}

fn remove(home: &Home, session_id: &str) {
    // Nothing is lost: no work was done.
    let _ = std::fs::remove_dir_all(home.folder.join("sessions").join(session_id));
}

impl Begun<'_> {
    /// Ends the records of the session.
    pub fn finish(self, status: SessionStatus) -> Result<(), RecordError> {
        let ended_at = (status != SessionStatus::Running).then(Timestamp::now);
        let head = SessionHead { status, ended_at, ..self.head };
        drop(self.run);
        self.recorder.finish(&head, LAST_RECORDS).map(drop)
    }
}
