//! The arguments of `counterproof run`, and what they mean together with the environment and the configuration.

use std::env;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Side};
use counterproof_evaluator::{Rules, Thresholds};
use counterproof_runner::Settings;

use crate::command_error::CommandError;
use crate::config::Config;
use crate::reporter::ReporterKind;
use crate::request_args::{RequestArgs, RunPaths};
use crate::run_plan::{ConfirmRuns, PlanArgs, RunPlan};
use crate::side_agent::SideAgent;
use crate::working_copies::OutputFolder;

/// Run cases against an agent and record the answers.
///
/// Sends `POST BASE_URL/run-case` (or the request of another `--protocol`) for each case and writes one run folder,
/// `RUNS/SIDE/RUN_ID/`, with one artifact per case. A failed case also gets an artifact and does not fail the command.
/// `--resume` continues a run that was stopped.
///
/// Exit code 0: every case was run. 1: no case was answered, more cases failed than `--max-failed` allows, or a limit stopped
/// the run. 2: the arguments, the configuration or the cases are invalid. 3: a file could not be read or written, the agent could
/// not be started or reached, or `--fail-fast` stopped the run. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Cases to run: a file (.json, .jsonl, .yaml) or a folder of such files [default: `cases` below `[run]` in the configuration]
    #[arg(help_heading = "Selection", long, value_name = "PATH")]
    cases: Option<Utf8PathBuf>,

    #[command(flatten)]
    pub(super) request: RequestArgs,

    /// Side of the comparison that this run belongs to
    #[arg(long, value_name = "baseline|new")]
    pub(super) side: Side,

    #[command(flatten)]
    pub(super) plan: PlanArgs,

    /// Folder of all runs, or its address in a bucket: `s3://BUCKET/PREFIX`, `gs://…` or `az://…`
    #[arg(help_heading = "Output", long, value_name = "RUNS", default_value = "runs")]
    pub(super) out: Utf8PathBuf,

    /// Run only these cases, in the order of the cases file; can be repeated
    #[arg(help_heading = "Selection", long, value_name = "ID,…", value_delimiter = ',')]
    pub(super) only: Vec<CaseId>,

    /// Output while the run is in progress
    ///
    /// `human`: a progress bar if standard error is a terminal. `plain`: one line per event on standard error. `jsonl`: events as JSON
    /// Lines on standard output, and nothing else there.
    #[arg(
        help_heading = "Output",
        long,
        value_name = "human|plain|jsonl",
        value_enum,
        hide_possible_values = true,
        default_value = "human"
    )]
    pub(super) reporter: ReporterKind,

    /// Print the cases that would run, without sending or writing anything
    #[arg(help_heading = "Output", long)]
    pub(super) dry_run: bool,
}

/// What the arguments mean together with the environment and the configuration.
#[derive(Debug)]
pub(super) struct RunOptions {
    pub(super) plan: RunPlan,
    /// The settings that all runs of the plan share.
    pub(super) settings: Settings,
    /// `None` without `--confirm`.
    pub(super) confirm: Option<ConfirmOptions>,
}

/// What flipped cases are found and confirmed with.
#[derive(Debug)]
pub(crate) struct ConfirmOptions {
    /// How often the flipped cases run again.
    pub(crate) runs: ConfirmRuns,
    /// Run folders of the baseline; empty for the latest.
    pub(crate) against: Vec<Utf8PathBuf>,
    /// How a person selects other runs of the baseline, such as `--against`.
    pub(crate) baseline_option: &'static str,
    /// The settings of the agent of the baseline; `None` if no option names it.
    pub(crate) baseline_agent: Option<Settings>,
    pub(crate) rules: Rules,
    pub(crate) thresholds: Thresholds,
    /// Whether an earlier call may have found the flipped cases.
    pub(crate) is_resumed: bool,
}

impl Args {
    pub(super) fn cases(&self) -> Result<&Utf8Path, CommandError> {
        required_cases(self.cases.as_deref())
    }
}

/// Returns the cases of a run, which an option or the configuration names.
pub(crate) fn required_cases(cases: Option<&Utf8Path>) -> Result<&Utf8Path, CommandError> {
    cases.ok_or_else(|| {
        CommandError::usage("no cases are named")
            .hint("pass `--cases PATH`, or set `cases = \"cases.yaml\"` below `[run]` in counterproof.toml")
            .hint("`counterproof init` writes both files")
    })
}

impl RunOptions {
    pub(super) fn new(
        args: &Args,
        config: &Config,
        agent: &SideAgent,
        out: &OutputFolder,
    ) -> Result<Self, CommandError> {
        let plan = args.plan.plan(|name| env::var(name).ok())?;
        let paths = RunPaths { cases: args.cases()?, out: &out.folder };
        let settings = args.request.settings(plan.id.clone(), agent, paths, config)?;
        let settings = Settings { copy: out.run_copy(), ..settings };
        let confirm = match args.plan.confirm.confirm {
            // A dry run sends nothing, so no case can flip.
            Some(runs) if !args.dry_run && runs != ConfirmRuns::Off => Some(ConfirmOptions {
                runs,
                against: args.plan.against.clone(),
                baseline_option: "--against",
                baseline_agent: args.plan.confirm.baseline_settings(&settings, args.request.agent.model.as_ref())?,
                rules: config.rules.clone(),
                thresholds: config.statistics.clone(),
                is_resumed: args.plan.resume.is_some(),
            }),
            _ => None,
        };
        Ok(Self { plan, settings, confirm })
    }
}
