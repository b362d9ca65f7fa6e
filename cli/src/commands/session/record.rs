//! `counterproof session record`: runs an agent, and records its model calls, tool calls, commands and file changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::PipeReader;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, with_causes};
use counterproof_guard::agent_run::{AgentEnd, AgentRunError, RunSettings};
use counterproof_guard::http::UpstreamUrl;
use counterproof_guard::identity::process_variable;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::find_run;
use counterproof_ledger::store::StoreError;
use counterproof_safe_run::{Ending, Signals, TakenSignals};
use counterproof_sessions::observe::WorkingTree;
use counterproof_sessions::proxy::{
    ANTHROPIC_DEFAULT, ListeningProxy, OPENAI_DEFAULT, ProxyCounts, ProxyOptions, Records,
};
use counterproof_sessions::recorder::{RecordError, RecorderOptions, SessionRecorder};
use counterproof_sessions::recording::{AgentOutcome, SessionRecording, Warn};
use counterproof_sessions::session::{Coverage, Origin, SessionHead, SessionStatus, Share};
use counterproof_sessions::store::SessionStore;
use jiff::Timestamp;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::opened::spool;
use crate::command_error::CommandError;
use crate::commands::guard::{GuardedAgent, UNGUARDED_HINT, absolute_ledger, exit_of, report};
use crate::commands::ledger::{Place, failed};
use crate::environment::secrets_of_environment;
use crate::streams::Streams;

const OPENAI: &str = "OPENAI_BASE_URL";
const ANTHROPIC: &str = "ANTHROPIC_BASE_URL";

/// Variables that name a proxy for requests to the loopback address.
const OTHER_PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The folder in which `safe-run` records commands.
const COMMANDS: &str = "SAFE_RUN_RECORD_DIR";

/// Whether `safe-run` masks keys of known formats in its records.
const REDACT: &str = "SAFE_REDACT";

/// How long the last records may take to reach the ledger. What is left waits in a file.
const LAST_RECORDS: Duration = Duration::from_secs(10);

const MAX_GRACE: u64 = 24 * 60 * 60;

/// Run an agent and record its whole session: model calls, tool calls, commands and file changes.
///
/// The agent runs in the foreground, with its own input, output and exit code. A proxy on the loopback address forwards its model
/// requests unchanged to the servers that `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` name, or to the public ones. The agent must
/// honour these two variables. Calls of MCP servers that start through `guard shim`, commands that run below `safe-run`, and
/// file changes of a git working tree are recorded too. Secrets are masked in what is stored.
///
/// Exit code: the agent's exit code, or 128 + N if signal N ended it. 1: a rule of a policy ended the run. 2: invalid arguments, or
/// an id that the ledger already has; the agent was not started. 3: the agent cannot be started, or, with `--require-record`, the
/// session cannot be recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the session, which the ledger does not have yet [default: a new one]
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,

    /// Title of the session
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// File or folder whose changes are recorded although git ignores it; may be repeated
    #[arg(long, value_name = "PATH")]
    include: Vec<Utf8PathBuf>,

    /// Do not start the agent without a ledger, and refuse model requests that cannot be recorded
    #[arg(long)]
    require_record: bool,

    /// Seconds that the agent may run after it was asked to end, before it is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=MAX_GRACE))]
    grace: u64,

    /// Command of the agent
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    // First, while this process has a single thread.
    let (signals, received) = Signals::pipe().map_err(CommandError::io)?;
    let taken = signals.take_from_process().map_err(CommandError::io)?;
    let ledger = absolute_ledger(&place.location)?;
    let settings = settings(args, &ledger)?;
    let upstreams = [upstream(OPENAI, OPENAI_DEFAULT)?, upstream(ANTHROPIC, ANTHROPIC_DEFAULT)?];
    check_ledger(args, &settings.run_id, &ledger, streams)?;
    let head = head(args, &settings.run_id);
    let recording = Recording::start(args, &head, place, ledger.clone(), upstreams);
    match recording {
        Ok(recording) => recording.run_agent(args, head, settings, &ledger, (signals, received, taken), streams),
        Err(error) if args.require_record || error.exit() == Exit::Usage => {
            Err(error.hint("the agent was not started"))
        }
        Err(error) => {
            streams.warn(format_args!("the session is not recorded: {}", error.message()));
            let agent = agent(args, settings, BTreeMap::new(), Some(&ledger), (signals, received, taken));
            end(agent.run(streams), streams)
        }
    }
}

/// The proxy and the recorder, before the agent starts.
struct Recording {
    session: Arc<SessionRecording>,
    is_git: bool,
    environment: BTreeMap<OsString, OsString>,
    commands: Utf8PathBuf,
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    proxy: thread::JoinHandle<ProxyCounts>,
}

impl Recording {
    fn start(
        args: &Args,
        head: &SessionHead,
        place: &Place,
        ledger: LedgerLocation,
        [openai, anthropic]: [UpstreamUrl; 2],
    ) -> Result<Self, CommandError> {
        let warn: Warn = Arc::new(|text: &str| Streams::of_process().warn(text));
        let spool = spool(place);
        let commands = spool.commands_folder(&head.session_id);
        let to_user = warn.clone();
        let tree = working_tree(&args.include, &ledger, spool.path(), &warn);
        let is_git = tree.as_ref().is_some_and(WorkingTree::is_git);
        let mut head = head.clone();
        if is_git {
            // Known before anything is seen: also of a session whose recorder is killed.
            head.coverage.files = Share::Partial;
        }
        let recorder = SessionRecorder::start(RecorderOptions {
            ledger,
            spool,
            head: head.clone(),
            continues: false,
            held: None,
            requires_store: args.require_record,
            secrets: secrets_of_environment(),
            warn: Box::new(move |text| to_user(text)),
        });
        let recorder = Arc::new(recorder.map_err(|error| match error {
            // As an id that the ledger already has.
            RecordError::Running(_) => CommandError::usage(error),
            error => CommandError::io(error),
        })?);
        let program = args.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
        let session = SessionRecording::start(recorder, &program, tree, commands.clone(), warn);
        let session = Arc::new(session.map_err(CommandError::io)?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(CommandError::io)?;
        let options = ProxyOptions {
            session_id: head.session_id.clone(),
            records: session.clone() as Arc<dyn Records>,
            requires_records: args.require_record,
            openai,
            anthropic,
            key: None,
            now: Timestamp::now,
        };
        let listening = runtime.block_on(ListeningProxy::bind(options)).map_err(CommandError::io)?;
        let environment = BTreeMap::from([
            (OPENAI.into(), listening.openai_base_url().into()),
            (ANTHROPIC.into(), listening.anthropic_base_url().into()),
        ]);
        let (stop, stopped) = oneshot::channel();
        let handle = runtime.handle().clone();
        let serve = move || handle.block_on(listening.serve(async { drop(stopped.await) }));
        let proxy = thread::Builder::new().name("proxy".to_owned()).spawn(serve).map_err(CommandError::io)?;
        Ok(Self { session, is_git, environment, commands, runtime, stop, proxy })
    }

    fn run_agent(
        self,
        args: &Args,
        head: SessionHead,
        settings: RunSettings,
        ledger: &LedgerLocation,
        signals: (Signals, PipeReader, TakenSignals),
        streams: &mut Streams,
    ) -> Result<Exit, CommandError> {
        let Self { session, is_git, mut environment, commands, runtime, stop, proxy } = self;
        streams.log(format_args!("session: {}", head.session_id));
        for (name, value) in &environment {
            streams.log(format_args!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        }
        environment.extend(exceptions_from_other_proxies(|name| std::env::var_os(name)));
        let is_unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
        if is_unset(COMMANDS) {
            environment.insert(COMMANDS.into(), commands.as_str().into());
        } else {
            // A folder that the user has chosen stays.
            streams.warn(format_args!(
                "commands below `safe-run` are not records of the session, because `{COMMANDS}` is set"
            ));
        }
        if is_unset(REDACT) {
            // The records are on the disk for a moment.
            environment.insert(REDACT.into(), "1".into());
        }
        let result = agent(args, settings, environment, Some(ledger), signals).run(streams);
        let _ = stop.send(());
        let counts = proxy.join().unwrap_or_default();
        runtime.shutdown_timeout(Duration::from_secs(1));
        let outcome = outcome(&result);
        match session.finish(head, is_git, counts, &outcome, LAST_RECORDS) {
            Ok(summary) if summary.has_waiting => streams.warn("records of the session wait for the ledger"),
            Ok(_) => {}
            Err(error) => streams.warn(format_args!("the session is incomplete: {}", with_causes(&error))),
        }
        // Only an empty folder is removed.
        let _ = std::fs::remove_dir(&commands);
        if counts.model_requests == 0 {
            streams.log(format_args!(
                "no model requests came through the proxy: the agent may ignore {OPENAI} and {ANTHROPIC}"
            ));
        }
        if counts.unrecorded_requests > 0 {
            streams.log(format_args!("other requests, which are not records: {}", counts.unrecorded_requests));
        }
        end(result, streams)
    }
}

fn agent<'a>(
    args: &'a Args,
    settings: RunSettings,
    environment: BTreeMap<OsString, OsString>,
    ledger: Option<&'a LedgerLocation>,
    signals: (Signals, PipeReader, TakenSignals),
) -> GuardedAgent<'a> {
    let grace = Duration::from_secs(args.grace);
    GuardedAgent { command: &args.command, settings, environment, ledger, grace, signals }
}

type AgentResult = Result<(AgentEnd, Option<String>), AgentRunError>;

fn end(result: AgentResult, streams: &mut Streams) -> Result<Exit, CommandError> {
    let (end, unguarded) = result.map_err(|error| match error {
        AgentRunError::Start(error) => CommandError::io(error).hint("check the command after `--`"),
        error @ AgentRunError::Pipe(_) => CommandError::io(error),
    })?;
    report(&end, streams);
    if let Some(problem) = unguarded {
        streams.warn(format_args!("{problem}\n{UNGUARDED_HINT}"));
    }
    Ok(exit_of(&end))
}

fn outcome(result: &AgentResult) -> AgentOutcome {
    match result {
        Ok((end, _)) => {
            let is_well = end.ending.is_success() && end.termination.is_none() && !end.is_unguarded;
            let context = match end.ending {
                Ending::Exited(code) => json!({ "exit_code": code }),
                Ending::Killed(signal) => json!({ "signal": signal }),
            };
            let status = if is_well { SessionStatus::Completed } else { SessionStatus::Failed };
            AgentOutcome { status, context, guard_calls: end.calls.calls_total }
        }
        Err(error) => AgentOutcome {
            status: SessionStatus::Failed,
            context: json!({ "error": with_causes(error) }),
            guard_calls: 0,
        },
    }
}

fn head(args: &Args, session_id: &str) -> SessionHead {
    SessionHead {
        session_id: session_id.to_owned(),
        title: args.title.clone(),
        origin: Origin::Record,
        workflow: None,
        status: SessionStatus::Running,
        started_at: Timestamp::now(),
        ended_at: None,
        parent: None,
        coverage: Coverage::default(),
    }
}

fn settings(args: &Args, ledger: &LedgerLocation) -> Result<RunSettings, CommandError> {
    let run_id = match &args.session_id {
        Some(id) if id.is_empty() || id.len() > 256 || id.chars().any(|it| it.is_control() || it.is_whitespace()) => {
            let error = "the id of a session has 1 to 256 bytes, and neither white space nor control characters";
            return Err(CommandError::usage(error).hint("choose another id with `--session-id`"));
        }
        Some(id) => id.clone(),
        None => uuid::Uuid::now_v7().to_string(),
    };
    Ok(RunSettings {
        run_id,
        // What is not stated is what the variables of this process state.
        agent_id: None,
        client: process_variable("SUB_CLIENT").unwrap_or_else(|| "custom".to_owned()),
        env: process_variable("SUB_ENV").unwrap_or_else(|| "dev".to_owned()),
        principal: None,
        workload: None,
        policy: None,
        ledger: Some(ledger.expose().to_owned()),
    })
}

/// Rejects an id that the ledger already has, and a ledger that cannot be used if it is required.
fn check_ledger(args: &Args, id: &str, ledger: &LedgerLocation, streams: &mut Streams) -> Result<(), CommandError> {
    let opened = if args.require_record {
        counterproof_ledger::open_or_create(ledger)
    } else {
        match counterproof_ledger::open(ledger) {
            Err(StoreError::Missing { .. }) => return Ok(()),
            opened => opened,
        }
    };
    let is_known = opened.and_then(|mut store| {
        let is_run = args.session_id.is_some() && find_run(store.as_mut(), id)?.is_some();
        Ok(SessionStore::new(store)?.find(id)?.is_some() || is_run)
    });
    match is_known {
        Ok(false) => Ok(()),
        Ok(true) => Err(CommandError::usage(format!("the ledger `{ledger}` already has the session `{id}`"))
            .hint("choose another id with `--session-id`, or omit the option for a new id; the agent was not started")),
        Err(error) if args.require_record => {
            Err(CommandError::io(failed(error).message())
                .hint("the agent was not started, because of `--require-record`"))
        }
        Err(error) => {
            streams.warn(format_args!("cannot check whether the session `{id}` is new: {}", with_causes(&error)));
            Ok(())
        }
    }
}

fn upstream(name: &str, default: &str) -> Result<UpstreamUrl, CommandError> {
    let value = process_variable(name).filter(|value| !value.trim().is_empty());
    value.as_deref().map_or(default, str::trim).parse().map_err(|error| {
        CommandError::usage(format!("variable `{name}`: {error}")).hint(format!("correct or unset `{name}`"))
    })
}

/// The agent must reach this proxy also if its environment names another one.
fn exceptions_from_other_proxies(lookup: impl Fn(&str) -> Option<OsString>) -> BTreeMap<OsString, OsString> {
    const ADDRESS: &str = "127.0.0.1";
    let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
    if OTHER_PROXIES.into_iter().all(|name| lookup(name).is_none()) {
        return BTreeMap::new();
    }
    let exceptions = [("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")].map(|(name, other)| {
        // Programs read one of the two, so a new one has what the other has.
        let mut value = lookup(name).or_else(|| lookup(other)).unwrap_or_default();
        // Several programs accept `*` only alone.
        if !value.to_string_lossy().split(',').any(|host| matches!(host.trim(), "*" | ADDRESS)) {
            value.push(if value.is_empty() { "" } else { "," });
            value.push(ADDRESS);
        }
        (name.into(), value)
    });
    BTreeMap::from(exceptions)
}

fn working_tree(
    include: &[Utf8PathBuf],
    ledger: &LedgerLocation,
    spool: &Utf8Path,
    warn: &Warn,
) -> Option<WorkingTree> {
    let folder = std::env::current_dir().ok()?;
    let folder = Utf8Path::from_path(&folder)?;
    // The recorder's own files are not changes of the agent.
    let mut excluded = vec![folder.join(spool.parent()?)];
    if let LedgerLocation::SqliteFile(path) = ledger {
        excluded.extend(["", "-wal", "-shm", "-journal"].map(|end| Utf8PathBuf::from(format!("{path}{end}"))));
    }
    let tree = WorkingTree::open(folder, include, &excluded);
    tree.unwrap_or_else(|error| {
        warn(&format!("changes of files are not recorded: {}", with_causes(&error)));
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions(environment: &[(&str, &str)]) -> Vec<(String, String)> {
        let lookup = |name: &str| environment.iter().find(|it| it.0 == name).map(|it| it.1.into());
        let text = |value: OsString| value.into_string().unwrap();
        exceptions_from_other_proxies(lookup).into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn the_agent_reaches_the_proxy_although_its_environment_names_another_one() {
        assert_eq!(exceptions(&[]), []);
        assert_eq!(exceptions(&[("NO_PROXY", "a.example"), ("HTTP_PROXY", "")]), []);
        let both = |upper: &str, lower: &str| {
            [("NO_PROXY", upper), ("no_proxy", lower)].map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        for name in OTHER_PROXIES {
            assert_eq!(exceptions(&[(name, "http://proxy:8080")]), both("127.0.0.1", "127.0.0.1"));
        }
        let proxy = ("http_proxy", "http://proxy:8080");
        let added = "a.example,127.0.0.1";
        assert_eq!(exceptions(&[proxy, ("NO_PROXY", "a.example")]), both(added, added));
        assert_eq!(exceptions(&[proxy, ("no_proxy", "a.example"), ("NO_PROXY", "*")]), both("*", added));
        let known = "localhost, 127.0.0.1";
        assert_eq!(exceptions(&[proxy, ("no_proxy", known)]), both(known, known));
    }
}
