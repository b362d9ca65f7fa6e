//! `counterproof guard shim`: the guard of one MCP server that talks over standard input and output.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use clap::builder::PossibleValuesParser;
use counterproof_artifact::{Exit, with_causes};
use counterproof_guard::agent_run::{
    LEDGER, POLICY, RunConnection, TERMINATION, missing_run_variables, request_termination,
};
use counterproof_guard::cassette::{Cassette, OnMiss, Recording, RecordingError, Replay, ReplayError};
use counterproof_guard::identity::{RunIdentity, process_variable};
use counterproof_guard::policy::Policy;
use counterproof_guard::secrets::{
    self, BindingsError, Keychain, MASK, ResolvedSecrets, SecretSources, SecretStore, SecretValue, load_bindings,
};
use counterproof_guard::session::{OpenCallsEnd, RunMembership, Session, SessionOptions};
use counterproof_guard::stdio::{ReplayOptions, ShimError, ShimOptions, run_replay, run_shim};
use counterproof_ledger::event::{AgentClient, CallStatus, ErrorClass, RunStatus, Termination, Transport};
use counterproof_ledger::location::LedgerLocation;
use counterproof_redaction::Redactor;
use counterproof_safe_run::Signals;
use counterproof_store::line_log::LogError;
use serde_json::{Map, Value};

use super::event_recording::EventsArgs;
use super::policy_args::{self, PolicyArgs};
use super::warnings::{WarningSender, Warnings};
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::value_parsers::LedgerParser;

const NOT_STARTED: OpenCallsEnd =
    OpenCallsEnd { status: CallStatus::Error, class: ErrorClass::Unknown, message: "the server was not started" };

/// Guard an MCP server: decide about its tool calls, record them, and forward its messages.
///
/// Put this command in front of the command of a server, in the configuration of the client. Without `--policy`, every call is
/// allowed and recorded. Messages are forwarded byte for byte in both directions. The exceptions are refused calls, batches with
/// refused calls, and injected secrets, which are masked in what the server sends.
///
/// Exit code: the server's exit code, or 128 + N if signal N ended it. 1: a rule ended the run. 2: the policy or another option is
/// invalid; the server was not started. 3: the policy or another file cannot be read, the events cannot be recorded, or the server
/// cannot be started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the server, as in the configuration of the client
    #[arg(long, value_name = "NAME")]
    server_name: String,

    /// Client that starts the server. A more specific name in the variable `SUB_CLIENT` takes precedence
    #[arg(long, value_name = "CLIENT", value_parser = PossibleValuesParser::new(AgentClient::ALL.map(AgentClient::name)))]
    client: Option<String>,

    #[command(flatten)]
    policy: PolicyArgs,

    /// File that states which secrets the server receives in which variables
    #[arg(long, value_name = "FILE")]
    secrets: Option<Utf8PathBuf>,

    #[command(flatten)]
    events: EventsArgs,

    /// Record the answers of the server in this file, a cassette. An existing cassette of the server is continued
    #[arg(long, value_name = "FILE")]
    record: Option<Utf8PathBuf>,

    /// Answer from this cassette instead of the server
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<Utf8PathBuf>,

    /// What happens to requests that are not in the cassette
    #[arg(long, value_name = "ACTION", requires = "replay", default_value = "error")]
    on_miss: OnMissArg,

    /// Command of the server
    #[arg(last = true, required_unless_present = "replay", value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What happens to requests that are not in the cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OnMissArg {
    /// They are answered with an error. The server is not started
    Error,
    /// Tool calls that are not in the cassette, and all other requests, go to the server
    Forward,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    join_run_of_ancestors()?;
    // First, while this process has a single thread.
    let (signals, received) = Signals::pipe().map_err(CommandError::io)?;
    let taken = signals.take_from_process().map_err(CommandError::io)?;
    let policy = Arc::new(args.policy.load(streams)?);
    let replay = read_cassette(args, streams)?;
    let secrets = resolve_secrets(args, streams)?;
    let identity = identity(args, streams);
    let run = join_run(&args.server_name, &policy, &identity, streams);
    args.policy.warn_if_unused(&policy, &identity, &args.server_name, streams);
    let redactor = secrets::redactor(&secrets.redact).map_err(CommandError::usage)?;
    let traffic_redactor = traffic_redactor(&secrets)?;
    let missing_secret = missing_secret(&secrets);
    let recorder = args.events.start(&identity, streams)?;
    // Every failure until here leaves neither a cassette nor events. From the first event on, a run has an end.
    let cassette = match &args.record {
        // A server that is not started gets no cassette.
        Some(path) if missing_secret.is_none() => Some(record_cassette(path, args, &secrets)?),
        _ => replay,
    };
    let warnings = Warnings::start().map_err(CommandError::io)?;
    let session = Session::start(SessionOptions {
        server_name: args.server_name.clone(),
        transport: Transport::McpStdio,
        identity,
        policy,
        redactor,
        sink: recorder.sink(),
        warn: warnings.sender().into_function(),
        meta: meta(args),
        secrets: secrets.injections.clone(),
        run,
    });
    let session = Arc::new(session.map_err(CommandError::io)?);
    if let Some(error) = missing_secret {
        // Recorded as a run that failed: the ledger then shows why the client has no server.
        session.finish(RunStatus::Failed, NOT_STARTED);
        warnings.finish();
        recorder.finish(streams);
        return Err(error);
    }
    let sender = warnings.sender();
    let on_terminated = Box::new(move |termination: &Termination| end_run(termination, &sender));
    let result = match cassette.map(Arc::new) {
        Some(cassette) if !needs_server(&cassette) => {
            run_replay(ReplayOptions { cassette, session, signals: received, on_terminated })
                .map(exit_of_replay)
                .map_err(CommandError::io)
        }
        cassette => run_server(ShimOptions {
            command: &args.command,
            environment: environment_of_server(&secrets),
            secrets: traffic_redactor,
            cassette,
            session,
            signals: received,
            taken,
            on_terminated,
        }),
    };
    warnings.finish();
    recorder.finish(streams);
    result
}

/// Starts this program again with the variables of the run that a process above it has, if this one lacks them.
fn join_run_of_ancestors() -> Result<(), CommandError> {
    let variables = missing_run_variables();
    if variables.is_empty() {
        return Ok(());
    }
    // A new process image, since the variables of this one cannot be changed safely. The process stays the same.
    let program = std::env::current_exe().map_err(CommandError::io)?;
    let error = Command::new(program).args(std::env::args_os().skip(1)).envs(variables).exec();
    Err(CommandError::io(format!("cannot join the run of the agent: {error}")))
}

/// Joins the run of `guard run`, which then decides about the calls of the server.
pub(super) fn join_run(
    server_name: &str,
    policy: &Policy,
    identity: &RunIdentity,
    streams: &mut Streams,
) -> RunMembership {
    let Some(pipe) = process_variable(TERMINATION) else { return RunMembership::None };
    match RunConnection::join(Utf8Path::new(&pipe), server_name, policy, identity) {
        Ok(run) => RunMembership::Joined(run),
        Err(error) => {
            // The counters of the run would not have its calls.
            streams.warn(format_args!("cannot join the run of `guard run`: {error}"));
            RunMembership::Unreachable
        }
    }
}

fn identity(args: &Args, streams: &mut Streams) -> RunIdentity {
    let (identity, warnings) = RunIdentity::from_environment(process_variable);
    for warning in warnings {
        streams.warn(warning);
    }
    identity.with_client(AgentClient::ALL.into_iter().find(|client| args.client.as_deref() == Some(client.name())))
}

fn run_server(options: ShimOptions<'_>) -> Result<Exit, CommandError> {
    match run_shim(options) {
        Ok(end) if end.status == RunStatus::Terminated => Ok(Exit::Findings),
        Ok(end) => Ok(Exit::Forwarded(u8::try_from(end.server.exit_code()).unwrap_or(u8::MAX))),
        Err(ShimError::Start(error)) => Err(CommandError::io(error).hint("check the command after `--`")),
        Err(error @ ShimError::Setup(_)) => Err(CommandError::io(error)),
    }
}

/// Returns the changes of the server's environment: its secrets, and the removal of the variables of the guard.
fn environment_of_server(secrets: &ResolvedSecrets) -> BTreeMap<OsString, Option<OsString>> {
    let mut environment = secrets.environment();
    // The ledger can have the password of a database, and writing to the pipe of the first would end the run.
    for name in [TERMINATION, LEDGER, POLICY] {
        environment.insert(name.into(), None);
    }
    environment
}

/// Ends the run of `guard run`, if there is one.
fn end_run(termination: &Termination, warnings: &WarningSender) {
    let Some(path) = process_variable(TERMINATION) else { return };
    if let Err(error) = request_termination(Utf8Path::new(&path), termination) {
        warnings.send(&format!("cannot end the run: {error}"));
    }
}

const fn exit_of_replay(status: RunStatus) -> Exit {
    match status {
        RunStatus::Succeeded => Exit::Done,
        RunStatus::Cancelled => Exit::Interrupted,
        RunStatus::Terminated | RunStatus::Failed => Exit::Findings,
    }
}

fn read_cassette(args: &Args, streams: &mut Streams) -> Result<Option<Cassette>, CommandError> {
    let Some(path) = &args.replay else { return Ok(None) };
    let on_miss = match args.on_miss {
        OnMissArg::Error => OnMiss::Error,
        OnMissArg::Forward if args.command.is_empty() => {
            let error = CommandError::usage("`--on-miss forward` needs the command of the server");
            return Err(error.hint("add the command after `--`"));
        }
        OnMissArg::Forward => OnMiss::Forward,
    };
    let replay = Replay::read(path, on_miss).map_err(|error| match error {
        ReplayError::Read { .. } => {
            CommandError::io(error).hint("check the path of `--replay`, or record a cassette with `--record`")
        }
        ReplayError::Line { .. } => {
            CommandError::usage(error).hint("check the path of `--replay`, or record the cassette again")
        }
    })?;
    if let Some(recorded) = replay.other_server(&args.server_name) {
        let name = &args.server_name;
        streams.warn(format_args!(
            "the cassette `{path}` is of the server `{recorded}`, and not of `{name}`; check `--replay` and `--server-name`"
        ));
    }
    Ok(Some(Cassette::Replay(replay)))
}

/// Starts a cassette. Keys of known formats and the values of the secrets are masked in it.
fn record_cassette(path: &Utf8Path, args: &Args, secrets: &ResolvedSecrets) -> Result<Cassette, CommandError> {
    let redactor = Redactor::new(secrets.redact.iter().map(SecretValue::expose)).map_err(CommandError::usage)?;
    let recording = Recording::start(path, &args.server_name, redactor.with_mask(MASK));
    recording.map(Cassette::Record).map_err(|error| match error {
        RecordingError::NotCassette(_) | RecordingError::OtherServer { .. } => {
            CommandError::usage(error).hint("name a new file, or remove this one")
        }
        RecordingError::Write { source: LogError::Locked { .. }, .. } => CommandError::io(error)
            .hint("another shim records to this file; name a file of its own for each server process"),
        _ => CommandError::io(error),
    })
}

fn needs_server(cassette: &Cassette) -> bool {
    match cassette {
        Cassette::Record(_) => true,
        Cassette::Replay(replay) => replay.needs_server(),
    }
}

fn resolve_secrets(args: &Args, streams: &mut Streams) -> Result<ResolvedSecrets, CommandError> {
    let bindings = load_bindings(args.secrets.as_deref(), process_variable).map_err(|error| match error {
        BindingsError::Read { .. } => CommandError::io(error).hint("check that the path exists and is readable"),
        BindingsError::Invalid { .. } => CommandError::usage(error),
    })?;
    let store = SecretStore::from_environment(process_variable);
    let environment = std::env::vars_os().collect();
    let keychain = Keychain::of_system();
    let sources = SecretSources { environment: &environment, store: store.as_ref(), keychain: &keychain };
    let resolved = secrets::resolve(&bindings, &args.server_name, &sources);
    for warning in &resolved.warnings {
        streams.warn(with_causes(warning));
    }
    Ok(resolved)
}

/// Returns the redactor of what the server sends, if it has secrets.
fn traffic_redactor(secrets: &ResolvedSecrets) -> Result<Option<Redactor>, CommandError> {
    // Without secrets, the messages of the server are forwarded without a search.
    if secrets.redact.is_empty() {
        return Ok(None);
    }
    // Keys of known formats stay: a tool may return them on purpose.
    secrets::value_redactor(&secrets.redact).map(Some).map_err(CommandError::usage)
}

/// Returns the error about secrets without which the server must not start.
fn missing_secret(secrets: &ResolvedSecrets) -> Option<CommandError> {
    let (first, others) = secrets.errors.split_first()?;
    let mut message = with_causes(first);
    // All in one message, so that the user need not fix one after another.
    for other in others {
        message = format!("{message}; {}", with_causes(other));
    }
    let hint = "add the secret with `counterproof guard secrets add`, or set `\"optional\": true` in its binding";
    Some(CommandError::usage(message).hint(hint))
}

fn meta(args: &Args) -> Map<String, Value> {
    // The program only, because its arguments can contain secrets.
    let program = args.command.first().map(|program| program.to_string_lossy().into_owned());
    let mut meta = Map::new();
    meta.insert("server_name".to_owned(), args.server_name.clone().into());
    meta.insert("program".to_owned(), program.into());
    meta
}

/// The policy and the ledger of shims.
#[derive(Debug, clap::Args)]
pub(super) struct ShimSettings {
    /// Policy of the shims, a JSON or YAML file. Without it, every call is allowed and recorded
    #[arg(long, value_name = "FILE")]
    policy: Option<Utf8PathBuf>,

    /// Ledger of the shims: a SQLite file, or a `postgres://` URL [default: `$XDG_STATE_HOME/counterproof/ledger.db`]
    #[arg(long, value_name = "FILE|URL", value_parser = LedgerParser)]
    ledger: Option<LedgerLocation>,
}

impl ShimSettings {
    /// Returns the absolute path of the policy.
    pub(super) fn policy(&self) -> Result<Option<Utf8PathBuf>, CommandError> {
        let Some(path) = &self.policy else { return Ok(None) };
        // Only to validate it: with an invalid policy, no server would start.
        policy_args::load(path)?;
        absolute(path).map(Some)
    }

    pub(super) fn ledger(&self) -> Result<Option<LedgerLocation>, CommandError> {
        self.ledger.as_ref().map(absolute_ledger).transpose()
    }
}

/// Returns a ledger with an absolute path.
pub(crate) fn absolute_ledger(ledger: &LedgerLocation) -> Result<LedgerLocation, CommandError> {
    match ledger {
        LedgerLocation::SqliteFile(path) => Ok(LedgerLocation::SqliteFile(absolute(path)?)),
        ledger @ LedgerLocation::PostgreSql(_) => Ok(ledger.clone()),
    }
}

fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    // The shims run in other folders.
    let absolute =
        std::path::absolute(path).map_err(|error| CommandError::io(format!("cannot resolve `{path}`: {error}")))?;
    Utf8PathBuf::from_path_buf(absolute)
        .map_err(|_| CommandError::usage(format!("the folder of `{path}` is not valid UTF-8")))
}
