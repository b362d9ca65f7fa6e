//! Drives a run to its end, and prints its result.

use std::fmt::Write as _;
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::{Exit, harmless};
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_safe_run::{Cancellation, keep_exit_statuses};
use counterproof_sessions::recorder::SessionSpool;
use counterproof_sessions::session::SessionStatus;
use counterproof_sessions::store::SessionStore;
use counterproof_workflow::forge::ForgeError;
use counterproof_workflow::model::ApiKey;
use counterproof_workflow::run::{
    BeginError, Begun, CheckResult, Control, ForgeKind, Home, ModelSettings, Outcome, RunState, Secrets, Settings,
    Stopped, StorableUrl, WorkflowResult, result, status as workflow_status,
};
use counterproof_workflow::suite::TargetError;
use counterproof_workflow::tools::AgentPolicy;

use crate::command_error::CommandError;
use crate::commands::guard::{absolute_ledger, load_policy};
use crate::commands::ledger::{Place, failed as ledger_failed};
use crate::environment::secrets_of_environment;
use crate::resume_command::quoted;
use crate::signals::on_signal;
use crate::streams::{Streams, to_json};

/// What reaches a run from outside: signals, and requests to pause.
pub(crate) struct Outside {
    cancel: Cancellation,
    spool: SessionSpool,
}

impl Outside {
    /// Takes the signals of this process.
    pub(crate) fn new(place: &Place) -> Result<Self, CommandError> {
        keep_exit_statuses().map_err(CommandError::io)?;
        let cancel = Cancellation::default();
        let on_interrupt = cancel.clone();
        on_signal(move || on_interrupt.cancel()).map_err(CommandError::io)?;
        Ok(Self { cancel, spool: SessionSpool::new(place.spool.path()) })
    }
}

pub(crate) fn home(place: &Place) -> Result<Home, CommandError> {
    let spool = place.spool.path();
    let spool = camino::absolute_utf8(spool).map_err(CommandError::io)?;
    let name = spool.as_str().strip_suffix(".spool").unwrap_or(spool.as_str());
    let folder = format!("{name}.workspaces").into();
    Ok(Home { ledger: absolute_ledger(&place.location)?, spool: SessionSpool::new(&spool), folder })
}

pub(crate) fn control(outside: &Outside) -> Control<'_> {
    Control {
        cancel: outside.cancel.clone(),
        takes_pause: Box::new(|session_id| outside.spool.takes_pause(session_id)),
        progress: Box::new(|line| Streams::of_process().log(harmless(line))),
        supervisor: None,
    }
}

/// URLs with credentials, which are never stored.
#[derive(Default)]
pub(crate) struct WholeUrls {
    model: Option<String>,
    repository: Option<String>,
    masked: Vec<String>,
}

impl WholeUrls {
    /// Takes the URL of the model out of its settings.
    pub(crate) fn take_model(&mut self, model: &mut ModelSettings) {
        self.model = model.url.as_mut().and_then(|url| self.take(url));
        model.had_credentials = self.model.is_some();
    }

    pub(crate) fn take_repository(&mut self, source: &mut String) {
        self.repository = self.take(source);
    }

    pub(crate) fn model_has_query(&self) -> bool {
        self.model.as_ref().is_some_and(|url| url.contains('?'))
    }

    fn take(&mut self, url: &mut String) -> Option<String> {
        let StorableUrl { url: storable, removed, had_credentials } = StorableUrl::new(url);
        self.masked.extend(removed);
        let whole = std::mem::replace(url, storable);
        had_credentials.then_some(whole)
    }
}

pub(super) const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
const ANTHROPIC_BASE_URL: &str = "ANTHROPIC_BASE_URL";

/// Returns the base URL that a variable names.
pub(super) fn base_url(name: &str) -> Option<String> {
    process_variable(name).map(|url| url.trim().to_owned()).filter(|url| !url.is_empty())
}

/// Returns the servers of an agent command without a model URL.
fn upstreams(settings: &Settings, masked: &mut Vec<String>) -> Result<[Option<String>; 2], CommandError> {
    if settings.agent_command.is_none() || settings.model.url.is_some() {
        return Ok([None, None]);
    }
    let [openai, anthropic] = [OPENAI_BASE_URL, ANTHROPIC_BASE_URL].map(|name| {
        let Some(url) = base_url(name) else { return Ok(None) };
        let StorableUrl { removed, had_credentials, .. } = StorableUrl::new(&url);
        masked.extend(removed);
        if had_credentials && url.contains('?') {
            let error = format!("the agent of `--agent-cmd` would see the key in the query of `{name}`");
            return Err(CommandError::usage(error).hint("set the key in `OPENAI_API_KEY`"));
        }
        Ok(Some(url))
    });
    Ok([openai?, anthropic?])
}

/// Reads from the environment what is never stored.
pub(crate) fn secrets(settings: &Settings, urls: WholeUrls) -> Result<Secrets, CommandError> {
    let key = process_variable("OPENAI_API_KEY");
    let api_key = key.as_deref().and_then(ApiKey::new);
    let github_token = process_variable("GITHUB_TOKEN");
    let mut masked = secrets_of_environment();
    masked.extend(urls.masked);
    masked.extend([key, github_token.clone()].into_iter().flatten());
    let upstreams = upstreams(settings, &mut masked)?;
    let policy = match &settings.policy {
        Some(path) => Some(agent_policy(path.as_str().into())?),
        None => None,
    };
    Ok(Secrets {
        api_key,
        github_token: github_token.map(Into::into),
        github_url: process_variable("GITHUB_API_URL"),
        model_url: urls.model,
        upstreams,
        repository_url: urls.repository,
        masked,
        policy,
    })
}

fn agent_policy(path: &Utf8Path) -> Result<AgentPolicy, CommandError> {
    let (identity, _) = RunIdentity::from_environment(process_variable);
    Ok(AgentPolicy { policy: Arc::new(load_policy(path)?), identity })
}

/// Runs a workflow until it stops.
pub(crate) fn drive(
    mut begun: Begun<'_>,
    home: &Home,
    place: &Place,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let session_id = begun.head.session_id.clone();
    streams.log(format_args!("session: {session_id}"));
    let stopped = begun.run.drive();
    let state = begun.run.state().clone();
    let status = match &stopped {
        Ok(stopped) => workflow_status(&state, stopped),
        Err(_) => SessionStatus::Interrupted,
    };
    begun.finish(status).map_err(CommandError::io)?;
    if status == SessionStatus::Completed {
        // The checkpoints have all files.
        home.remove(&session_id);
    }
    match stopped {
        Ok(stopped) => end(home, &session_id, &state, &stopped, place, streams),
        Err(error) => {
            let result = stored_result(home, &session_id, &state, &Stopped::Interrupted, place);
            let go_on = || Some(format!("go on with `{}`", resume_command(&session_id, place)));
            let hint = result.map_or_else(|_| go_on(), |result| next_step(&result, place));
            let error = CommandError::io(error);
            Err(if let Some(hint) = hint { error.hint(hint) } else { error })
        }
    }
}

/// Returns what a person may do with a session that has stopped.
fn next_step(result: &WorkflowResult, place: &Place) -> Option<String> {
    if let Some(command) = &result.session.resume {
        return Some(format!("go on with `{command}`"));
    }
    let earlier = result.session.earlier.as_ref().filter(|_| result.error.is_some())?;
    Some(format!("an earlier checkpoint can be resumed: `{}`", resume_command(earlier, place)))
}

fn resume_command(session_id: &str, place: &Place) -> String {
    format!("counterproof session resume {session_id}{}", place.option())
}

fn can_go_on(state: &RunState, stopped: &Stopped) -> bool {
    *stopped != Stopped::Ended || (state.outcome != Some(Outcome::Success) && state.can_continue())
}

/// Returns the command that fetches the branch of a local pull request into a clone, and shows its change.
fn fetch_command(home: &Home, state: &RunState) -> Option<String> {
    let pull_request = state.publication.pull_request.as_ref().filter(|_| state.settings.forge == ForgeKind::Local)?;
    let repository = home.forge_repository(&state.base.repository);
    let words = [repository.as_str(), pull_request.head.as_str()].map(quoted);
    Some(format!("git fetch {} {} && git diff HEAD...FETCH_HEAD", words[0], words[1]))
}

/// Prints the result of a run. Returns its exit code.
pub(crate) fn end(
    home: &Home,
    session_id: &str,
    state: &RunState,
    stopped: &Stopped,
    place: &Place,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let result = stored_result(home, session_id, state, stopped, place)?;
    if let Some(next) = next_step(&result, place) {
        streams.log(next);
    }
    if place.is_json {
        streams.print_document(&to_json(&result))?;
    } else {
        streams.print_document(&harmless(&text(&result)))?;
    }
    Ok(match stopped {
        Stopped::Paused | Stopped::Interrupted => Exit::Interrupted,
        Stopped::Ended if result.error.is_none() => Exit::Done,
        Stopped::Ended => Exit::Findings,
    })
}

fn stored_result(
    home: &Home,
    session_id: &str,
    state: &RunState,
    stopped: &Stopped,
    place: &Place,
) -> Result<WorkflowResult, CommandError> {
    let ledger = counterproof_ledger::open(&place.location).map_err(ledger_failed)?;
    let mut store = SessionStore::new(ledger).map_err(ledger_failed)?;
    let mut result = result(home, &mut store, session_id, state, stopped).map_err(CommandError::io)?;
    let is_resumable = result.session.is_resumable && can_go_on(state, stopped);
    result.session.resume = is_resumable.then(|| resume_command(session_id, place));
    result.session.fetch = fetch_command(home, state);
    Ok(result)
}

/// Rows of new failures. The JSON has all of them.
const MAX_FAILURES: usize = 20;

fn text(result: &WorkflowResult) -> String {
    let word = |check: Option<CheckResult>| match check {
        Some(CheckResult::Pass) => "pass",
        Some(CheckResult::Fail) => "fail",
        None => "not run",
    };
    let mut text = String::new();
    let _ = match &result.error {
        None => writeln!(text, "{}: success", result.workflow.word()),
        Some(error) => writeln!(text, "{}: {}", result.workflow.word(), error.message),
    };
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<14} {value}");
    };
    row("pull request", result.pr_url.as_deref().unwrap_or("none"));
    if let Some(command) = &result.session.fetch {
        row("fetch it", command);
    }
    row("CI", word(result.ci_status));
    if let Some(tests) = &result.test_results {
        row("target test", word(tests.target_test));
        let is_pass = tests.regression_tests == Some(CheckResult::Pass);
        row("all tests", if is_pass { "no new failures" } else { word(tests.regression_tests) });
        let failures = tests.new_failures.as_deref().unwrap_or_default();
        for test in failures.iter().take(MAX_FAILURES) {
            row("new failure", test);
        }
        if failures.len() > MAX_FAILURES {
            row("new failure", &format!("and {} more", failures.len() - MAX_FAILURES));
        }
    }
    if let Some(changes) = &result.session.uncommitted {
        for path in [&changes.files_created, &changes.files_modified, &changes.files_deleted].into_iter().flatten() {
            row("not committed", path);
        }
    }
    if let Some(made) = &result.implementation {
        for path in &made.files_created {
            row("created", path);
        }
        for path in &made.files_modified {
            row("modified", path);
        }
        // Without a commit, the lines are those of the files above.
        let lines = result
            .session
            .uncommitted
            .as_ref()
            .map_or((made.lines_added, made.lines_removed), |changes| (changes.lines_added, changes.lines_removed));
        if lines != (0, 0) {
            row("lines", &format!("+{} -{}", lines.0, lines.1));
        }
        row("tests added", &made.tests_added.to_string());
    }
    for warning in &result.session.warnings {
        row("warning", warning);
    }
    let capture = &result.capture;
    row("session", &capture.session_id);
    row(
        "captured",
        &format!(
            "{} model calls, {} tool calls, {} tokens, {} checkpoints, {:.1} s",
            capture.total_llm_calls,
            capture.total_tool_calls,
            capture.total_tokens,
            capture.checkpoints,
            capture.duration_seconds
        ),
    );
    text
}

/// Converts an error of the start or the resume of a run.
pub(crate) fn failed(error: BeginError, place: &Place) -> CommandError {
    let option = place.option();
    match error {
        BeginError::Store(error) => ledger_failed(error),
        error @ BeginError::Interrupted => CommandError::new(Exit::Interrupted, error),
        error @ BeginError::Target(TargetError::Log { .. }) => CommandError::io(error),
        BeginError::Target(error @ (TargetError::Url(_) | TargetError::NoFailedTest(_) | TargetError::NoFile(_))) => {
            CommandError::usage(error)
        }
        error @ (BeginError::NoCommand(_) | BeginError::Target(_)) => {
            CommandError::usage(error).hint("give the commands with `--test-cmd 'CMD {test}'` and `--suite-cmd CMD`")
        }
        error @ BeginError::Unknown(_) => {
            CommandError::usage(error).hint(format!("list the sessions with `counterproof session list{option}`"))
        }
        error @ BeginError::Held { .. } => CommandError::usage(error)
            .hint("wait for it, pause it with `counterproof session pause`, or fork a checkpoint"),
        error @ BeginError::Forge(ForgeError::NoBase(_) | ForgeError::UnpushedBase { .. }) => {
            CommandError::usage(error).hint("push the base branch first, or start from another one with `--branch`")
        }
        BeginError::NotResumable { ref session_id, .. } | BeginError::Final { ref session_id, .. } => {
            let list = format!("counterproof session checkpoints {session_id}{option}");
            CommandError::usage(error).hint(format!("resume an earlier checkpoint: `{list}` lists them"))
        }
        error @ (BeginError::NoCheckpoint(_)
        | BeginError::NoState(_)
        | BeginError::Sandbox(_)
        | BeginError::Model(_)
        | BeginError::NoBranch
        | BeginError::SecretCommand(_)
        | BeginError::SecretName(_)
        | BeginError::Continued(_)
        | BeginError::ModelUrl(_)
        | BeginError::NoModel(_)
        | BeginError::NoToken) => CommandError::usage(error),
        error => CommandError::io(error),
    }
}
