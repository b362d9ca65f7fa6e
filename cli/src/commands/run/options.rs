//! What `counterproof run` needs: its arguments, resolved with the environment and the configuration.

use std::env;
use std::num::NonZeroUsize;

use camino::Utf8PathBuf;
use counterproof_artifact::CaseId;
use counterproof_evaluator::{Rules, Thresholds};
use counterproof_runner::Settings;

use super::args::Args;
use super::settings;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::reporter::ReporterKind;
use crate::run_plan::RunPlan;

/// The inputs and outputs of one invocation.
#[derive(Debug)]
pub(super) struct RunOptions {
    pub(super) action: Action,
    pub(super) plan: RunPlan,
    /// The settings that all runs of the plan share.
    pub(super) settings: Settings,
    /// Cases to run; empty for all.
    pub(super) only: Vec<CaseId>,
    pub(super) reporter: ReporterKind,
}

/// What to do with the plan.
#[derive(Debug)]
pub(super) enum Action {
    /// Print it.
    DryRun,
    /// Make all of its runs.
    RunAll,
    /// Make its only run, and run its flipped cases again.
    RunAndConfirm(ConfirmOptions),
}

/// What flipped cases are found and confirmed with.
#[derive(Debug)]
pub(super) struct ConfirmOptions {
    /// Run folders of the baseline; empty for the latest.
    pub(super) against: Vec<Utf8PathBuf>,
    /// The settings of the agent of the baseline; `None` if no option names it.
    pub(super) baseline_agent: Option<Box<Settings>>,
    pub(super) rules: Rules,
    pub(super) thresholds: Thresholds,
    /// Whether an earlier call may have found the flipped cases.
    pub(super) is_resumed: bool,
}

impl RunOptions {
    /// Runs at most this many cases at once.
    pub(super) fn limit_concurrency(&mut self, cases: NonZeroUsize) {
        self.settings.concurrency = self.settings.concurrency.at_most(cases);
        if let Action::RunAndConfirm(ConfirmOptions { baseline_agent: Some(settings), .. }) = &mut self.action {
            settings.concurrency = settings.concurrency.at_most(cases);
        }
    }

    /// Resolves the arguments.
    pub(super) fn new(args: &Args) -> Result<Self, CommandError> {
        let plan = args.plan.plan(|name| env::var(name).ok())?;
        let config = Config::load(args.agent.config.as_deref())?;
        let settings = settings::from_args(args, plan.id.clone(), &config)?;
        let action = if args.dry_run {
            Action::DryRun
        } else if args.plan.confirm.confirm.is_some() {
            let baseline_agent = args.plan.confirm.baseline_settings(&settings, args.agent.model.as_ref())?;
            Action::RunAndConfirm(ConfirmOptions {
                against: args.plan.against.clone(),
                baseline_agent: baseline_agent.map(Box::new),
                rules: config.rules,
                thresholds: config.statistics,
                is_resumed: args.plan.resume.is_some(),
            })
        } else {
            Action::RunAll
        };
        Ok(Self { action, plan, settings, only: args.only.clone(), reporter: args.reporter })
    }
}
