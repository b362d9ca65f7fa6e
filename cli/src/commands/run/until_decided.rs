//! `run --repeat-until-decided`: repeats runs, and judges the cases against a baseline after each round.
//!
//! The runner and the evaluator do not depend on each other, so this module passes the run folders from one to the other.

use std::collections::HashSet;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Exit, RunId, Side};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{CaseStatus, Expectations, RoundStatus, SideRuns, Thresholds, round_statuses, text};

use super::options::{Decision, RunOptions};
use super::session::{RunEnd, Session};
use crate::command_error::CommandError;
use crate::named_runs::{open_named, side_runs, warn_about_side};
use crate::shell;
use crate::streams::Streams;

/// Maximum number of cases that are listed per status after a round.
const MAX_CASES_LISTED: usize = 10;

/// Maximum number of characters of the explanation of a case.
const MAX_EXPLANATION_CHARS: usize = 160;

/// Makes runs until every case is decided or the plan is exhausted.
pub(super) fn run_until_decided(session: &mut Session<'_>, decision: &Decision) -> Result<Exit, CommandError> {
    let (RunOptions { plan, settings: shared, .. }, cases) = (session.options, session.cases);
    if shared.side != Side::New {
        return Err(CommandError::usage("`--repeat-until-decided` requires `--side new`")
            .hint("create the baseline with `--side baseline --repeat N`"));
    }
    let max = plan.runs.len();
    let judge = RoundJudge::new(decision, cases, max, session.streams)?;
    let until_decided =
        counterproof_runner::UntilDecidedPlan { against: judge.baseline_ids(), full_rounds: judge.full_rounds() };
    let (mut open, mut folders, mut undecided) = (cases.to_vec(), Vec::new(), 0);
    for (round, planned) in (1..).zip(&plan.runs) {
        let settings = planned.round_settings(shared, until_decided.clone());
        if session.run(&settings, &open, max - round)? == RunEnd::Interrupted {
            return Ok(Exit::Interrupted);
        }
        folders.push(settings.out.join(settings.side.as_str()).join(settings.run_id.as_str()));
        let round_statuses = judge.round_statuses(&folders)?;
        log_round(round, max, &round_statuses, session.streams);
        undecided = round_statuses.iter().filter(|case| is_undecided(case.standing)).count();
        // Full rounds run every case, since the tests over the whole suite need all of them.
        if round >= until_decided.full_rounds as usize {
            open = open_cases(cases, &round_statuses);
        }
        if open.is_empty() {
            break;
        }
    }
    if undecided > 0 {
        session.streams.log(format_args!("{} undecided", text::count(undecided, "case", "cases")));
    }
    let joined = |folders: &[Utf8PathBuf]| shell::paths(folders.iter().map(Utf8PathBuf::as_path));
    session.streams.log(format_args!(
        "next: counterproof compare --baseline {} --new {} --cases {}",
        joined(&decision.against),
        joined(&folders),
        shell::path(&shared.cases_path)
    ));
    Ok(Exit::Done)
}

/// The baseline runs, expectations and thresholds that the rounds are judged with.
struct RoundJudge {
    baseline: SideRuns,
    expectations: Expectations,
    thresholds: Thresholds,
    case_ids: Vec<CaseId>,
    /// The maximum number of rounds.
    max: usize,
}

impl RoundJudge {
    /// Opens the baseline runs.
    fn new(decision: &Decision, cases: &[CaseSpec], max: usize, streams: &mut Streams) -> Result<Self, CommandError> {
        let case_ids: Vec<CaseId> = cases.iter().map(|case| case.id.clone()).collect();
        let baseline = side_runs(open_named(&decision.against, Side::Baseline)?, Side::Baseline)?;
        baseline.iter().for_each(|run| warn_about_side(run.reader(), Side::Baseline, streams));
        if !case_ids.iter().any(|id| baseline.iter().any(|run| run.selects(id))) {
            return Err(CommandError::usage("the runs of `--against` contain none of the cases")
                .hint("create runs of the same cases, such as with `counterproof run --side baseline --repeat 10 …`"));
        }
        let expectations = Expectations::compile(cases).map_err(CommandError::usage)?;
        Ok(Self { baseline, expectations, thresholds: decision.thresholds.clone(), case_ids, max })
    }

    fn baseline_ids(&self) -> Vec<RunId> {
        self.baseline.iter().map(|run| run.reader().run().run_id.clone()).collect()
    }

    /// Returns the number of first rounds that run every case, which the tests over the whole suite need. A suite of one case
    /// has no such tests.
    fn full_rounds(&self) -> u32 {
        if self.case_ids.len() < 2 {
            1
        } else {
            self.thresholds.full_rounds.clamp(1, u32::try_from(self.max).unwrap_or(u32::MAX))
        }
    }

    /// Judges every case on the rounds in these folders.
    fn round_statuses(&self, folders: &[Utf8PathBuf]) -> Result<Vec<CaseStatus>, CommandError> {
        let new = side_runs(open_named(folders, Side::New)?, Side::New)?;
        Ok(round_statuses(&self.baseline, &new, &self.case_ids, &self.expectations, &self.thresholds))
    }
}

/// Logs the number of cases per status, and the cases that are worse or undecided with the explanation.
fn log_round(round: usize, max: usize, cases: &[CaseStatus], streams: &mut Streams) {
    let count = |standing: RoundStatus| cases.iter().filter(|case| case.standing == standing).count();
    let optional = |standing: RoundStatus, label: &str| match count(standing) {
        0 => String::new(),
        cases => format!(", {cases} {label}"),
    };
    streams.log(format_args!(
        "round {round} of at most {max}: {} worse, {} steady, {} open{}{}",
        count(RoundStatus::Worse),
        count(RoundStatus::Steady),
        count(RoundStatus::Open),
        optional(RoundStatus::Undecidable, "undecidable in the remaining rounds"),
        optional(RoundStatus::Untested, "not in the baseline"),
    ));
    for (standing, label) in
        [(RoundStatus::Worse, "worse"), (RoundStatus::Open, "open"), (RoundStatus::Undecidable, "undecidable")]
    {
        let listed = || cases.iter().filter(move |case| case.standing == standing);
        for case in listed().take(MAX_CASES_LISTED) {
            let explanation = text::one_line(case.why.as_deref().unwrap_or("no data yet"), MAX_EXPLANATION_CHARS);
            streams.log(format_args!("  {label:<11}  {}  {explanation}", case.case_id));
        }
        let unlisted = listed().count().saturating_sub(MAX_CASES_LISTED);
        if unlisted > 0 {
            streams.log(format_args!("  and {unlisted} more {label}"));
        }
    }
}

const fn is_undecided(standing: RoundStatus) -> bool {
    matches!(standing, RoundStatus::Open | RoundStatus::Undecidable)
}

/// Returns the cases that another round may decide.
fn open_cases(cases: &[CaseSpec], round_statuses: &[CaseStatus]) -> Vec<CaseSpec> {
    let open: HashSet<_> =
        round_statuses.iter().filter(|case| case.standing == RoundStatus::Open).map(|case| &case.case_id).collect();
    cases.iter().filter(|case| open.contains(&case.id)).cloned().collect()
}
