//! The arguments, and the run from its start to its end.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use counterproof_artifact::{CaseId, Exit};
use counterproof_guard::agent_run::{AgentEnd, AgentRun, AgentRunError, run_agent};
use counterproof_guard::identity::{CLIENTS, WORKING_ENVIRONMENTS};
use counterproof_safe_run::Signals;

use super::agent_recording::AgentRecording;
use super::run_id::reject_known;
use super::run_ledger::RunLedger;
use super::settings::settings;
use crate::command_error::CommandError;
use crate::commands::guard::shim_settings::ShimSettings;
use crate::streams::Streams;
use crate::value_parsers::new_case_id;

/// Largest grace time in seconds.
const MAX_GRACE: u64 = 24 * 60 * 60;

/// Run an agent: all tool calls of all servers below it belong to one run.
///
/// Every `guard shim` that the agent starts, directly or through a client, has the same run id. It also has the identity, policy and
/// ledger of the run, unless its own options state others. The agent has the terminal. At the end, all processes that it left behind
/// are killed. A rule that ends the run ends the agent. The ledger has the start and the end of the agent next to its calls.
///
/// Exit code: that of the agent, or 128 plus the number of the signal that ended it. 1: a rule ended the run. 2: invalid arguments or
/// policy, or an id that the ledger already has; the agent was not started. 3: the policy cannot be read, or the agent cannot be
/// started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the run, which the ledger does not have yet [default: that of `SUB_RUN_ID`, or a new id]
    #[arg(long, value_name = "ID")]
    pub(super) run: Option<String>,

    /// Name of the agent
    #[arg(long, env = "SUB_AGENT_ID", value_name = "NAME")]
    pub(super) agent: Option<String>,

    /// Kind of program that the agent runs in
    #[arg(long, value_name = "CLIENT", default_value = "custom", value_parser = PossibleValuesParser::new(CLIENTS.map(|it| it.0)))]
    pub(super) client: String,

    /// Environment that the agent works in
    #[arg(long, value_name = "ENV", default_value = "dev", value_parser = PossibleValuesParser::new(WORKING_ENVIRONMENTS.map(|it| it.0)))]
    pub(super) env: String,

    /// Person or service on whose behalf the agent works
    #[arg(long, env = "SUB_PRINCIPAL", value_name = "NAME")]
    pub(super) principal: Option<String>,

    /// Case ID of the run: adds the label `case_id` to the workload, by which `export-run --ledger` names the case
    #[arg(long, value_name = "ID", value_parser = new_case_id)]
    pub(super) case: Option<CaseId>,

    #[command(flatten)]
    pub(super) settings: ShimSettings,

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

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    // First, while this process has a single thread.
    let (signals, received) = Signals::pipe().map_err(CommandError::io)?;
    let taken = signals.take_from_process().map_err(CommandError::io)?;
    let settings = settings(args)?;
    let ledger = RunLedger::new(args.settings.ledger()?)
        .inspect_err(|error| streams.warn(format_args!("the run is not recorded: {}", error.message())))
        .ok();
    if let Some(ledger) = &ledger {
        reject_known(args, &settings.run_id, ledger, streams)?;
    }
    if args.print_run_id {
        streams.log(format_args!("run: {}", settings.run_id));
    }
    let run_id = settings.run_id.clone();
    let recording = ledger.as_ref().and_then(|ledger| AgentRecording::start(&args.command, &settings, ledger, streams));
    let started = Instant::now();
    let end = run_agent(AgentRun {
        command: args.command.clone(),
        settings,
        has_terminal: std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        grace: Duration::from_secs(args.grace),
        signals: (signals, received, taken),
        supervisor: None,
    });
    if let Some(recording) = recording {
        recording.finish(&end, started.elapsed(), streams);
    }
    let end = end.map_err(|error| not_started(error, args.run.as_deref()))?;
    report(&end, streams);
    if let Some(ledger) = &ledger {
        ledger.summarize(&run_id, streams);
    }
    Ok(match end.termination {
        Some(_) => Exit::Findings,
        None => Exit::Forwarded(u8::try_from(end.ending.exit_code()).unwrap_or(u8::MAX)),
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

fn report(end: &AgentEnd, streams: &mut Streams) {
    if end.left_behind > 0 {
        streams.log(format_args!("processes that the agent left behind were killed: {}", end.left_behind));
    }
    if let Some(termination) = &end.termination {
        let (code, message) = (&termination.terminate_code, &termination.terminate_message);
        streams.log(format_args!("a rule ended the run: {message} ({code})"));
    }
}
