//! Repeats that stop when they have decided: which cases another round is to ask, judged against a baseline after each round. The
//! runner and the evaluator never see each other, so what one leaves on disk is handed to the other here.

use std::collections::HashSet;

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, RunId, Side};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::judge::Expectations;
use counterproof_evaluator::load::ComparedRun;
use counterproof_evaluator::load::SideRuns;
use counterproof_evaluator::repeats::{CaseStanding, Standing, standings};
use counterproof_evaluator::statistics::Thresholds;
use counterproof_evaluator::values::text;
use counterproof_store::RunReader;

use crate::command_error::CommandError;
use crate::commands::compare::{read_error, warn_of_other_side};
use crate::streams::Streams;

/// Cases that are named after a round; the others are counted.
const CASES_NAMED: usize = 10;

/// What the rounds are judged by.
pub(crate) struct Rounds {
    baseline: SideRuns,
    expectations: Expectations,
    thresholds: Thresholds,
    case_ids: Vec<CaseId>,
    max: u32,
}

impl Rounds {
    /// Opens the baseline runs. `max` is the largest number of rounds.
    pub(crate) fn new(
        against: &[Utf8PathBuf],
        cases: &[CaseSpec],
        thresholds: Thresholds,
        max: u32,
        streams: &mut Streams,
    ) -> Result<Self, CommandError> {
        let case_ids: Vec<CaseId> = cases.iter().map(|case| case.id.clone()).collect();
        let baseline = open(against, Side::Baseline)?;
        baseline.iter().for_each(|run| warn_of_other_side(run.reader(), Side::Baseline, streams));
        if !case_ids.iter().any(|id| baseline.iter().any(|run| run.selects(id))) {
            return Err(CommandError::usage("the runs of `--against` hold none of the cases").hint(
                "name runs of the same cases, such as those that `counterproof run --side baseline --repeat 10` makes",
            ));
        }
        let expectations = Expectations::compile(cases).map_err(CommandError::usage)?;
        Ok(Self { baseline, expectations, thresholds, case_ids, max })
    }

    /// The baseline runs.
    pub(crate) fn against(&self) -> Vec<RunId> {
        self.baseline.iter().map(|run| run.reader().run().run_id.clone()).collect()
    }

    /// How many rounds, from the first on, ask every case. The suite is tested on these; a single case needs none of them.
    pub(crate) fn full(&self) -> u32 {
        if self.case_ids.len() < 2 { 1 } else { self.thresholds.full_rounds.clamp(1, self.max) }
    }

    /// Where each case stands after the rounds in these folders.
    pub(crate) fn judge(&self, folders: &[Utf8PathBuf]) -> Result<Vec<CaseStanding>, CommandError> {
        let new = open(folders, Side::New)?;
        Ok(standings(&self.baseline, &new, &self.case_ids, &self.expectations, &self.thresholds))
    }

    /// Says how a round left the cases, and why those that are open are.
    pub(crate) fn tell(&self, round: u32, cases: &[CaseStanding], streams: &mut Streams) {
        let count = |standing: Standing| cases.iter().filter(|case| case.standing == standing).count();
        let besides = |standing: Standing, words: &str| match count(standing) {
            0 => String::new(),
            cases => format!(", {cases} {words}"),
        };
        let undecidable = besides(Standing::Undecidable, "that no outcome of the rounds left would decide");
        let untested = besides(Standing::Untested, "not in the baseline");
        streams.note(format_args!(
            "round {round} of at most {}: {} worse, {} steady, {} open{undecidable}{untested}",
            self.max,
            count(Standing::Worse),
            count(Standing::Steady),
            count(Standing::Open),
        ));
        for (standing, name) in
            [(Standing::Worse, "worse"), (Standing::Open, "open"), (Standing::Undecidable, "given up")]
        {
            let of_standing = || cases.iter().filter(move |case| case.standing == standing);
            for case in of_standing().take(CASES_NAMED) {
                let why = case.why.as_deref().unwrap_or("nothing to count yet");
                streams.note(format_args!("  {name:<8}  {}  {}", case.case_id, text::one_line(why, 160)));
            }
            let more = of_standing().count().saturating_sub(CASES_NAMED);
            if more > 0 {
                streams.note(format_args!("  and {more} more: {name}"));
            }
        }
    }
}

/// How many cases the rounds so far have not decided, whether or not others may.
pub(crate) fn undecided(standings: &[CaseStanding]) -> usize {
    standings.iter().filter(|case| matches!(case.standing, Standing::Open | Standing::Undecidable)).count()
}

/// The cases that another round may help, of all of them.
pub(crate) fn open_cases(cases: &[CaseSpec], standings: &[CaseStanding]) -> Vec<CaseSpec> {
    let open: HashSet<_> =
        standings.iter().filter(|case| case.standing == Standing::Open).map(|case| &case.case_id).collect();
    cases.iter().filter(|case| open.contains(&case.id)).cloned().collect()
}

fn open(folders: &[Utf8PathBuf], side: Side) -> Result<SideRuns, CommandError> {
    let mut seen = HashSet::new();
    let mut runs = Vec::new();
    for folder in folders {
        let run = RunReader::open(folder).map_err(|error| read_error(error, side))?;
        if !seen.insert(folder.canonicalize_utf8().unwrap_or_else(|_| folder.clone())) {
            let message = format!("`{folder}` is named twice as a run of {side}");
            return Err(CommandError::usage(message).hint("a run is evidence once: name each folder once"));
        }
        runs.push(ComparedRun::new(run));
    }
    SideRuns::of_all(runs).ok_or_else(|| CommandError::usage(format!("no run of {side} is named")))
}
