//! `counterproof guard demo`: two versions of a built-in MCP agent, recorded through the guard, compared and reported.

use std::io::{self, BufReader};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Exit, RunId, Side};
use counterproof_demo::{GUARD_CASES, GUARD_PLANTED, GUARD_POLICY, ServerEnd, Variant, run_agent, serve_tools};
use counterproof_export::Destination;
use counterproof_export::ledger::{CASE_LABEL, SelectedRun, case_id, export_runs};
use counterproof_guard::agent_run::RunSettings;
use counterproof_guard::identity::workload_with_label;
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::query::find_run;
use counterproof_ledger::spool::{SpoolFolder, replay};
use counterproof_ledger::store::EventStore;
use counterproof_store::write::{self, Durability};
use uuid::Uuid;

use crate::command_error::CommandError;
use crate::commands::demo::{check_verdicts, compare_runs, prepare};
use crate::resume_command::quoted;
use crate::streams::Streams;
use crate::streams::WRITER;

/// Record and compare two versions of a built-in MCP agent.
///
/// Needs no setup and takes a few seconds. Each case is a run of the agent through `guard shim`, with a policy. The second version of
/// the agent has planted faults: a policy refuses one of its calls, a breaker ends one of its runs, and the server crashes in another.
///
/// Exit code 0: every case got the expected verdict, including the planted faults. 1: a case got another verdict. 2: the output folder
/// is in use. 3: a file could not be read or written, or the agent could not be recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the policy, the ledger, the cases, the runs and the report
    #[arg(long, value_name = "DIR", default_value = "counterproof-guard-demo")]
    out: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let out = &args.out;
    let cases_path = out.join("cases.json");
    prepare(out, &cases_path, GUARD_CASES)?;
    let policy = out.join("policy.yaml");
    // Not synced: the demo can be run again.
    write::write(&policy, GUARD_POLICY.as_bytes(), Durability::Cached).map_err(CommandError::io)?;
    let recording =
        Recording { ledger: absolute(&out.join("ledger.db"))?, policy: absolute(&policy)?, runs: out.join("runs") };
    let mut record = |variant: Variant| {
        streams.log(format_args!("recording {} runs of the {variant} agent …", GUARD_PLANTED.len()));
        recording.record(variant)
    };
    let [baseline, new] = [record(Variant::Baseline)?, record(Variant::New)?];
    let evaluation = compare_runs(out, cases_path, [baseline, new], streams)?;
    let exit = check_verdicts(out, &evaluation, &GUARD_PLANTED, streams)?;
    if exit == Exit::Done {
        print_next(out, streams);
    }
    Ok(exit)
}

fn print_next(out: &Utf8Path, streams: &mut Streams) {
    let [ledger, policy] = ["ledger.db", "policy.yaml"].map(|name| quoted(out.join(name).as_str()).into_owned());
    streams.log("next: look at the recorded calls and at the policy");
    streams.log(format_args!("      counterproof ledger runs --ledger {ledger}"));
    streams.log(format_args!("      counterproof ledger query --decision BLOCK --ledger {ledger}"));
    streams.log(format_args!(
        "      counterproof guard policy explain {policy} --server shop --tool refund_order --args '{{\"amount\": 450}}'"
    ));
    streams.log("      docs/guard-import.md puts the guard in front of your own servers");
}

/// The name of the server. Steps of the report are called `shop.TOOL`.
const SERVER: &str = "shop";

const AGENT: &str = "shop-agent";

/// Variables with these names would change what the demo does.
const VARIABLES: [&str; 2] = ["SUB_", "COUNTERPROOF_"];

/// The files of the demo, as absolute paths.
#[derive(Debug)]
struct Recording {
    ledger: Utf8PathBuf,
    policy: Utf8PathBuf,
    runs: Utf8PathBuf,
}

impl Recording {
    /// Records all cases with one variant of the agent, each as a run, and exports them. Returns the run folder.
    fn record(&self, variant: Variant) -> Result<Utf8PathBuf, CommandError> {
        let mut recorded = Vec::new();
        for planted in &GUARD_PLANTED {
            let run = Uuid::now_v7().to_string();
            self.record_case(planted.case_id, &run, variant)
                .map_err(|error| CommandError::io(format!("cannot record the case `{}`: {error}", planted.case_id)))?;
            recorded.push(run);
        }
        self.export(&recorded, variant)
    }

    /// Runs the agent with a shim between it and the server, as `guard run` does.
    fn record_case(&self, case_id: &str, run: &str, variant: Variant) -> io::Result<()> {
        let program = std::env::current_exe()?;
        let settings = RunSettings {
            run_id: run.to_owned(),
            agent_id: Some(AGENT.to_owned()),
            client: "custom".to_owned(),
            env: "dev".to_owned(),
            principal: None,
            workload: Some(workload_with_label(None, CASE_LABEL, case_id).map_err(io::Error::other)?),
            policy: Some(self.policy.to_string()),
            ledger: Some(self.ledger.to_string()),
        };
        let mut command = Command::new(&program);
        command.args(["guard", "shim", "--server-name", SERVER, "--"]).arg(&program).args(["guard", "demo-server"]);
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| VARIABLES.iter().any(|it| name.to_string_lossy().starts_with(it))) {
            command.env_remove(name);
        }
        // After the removal, which would take these variables too.
        command.envs(settings.environment().into_iter().filter_map(|(name, value)| Some((name, value?))));
        // What the shim reports, such as the end of a run by a rule, is part of the demo and shown in its report.
        let mut shim = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (shim.stdout.take(), shim.stdin.take()) else {
            return Err(io::Error::other("the shim has no pipes"));
        };
        // Closes both pipes in every case, at which the shim ends.
        let played = run_agent(case_id, variant, BufReader::new(input), output);
        shim.wait()?;
        played.map(drop)
    }

    fn export(&self, recorded: &[String], variant: Variant) -> Result<Utf8PathBuf, CommandError> {
        let location = LedgerLocation::SqliteFile(self.ledger.clone());
        let mut store = counterproof_ledger::open_or_create(&location).map_err(CommandError::io)?;
        // Events stay in a file if the ledger was busy when a shim ended.
        let spool = SpoolFolder::new(location.spool_folder(&StateFolder::new(".")));
        replay(&spool, store.as_mut()).map_err(CommandError::io)?;
        let selected = recorded.iter().map(|run| select(store.as_mut(), run)).collect::<Result<Vec<_>, _>>()?;
        let run_id: RunId = Uuid::now_v7().to_string().parse().map_err(CommandError::usage)?;
        let destination = Destination {
            out: &self.runs,
            side: match variant {
                Variant::Baseline => Side::Baseline,
                Variant::New => Side::New,
            },
            run_id: &run_id,
            writer: WRITER.to_owned(),
            // Without it, a later `compare` of the exported runs would call the planted faults chance.
            is_deterministic: true,
        };
        let exported = export_runs(store.as_mut(), &selected, &destination, "../../../cases.json".to_owned());
        Ok(exported.map_err(CommandError::io)?.folder)
    }
}

fn select(store: &mut dyn EventStore, run: &str) -> Result<SelectedRun, CommandError> {
    let found = find_run(store, run).map_err(CommandError::io)?;
    let run = found.ok_or_else(|| CommandError::io(format!("the run `{run}` was not recorded")))?;
    let case_id: CaseId = case_id(&run).map_err(CommandError::usage)?;
    Ok(SelectedRun { run, case_id })
}

fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    // Shims run with the working directory of the demo, but a server may change to another one.
    camino::absolute_utf8(path).map_err(|error| CommandError::io(format!("cannot resolve `{path}`: {error}")))
}

/// Serve the tools of the demo over standard input and output.
///
/// Exit code 0: the client closed its end. 1: the planted fault. 3: a message could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {}

pub(crate) fn serve() -> Result<Exit, CommandError> {
    match serve_tools(io::stdin().lock(), io::stdout().lock()).map_err(CommandError::io)? {
        ServerEnd::Closed => Ok(Exit::Done),
        ServerEnd::Crashed => Ok(Exit::Findings),
    }
}
