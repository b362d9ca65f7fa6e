//! What a comparison needs: the arguments of `counterproof compare`, resolved with the configuration.

use camino::Utf8PathBuf;
use counterproof_evaluator::{GateRules, Limit, Measure, Rules, SignalSettings, Thresholds};
use counterproof_report::{PageSelection, ReportUrl};

use super::args::Args;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::named_runs::RunSelection;

/// The inputs and outputs of a comparison.
#[derive(Debug)]
pub(crate) struct CompareOptions {
    pub(crate) baseline: RunSelection,
    pub(crate) new: RunSelection,
    /// The cases of the runs. Without them, expectations are not checked.
    pub(crate) cases: Option<Utf8PathBuf>,
    pub(crate) limits: GateRules,
    pub(crate) rules: Rules,
    pub(crate) thresholds: Thresholds,
    /// Whether the configuration declares the agent deterministic.
    pub(crate) is_deterministic: bool,
    pub(crate) signals: SignalSettings,
    /// The report folder.
    pub(crate) out: Utf8PathBuf,
    pub(crate) pages: PageSelection,
    pub(crate) report_url: Option<ReportUrl>,
    pub(crate) write_back: WriteBack,
}

/// Whether evaluation.json is also written into the run folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteBack {
    Enabled,
    Disabled,
}

impl CompareOptions {
    /// Resolves the arguments. Rejects gate rules that need the cases if none are given.
    pub(super) fn new(args: &Args, config: Config) -> Result<Self, CommandError> {
        let mut limits = config.gate;
        if args.allow_unpaired {
            limits = limits.with(Measure::Unpaired, Limit::None);
        }
        if let (Some(scope), None) = (limits.needs_cases(), &args.cases) {
            return Err(CommandError::usage(format!("the gate has rules for the {scope}, which require the cases"))
                .hint("pass the cases of the runs with `--cases`"));
        }
        let selection = |one: &Option<Utf8PathBuf>, several: &[Utf8PathBuf]| {
            let folders: Vec<_> = one.iter().chain(several).cloned().collect();
            if folders.is_empty() {
                RunSelection::Latest { runs: args.runs.clone(), baseline_option: "--baseline" }
            } else {
                RunSelection::Folders(folders)
            }
        };
        Ok(Self {
            baseline: selection(&args.baseline, &args.baseline_runs),
            new: selection(&args.new, &args.new_runs),
            cases: args.cases.clone(),
            limits,
            rules: config.rules,
            thresholds: config.statistics,
            is_deterministic: config.agent.deterministic,
            signals: config.signals,
            out: args.out.clone(),
            pages: args.pages.into(),
            report_url: args.report_url.clone(),
            write_back: if args.no_write_back { WriteBack::Disabled } else { WriteBack::Enabled },
        })
    }
}
