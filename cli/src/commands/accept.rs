//! `counterproof accept`: copies a new run to the baseline side.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::GateOutcome;
use counterproof_artifact::{Exit, Mark, RunId, Side};
use counterproof_evaluator::{Thresholds, gate_headline, smallest_confirmable, text};
use counterproof_runner::{
    AcceptError, Acceptance, CaseLabels, CaseReview, Clock, LabelsError, ReviewError, SystemClock, draft_expectations,
    runs_of_baseline,
};
use counterproof_store::write::{self, Durability};
use counterproof_store::{EVALUATION_FILE, Latest, LockError, ReadError, RunReader, read_evaluation};

use crate::cases_file::RecordedCases;
use crate::command_error::{CommandError, WAIT_OR_STOP};
use crate::layers::Layers;
use crate::named_runs;
use crate::resume_command;
use crate::run_plan::DEFAULT_CONFIRM_MAX;
use crate::streams::Streams;
use crate::value_parsers::new_run_id;

/// Maximum number of cases that a note names.
const MAX_WRONG: usize = 5;

/// Make a new run the baseline for later comparisons.
///
/// Copies the run folder to RUNS/baseline, where `counterproof compare` uses it as the latest baseline, and records the reason in its
/// run.json. The copy is complete or absent; the run and earlier baselines do not change. If you name one run of a repeat
/// group, the whole group is accepted.
///
/// Rejects a run that was stopped, lacks artifacts, is a shard, violates the contract, or has cases without an answer.
///
/// Exit code 0: done. 1: the run was rejected. 2: there is no such run, or a baseline with this ID exists. 3: a file could not be read or
/// written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run folder to accept [default: the latest run in RUNS/new]
    new: Option<Utf8PathBuf>,

    /// Reason for the new baseline, recorded in run.json
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,

    /// Person or system that accepts the run
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Folder of all runs, or its address in a bucket
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    runs: Utf8PathBuf,

    /// ID of the baseline, or of the group of its repeats [default: the ID of the run]
    #[arg(long, value_name = "ID", value_parser = new_run_id)]
    run_id: Option<RunId>,

    /// Add the run to the latest baseline instead of replacing it: later comparisons use all its runs. A longer baseline decides
    /// more cases
    #[arg(long)]
    append: bool,

    /// Accept a run with cases without an answer. Later comparisons cannot find regressions in those cases
    #[arg(long)]
    allow_failures: bool,

    /// File with the cases that the agent solved: `{"refund_001": true, "refund_002": false}`
    ///
    /// The labels are stored with the baseline as labels.json. Comparisons rank a case that the baseline did not solve below the
    /// others, because differing from a wrong answer is not a regression. 1 and 0 are accepted for true and false. Cases without a
    /// label are allowed. With a repeat group, a label applies to all of its runs.
    #[arg(long, value_name = "FILE")]
    labels: Option<Utf8PathBuf>,

    /// File with the marks of a reviewer: the `review.json` that the first page of a report exports
    ///
    /// The marks are stored in run.json, next to the reason. Reports of later comparisons show them on the page of the case. They
    /// change no verdict, and a case that is marked as wrong does not prevent the acceptance.
    #[arg(long, value_name = "FILE")]
    review: Option<Utf8PathBuf>,

    /// Also draft expectations from what all runs of the baseline share, for a person to read
    ///
    /// Drafted are high-risk actions with their params, numbers in the answer, and risky tools that a case never uses. Each draft
    /// is marked `draft: true` and is not evaluated. Copy those that matter into the cases file and remove the mark.
    #[arg(long)]
    expect: bool,

    /// With --expect: the cases of the run
    #[arg(long, value_name = "PATH", requires = "expect")]
    cases: Option<Utf8PathBuf>,

    /// With --expect: file for the drafts; must not exist [default: NAME.draft.json next to the cases]
    #[arg(long, value_name = "FILE", requires = "expect")]
    drafts: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    let folder = match &args.new {
        Some(folder) => streams.copies.run(folder)?,
        None => latest_whole(&args.runs, streams)?,
    };
    streams.copies.repeats(&folder)?;
    let runs = streams.copies.output(&args.runs)?.folder;
    streams.copies.documents(&args.runs, Side::Baseline)?;
    check_gate(&folder, args.append, streams)?;
    let run_command = |more: &str| args.run_command(&folder, layers, more);
    let failed = |error: AcceptError| accept_error(error, &args.reason, &run_command);
    // Checked before the run is accepted, because a second `accept` of the run would be rejected.
    let drafts = args.drafts_file()?;
    let labels = args.labels.as_deref().map(CaseLabels::read).transpose();
    let review = args.review.as_deref().map(CaseReview::read).transpose();
    let acceptance = Acceptance {
        reason: args.reason.clone(),
        by: args.by.clone(),
        // Read once, so that all runs of a group have the same time.
        at: SystemClock::start().read().iso(),
        run_id: args.run_id.clone(),
        append: args.append,
        allow_failures: args.allow_failures,
        labels: labels.map_err(|error| failed(error.into()))?,
        review: review.map_err(|error| failed(error.into()))?,
    };
    // `--append` adds to the latest baseline with answers, so those that it skips are named.
    if args.append
        && let Ok(latest) = RunReader::latest(&streams.copies.latest(&args.runs, Side::Baseline)?, Side::Baseline)
    {
        named_runs::log_unanswered(&latest, streams);
    }
    let before: Vec<_> = baselines(&runs);
    let baseline = counterproof_runner::accept(&folder, &runs, &acceptance).map_err(failed)?;
    for folder in baseline.folders.iter().filter(|folder| !before.contains(folder)) {
        streams.copies.put_new_run(folder)?;
    }
    for folder in &baseline.folders {
        streams.print_line(format_args!("baseline: {folder} ({})", text::count(baseline.cases, "case", "cases")))?;
    }
    if let Some(review) = &acceptance.review {
        print_review(review, streams)?;
    }
    if baseline.unresolved > 0 {
        let refs = text::count(baseline.unresolved, "evidence ref does", "evidence refs do");
        streams.log(format_args!(
            "note: {refs} not resolve in this baseline; comparisons will not report the same refs of new as lost"
        ));
    }
    if let Some(file) = drafts {
        write_drafts(&file, &args.runs, streams)?;
    }
    if !args.append && baseline.folders.len() == 1 {
        log_what_one_run_confirms(baseline.cases, streams);
    }
    streams.log("next: counterproof check compares the next run with this baseline");
    Ok(Exit::Done)
}

/// The folders of the baselines in a folder of runs.
fn baselines(runs: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = runs.join(Side::Baseline.as_str()).read_dir_utf8().into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.into_path())).collect()
}

/// Warns about a run whose gate failed. Refuses to add it to the baseline: the baseline would explain its own regression.
fn check_gate(folder: &Utf8Path, append: bool, streams: &mut Streams) -> Result<(), CommandError> {
    let path = folder.join(EVALUATION_FILE);
    let Ok((evaluation, _)) = read_evaluation(&path) else { return Ok(()) };
    let is_bad = matches!(evaluation.gate.outcome, GateOutcome::Failed | GateOutcome::NotEnoughData);
    if !is_bad {
        return Ok(());
    }
    let headline = gate_headline(&evaluation);
    if append {
        return Err(CommandError::findings(format!("`{folder}` was compared: {headline}"))
            .hint("add runs of the version that you trust to the baseline, and not the run in question")
            .hint("to make the change the new baseline, leave out `--append`"));
    }
    streams.warn(format_args!("accepting a run that was compared: {headline}"));
    Ok(())
}

/// Prints the numbers of marks, and names cases whose answer a person marked as wrong: they are the baseline now.
fn print_review(review: &CaseReview, streams: &mut Streams) -> Result<(), CommandError> {
    streams.print_line(format_args!("review: {}", review.document().summary()))?;
    let wrong: Vec<_> = review.cases(Mark::Wrong).map(|case| format!("`{case}`")).collect();
    if let Some(more) = (!wrong.is_empty()).then(|| wrong.len().saturating_sub(MAX_WRONG)) {
        let named = wrong.iter().take(MAX_WRONG).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        streams.log(format_args!(
            "note: marked as wrong, and part of this baseline: {named}{more}; comparisons will not report the same behaviour"
        ));
    }
    Ok(())
}

/// Returns the latest run in RUNS/new that ran all cases. Newer runs of a selection are named.
fn latest_whole(runs: &Utf8Path, streams: &mut Streams) -> Result<Utf8PathBuf, CommandError> {
    let Latest { run, others, .. } = named_runs::latest(runs, Side::New, streams)?;
    let is_selection = |run: &RunReader| run.run().extra.get("selection").is_some_and(|value| *value == true);
    if !is_selection(&run) {
        return streams.copies.run(run.folder());
    }
    let Some(whole) = others.iter().rfind(|run| !is_selection(run)) else {
        return Err(CommandError::usage(format!(
            "`{}` ran a selection of the cases, and no other run is there",
            run.folder()
        ))
        .hint("run all cases first, or name the folder to accept the selection"));
    };
    streams.log(format_args!(
        "note: accepting `{}`; the newer run `{}` ran a selection of the cases",
        whole.folder(),
        run.folder()
    ));
    streams.copies.run(whole.folder())
}

/// Logs how few regressions a comparison with a single baseline run can confirm.
fn log_what_one_run_confirms(cases: usize, streams: &mut Streams) {
    let confirms = match smallest_confirmable(cases, 1, DEFAULT_CONFIRM_MAX.into(), &Thresholds::default()) {
        Some(1) => return,
        Some(least) => format!("confirms {least} or more of {cases} cases that fail together, and no single case"),
        None => "confirms no regression".to_owned(),
    };
    streams.log(format_args!(
        "note: a baseline of one run {confirms}; add runs with `counterproof accept --append`, or create a baseline of five \
         with `counterproof run --side baseline --repeat 5`"
    ));
}

impl Args {
    /// Returns the command that continues a run with the cases and the agent that it records, unless the configuration names the
    /// agent.
    fn run_command(&self, folder: &Utf8Path, layers: &Layers, more: &str) -> String {
        let mut words = vec!["counterproof run --side new".to_owned()];
        if let Ok(run) = RunReader::open(folder) {
            words.extend(
                RecordedCases::find(&run).path().map(|path| format!("--cases {}", resume_command::path(&path))),
            );
            let side = layers.config.side.get(Side::New);
            let is_configured = side.base_url.is_some() || side.command.is_some() || side.start.is_some();
            let url = Some(&run.run().base_url).filter(|url| !is_configured && url.starts_with("http"));
            words.extend(url.map(|url| format!("--base-url {}", resume_command::quoted(url))));
        }
        if self.runs != "runs" {
            words.push(format!("--out {}", resume_command::path(&self.runs)));
        }
        words.push(more.to_owned());
        words.join(" ")
    }

    /// Returns the file for the drafts; `None` without `--expect`. Rejects an existing file.
    fn drafts_file(&self) -> Result<Option<Utf8PathBuf>, CommandError> {
        if !self.expect {
            return Ok(None);
        }
        let Some(cases) = &self.cases else {
            return Err(CommandError::usage("`--expect` requires the cases of the run")
                .hint("pass `--cases PATH`, or set `cases` below `[run]` in counterproof.toml"));
        };
        let file = match &self.drafts {
            Some(file) => file.clone(),
            None => cases.with_file_name(format!("{}.draft.json", cases.file_stem().unwrap_or("cases"))),
        };
        if !cases.exists() {
            return Err(CommandError::usage(format!("`{cases}` does not exist")).hint("pass the cases of the run"));
        }
        // A person may be editing it.
        if file.exists() {
            return Err(CommandError::usage(format!("`{file}` already exists"))
                .hint("finish or remove it, or name another file with `--drafts`"));
        }
        Ok(Some(file))
    }
}

/// Drafts expectations from all runs of the latest baseline.
fn write_drafts(file: &Utf8Path, runs: &Utf8Path, streams: &mut Streams) -> Result<(), CommandError> {
    let baseline = runs_of_baseline(named_runs::latest(runs, Side::Baseline, streams)?);
    let drafts = draft_expectations(&baseline).map_err(CommandError::io)?;
    let count = drafts.iter().map(|case| case.expected.expect.len()).sum();
    // A file without drafts would look like a finished draft.
    if count == 0 {
        streams.log("note: no expectation to draft: the runs share no high-risk action, number or unused tool");
        return Ok(());
    }
    write::remove_leftovers_next_to(file);
    write::write_json(file, &drafts, Durability::Synced).map_err(CommandError::io)?;
    let of = text::count(drafts.len(), "case", "cases");
    let from = text::count(baseline.len(), "run", "runs");
    streams.print_line(format_args!(
        "drafts: {file} ({} for {of}, from {from})",
        text::count(count, "expectation", "expectations")
    ))?;
    streams.log("read each draft, copy those that matter into the cases file, and remove their `draft`");
    Ok(())
}

/// Maps a rejected run to an error. A defect of the run is a finding; a wrong name is a usage error.
fn accept_error(error: AcceptError, reason: &str, run_command: &dyn Fn(&str) -> String) -> CommandError {
    let resume = |folder: &Utf8Path, more: &str| {
        let id = resume_command::quoted(folder.file_name().unwrap_or_default());
        run_command(&format!("--resume {id}{more}"))
    };
    let (usage, findings) = (Exit::Usage, Exit::Findings);
    let (exit, hint) = match &error {
        AcceptError::Name { .. } | AcceptError::Exists(_) => {
            (usage, Some("choose another ID with `--run-id`".to_owned()))
        }
        AcceptError::IsBaseline(_) => {
            (usage, Some("`counterproof compare` uses the latest baseline without `accept`".to_owned()))
        }
        // A second process is a mistake of the caller, as for `run`.
        AcceptError::Lock(LockError::Busy(_)) => (usage, Some(WAIT_OR_STOP.to_owned())),
        AcceptError::Labels(LabelsError::NameTaken) => (usage, Some("rename the case".to_owned())),
        AcceptError::Labels(LabelsError::Read { .. }) | AcceptError::Review(ReviewError::Read { .. }) => {
            (Exit::Io, None)
        }
        AcceptError::Labels(_) | AcceptError::Review(_) => (usage, None),
        AcceptError::IsShard(_) => {
            (findings, Some("merge the shards with `counterproof merge SHARD… --out RUN`".to_owned()))
        }
        AcceptError::IsConfirmation { folder, of } => {
            let of = folder.parent().unwrap_or(Utf8Path::new(".")).join(of.as_str());
            let of = resume_command::path(&of);
            let reason = resume_command::quoted(reason);
            (findings, Some(format!("accept the run that it confirms: counterproof accept {of} --reason {reason}")))
        }
        AcceptError::Incomplete { folder, .. } => {
            (findings, Some(format!("run the missing cases: {}", resume(folder, ""))))
        }
        AcceptError::Invalid { folder, .. } => {
            let folder = resume_command::path(folder);
            (findings, Some(format!("list all violations with `counterproof validate {folder}`")))
        }
        AcceptError::Failures { folder, .. } => {
            let retry = resume(folder, " --retry-errors");
            (findings, Some(format!("retry the failed cases: {retry}, or pass `--allow-failures`")))
        }
        AcceptError::Repeats { group, of, .. } => {
            let repeat = run_command(&format!("--resume {} --repeat {of}", resume_command::quoted(group.as_str())));
            (findings, Some(format!("make the missing repeats: {repeat}")))
        }
        // A run that does not exist is a wrong argument; one that exists but cannot be read is a failed read.
        AcceptError::Read(read @ ReadError::Io { path, .. }) => {
            let hint = named_runs::missing_run_hint(path);
            (if read.is_missing() && hint.is_some() { usage } else { Exit::Io }, hint)
        }
        AcceptError::Read(_) | AcceptError::Path(_) | AcceptError::Lock(_) | AcceptError::Write(_) => (Exit::Io, None),
    };
    let error = CommandError::new(exit, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("the reason is empty".to_owned()) } else { Ok(text.to_owned()) }
}
