//! Measures: the number of runs of a side that pass a check, for each case and for the whole suite.

use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Rate, SuiteMeasure, Tier};

use super::design::{Design, Rounds};
use super::observations::{Answered, CaseObservations, RunOutcome};
use crate::statistics::{
    self, CaseJudgement, CaseRounds, CaseTallies, Interval, MoreRuns, Planner, RoundTests, SuiteDecision, TWO_SIDED_95,
    Tally, Thresholds, wilson,
};

/// The measures of all cases.
#[derive(Debug)]
pub(super) struct Measures {
    /// The measures of each case, without those that do not apply to it.
    pub(super) by_case: Vec<Vec<CaseMeasure>>,
    /// For each case, the measures that the remaining rounds cannot decide; empty for planned runs.
    pub(super) undecidable: Vec<Vec<MeasureCode>>,
    /// Each measure that any case has, over all cases together.
    pub(super) suite: Vec<SuiteMeasure>,
}

const CODES: [MeasureCode; 3] = [MeasureCode::Answered, MeasureCode::Expectations, MeasureCode::Evidence];

impl Measures {
    /// Judges all cases. The false alarm rate in `thresholds` applies to all measures together.
    pub(super) fn new(cases: &[CaseObservations], design: &Design, thresholds: &Thresholds) -> Self {
        match &design.rounds {
            Some(rounds) => Self::from_rounds(cases, design, rounds, thresholds),
            None => Self::from_planned(cases, design, thresholds),
        }
    }

    fn empty(cases: usize) -> Self {
        Self { by_case: vec![Vec::new(); cases], undecidable: vec![Vec::new(); cases], suite: Vec::new() }
    }

    /// Judges runs whose number was planned in advance.
    fn from_planned(cases: &[CaseObservations], design: &Design, thresholds: &Thresholds) -> Self {
        let counted: Vec<Counted> =
            CODES.into_iter().filter_map(|code| Counted::from_cases(code, cases, design)).collect();
        // A measure that always or never passes cannot raise an alarm, so it needs no share of the rate.
        let moving = counted.iter().filter(|measure| measure.varies()).count().max(1);
        let thresholds = divided_among(thresholds, moving);

        let mut planner = Planner::new(&thresholds);
        let mut found = Self::empty(cases.len());
        for measure in counted {
            let fall = statistics::judge(&measure.tallies, &thresholds);
            // A rise is a fall with the sides exchanged, so one test covers both directions.
            let mirrored: Vec<_> = measure.tallies.iter().map(|tallies| tallies.mirrored()).collect();
            let rise = statistics::judge(&mirrored, &thresholds);
            found.suite.push(suite_measure(measure.code, &measure.tallies, &fall));
            for (index, (fall, rise)) in measure.indexes.into_iter().zip(fall.cases.iter().zip(&rise.cases)) {
                let more_runs = match planner.more_runs(fall) {
                    Some(MoreRuns::Enough(more)) => Some(more.into()),
                    Some(MoreRuns::NotUpTo(_)) | None => None,
                };
                found.by_case[index].push(case_measure(measure.code, fall, rise, more_runs));
            }
        }
        found
    }

    /// Judges rounds that each include only the open cases: results are tested after every round, and stop the case.
    fn from_rounds(cases: &[CaseObservations], design: &Design, rounds: &Rounds, thresholds: &Thresholds) -> Self {
        let counted = CODES.into_iter().filter_map(|code| RoundsCounted::from_cases(code, cases, design, rounds));
        let counted: Vec<RoundsCounted> = counted.collect();
        // Whether a measure varies is only known after the last round, so using it would change earlier decisions.
        let thresholds = Thresholds { full_rounds: rounds.full, ..divided_among(thresholds, counted.len().max(1)) };

        let mut tests = RoundTests::default();
        let mut found = Self::empty(cases.len());
        for measure in counted {
            let fall = statistics::judge_rounds(&measure.cases, rounds.max, &thresholds, &mut tests);
            // The full rounds include every case, so a single test on them is valid.
            let whole: Vec<CaseTallies> = measure.cases.iter().map(|case| case.whole(rounds.full as usize)).collect();
            let mirrored: Vec<_> = whole.iter().map(|tallies| tallies.mirrored()).collect();
            let rise = statistics::judge(&mirrored, &thresholds);
            found.suite.push(suite_measure(measure.code, &whole, &fall));
            for (index, (fall, rise)) in measure.indexes.into_iter().zip(fall.cases.iter().zip(&rise.cases)) {
                if fall.p.is_some() {
                    found.by_case[index].push(case_measure(measure.code, fall, rise, None));
                }
                if fall.undecidable {
                    found.undecidable[index].push(measure.code);
                }
            }
        }
        found
    }
}

/// The cases to which a measure applies, and how often it passes in each.
struct Counted {
    code: MeasureCode,
    indexes: Vec<usize>,
    tallies: Vec<CaseTallies>,
}

impl Counted {
    fn from_cases(code: MeasureCode, cases: &[CaseObservations], design: &Design) -> Option<Self> {
        let found = cases.iter().enumerate().filter_map(|(index, case)| Some((index, tallies(code, case, design)?)));
        let (indexes, tallies): (Vec<_>, Vec<_>) = found.unzip();
        (!indexes.is_empty()).then_some(Self { code, indexes, tallies })
    }

    /// True if the measure passes in some runs of a case and fails in others. It uses only the totals of both sides, so that the
    /// choice of the tests does not depend on the result.
    fn varies(&self) -> bool {
        self.tallies.iter().any(|case| {
            let passed = case.baseline.passed + case.new.passed;
            passed > 0 && passed < case.baseline.runs() + case.new.runs()
        })
    }
}

/// The cases to which a measure applies, and whether it passes in each round.
struct RoundsCounted {
    code: MeasureCode,
    indexes: Vec<usize>,
    cases: Vec<CaseRounds>,
}

impl RoundsCounted {
    /// `None` if no case has countable runs on both sides. Cases that new has not run yet are included.
    fn from_cases(code: MeasureCode, cases: &[CaseObservations], design: &Design, rounds: &Rounds) -> Option<Self> {
        let count = |(index, case): (usize, &CaseObservations)| {
            let baseline = baseline_tally(code, case, design);
            let outcomes: Vec<_> = rounds.order.iter().map(|run| outcome(code, case.new.get(*run)?)).collect();
            // Only in the full rounds: a later round without the case means that the case was decided.
            let left_out = outcomes.iter().take(rounds.full as usize).filter(|outcome| outcome.is_none()).count();
            let new = outcomes.into_iter().flatten().collect();
            (baseline.runs() > 0).then_some((index, CaseRounds { baseline, new, left_out }))
        };
        let (indexes, cases): (Vec<_>, Vec<_>) = cases.iter().enumerate().filter_map(count).unzip();
        let is_any = cases.iter().any(|case: &CaseRounds| !case.new.is_empty());
        is_any.then_some(Self { code, indexes, cases })
    }
}

/// The thresholds with the false alarm rate divided by the number of tests (Bonferroni).
fn divided_among(thresholds: &Thresholds, tests: usize) -> Thresholds {
    Thresholds { alpha: thresholds.alpha.divided_by(tests), ..thresholds.clone() }
}

fn case_measure(code: MeasureCode, fall: &CaseJudgement, rise: &CaseJudgement, more_runs: Option<u64>) -> CaseMeasure {
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
        // The planner only knows falls: its number does not apply to a decided rise.
        more_runs: more_runs.filter(|_| tier != Tier::Improvement),
    }
}

fn suite_measure(code: MeasureCode, cases: &[CaseTallies], judged: &SuiteDecision) -> SuiteMeasure {
    let sum = |side: fn(&CaseTallies) -> Tally| {
        cases.iter().map(side).fold(Tally::default(), |sum, tally| {
            Tally::new(sum.passed.saturating_add(tally.passed), sum.failed.saturating_add(tally.failed))
        })
    };
    SuiteMeasure {
        code,
        baseline: rate(sum(|case| case.baseline)),
        new: rate(sum(|case| case.new)),
        p: judged.suite.as_ref().map_or_else(|| judged.p.unwrap_or(1.0), |suite| suite.p),
        fell: judged.suite.as_ref().is_some_and(|suite| suite.rejected),
    }
}

/// How often a measure passes in a case; `None` if it does not apply to the case, or if a side has no countable run.
fn tallies(code: MeasureCode, case: &CaseObservations, design: &Design) -> Option<CaseTallies> {
    let new = case.new.iter().filter_map(|run| outcome(code, run)).collect();
    let tallies = CaseTallies { baseline: baseline_tally(code, case, design), new };
    (tallies.baseline.runs() > 0 && tallies.new.runs() > 0).then_some(tallies)
}

fn baseline_tally(code: MeasureCode, case: &CaseObservations, design: &Design) -> Tally {
    let counted = case.baseline.iter().enumerate().filter(|(run, _)| design.counts(*run));
    counted.filter_map(|(_, run)| outcome(code, run)).collect()
}

/// Whether a run passes the measure; `None` if the measure does not apply to the run.
pub(super) fn outcome(code: MeasureCode, run: &RunOutcome) -> Option<bool> {
    let of_answer = |measured: fn(&Answered) -> Option<bool>| run.answered().and_then(measured);
    match code {
        MeasureCode::Answered => run.was_sent().then(|| run.answered().is_some()),
        MeasureCode::Expectations => of_answer(|answer| answer.met),
        MeasureCode::Evidence => of_answer(|answer| answer.evidence_holds),
    }
}

fn rate(tally: Tally) -> Rate {
    let interval = wilson(tally, TWO_SIDED_95).map(|Interval { low, high }| [low, high]);
    Rate { passed: tally.passed.into(), runs: tally.runs().into(), interval }
}
