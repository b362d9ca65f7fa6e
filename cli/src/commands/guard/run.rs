//! `counterproof guard run`: runs an agent as one run, and records its start and its end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, PipeReader};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use clap::builder::PossibleValuesParser;
use counterproof_artifact::{CaseId, Exit, one_line, with_causes};
use counterproof_evaluator::text;
use counterproof_export::ledger::CASE_LABEL;
use counterproof_guard::agent_run::{
    AgentEnd, AgentRun, AgentRunError, POLICY, RunSettings, TERMINATION, agent_ended, agent_started, run_agent,
};
use counterproof_guard::identity::{RUN_ID, RunIdentity, WORKLOAD, process_variable, workload_with_label};
use counterproof_guard::policy::Policy;
use counterproof_ledger::event::{AgentClient, EventBody, WorkingEnvironment};
use counterproof_ledger::location::LedgerLocation;
use counterproof_safe_run::{Signals, TakenSignals};

use super::event_recording::{EventRecording, RunLedger};
use super::policy_args;
use super::shim::ShimSettings;
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::value_parsers::new_case_id;

/// Characters of the name of a server in a message.
const MAX_NAME: usize = 60;

const MAX_GRACE: u64 = 24 * 60 * 60;

/// Run an agent: all tool calls of all servers below it belong to one run.
///
/// Every `guard shim` that the agent starts, directly or through a client, has the same run id. It also has the identity, policy
/// and ledger of the run, unless its own options state others. The agent runs in the foreground. At the end, all processes that it
/// left behind are killed. A `TERMINATE_RUN` rule also stops the agent. The ledger records its start and end.
///
/// Exit code: the agent's exit code, or 128 + N if signal N ended it. 1: a rule ended the run, or no server used the given policy.
/// 2: invalid arguments or policy, or an id that the ledger already has; the agent was not started. 3: the policy cannot be read,
/// or the agent cannot be started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the run, which the ledger does not have yet [default: the id in `SUB_RUN_ID`, or a new one]
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Name of the agent
    #[arg(long, env = "SUB_AGENT_ID", value_name = "NAME")]
    agent: Option<String>,

    /// Kind of program that the agent runs in
    #[arg(long, value_name = "CLIENT", default_value = "custom", value_parser = PossibleValuesParser::new(AgentClient::ALL.map(AgentClient::name)))]
    client: String,

    /// Environment that the agent works in
    #[arg(long, value_name = "ENV", default_value = "dev", value_parser = PossibleValuesParser::new(WorkingEnvironment::ALL.map(WorkingEnvironment::name)))]
    env: String,

    /// Person or service on whose behalf the agent works
    #[arg(long, env = "SUB_PRINCIPAL", value_name = "NAME")]
    principal: Option<String>,

    /// Case ID of the run: adds the label `case_id` to the workload, by which `export-run --ledger` names the case
    #[arg(long, value_name = "ID", value_parser = new_case_id)]
    case: Option<CaseId>,

    #[command(flatten)]
    settings: ShimSettings,

    /// Print the id of the run to standard error before the agent starts
    #[arg(long)]
    print_run_id: bool,

    /// Seconds that the agent may run after it was asked to end, before it is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=MAX_GRACE))]
    grace: u64,

    /// Command of the agent
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    // First, while this process has a single thread.
    let (signals, received) = Signals::pipe().map_err(CommandError::io)?;
    let taken = signals.take_from_process().map_err(CommandError::io)?;
    let settings = settings(args)?;
    let ledger = RunLedger::new(args.settings.ledger()?)
        .inspect_err(|error| streams.warn(format_args!("the run is not recorded: {}", error.message())))
        .ok();
    if let Some(ledger) = &ledger {
        // Before the agent starts: the calls of two agents in one run cannot be separated afterwards.
        reject_known(args, &settings.run_id, ledger, streams)?;
    }
    if args.print_run_id {
        streams.log(format_args!("run: {}", settings.run_id));
    }
    let run_id = settings.run_id.clone();
    let agent = GuardedAgent {
        command: &args.command,
        settings,
        environment: BTreeMap::new(),
        ledger: ledger.as_ref().map(RunLedger::location),
        grace: Duration::from_secs(args.grace),
        signals: (signals, received, taken),
    };
    let (end, unguarded) = agent.run(streams).map_err(|error| not_started(error, args.run.as_deref()))?;
    report(&end, streams);
    if let Some(ledger) = &ledger {
        ledger.summarize(&run_id, streams);
    }
    if let Some(problem) = unguarded {
        streams.warn(format_args!("{problem}\n{UNGUARDED_HINT}"));
    }
    Ok(exit_of(&end))
}

/// An agent that runs as one run, whose start and end the ledger records.
pub(crate) struct GuardedAgent<'a> {
    pub(crate) command: &'a [OsString],
    pub(crate) settings: RunSettings,
    /// Further variables of the agent.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// `None` if the run is not recorded.
    pub(crate) ledger: Option<&'a LedgerLocation>,
    pub(crate) grace: Duration,
    pub(crate) signals: (Signals, PipeReader, TakenSignals),
}

impl GuardedAgent<'_> {
    /// Runs the agent to its end. Also returns why calls of it may have been without the given policy.
    pub(crate) fn run(self, streams: &mut Streams) -> Result<(AgentEnd, Option<String>), AgentRunError> {
        let given = given_policy(&self.settings);
        // Only for the recorded event: without a valid policy, the shims do not start.
        let policy = given.clone().unwrap_or_else(Policy::observe_only);
        let start = |ledger| AgentRecording::start(self.command, &self.settings, &policy, ledger, streams);
        let recording = self.ledger.and_then(start);
        let started = Instant::now();
        let mut end = run_agent(AgentRun {
            command: self.command.to_vec(),
            settings: self.settings,
            environment: self.environment,
            has_terminal: std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
            grace: self.grace,
            signals: self.signals,
            supervisor: None,
        });
        let unguarded = match (&end, &given) {
            (Ok(end), Some(policy)) => unguarded(end, &policy.reference().policy_hash),
            _ => None,
        };
        if let Ok(end) = &mut end {
            end.is_unguarded = unguarded.is_some();
        }
        if let Some(recording) = recording {
            // Before an error of the start is returned, which is the end of the run in the ledger.
            recording.finish(&end, started.elapsed(), streams);
        }
        Ok((end?, unguarded))
    }
}

/// Returns the exit code of an agent, or that its policy was not met.
pub(crate) fn exit_of(end: &AgentEnd) -> Exit {
    match end.termination {
        Some(_) => Exit::Findings,
        // A call that the policy refuses may have succeeded.
        None if end.is_unguarded && end.ending.is_success() => Exit::Findings,
        None => Exit::Forwarded(u8::try_from(end.ending.exit_code()).unwrap_or(u8::MAX)),
    }
}

pub(crate) const UNGUARDED_HINT: &str = "hint: put the guard in front of the servers with `counterproof guard import`. A client that starts them apart from the agent \
     must pass the variables\n      of the run; with the Python SDK: `StdioServerParameters(command=…, args=…, env=dict(os.environ))`";

/// Why calls of the agent may have been without the policy: no server used it, or a server used another one.
fn unguarded(end: &AgentEnd, policy_hash: &str) -> Option<String> {
    if end.refused > 0 {
        let servers = if end.refused == 1 { "server" } else { "servers" };
        return Some(format!(
            "{} {servers} could not join the run, so the policy of `--policy` may not count their calls; the run counts as failed",
            end.refused
        ));
    }
    if end.servers.is_empty() {
        return Some("no server of the agent used the policy of `--policy`; the run counts as failed".to_owned());
    }
    let mut others: Vec<String> = end
        .servers
        .iter()
        .filter(|server| server.policy_hash != policy_hash)
        .map(|server| format!("`{}`", one_line(&server.server_name, MAX_NAME)))
        .collect();
    others.sort_unstable();
    others.dedup();
    let servers = if others.len() == 1 { "the server" } else { "the servers" };
    (!others.is_empty()).then(|| {
        format!(
            "{servers} {} used another policy than that of `--policy`; the run counts as failed",
            text::list(&others)
        )
    })
}

/// Converts an error of the start. The ledger has it as the end of the run, whose id cannot be given again.
fn not_started(error: AgentRunError, run: Option<&str>) -> CommandError {
    match error {
        AgentRunError::Start(error) => {
            let other_id = run.map(|_| ", and choose another id with `--run`").unwrap_or_default();
            CommandError::io(error).hint(format!("check the command after `--`{other_id}"))
        }
        error @ AgentRunError::Pipe(_) => CommandError::io(error),
    }
}

pub(crate) fn report(end: &AgentEnd, streams: &mut Streams) {
    if end.left_behind > 0 {
        streams.log(format_args!("processes that the agent left behind were killed: {}", end.left_behind));
    }
    if let Some(termination) = &end.termination {
        let (code, message) = (&termination.terminate_code, &termination.terminate_message);
        streams.log(format_args!("a rule ended the run: {message} ({code})"));
    }
}

/// Returns the settings of the run. Creates an id if none is stated.
fn settings(args: &Args) -> Result<RunSettings, CommandError> {
    // Validates the ids as the shims do.
    let lookup = |name: &str| match name {
        RUN_ID => args.run.clone().or_else(|| process_variable(RUN_ID)),
        "SUB_AGENT_ID" => args.agent.clone(),
        "SUB_PRINCIPAL" => args.principal.clone(),
        _ => None,
    };
    let (identity, warnings) = RunIdentity::from_environment(lookup);
    // The shims only warn and replace an invalid id. Here, the user can still correct the command.
    if let Some(warning) = warnings.first() {
        return Err(CommandError::usage(warning.to_string()));
    }
    let ledger = args.settings.ledger()?.map(|ledger| ledger.expose().to_owned());
    let label = |case: &CaseId| {
        workload_with_label(
            process_variable(WORKLOAD).filter(|text| !text.is_empty()).as_deref(),
            CASE_LABEL,
            case.as_str(),
        )
    };
    let workload = args.case.as_ref().map(label).transpose();
    let workload = workload.map_err(|error| CommandError::usage(error).hint("correct or unset the variable"))?;
    Ok(RunSettings {
        run_id: identity.run_id,
        agent_id: args.agent.clone(),
        client: args.client.clone(),
        env: args.env.clone(),
        principal: args.principal.clone(),
        workload,
        policy: args.settings.policy()?.map(camino::Utf8PathBuf::into_string),
        ledger,
    })
}

struct AgentRecording(EventRecording);

impl AgentRecording {
    fn start(
        command: &[OsString],
        settings: &RunSettings,
        policy: &Policy,
        ledger: &LedgerLocation,
        streams: &mut Streams,
    ) -> Option<Self> {
        let recording = EventRecording::start(Some(ledger.clone()), None, &identity(settings));
        // A failure is a warning, because the agent runs all the same.
        let recording = recording
            .inspect_err(|error| streams.warn(format_args!("the agent is not recorded: {}", error.message())))
            .ok()?;
        let program = command.first().map(OsString::as_os_str).unwrap_or_default();
        // Without its start, the end of the agent is not recorded either.
        record(&recording, agent_started(program, policy), streams).then_some(Self(recording))
    }

    /// Records the end of the agent, and moves both events to the ledger.
    fn finish(self, end: &Result<AgentEnd, AgentRunError>, elapsed: Duration, streams: &mut Streams) {
        record(&self.0, agent_ended(end, elapsed), streams);
        self.0.finish(streams);
    }
}

fn record(recording: &EventRecording, event: EventBody, streams: &mut Streams) -> bool {
    recording.sink().record(event).inspect_err(|error| streams.warn(error)).is_ok()
}

/// Returns the identity that the shims have: the settings, and the variables that they leave as they are.
fn identity(settings: &RunSettings) -> RunIdentity {
    let changes = settings.environment();
    let lookup = |name: &str| match changes.get(OsStr::new(name)) {
        // `None` removes the variable from the environment of the shims.
        Some(value) => value.as_ref()?.to_str().map(str::to_owned),
        None => process_variable(name),
    };
    // The shims warn about values that cannot be used.
    RunIdentity::from_environment(lookup).0
}

/// Returns the policy that was given for this run, by the option or the variable.
fn given_policy(settings: &RunSettings) -> Option<Policy> {
    let path = settings.policy.clone().or_else(|| process_variable(POLICY))?;
    policy_args::load(Utf8Path::new(&path)).ok()
}

/// Rejects an id of the option `--run` that the ledger already has: both runs would become one.
fn reject_known(args: &Args, run_id: &str, ledger: &RunLedger, streams: &mut Streams) -> Result<(), CommandError> {
    let is_new = args.run.is_none() && process_variable(RUN_ID).is_none();
    // Below another `guard run`, joining its run is the purpose and not worth a message.
    let is_nested = args.run.is_none() && process_variable(TERMINATION).is_some();
    if is_new || is_nested {
        return Ok(());
    }
    match ledger.find(run_id) {
        Ok(None) => Ok(()),
        Ok(Some(_)) if args.run.is_some() => {
            let error = format!("the ledger `{}` already has the run `{run_id}`", ledger.location());
            Err(CommandError::usage(error)
                .hint("choose another id with `--run`, or omit the option for a new id; the agent was not started"))
        }
        Ok(Some(_)) => {
            // Not an error: an outer program can state one id for several agents.
            streams.log(format_args!("the agent joins the run `{run_id}` of `{RUN_ID}`, which the ledger already has"));
            Ok(())
        }
        Err(error) => {
            // A ledger that cannot be read does not stop the agent.
            let reason = with_causes(&error);
            streams.warn(format_args!("cannot check whether the run `{run_id}` is new: {reason}"));
            Ok(())
        }
    }
}
