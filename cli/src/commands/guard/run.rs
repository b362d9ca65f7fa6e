//! `counterproof guard run`: runs an agent as one run.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use counterproof_artifact::{CaseId, Exit};
use counterproof_guard::agent_run::{AgentRun, AgentRunError, LEDGER, RunSettings, run_agent};
use counterproof_guard::identity::{
    CLIENTS, RunIdentity, WORKING_ENVIRONMENTS, WORKLOAD, process_variable, workload_with_label,
};
use counterproof_ledger::export::CASE_LABEL;
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::query::{RunFilter, runs};
use counterproof_ledger::spool::{SpoolFolder, replay};
use counterproof_ledger::store::StoreError;
use counterproof_safe_run::Signals;

use super::shim_settings::ShimSettings;
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::value_parsers::new_case_id;

/// Largest grace time in seconds.
const MAX_GRACE: u64 = 24 * 60 * 60;

/// Run an agent: all tool calls of all servers below it belong to one run.
///
/// Every `guard shim` that the agent starts, directly or through a client, has the same run id, identity, policy and ledger. The agent
/// has the terminal. At the end, all processes that it left behind are killed. A rule that ends the run ends the agent.
///
/// Exit code: that of the agent, or 128 plus the number of the signal that ended it. 1: a rule ended the run. 2: invalid arguments or
/// policy; the agent was not started. 3: the agent cannot be started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the run [default: a new id]
    #[arg(long, env = "SUB_RUN_ID", value_name = "ID")]
    run: Option<String>,

    /// Name of the agent
    #[arg(long, env = "SUB_AGENT_ID", value_name = "NAME")]
    agent: Option<String>,

    /// Kind of program that the agent runs in
    #[arg(long, value_name = "CLIENT", default_value = "custom", value_parser = PossibleValuesParser::new(CLIENTS.map(|it| it.0)))]
    client: String,

    /// Environment that the agent works in
    #[arg(long, value_name = "ENV", default_value = "dev", value_parser = PossibleValuesParser::new(WORKING_ENVIRONMENTS.map(|it| it.0)))]
    env: String,

    /// Person or service on whose behalf the agent works
    #[arg(long, env = "SUB_PRINCIPAL", value_name = "NAME")]
    principal: Option<String>,

    /// Case ID of the run: adds the label `case_id` to the workload, by which `ledger export --side` names the case
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

/// Runs the command.
pub(super) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    // First, while this process has a single thread.
    let (signals, received) = Signals::pipe().map_err(CommandError::io)?;
    let taken = signals.take_from_process().map_err(CommandError::io)?;
    let settings = settings(args)?;
    if args.print_run_id {
        streams.log(format_args!("run: {}", settings.run_id));
    }
    let run_id = settings.run_id.clone();
    let end = run_agent(AgentRun {
        command: args.command.clone(),
        settings,
        has_terminal: std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        grace: Duration::from_secs(args.grace),
        signals: (signals, received, taken),
        supervisor: None,
    })
    .map_err(|error| match error {
        AgentRunError::Start(error) => CommandError::io(error).hint("check the command after `--`"),
        error @ AgentRunError::Pipe(_) => CommandError::io(error),
    })?;
    if end.left_behind > 0 {
        streams.log(format_args!("processes that the agent left behind were killed: {}", end.left_behind));
    }
    if let Some(termination) = &end.termination {
        let (code, message) = (&termination.terminate_code, &termination.terminate_message);
        streams.log(format_args!("a rule ended the run: {message} ({code})"));
    }
    summarize(args, &run_id, streams);
    Ok(match end.termination {
        Some(_) => Exit::Findings,
        None => Exit::Forwarded(u8::try_from(end.ending.exit_code()).unwrap_or(u8::MAX)),
    })
}

fn settings(args: &Args) -> Result<RunSettings, CommandError> {
    // Validates the ids as the shims do, and creates a run id if none is stated.
    let lookup = |name: &str| match name {
        "SUB_RUN_ID" => args.run.clone(),
        "SUB_AGENT_ID" => args.agent.clone(),
        "SUB_PRINCIPAL" => args.principal.clone(),
        _ => None,
    };
    let (identity, warnings) = RunIdentity::from_environment(lookup);
    if let Some(warning) = warnings.first() {
        return Err(CommandError::usage(warning.to_string()));
    }
    let ledger = args.settings.ledger()?.map(|ledger| match ledger {
        LedgerLocation::SqliteFile(path) => path.into_string(),
        LedgerLocation::PostgreSql(url) => url.expose().to_owned(),
    });
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

/// Prints what the ledger has about the run. A ledger that cannot be read does not change how the run ended.
fn summarize(args: &Args, run_id: &str, streams: &mut Streams) {
    let Some((ledger, calls)) = calls(args, run_id) else { return };
    let Some((calls, refused)) = calls else {
        streams.log("the ledger has no calls of this run: no server of the agent started through the guard");
        streams.log("hint: put the guard in front of the servers with `counterproof guard import`");
        return;
    };
    let option = match &ledger {
        Some(ledger) => format!(" --ledger {}", crate::shell::quoted(&ledger.to_string())),
        None => String::new(),
    };
    let id = crate::shell::quoted(run_id);
    streams.log(format_args!(
        "calls: {calls}, refused: {refused}; list them with `counterproof ledger query --run {id}{option}`"
    ));
}

/// The ledger, unless it is the default, and the number of calls and of refused calls of the run, if the ledger has it.
type RecordedCalls = (Option<LedgerLocation>, Option<(u64, u64)>);

/// Returns what the ledger has about the run; `None` if it cannot be read.
fn calls(args: &Args, run_id: &str) -> Option<RecordedCalls> {
    let state = StateFolder::from_environment(process_variable).ok()?;
    let named = || process_variable(LEDGER)?.parse::<LedgerLocation>().ok();
    let given = args.settings.ledger().ok()?.or_else(named);
    let location = given.clone().unwrap_or_else(|| LedgerLocation::default_in(&state));
    let mut store = match counterproof_ledger::open(&location) {
        Ok(store) => store,
        Err(StoreError::Missing { .. }) => return Some((given, None)),
        Err(_) => return None,
    };
    // Events of shims that were killed wait in their files.
    let _ = replay(&SpoolFolder::new(location.spool_folder(&state)), store.as_mut());
    let filter = RunFilter { run_id: Some(run_id.to_owned()), since: None, limit: 1 };
    let run = runs(store.as_mut(), &filter).ok()?.into_iter().next();
    Some((given, run.map(|run| (run.calls, run.refused))))
}
