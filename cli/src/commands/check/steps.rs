//! The steps of a check: cases, baseline, new, confirmation, comparison, verdict.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::{CaseId, Exit, RunId, Side};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{Limit, Measure, is_unconfirmed, text};
use counterproof_runner::{Checkout, Interrupt, Settings, Spending, commit_of};
use counterproof_store::write::{self, Durability};
use counterproof_store::{EVALUATION_FILE, ReadError, RunReader};
use jiff::Timestamp;
use uuid::Uuid;

use super::args::Args;
use super::output::Checked;
use super::selection::{Selection, write_failed};
use crate::cases_file;
use crate::command_error::CommandError;
use crate::commands::compare::{self, CompareOptions, append_step_summary, gate_exit};
use crate::commands::run::{
    BaselineAgent, ConfirmOptions, Confirmation, RunEnd, Session, check_new_ids, limit_open_files, required_cases,
};
use crate::config::Config;
use crate::layers::{Layers, Origin};
use crate::named_runs::{RunSelection, read_error};
use crate::report_output::report_error;
use crate::reporter::ReporterKind;
use crate::request_args::RunPaths;
use crate::resume_command;
use crate::run_plan::{ConfirmRuns, PlanArgs, RunPlan, generated_id};
use crate::side_agent::SideAgent;
use crate::streams::Streams;

/// A check compares with the latest baseline; another command compares with others.
const BASELINE_OPTION: &str = "counterproof compare --baseline";

/// Options of a check that its repetition with confirmation leaves out.
const NOT_REPEATED: [&str; 7] = ["confirm", "quiet", "open", "format", "watch", "watch-path", "last-failed"];

/// Makes one check. `changed` are the only cases to run, if given. Returns `None` if it was interrupted.
pub(super) fn check(
    args: &Args,
    layers: &Layers,
    interrupt: &Interrupt,
    changed: Option<&HashSet<CaseId>>,
    streams: &mut Streams,
) -> Result<Option<Checked>, CommandError> {
    let path = required_cases(args.cases.as_deref())?;
    let selection = cases_file::load(path, streams).and_then(|suite| Selection::new(args, suite, changed));
    if let Ok(selection) = &selection {
        if !selection.gone.is_empty() {
            let gone: Vec<&str> = selection.gone.iter().map(CaseId::as_str).collect();
            streams.log(format_args!("cases of the last check that `{path}` does not have: {}", gone.join(", ")));
        }
        if selection.cases.is_empty() {
            return Ok(Some(Checked::nothing(selection.nothing())));
        }
    }
    // Before anything else can fail: the report of an earlier check must not pass for the one of this.
    counterproof_report::clear(&args.report).map_err(report_error)?;
    let selection = selection?;
    check_new_ids(&selection.cases, path)?;
    let mut check = Check {
        args,
        layers,
        interrupt,
        selection: &selection,
        paths: RunPaths { cases: path, out: &args.out },
        checkout: Checkout::discover(Utf8Path::new(".")),
        spending: Spending::default(),
    };
    let mut has_baseline = has_stored_baseline(&args.out)?;
    // A watch runs the baseline once, and then only the cases that changed.
    let starts_baseline = changed.is_none() && (args.baseline_start || (has_baseline && check.is_stale(streams)?));
    if starts_baseline || (!has_baseline && layers.config.side.has_baseline()) {
        if !check.run_baseline(streams)? {
            return Ok(None);
        }
        has_baseline = true;
    }
    let Some(new) = check.run_new(has_baseline, streams)? else { return Ok(None) };
    check.compare(&new, has_baseline, streams).map(Some)
}

/// Whether there is a baseline to compare with. One that cannot be read is an error: the check must not go on without it.
fn has_stored_baseline(runs: &Utf8Path) -> Result<bool, CommandError> {
    match RunReader::latest(runs, Side::Baseline) {
        Ok(latest) => match latest.skipped.into_iter().next() {
            Some(unreadable) if latest.others.is_empty() && latest.run.run().accepted.is_none() => {
                Err(read_error(unreadable, Side::Baseline))
            }
            _ => Ok(true),
        },
        Err(ReadError::NoRun { .. } | ReadError::OnlyFailed { .. }) => Ok(false),
        Err(error) => Err(read_error(error, Side::Baseline)),
    }
}

/// The runs of side new.
struct NewRuns {
    folders: Vec<Utf8PathBuf>,
    /// Whether no case was answered, or more failed than allowed.
    failed: bool,
    /// Whether a limit on usage ended the confirmation.
    is_limited: bool,
}

/// What the steps of a check share.
struct Check<'a> {
    args: &'a Args,
    layers: &'a Layers,
    interrupt: &'a Interrupt,
    selection: &'a Selection,
    paths: RunPaths<'a>,
    checkout: Option<Checkout>,
    /// What the answers of all runs used.
    spending: Spending,
}

impl Check<'_> {
    fn session<'s>(&self, streams: &'s mut Streams) -> Session<'s> {
        Session {
            reporter: self.reporter(),
            checkout: self.checkout.clone(),
            interrupt: self.interrupt.clone(),
            spending: self.spending.clone(),
            resume_command: None,
            failed: false,
            prints_folder: false,
            goes_on_at_limit: true,
            streams,
        }
    }

    fn reporter(&self) -> ReporterKind {
        if self.args.verbose {
            ReporterKind::Plain
        } else if self.args.quiet {
            ReporterKind::Silent
        } else {
            ReporterKind::Human
        }
    }

    /// Whether the stored baseline is of another commit than the one that `ref` names now. An accepted run was chosen by a person.
    fn is_stale(&self, streams: &mut Streams) -> Result<bool, CommandError> {
        let Some(reference) = &self.layers.config.side.baseline.commit else { return Ok(false) };
        let Ok(latest) = RunReader::latest(&self.args.out, Side::Baseline) else { return Ok(false) };
        let run = latest.run.run();
        let (None, Some(stored)) = (&run.accepted, &run.repo_commit) else { return Ok(false) };
        let folder = &self.layers.config.folder;
        let folder = if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder };
        let now = commit_of(folder, reference).map_err(CommandError::usage)?;
        if *stored == now {
            return Ok(false);
        }
        let short = |commit: &str| commit.chars().take(12).collect::<String>();
        streams.log(format_args!(
            "the stored baseline is of commit {}, and `{reference}` is now {}",
            short(stored),
            short(&now)
        ));
        Ok(true)
    }

    fn new_id() -> Result<RunId, CommandError> {
        generated_id(Timestamp::now(), Uuid::now_v7()).parse().map_err(CommandError::usage)
    }

    /// Runs the side of the baseline. Returns false if it was interrupted.
    fn run_baseline(&mut self, streams: &mut Streams) -> Result<bool, CommandError> {
        let plan = PlanArgs::of_check(Self::new_id()?, self.args.repeat, None).plan(|_| None)?;
        streams.log("running the baseline");
        let agent = SideAgent::open(Side::Baseline, self.layers, &self.args.out, self.interrupt, streams)?;
        let new = SideAgent::without_start(Side::New, self.layers).with_base_url(agent.base_url.clone());
        let config = &self.layers.config;
        let shared = self.args.request.settings(plan.id.clone(), &new, self.paths, config)?;
        let shared = agent.baseline_settings(&shared, self.layers)?;
        // All cases, also for a selection: the next check compares with this run.
        let checkout = std::mem::replace(&mut self.checkout, agent.checkout());
        let runs = self.make_runs(&plan, &shared, &self.selection.all, streams);
        self.checkout = checkout;
        // The end of the agent explains why the run was interrupted, or why it failed.
        agent.check_alive()?;
        let runs = runs?;
        if let Some(runs) = &runs
            && runs.failed
        {
            return Err(CommandError::findings(
                "the run of the baseline failed, so that there is nothing to compare with",
            )
            .hint("the lines above have the first reasons"));
        }
        Ok(runs.is_some())
    }

    /// Runs the side new, and confirms what looks worse than the baseline.
    fn run_new(&mut self, has_baseline: bool, streams: &mut Streams) -> Result<Option<NewRuns>, CommandError> {
        let args = self.args;
        let confirms = has_baseline && args.confirm != ConfirmRuns::Off;
        // Without a baseline, every expectation has to be met, and one run shows it.
        let repeat = args.repeat.filter(|_| has_baseline && args.confirm == ConfirmRuns::Off);
        let confirm = confirms.then_some((args.confirm, args.confirm_max));
        let plan = PlanArgs::of_check(Self::new_id()?, repeat, confirm).plan(|_| None)?;
        let agent = SideAgent::open(Side::New, self.layers, &self.args.out, self.interrupt, streams)?;
        let config = &self.layers.config;
        let mut shared = args.request.settings(plan.id.clone(), &agent, self.paths, config)?;
        shared.is_selection = self.selection.is_partial;
        limit_open_files([&mut shared], self.selection.cases.len(), streams);
        let options = ConfirmOptions {
            runs: args.confirm,
            against: Vec::new(),
            baseline_option: BASELINE_OPTION,
            baseline_agent: None,
            rules: config.rules.clone(),
            thresholds: config.statistics.clone(),
            is_resumed: false,
        };
        let slot = OnceCell::new();
        let baseline = BaselineAgent::configured(&shared, self.layers, self.interrupt, &slot);
        let cases = &self.selection.cases;
        let confirmation =
            if confirms { Confirmation::prepare(&options, (&plan, &shared), cases, baseline, streams)? } else { None };
        let runs = self.make_runs(&plan, &shared, cases, streams);
        agent.check_alive()?;
        let Some(mut runs) = runs? else { return Ok(None) };
        if let Some(confirmation) = confirmation {
            let mut session = self.session(streams);
            let end = confirmation.run(&mut session);
            // Nothing decides what looks worse, so it is not an all-clear.
            runs.is_limited = session.failed;
            [Some(&agent), slot.get()].into_iter().flatten().try_for_each(SideAgent::check_alive)?;
            if end? == RunEnd::Interrupted {
                return Ok(None);
            }
        }
        Ok(Some(runs))
    }

    /// Makes the runs of a plan. Returns `None` if one was interrupted.
    fn make_runs(
        &self,
        plan: &RunPlan,
        shared: &Settings,
        cases: &[CaseSpec],
        streams: &mut Streams,
    ) -> Result<Option<NewRuns>, CommandError> {
        let mut session = self.session(streams);
        let mut folders = Vec::new();
        for (number, planned) in (1..).zip(&plan.runs) {
            let settings = planned.settings(shared);
            let remaining = plan.runs.len() - number + usize::from(!plan.confirmations.is_empty());
            if session.run(&settings, cases, remaining)? == RunEnd::Interrupted {
                return Ok(None);
            }
            folders.push(settings.out.join(settings.side.as_str()).join(settings.run_id.as_str()));
        }
        Ok(Some(NewRuns { folders, failed: session.failed, is_limited: false }))
    }

    fn compare(&self, new: &NewRuns, has_baseline: bool, streams: &mut Streams) -> Result<Checked, CommandError> {
        let args = self.args;
        // Read again: `compare` takes the rules of the gate apart.
        let mut config = Config::of_file(&self.layers.file)?;
        let mut baseline = RunSelection::Latest { runs: args.out.clone(), baseline_option: BASELINE_OPTION };
        if !has_baseline {
            baseline = RunSelection::Folders(new.folders.clone());
            let zero = Limit::Count(0);
            config.gate = config.gate.with(Measure::Unmet, zero).with(Measure::StillBroken, zero);
            // Each case without an answer violates a rule already.
            config.gate = config.gate.with(Measure::Compared, Limit::None);
        }
        let options = CompareOptions {
            baseline,
            new: RunSelection::Folders(new.folders.clone()),
            cases: Some(self.paths.cases.to_owned()),
            config,
            out: args.report.clone(),
            files: args.files.clone(),
            report_url: args.report_url.clone(),
            // The baseline is part of the repository, and a check does not change it.
            write_back: false,
            only: self.selection.is_partial.then(|| Arc::new(self.selection.ids())),
            is_alone: !has_baseline,
            facts: None,
        };
        let evaluation = compare::compare(&options, streams)?.evaluation;
        append_step_summary(&options, &evaluation, streams);
        write_failed(&args.out, &evaluation)?;
        for folder in &new.folders {
            write::write_json(&folder.join(EVALUATION_FILE), &evaluation, Durability::Synced)
                .map_err(CommandError::io)?;
        }
        let exit = match gate_exit(evaluation.gate.outcome, args.strict) {
            Exit::Done if new.failed || new.is_limited => Exit::Findings,
            exit => exit,
        };
        let baseline = has_baseline.then(|| evaluation.baseline.run_id.to_string());
        let run = new.folders.last().cloned().unwrap_or_default();
        let report = args.report.join("index.html");
        Ok(Checked {
            exit,
            baseline,
            run: Some(run),
            report: Some(report),
            decide: has_baseline.then(|| self.deciding_command(&evaluation)),
            next: self.next_step(&evaluation, has_baseline, exit),
            answered_too_few: new.failed.then(|| self.failure_text()),
            nothing: "",
            evaluation: Some(evaluation),
        })
    }

    fn failure_text(&self) -> String {
        match self.args.request.max_failed {
            Some(most) => {
                format!("no case was answered, or more than {} failed", text::count(most, "case", "cases"))
            }
            None => "no case was answered".to_owned(),
        }
    }

    /// Returns the command that decides the cases that look worse.
    fn deciding_command(&self, evaluation: &Evaluation) -> String {
        if self.args.confirm == ConfirmRuns::Off && is_unconfirmed(evaluation) {
            return format!("to decide: {}", self.layers.typed.command_with("--confirm auto", &NOT_REPEATED));
        }
        let typed = |id: &str, value: &Utf8Path| match self.layers.origin(id) {
            Origin::Flag { option } => format!(" --{option} {}", resume_command::path(value)),
            _ => String::new(),
        };
        let (cases, out) = (typed("cases", self.paths.cases), typed("out", &self.args.out));
        format!(
            "to decide: record a longer baseline with the version that you trust, \
             `counterproof run{cases} --side baseline --repeat 5{out}`, then check again"
        )
    }

    /// Returns the command that a person needs next.
    fn next_step(&self, evaluation: &Evaluation, has_baseline: bool, exit: Exit) -> Option<String> {
        let runs = match self.args.out.as_str() {
            "runs" => String::new(),
            _ if matches!(self.layers.origin("out"), Origin::File { .. }) => String::new(),
            _ => format!(" --runs {}", resume_command::path(&self.args.out)),
        };
        if has_baseline && evaluation.gate.rules.iter().any(|rule| rule.code == "unpaired" && !rule.passed) {
            return Some(format!(
                "cases of the baseline are missing from this run. If they were removed on purpose, make it the baseline: \
                 counterproof accept{runs} --reason \"cases removed\""
            ));
        }
        if has_baseline || self.selection.is_partial {
            return None;
        }
        Some(if exit == Exit::Done {
            format!("to make this run the baseline: counterproof accept{runs} --reason \"first baseline\"")
        } else {
            format!("once the run is good, make it the baseline: counterproof accept{runs} --reason \"first baseline\"")
        })
    }
}
