//! Records the agent of the demo through shims, and exports its runs.

use std::io::{self, BufReader};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, RunId, Side};
use counterproof_demo::{GUARD_PLANTED, Variant, run_agent};
use counterproof_export::Destination;
use counterproof_export::ledger::{CASE_LABEL, SelectedRun, case_id, export_runs};
use counterproof_guard::agent_run::RunSettings;
use counterproof_guard::identity::workload_with_label;
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::query::find_run;
use counterproof_ledger::spool::{SpoolFolder, replay};
use counterproof_ledger::store::EventStore;
use uuid::Uuid;

use crate::command_error::CommandError;
use crate::writer::WRITER;

/// The name of the server. Steps of the report are called `shop.TOOL`.
const SERVER: &str = "shop";

/// The name of the agent.
const AGENT: &str = "shop-agent";

/// Variables with these names would change what the demo does.
const VARIABLES: [&str; 2] = ["SUB_", "COUNTERPROOF_"];

/// The files of the demo, as absolute paths.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) ledger: Utf8PathBuf,
    pub(super) policy: Utf8PathBuf,
    /// The folder of all runs.
    pub(super) runs: Utf8PathBuf,
}

impl Recording {
    /// Records all cases with one variant of the agent, each as a run, and exports them. Returns the run folder.
    pub(super) fn record(&self, variant: Variant) -> Result<Utf8PathBuf, CommandError> {
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

/// Returns an absolute path: shims run with the working directory of the demo, but a server may change its own.
pub(super) fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    camino::absolute_utf8(path).map_err(|error| CommandError::io(format!("cannot resolve `{path}`: {error}")))
}
