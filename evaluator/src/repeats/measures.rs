//! Measures: in how many runs of a side something holds, for each case and for the whole suite.

use counterproof_artifact::evaluation::{CaseMeasure, MeasureCode, Rate, SuiteMeasure, Tier};

use super::survey::{Answered, CaseSurvey, RunOutcome};
use crate::statistics::{
    self, CaseJudgement, CaseTallies, Interval, Judgement, MoreRuns, Planner, Share, TWO_SIDED_95, Tally, Thresholds,
    wilson,
};

/// What all cases say of all measures.
#[derive(Debug)]
pub(super) struct Measures {
    /// For each case, what its runs say; measures that it does not have are left out.
    pub(super) by_case: Vec<Vec<CaseMeasure>>,
    /// For each measure that any case has, what all cases say together.
    pub(super) suite: Vec<SuiteMeasure>,
}

const CODES: [MeasureCode; 3] = [MeasureCode::Answered, MeasureCode::Expectations, MeasureCode::Evidence];

impl Measures {
    /// Judges all cases. The rate of false alarms in `thresholds` holds for all measures together.
    pub(super) fn of(cases: &[CaseSurvey], thresholds: &Thresholds) -> Self {
        let counted: Vec<Counted> = CODES.into_iter().filter_map(|code| Counted::of(code, cases)).collect();
        // What always holds, or never does, can raise no alarm: it takes no share of the rate.
        let moving = counted.iter().filter(|measure| measure.varies()).count().max(1);
        let thresholds = shared_out(thresholds, moving);

        let mut planner = Planner::new(&thresholds);
        let mut by_case: Vec<Vec<CaseMeasure>> = cases.iter().map(|_| Vec::new()).collect();
        let mut suite = Vec::new();
        for measure in counted {
            let fall = statistics::judge(&measure.tallies, &thresholds);
            let mirrored: Vec<_> = measure.tallies.iter().map(|tallies| tallies.mirrored()).collect();
            let rise = statistics::judge(&mirrored, &thresholds);
            suite.push(suite_measure(measure.code, &measure.tallies, &fall));
            for (index, (fall, rise)) in measure.indexes.into_iter().zip(fall.cases.iter().zip(&rise.cases)) {
                by_case[index].push(case_measure(measure.code, fall, rise, &mut planner));
            }
        }
        Self { by_case, suite }
    }
}

/// The cases that have a measure, and how often it holds in each.
struct Counted {
    code: MeasureCode,
    indexes: Vec<usize>,
    tallies: Vec<CaseTallies>,
}

impl Counted {
    fn of(code: MeasureCode, cases: &[CaseSurvey]) -> Option<Self> {
        let found = cases.iter().enumerate().filter_map(|(index, case)| Some((index, tallies(code, case)?)));
        let (indexes, tallies): (Vec<_>, Vec<_>) = found.unzip();
        (!indexes.is_empty()).then_some(Self { code, indexes, tallies })
    }

    /// True where it holds in some runs of a case, and in others not. Whose runs these are is not asked, so that the
    /// answer says nothing about the sides.
    fn varies(&self) -> bool {
        self.tallies.iter().any(|case| {
            let passed = case.baseline.passed + case.new.passed;
            passed > 0 && passed < case.baseline.runs() + case.new.runs()
        })
    }
}

/// The same thresholds, with the rate of false alarms shared out over so many tests (Bonferroni).
fn shared_out(thresholds: &Thresholds, tests: usize) -> Thresholds {
    let alpha = Share::try_from(thresholds.alpha.value() / tests as f64).unwrap_or(thresholds.alpha);
    Thresholds { alpha, ..thresholds.clone() }
}

fn case_measure(
    code: MeasureCode,
    fall: &CaseJudgement,
    rise: &CaseJudgement,
    planner: &mut Planner<'_>,
) -> CaseMeasure {
    let tier = match (fall.tier, rise.tier) {
        (statistics::Tier::Regression, _) => Tier::Regression,
        (_, statistics::Tier::Regression) => Tier::Improvement,
        (statistics::Tier::Likely, _) => Tier::Likely,
        (statistics::Tier::Watch, _) => Tier::Watch,
        (statistics::Tier::Steady, _) => Tier::Steady,
        (statistics::Tier::Unknown, _) => Tier::Unknown,
    };
    let more_runs = match planner.more_runs(fall).filter(|_| tier != Tier::Improvement) {
        Some(MoreRuns::Enough(more)) => Some(more.into()),
        Some(MoreRuns::NotUpTo(_)) | None => None,
    };
    CaseMeasure {
        code,
        baseline: rate(fall.tallies.baseline),
        new: rate(fall.tallies.new),
        // Both sides have runs, or the case would not be here.
        p: fall.p.unwrap_or(1.0),
        corrected: fall.corrected.unwrap_or(1.0),
        tier,
        more_runs,
    }
}

fn suite_measure(code: MeasureCode, cases: &[CaseTallies], judged: &Judgement) -> SuiteMeasure {
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

/// What a case's runs say of a measure; `None` where it does not apply to the case, or where a side has nothing to count.
fn tallies(code: MeasureCode, case: &CaseSurvey) -> Option<CaseTallies> {
    let side = |runs: &[RunOutcome]| -> Tally { runs.iter().filter_map(|run| outcome(code, run)).collect() };
    let tallies = CaseTallies { baseline: side(&case.baseline), new: side(&case.new) };
    (tallies.baseline.runs() > 0 && tallies.new.runs() > 0).then_some(tallies)
}

/// Whether the measure holds in a run; `None` where it is not asked there.
pub(super) fn outcome(code: MeasureCode, run: &RunOutcome) -> Option<bool> {
    let of_answer = |asked: fn(&Answered) -> Option<bool>| run.answered().and_then(asked);
    match code {
        MeasureCode::Answered => run.was_asked().then(|| run.answered().is_some()),
        MeasureCode::Expectations => {
            of_answer(|answer| (!answer.met.is_empty()).then(|| answer.met.iter().all(|met| *met)))
        }
        MeasureCode::Evidence => of_answer(|answer| answer.evidence_holds),
    }
}

fn rate(tally: Tally) -> Rate {
    let interval = wilson(tally, TWO_SIDED_95).map(|Interval { low, high }| [low, high]);
    Rate { passed: tally.passed.into(), runs: tally.runs().into(), interval }
}
