//! Measures: the number of runs of a side that pass a check, for each case and for the whole suite.
//!
//! One combined measure decides: whether a run solves the case. Its parts explain what fell. They are tested too, but a part
//! counts as fallen only where the combined measure fell, so the parts need no share of the false alarm rate (a closed test:
//! Marcus, Peritz & Gabriel 1976). Runner errors thus cost the expectations no power.

use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Rate, SuiteMeasure, Tier};

use super::run_result::{CaseResults, RunResult};
use crate::load::SideRuns;
use crate::statistics::{
    self, CaseJudgement, CaseRuns, CaseTallies, CaseTests, Interval, MoreRuns, Planner, SuiteDecision, TWO_SIDED_95,
    Tally, Thresholds, wilson,
};
use counterproof_artifact::Sides;

/// For each run of each side, whether it confirms cases that looked worse in the first runs.
#[derive(Debug)]
pub(super) struct ConfirmationRuns(Sides<Vec<bool>>);

impl ConfirmationRuns {
    pub(super) fn from_runs(baseline: &SideRuns, new: &SideRuns) -> Self {
        let confirms =
            |side: &SideRuns| side.iter().map(|run| run.reader().run().confirmation.is_some()).collect::<Vec<_>>();
        Self(Sides::new(confirms(baseline), confirms(new)))
    }

    /// One run per side, without a confirmation.
    pub(super) fn one_run() -> Self {
        Self(Sides::new(vec![false], vec![false]))
    }
}

/// The measures of all cases.
#[derive(Debug)]
pub(super) struct Measures {
    /// The measures of each case, the combined one first, without those that do not apply to it.
    pub(super) by_case: Vec<Vec<CaseMeasure>>,
    /// Each measure that any case has, over all cases together.
    pub(super) suite: Vec<SuiteMeasure>,
    /// The p-value of the whole night: a case or the suite fell. `None` without cases that have runs on both sides.
    pub(super) p: Option<f64>,
}

impl Measures {
    /// Judges all cases. The false alarm rate in `thresholds` applies to the whole night.
    pub(super) fn new(cases: &[CaseResults], confirms: &ConfirmationRuns, thresholds: &Thresholds) -> Self {
        let mut found = Self { by_case: vec![Vec::new(); cases.len()], suite: Vec::new(), p: None };
        for code in MeasureCode::ALL {
            found.add(code, cases, confirms, thresholds);
        }
        found.restrict_parts();
        found
    }

    fn add(&mut self, code: MeasureCode, cases: &[CaseResults], confirms: &ConfirmationRuns, thresholds: &Thresholds) {
        let counted = Counted::from_cases(code, cases, confirms);
        if counted.indexes.is_empty() {
            return;
        }
        let fall = statistics::judge_confirmed(&counted.runs, thresholds, &mut CaseTests::default());
        // A rise is a fall with the sides exchanged, so one test covers both directions. Cases are selected for confirmation by
        // a fall, so only the first runs can show a rise.
        let mirrored: Vec<_> = counted.runs.iter().map(|case| case.initial.mirrored()).collect();
        let rise = statistics::judge(&mirrored, thresholds);
        let tallies: Vec<_> = counted.runs.iter().map(|case| case.initial).collect();
        self.add_suite(code, &tallies, &fall);
        let mut planner = Planner::new(thresholds);
        let cases = counted.runs.iter().zip(fall.cases.iter().zip(&rise.cases));
        for (index, (runs, (fall, rise))) in counted.indexes.into_iter().zip(cases) {
            let mut measure = case_measure(code, fall, rise);
            // The planner knows neither rises nor confirmation runs.
            if measure.tier != Tier::Improvement && runs.confirmation.new.runs() == 0 {
                measure.more_runs = enough(planner.more_runs(fall));
                measure.more_baseline_runs = enough(planner.more_baseline_runs(fall));
            }
            self.by_case[index].push(measure);
        }
    }

    fn add_suite(&mut self, code: MeasureCode, cases: &[CaseTallies], judged: &SuiteDecision) {
        if code == MeasureCode::Solved {
            self.p = judged.p;
        }
        self.suite.push(suite_measure(code, cases, judged));
    }

    /// Lets a part count as fallen or risen only where the combined measure did.
    fn restrict_parts(&mut self) {
        if let Some((solved, parts)) = self.suite.split_first_mut() {
            for part in parts {
                part.fell &= solved.fell;
            }
        }
        for measures in &mut self.by_case {
            let Some((solved, parts)) = measures.split_first_mut() else { continue };
            for part in parts {
                restrict_part(solved, part);
            }
        }
    }
}

/// Gives a part the tier that the combined measure allows.
fn restrict_part(solved: &CaseMeasure, part: &mut CaseMeasure) {
    let counts = |measure: &CaseMeasure| [&measure.baseline, &measure.new].map(|rate| (rate.passed, rate.runs));
    if counts(solved) == counts(part) {
        // The part alone decides, so it has the conclusion of the whole.
        *part = CaseMeasure { code: part.code, ..solved.clone() };
        return;
    }
    part.tier = match (solved.tier, part.tier) {
        (Tier::Regression, Tier::Regression) | (Tier::Improvement, Tier::Improvement) => part.tier,
        (_, Tier::Regression) => Tier::Likely,
        (_, Tier::Improvement) => Tier::Unknown,
        (_, tier) => tier,
    };
    // Numbers of further runs are those of the measure that decides.
    (part.more_runs, part.more_baseline_runs) = (None, None);
}

fn enough(more: Option<MoreRuns>) -> Option<u64> {
    match more {
        Some(MoreRuns::Enough(more)) => Some(more.into()),
        Some(MoreRuns::NotUpTo(_)) | None => None,
    }
}

/// The cases to which a measure applies, and how often it passes in each.
struct Counted {
    indexes: Vec<usize>,
    runs: Vec<CaseRuns>,
}

impl Counted {
    fn from_cases(code: MeasureCode, cases: &[CaseResults], confirms: &ConfirmationRuns) -> Self {
        let count = |(index, case): (usize, &CaseResults)| {
            let runs = case_runs(code, case, confirms);
            let is_tested = runs.initial.baseline.runs() > 0 && runs.initial.new.runs() > 0;
            is_tested.then_some((index, runs))
        };
        let (indexes, runs) = cases.iter().enumerate().filter_map(count).unzip();
        Self { indexes, runs }
    }
}

/// The counts of a case before its confirmation and in its confirmation runs.
pub(super) fn case_runs(code: MeasureCode, case: &CaseResults, confirms: &ConfirmationRuns) -> CaseRuns {
    // A case that was selected for a wrong answer is confirmed by answers: a runner error of a confirmation run would only blur it.
    // The choice depends on the first runs of new alone, which are given in the test.
    let failed_first =
        case.new.iter().zip(&confirms.0.new).any(|(run, confirms)| !confirms && *run == RunResult::Failed);
    let ignores_errors = code == MeasureCode::Solved && !failed_first;
    let tallies = |confirming: bool| {
        let tally = |runs: &[RunResult], confirms: &[bool]| -> Tally {
            let runs = runs.iter().zip(confirms).filter(|(_, confirms)| **confirms == confirming).map(|(run, _)| run);
            let counted = runs.filter(|run| !(confirming && ignores_errors && **run == RunResult::Failed));
            counted.filter_map(|run| run.passes(code)).collect()
        };
        CaseTallies { baseline: tally(&case.baseline, &confirms.0.baseline), new: tally(&case.new, &confirms.0.new) }
    };
    CaseRuns { initial: tallies(false), confirmation: tallies(true) }
}

fn case_measure(code: MeasureCode, fall: &CaseJudgement, rise: &CaseJudgement) -> CaseMeasure {
    let tier = match (fall.tier, rise.tier) {
        // A fall takes precedence; a rise only counts if it is significant, because improvements need no early warning.
        (statistics::Tier::Regression, _) => Tier::Regression,
        (_, statistics::Tier::Regression) => Tier::Improvement,
        (statistics::Tier::Likely, _) => Tier::Likely,
        (statistics::Tier::Watch, _) => Tier::Watch,
        (statistics::Tier::Steady, _) => Tier::Steady,
        (statistics::Tier::Unknown, _) => Tier::Unknown,
    };
    CaseMeasure {
        code,
        baseline: rate(fall.tallies.baseline),
        new: rate(fall.tallies.new),
        // Cases without runs on both sides were left out, so the default is never used.
        p: fall.p.unwrap_or(1.0),
        corrected: fall.corrected.unwrap_or(1.0),
        tier,
        more_runs: None,
        more_baseline_runs: None,
    }
}

fn suite_measure(code: MeasureCode, cases: &[CaseTallies], judged: &SuiteDecision) -> SuiteMeasure {
    let sum = |side: fn(&CaseTallies) -> Tally| cases.iter().map(side).fold(Tally::default(), Tally::plus);
    let count =
        |moved: fn(f64) -> bool| cases.iter().filter_map(|case| case.drop()).filter(|drop| moved(*drop)).count() as u64;
    SuiteMeasure {
        code,
        baseline: rate(sum(|case| case.baseline)),
        new: rate(sum(|case| case.new)),
        p: judged.suite.as_ref().map_or_else(|| judged.p.unwrap_or(1.0), |suite| suite.p),
        fell: judged.suite.as_ref().is_some_and(|suite| suite.rejected),
        // Rates are ratios of small integers, so equal rates are exactly equal and others differ by far more than this.
        cases_fell: count(|drop| drop > 1e-9),
        cases_rose: count(|drop| drop < -1e-9),
    }
}

fn rate(tally: Tally) -> Rate {
    let interval = wilson(tally, TWO_SIDED_95).map(|Interval { low, high }| [low, high]);
    Rate { passed: tally.passed.into(), runs: tally.runs().into(), interval }
}
