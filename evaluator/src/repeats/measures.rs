//! Measures: the number of runs of a side that pass a check, for each case and for the whole suite.
//!
//! One combined measure decides: whether a run solves the case. Its parts explain what fell. They are tested too, but a part
//! counts as fallen only if the combined measure fell, so the parts need no share of the false alarm rate (a closed test:
//! Marcus, Peritz & Gabriel 1976). Runner errors thus cost the expectations no power.

use std::collections::BTreeMap;

use counterproof_artifact::evaluation::{
    CaseMeasure, GateRule, GateScope, Judgement, MeasureCode, Rate, RuleTest, SuiteMeasure, Tier,
};
use counterproof_artifact::{Confirmation, ProposedAction, RiskLevel, Sides};
use serde::{Deserialize, Serialize};

use super::observations::{CaseObservations, RunOutcome};

use crate::diff::WithEvidence;
use crate::gate::{self, GateRules};
use crate::judge::any_failed;
use crate::judge::outcomes::FailedEvidence;
use crate::load::evidence::{self, FollowedRef};
use crate::load::{Artifact, ComparedRun, SideRuns};
use crate::statistics::{
    self, CaseJudgement, CasePasses, CaseRuns, CaseTallies, CaseTests, DeviatingRun, Interval, LostRuns, LostTest,
    MoreRuns, Planner, SuiteDecision, TWO_SIDED_95, Tally, Thresholds, wilson,
};

/// Which runs confirm cases that looked worse in the first runs.
#[derive(Debug)]
pub(super) struct ConfirmationRuns {
    /// For each run of each side, whether it is a confirmation run.
    pub(super) confirms: Sides<Vec<bool>>,
    /// The number of confirmation runs that were planned for a case that keeps failing.
    pub(super) planned: Sides<u32>,
    /// Whether a case was not run again after the first run in which it could no longer be lost.
    pub(super) ends_early: bool,
}

impl ConfirmationRuns {
    pub(super) fn from_runs(baseline: &SideRuns, new: &SideRuns) -> Self {
        let confirmation = |side: &SideRuns| {
            side.iter().map(|run| run.reader().run().confirmation.as_ref().map(planned_runs)).collect::<Vec<_>>()
        };
        let confirmations = Sides::new(confirmation(baseline), confirmation(new));
        // An interrupted confirmation made fewer runs than planned, and has not decided yet. The agent of the baseline may have
        // stopped answering.
        let of_new = confirmations.new.iter().copied().flatten().max();
        let planned_of_new = of_new.map_or(0, |planned| planned.unwrap_or(count(&confirmations.new)));
        let planned = Sides::new(count(&confirmations.baseline).min(planned_of_new), planned_of_new);
        let ends_early = |run: &ComparedRun| {
            run.reader().run().confirmation.as_ref().and_then(|confirmation| confirmation.ends_early) == Some(true)
        };
        Self {
            confirms: confirmations.map(|runs| runs.iter().map(Option::is_some).collect()),
            planned,
            ends_early: new.iter().any(ends_early),
        }
    }

    /// Whether no run is one of a confirmation.
    fn is_none(&self) -> bool {
        !self.confirms.baseline.iter().chain(&self.confirms.new).any(|confirms| *confirms)
    }

    /// One run per side, without a confirmation.
    pub(super) fn one_run() -> Self {
        Self { confirms: Sides::new(vec![false], vec![false]), planned: Sides::default(), ends_early: false }
    }

    /// The numbers of answers of a case before its confirmation.
    pub(super) fn initial_answers(&self, case: &CaseObservations) -> Sides<u32> {
        #[expect(clippy::cast_possible_truncation, reason = "a side has far fewer runs")]
        let count = |runs: &[RunOutcome], confirms: &[bool]| {
            runs.iter().zip(confirms).filter(|(run, confirms)| !**confirms && run.answered().is_some()).count() as u32
        };
        Sides::new(count(&case.baseline, &self.confirms.baseline), count(&case.new, &self.confirms.new))
    }

    /// Whether new ran a case again.
    pub(super) fn ran_again(&self, case: &CaseObservations) -> bool {
        let mut runs = case.new.iter().zip(&self.confirms.new);
        runs.any(|(run, confirms)| *confirms && !matches!(run, RunOutcome::NotSelected))
    }
}

/// The number of confirmation runs that was planned; `None` for a run that does not state it.
fn planned_runs(confirmation: &Confirmation) -> Option<u32> {
    confirmation.count.and_then(|count| u32::try_from(count.get()).ok())
}

#[expect(clippy::cast_possible_truncation, reason = "a side has far fewer runs")]
fn count<T>(confirmations: &[Option<T>]) -> u32 {
    confirmations.iter().flatten().count() as u32
}

#[derive(Debug)]
pub(super) struct Measures {
    /// The measures of each case, the combined one first, without those that do not apply to it.
    pub(super) by_case: Vec<Vec<CaseMeasure>>,
    /// Each measure that any case has, over all cases together.
    pub(super) suite: Vec<SuiteMeasure>,
    /// The p-value of the whole night: a case or the suite fell. `None` without cases that have runs on both sides.
    pub(super) p: Option<f64>,
    /// The test of the cases that new fails in every run, and the baseline in none.
    pub(super) lost: Option<LostTest>,
    /// The run that shows that the runs of a side differ among themselves. Whole runs are compared then.
    pub(super) deviating: Option<DeviatingRun>,
}

impl Measures {
    /// Judges all cases. The false alarm rate in `thresholds` applies to the whole night, without that of the lost cases, which
    /// are convicted at the level `lost`, if there is one.
    pub(super) fn new(
        cases: &[CaseResults],
        confirms: &ConfirmationRuns,
        thresholds: &Thresholds,
        lost: Option<f64>,
        deviating: Option<DeviatingRun>,
    ) -> Self {
        let by_case = vec![Vec::new(); cases.len()];
        let mut found = Self { by_case, suite: Vec::new(), p: None, lost: None, deviating };
        for code in MeasureCode::ALL {
            found.add(code, cases, confirms, thresholds);
        }
        if let Some(level) = lost {
            found.convict_lost(cases, confirms, level, thresholds.more_runs_up_to);
        }
        found.restrict_parts();
        found
    }

    /// Gives lost cases the tier of a regression if chance does not explain their number, and otherwise the number of further
    /// baseline runs, in total at most `up_to`, with which it would not.
    fn convict_lost(&mut self, cases: &[CaseResults], confirms: &ConfirmationRuns, level: f64, up_to: u32) {
        let runs: Vec<_> =
            cases.iter().map(|case| LostCounts::from_case(case, confirms).lost_runs(confirms.planned)).collect();
        self.lost = LostTest::new(&runs);
        let Some(test) = self.lost.filter(|test| test.lost > 0) else { return };
        let convicts = test.is_significant(level);
        let baseline = if convicts { None } else { statistics::deciding_baseline(&runs, test.lost, level, up_to) };
        for (measures, case) in self.by_case.iter_mut().zip(&runs).filter(|(_, case)| case.is_lost) {
            // The combined measure is the first.
            let Some(solved) = measures.first_mut() else { continue };
            if convicts {
                solved.tier = Tier::Regression;
                solved.corrected = solved.corrected.min(test.p);
            } else if let Some(baseline) = baseline.and_then(|baseline| baseline.checked_sub(case.baseline)) {
                // The number of the planner, which is for the test of one case, may be larger.
                let more = solved.more_baseline_runs.map_or(u64::from(baseline), |more| more.min(baseline.into()));
                solved.more_baseline_runs = Some(more);
            }
        }
    }

    fn add(&mut self, code: MeasureCode, cases: &[CaseResults], confirms: &ConfirmationRuns, thresholds: &Thresholds) {
        let counted = Counted::from_cases(code, cases, confirms);
        // Without a case to test, a measure would show rates of nothing.
        if counted.indexes.is_empty() {
            return;
        }
        let Sides { baseline: fall, new: rise } = match self.deviating {
            Some(_) => counted.judge_whole_runs(code, cases, thresholds),
            None => counted.judge(confirms, thresholds),
        };
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

    /// Lets a part count as fallen or risen only if the combined measure did.
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

/// The run that shows that the runs of a side differ among themselves.
pub(super) fn deviating(cases: &[CaseResults], confirms: &ConfirmationRuns) -> Option<DeviatingRun> {
    // Runs of a confirmation have some of the cases only, and are no whole runs.
    if !confirms.is_none() {
        return None;
    }
    let solved: Vec<_> = cases.iter().map(|case| case.passes(MeasureCode::Solved)).collect();
    statistics::deviating(&solved)
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
    /// The decisions on a fall and on a rise. A rise is a fall with the sides exchanged, so one test covers both directions.
    fn judge(&self, confirms: &ConfirmationRuns, thresholds: &Thresholds) -> Sides<SuiteDecision> {
        let judge = if confirms.ends_early { statistics::judge_first_runs } else { statistics::judge_confirmed };
        let fall = judge(&self.runs, thresholds, &mut CaseTests::default());
        // Cases are selected for confirmation by a fall, so only the first runs can show a rise.
        let mirrored: Vec<_> = self.runs.iter().map(|case| case.initial.mirrored()).collect();
        Sides::new(fall, statistics::judge(&mirrored, thresholds))
    }

    /// The same by the choices of whole runs.
    fn judge_whole_runs(
        &self,
        code: MeasureCode,
        cases: &[CaseResults],
        thresholds: &Thresholds,
    ) -> Sides<SuiteDecision> {
        let passes: Vec<_> = self.indexes.iter().map(|index| cases[*index].passes(code)).collect();
        let mirrored = passes.iter().map(|Sides { baseline, new }| Sides::new(new.clone(), baseline.clone()));
        let mut tests = CaseTests::default();
        let rise = statistics::judge_whole_runs(&mirrored.collect::<Vec<_>>(), thresholds, &mut tests);
        Sides::new(statistics::judge_whole_runs(&passes, thresholds, &mut tests), rise)
    }

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

/// Whether a run of new before the confirmation has a runner error.
fn failed_first(case: &CaseResults, confirms: &ConfirmationRuns) -> bool {
    case.new.iter().zip(&confirms.confirms.new).any(|(run, confirms)| !confirms && *run == RunResult::Failed)
}

/// The counts of a case before its confirmation and in its confirmation runs.
pub(super) fn case_runs(code: MeasureCode, case: &CaseResults, confirms: &ConfirmationRuns) -> CaseRuns {
    // A case that was selected for a wrong answer is confirmed by answers: a runner error of a confirmation run would only blur it.
    // The choice depends on the first runs of new alone, which are given in the test.
    let ignores_errors = code == MeasureCode::Solved && !failed_first(case, confirms);
    let tallies = |confirming: bool| {
        let tally = |runs: &[RunResult], confirms: &[bool]| -> Tally {
            let runs = runs.iter().zip(confirms).filter(|(_, confirms)| **confirms == confirming).map(|(run, _)| run);
            let counted = runs.filter(|run| !(confirming && ignores_errors && **run == RunResult::Failed));
            counted.filter_map(|run| run.passes(code)).collect()
        };
        CaseTallies {
            baseline: tally(&case.baseline, &confirms.confirms.baseline),
            new: tally(&case.new, &confirms.confirms.new),
        }
    };
    CaseRuns { initial: tallies(false), confirmation: tallies(true) }
}

/// The runs of a case as the test of lost cases counts them.
#[derive(Debug, Clone, Copy)]
pub(super) struct LostCounts(CaseRuns);

impl LostCounts {
    pub(super) fn from_case(case: &CaseResults, confirms: &ConfirmationRuns) -> Self {
        // Runner errors of either side count only if the first runs of new have one: a wrong answer is compared with answers.
        // Counted on one side alone, errors would look like a fall.
        let counts_errors = failed_first(case, confirms);
        let tally = |runs: &[RunResult], confirms: &[bool], confirming: bool| -> Tally {
            let runs = runs.iter().zip(confirms).filter(|(_, confirms)| **confirms == confirming).map(|(run, _)| *run);
            let counted = runs.filter(|run| counts_errors || *run != RunResult::Failed);
            counted.filter_map(|run| run.passes(MeasureCode::Solved)).collect()
        };
        let tallies = |confirming: bool| CaseTallies {
            baseline: tally(&case.baseline, &confirms.confirms.baseline, confirming),
            new: tally(&case.new, &confirms.confirms.new, confirming),
        };
        Self(CaseRuns { initial: tallies(false), confirmation: tallies(true) })
    }

    /// The runs before the confirmation.
    pub(super) const fn first(&self) -> Sides<u32> {
        Sides { baseline: self.0.initial.baseline.runs(), new: self.0.initial.new.runs() }
    }

    /// Whether the baseline solved the case in all runs so far, and new in none.
    pub(super) fn can_be_lost(&self) -> bool {
        let (first, all) = (self.first(), self.0.all());
        first.baseline > 0 && first.new > 0 && all.baseline.failed == 0 && all.new.passed == 0
    }

    /// Whether the case has the confirmation runs that were planned.
    pub(super) const fn has_all(&self, planned: Sides<u32>) -> bool {
        let confirmation = self.0.confirmation;
        confirmation.baseline.runs() >= planned.baseline && confirmation.new.runs() >= planned.new
    }

    /// The case for the test. Its bound is that of all the runs that it would have had if it had kept failing.
    pub(super) fn lost_runs(&self, planned: Sides<u32>) -> LostRuns {
        let after = |first: u32, planned: u32| if first > 0 { first + planned } else { 0 };
        let first = self.first();
        LostRuns {
            baseline: after(first.baseline, planned.baseline),
            new: after(first.new, planned.new),
            is_lost: self.can_be_lost() && self.has_all(planned),
        }
    }
}

fn case_measure(code: MeasureCode, fall: &CaseJudgement, rise: &CaseJudgement) -> CaseMeasure {
    let tier = match (fall.tier, rise.tier) {
        // A fall takes precedence; a rise only counts if it is significant, because improvements need no early warning.
        (Tier::Regression, _) => Tier::Regression,
        (_, Tier::Regression) => Tier::Improvement,
        (unchanged, _) => unchanged,
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

/// The result of one run of a case, as far as the measures count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RunResult {
    /// The run did not select the case, or has no valid artifact of it.
    Unknown,
    Failed,
    Answered {
        /// Whether every expectation of the case is met; `None` without expectations, or if none is unmet but one is
        /// undecided.
        met: Option<bool>,
        /// Whether the required evidence holds; `None` if none is required.
        evidence_holds: Option<bool>,
    },
}

/// The results of a case in every run of both sides, in the order of the runs.
#[derive(Debug, Clone)]
pub(crate) struct CaseResults {
    pub(crate) baseline: Vec<RunResult>,
    pub(crate) new: Vec<RunResult>,
}

impl CaseResults {
    /// Whether each run passes a measure.
    fn passes(&self, code: MeasureCode) -> CasePasses {
        let passes = |runs: &[RunResult]| runs.iter().map(|run| run.passes(code)).collect();
        Sides::new(passes(&self.baseline), passes(&self.new))
    }

    /// Whether new fails in most of its runs, and the baseline has one run, which passes.
    pub(super) fn fell_from_one_run(&self) -> bool {
        let solved = |runs: &[RunResult]| -> Vec<bool> {
            runs.iter().filter_map(|run| run.passes(MeasureCode::Solved)).collect()
        };
        let (baseline, new) = (solved(&self.baseline), solved(&self.new));
        let failed = new.iter().filter(|passes| !**passes).count();
        baseline == [true] && new.len() > 1 && 2 * failed > new.len()
    }
}

impl RunResult {
    /// The result of an artifact, with its judged expectations and its evidence.
    pub(crate) fn new<'j>(
        artifact: &Artifact,
        judged: impl Iterator<Item = &'j Judgement>,
        evidence: &[Vec<FollowedRef>],
    ) -> Self {
        match artifact {
            Artifact::Absent | Artifact::Invalid(_) => RunResult::Unknown,
            Artifact::Failure(_) | Artifact::Outage(_) => RunResult::Failed,
            Artifact::Answer(answer) => RunResult::Answered {
                met: met(judged),
                evidence_holds: evidence_holds(WithEvidence { loaded: answer, evidence }),
            },
        }
    }

    /// Whether the run passes the measure; `None` if the measure does not apply to the run.
    pub(super) fn passes(self, code: MeasureCode) -> Option<bool> {
        match (self, code) {
            (RunResult::Unknown, _) | (RunResult::Failed, MeasureCode::Expectations | MeasureCode::Evidence) => None,
            (RunResult::Failed, MeasureCode::Solved | MeasureCode::Answered) => Some(false),
            (RunResult::Answered { .. }, MeasureCode::Answered) => Some(true),
            (RunResult::Answered { met, .. }, MeasureCode::Expectations) => met,
            (RunResult::Answered { evidence_holds, .. }, MeasureCode::Evidence) => evidence_holds,
            // What is not required, or could not be decided, does not count against the run. The measure is a function of the run
            // alone, so its tests stay valid.
            (RunResult::Answered { met, evidence_holds }, MeasureCode::Solved) => {
                Some(met != Some(false) && evidence_holds != Some(false))
            }
        }
    }
}

fn met<'j>(judged: impl Iterator<Item = &'j Judgement>) -> Option<bool> {
    let mut all = None;
    let mut is_undecided = false;
    for judgement in judged {
        if judgement.is_unmet() {
            return Some(false);
        }
        is_undecided |= !judgement.is_met();
        all = Some(true);
    }
    all.filter(|_| !is_undecided)
}

/// Whether every ref resolves, every high-risk action has a ref, and no action took effect on failed results alone. `None` if
/// no action needs evidence.
fn evidence_holds(answer: WithEvidence<'_>) -> Option<bool> {
    let actions = &answer.loaded.answer.proposed_actions;
    let needs_evidence =
        |action: &ProposedAction| action.risk_level == RiskLevel::High || !action.evidence_refs.is_empty();
    if !actions.iter().any(needs_evidence) {
        return None;
    }
    let all_resolve = actions.iter().zip(answer.evidence).all(|(action, refs)| {
        let resolved = evidence::resolved_count(refs);
        // Two conditions: no ref is broken, and a high-risk action has at least one.
        resolved == refs.len() && (resolved > 0 || action.risk_level != RiskLevel::High)
    });
    Some(all_resolve && (!any_failed(answer.loaded) || FailedEvidence::new(answer).is_empty()))
}

/// The rates of all cases together, and the p-value of the whole night.
#[derive(Debug, Clone)]
pub(crate) struct SuiteAnalysis {
    /// One entry for each measure that at least one case has.
    pub(crate) measures: Vec<SuiteMeasure>,
    /// The p-value of the worst result on either level, a case or the suite.
    p: Option<f64>,
    pub(crate) level: f64,
    /// The suites with a name.
    named: Vec<NamedSuite>,
    /// The run that shows that the runs of a side differ among themselves.
    pub(crate) deviating: Option<DeviatingRun>,
}

/// The test of the cases of one suite.
#[derive(Debug, Clone)]
struct NamedSuite {
    name: String,
    test: RuleTest,
}

impl SuiteAnalysis {
    /// Tests one run per side: the exact test of `McNemar` over the cases that both sides have. `suites` has the suite of each case.
    pub(crate) fn of_one_run(cases: &[CaseResults], suites: &[Option<&str>], thresholds: &Thresholds) -> Self {
        let confirms = ConfirmationRuns::one_run();
        let (thresholds, named_level) = split_level(suites, thresholds);
        let measures = Measures::new(cases, &confirms, &thresholds, None, None);
        Self::new(&measures, &thresholds).with_suites(cases, suites, &confirms, named_level)
    }

    pub(super) fn new(measures: &Measures, thresholds: &Thresholds) -> Self {
        Self {
            measures: measures.suite.clone(),
            p: measures.p,
            level: thresholds.alpha.value(),
            named: Vec::new(),
            deviating: measures.deviating,
        }
    }

    /// Adds the tests of the suites that have a name, at this level together.
    pub(super) fn with_suites(
        mut self,
        cases: &[CaseResults],
        suites: &[Option<&str>],
        confirms: &ConfirmationRuns,
        level: Option<f64>,
    ) -> Self {
        let Some(level) = level else { return self };
        let mut by_name: BTreeMap<&str, Vec<CaseTallies>> = BTreeMap::new();
        for (case, name) in cases.iter().zip(suites) {
            // Confirmation runs are made of cases that failed, so that the first runs alone are a fair sample.
            let first = case_runs(MeasureCode::Solved, case, confirms).initial;
            if let (Some(name), true) = (name, first.drop().is_some()) {
                by_name.entry(name).or_default().push(first);
            }
        }
        by_name.retain(|_, cases| cases.len() > 1);
        let number = by_name.len();
        let test = |(name, cases): (&str, Vec<CaseTallies>)| {
            // The suites share no case, so that their tests are independent (Šidák 1967).
            let p = -(number as f64 * (-statistics::suite_p(&cases)).ln_1p()).exp_m1();
            let count = |moved: fn(f64) -> bool| {
                cases.iter().filter_map(|case| case.drop()).filter(|drop| moved(*drop)).count() as u64
            };
            let (fell, rose) = (count(|drop| drop > 1e-9), count(|drop| drop < -1e-9));
            NamedSuite { name: name.to_owned(), test: RuleTest { p, level, fell, rose, expected: None } }
        };
        self.named = by_name.into_iter().map(test).collect();
        self
    }
}

/// The thresholds for all cases, and the level of the suites with a name. They get half of the level, because a fall of one suite of
/// many is lost among all cases. `None` if the cases have no such suites, or only one with all of them.
pub(super) fn split_level(suites: &[Option<&str>], thresholds: &Thresholds) -> (Thresholds, Option<f64>) {
    let is_divided = suites.iter().any(Option::is_some) && suites.windows(2).any(|pair| pair[0] != pair[1]);
    if !is_divided {
        return (thresholds.clone(), None);
    }
    let half = thresholds.alpha.value() / 2.0;
    (thresholds.with_alpha(half), Some(half))
}

/// The gate rules over all cases together, and over the cases of each suite with a name: violated if the combined measure fell.
pub(crate) fn suite_rules(suite: &SuiteAnalysis, limits: &GateRules) -> Vec<GateRule> {
    let solved = suite.measures.iter().find(|measure| measure.code == MeasureCode::Solved);
    let fell = solved.is_some_and(|solved| solved.fell);
    let rule = gate::at_most("suite_fell", limits.suite_fell, u64::from(fell), u64::from(solved.is_some()));
    let test = solved.filter(|_| rule.limit.is_some()).map(|solved| RuleTest {
        // The suite is rejected only if the joint test of both levels is, so the larger of the two decides.
        p: suite.p.map_or(solved.p, |p| p.max(solved.p)),
        level: suite.level,
        fell: solved.cases_fell,
        rose: solved.cases_rose,
        expected: None,
    });
    let named = suite.named.iter().map(|NamedSuite { name, test }| {
        let fell = statistics::is_at_most(test.p, test.level);
        let rule = gate::at_most("suite_fell", limits.suite_fell, u64::from(fell), 1);
        let test = rule.limit.map(|_| *test);
        GateRule { scope: Some(GateScope::Suite(name.clone())), test, ..rule }
    });
    [GateRule { test, ..rule }].into_iter().chain(named).collect()
}
