//! Decides each case from the runs of all cases: its verdict, and the pair of runs that the report shows, one in which the deciding
//! difference is visible.

use std::collections::{BTreeSet, HashMap};

use counterproof_artifact::evaluation::{
    Bound, CaseMeasure, CaseRepeats, CaseUsage, GateRule, MeasureCode, NoiseBasis, PlaceNoise, Rate, RuleTest,
    ShownRuns, Tier, Verdict,
};
use counterproof_artifact::{CaseId, RiskLevel, Side, Sides};
use rayon::prelude::*;

use super::measures::{ConfirmationRuns, Measures, SuiteAnalysis, case_runs, deviating, split_level};
use super::noise::{self, DifferingPlace};
use super::observations::{CaseObservations, Criteria, MissingArtifacts, RunOutcome};
use super::place::Names;
use super::reasons;
use super::unseen;
use crate::diff::{Differences, WithEvidence};
use crate::gate::{self, GateRules, Limit, Repeatability};
use crate::judge::Expectations;
use crate::judge::answer_texts::AnswerStyle;
use crate::judge::hand_over::HandOver;
use crate::judge::severity::RepeatRates;
use crate::judge::verdict::Decision;
use crate::load::{ComparedRun, SideRuns};
use crate::messages;
use crate::rules::Rules;
use crate::statistics::{CaseTallies, CaseTests, Tally, Thresholds, division_bound, is_at_most, is_hint};
use crate::values::text;

/// Maximum number of places in the record of a case; further ones are counted.
const PLACES_LISTED: usize = 50;

/// The share of `alpha` for the test of lost cases.
pub(crate) const LOST_SHARE: f64 = 0.4;

/// What all runs did in some cases.
#[derive(Debug)]
pub(crate) struct Observations {
    pub(crate) cases: Vec<CaseObservations>,
    pub(crate) names: Names,
}

impl Observations {
    /// Reads all runs of these cases.
    pub(crate) fn new<'c>(inputs: &RepeatInputs<'_>, case_ids: impl IntoParallelIterator<Item = &'c CaseId>) -> Self {
        let criteria = Criteria { expectations: inputs.expectations, rules: inputs.rules, side: Side::New };
        // One case at a time across all runs, so that only the small summaries of all cases are in memory together.
        let observe = |id: &CaseId| {
            if inputs.changed_inputs.contains(id) {
                return (CaseObservations::not_comparable(inputs.baseline, inputs.new), Names::default());
            }
            CaseObservations::from_runs(inputs.baseline, inputs.new, criteria, id)
        };
        let (cases, learnt): (Vec<_>, Vec<_>) = case_ids.into_par_iter().map(observe).unzip();
        Self { cases, names: learnt.into_iter().fold(Names::default(), Names::merged) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatInputs<'a> {
    pub baseline: &'a SideRuns,
    pub new: &'a SideRuns,
    pub expectations: &'a Expectations,
    pub rules: &'a Rules,
    pub thresholds: &'a Thresholds,
    /// Whether the agent is declared to do the same in every run.
    pub is_declared_deterministic: bool,
    /// Whether the gate counts lost cases.
    pub convicts_lost: bool,
    /// The cases that the sides were asked with different inputs. No test counts them.
    pub changed_inputs: &'a BTreeSet<CaseId>,
    /// The suite of each case.
    pub suites: &'a [Option<&'a str>],
}

/// The result of analysing repeated runs: for each case, and for all cases together.
#[derive(Debug)]
pub(crate) struct RepeatAnalysis {
    cases: Vec<CaseAnalysis>,
    suite: SuiteAnalysis,
    /// The length of the longest repetition of one call in any run of baseline.
    longest_repetition: usize,
    names: Names,
    is_deterministic: bool,
    /// The test of high-risk values that no baseline run shows.
    unseen: Option<RuleTest>,
    /// The test of lost cases.
    lost: Option<RuleTest>,
    /// Whether the baseline is too short to decide the lost cases, although chance is excluded for cases that are usually solved.
    is_lost_undecided: bool,
}

#[derive(Debug)]
pub(crate) struct CaseAnalysis {
    /// The shown pair: an index into the runs of each side.
    pub shown: Sides<usize>,
    measures: Vec<CaseMeasure>,
    places: Vec<DifferingPlace>,
    /// The first hard expectation that a run of new does not meet.
    must_unmet: Option<String>,
    pub risk: Option<RiskLevel>,
    /// The median time, size and cost of the answers of each side.
    pub usage: CaseUsage,
    /// The features of the texts of all answers.
    pub styles: Sides<Vec<AnswerStyle>>,
    /// The hand-overs of all answers.
    pub hand_overs: Sides<Vec<Option<HandOver>>>,
    /// The runs of new whose answer is an outage.
    pub outages: Vec<usize>,
    /// The number of runs of new that have an answer, including outages.
    pub answers: usize,
    /// The runs of new whose answer has anything that can be a signal.
    pub runs_with_signals: Vec<usize>,
    /// The number of runs of each side without an artifact of the case.
    missing: Sides<MissingArtifacts>,
    /// Whether both sides have answers, so that the runs decide the verdict and not the pair that is shown.
    runs_decide: bool,
    /// Whether new fails in most of its runs, and the baseline has one run, which passes: no test of the case can decide that.
    fell_from_one_run: bool,
    /// Whether the test of high-risk values that the baseline never shows convicts the case.
    is_unseen: bool,
}

impl RepeatAnalysis {
    /// Analyses the observations of all cases. Deterministic: the same runs give the same result.
    pub(crate) fn new(inputs: &RepeatInputs<'_>, observed: Observations) -> Self {
        let Observations { cases, names } = observed;
        let observed = CaseObservations::without_outages(cases);
        let confirms = ConfirmationRuns::from_runs(inputs.baseline, inputs.new);
        let results: Vec<_> = observed.iter().map(CaseObservations::results).collect();
        let alpha = inputs.thresholds.alpha.value();
        let high_risk: Vec<_> = observed.iter().map(|case| case.high_risk_values(&confirms)).collect();
        let unseen = unseen::test(&high_risk, confirms.planned, alpha);
        let lost_level = inputs.convicts_lost.then_some(alpha * LOST_SHARE);
        // Each of these tests can fail the gate, so together they take no more than `alpha`.
        let rest = alpha - lost_level.unwrap_or(0.0) - unseen.map_or(0.0, |unseen| unseen.level);
        let thresholds = inputs.thresholds.with_alpha(rest);
        let deviating = deviating(&results, &confirms);
        // Whole runs are compared over all cases: the few choices of them have no power for several suites.
        let (thresholds, suite_level) =
            if deviating.is_some() { (thresholds, None) } else { split_level(inputs.suites, &thresholds) };
        let measures = Measures::new(&results, &confirms, &thresholds, lost_level, deviating);
        let is_lost_undecided = measures.lost.zip(lost_level).is_some_and(|(test, level)| test.is_undecided(level));
        let lost = measures.lost.zip(lost_level).map(|(test, level)| RuleTest {
            p: test.p,
            level,
            fell: test.lost as u64,
            rose: 0,
            expected: Some(test.expected),
        });
        let suite =
            SuiteAnalysis::new(&measures, &thresholds).with_suites(&results, inputs.suites, &confirms, suite_level);
        let is_deterministic = is_deterministic(inputs, &observed);
        let places = noise::differing(&observed, &names, alpha);
        let decide = |((case, measures), places): ((&CaseObservations, Vec<CaseMeasure>), Vec<DifferingPlace>)| {
            let runs_decide = case.runs_decide();
            let shown = if runs_decide { by_answers(case, &measures, &places) } else { by_states(case) };
            let missing = Sides::new(&case.baseline, &case.new).map(|runs| MissingArtifacts::count(runs));
            let must_unmet = must_unmet(case);
            CaseAnalysis {
                is_unseen: false,
                shown,
                measures,
                places,
                must_unmet,
                risk: case.highest_risk(),
                usage: case.usage(),
                styles: case.styles(),
                hand_overs: case.hand_overs(),
                outages: case.outages.clone(),
                answers: case.outages.len() + case.new.iter().filter(|run| run.answered().is_some()).count(),
                runs_with_signals: case.runs_with_signals(),
                missing,
                runs_decide,
                fell_from_one_run: case.results().fell_from_one_run(),
            }
        };
        let mut analysed: Vec<_> = observed.iter().zip(measures.by_case).zip(places).map(decide).collect();
        if unseen.is_some_and(unseen::is_significant) {
            for (case, values) in analysed.iter_mut().zip(&high_risk) {
                case.is_unseen = unseen::occurs(values, confirms.planned);
            }
        }
        let longest_repetition = observed.iter().map(CaseObservations::longest_repetition).max().unwrap_or(0);
        Self { cases: analysed, suite, longest_repetition, names, is_deterministic, unseen, lost, is_lost_undecided }
    }

    /// The features of the texts of all answers of the baseline.
    pub(crate) fn baseline_styles(&self) -> impl Iterator<Item = &AnswerStyle> {
        self.cases.iter().flat_map(|case| &case.styles.baseline)
    }

    pub(crate) fn case(&self, index: usize) -> Option<&CaseAnalysis> {
        self.cases.get(index)
    }

    /// The length of the longest repetition of one call in any run of baseline.
    pub(crate) const fn longest_repetition(&self) -> usize {
        self.longest_repetition
    }

    pub(crate) const fn suite(&self) -> &SuiteAnalysis {
        &self.suite
    }

    /// Whether the agent is declared or shown to do the same in every run.
    pub(crate) const fn is_deterministic(&self) -> bool {
        self.is_deterministic
    }

    /// The verdict on a case, with the reasons that precede those of the shown pair. `None` if the pair decides alone: unless both
    /// sides have an answer in some run and no artifact is invalid.
    pub(crate) fn verdict(&self, case: &CaseAnalysis) -> Option<Decision> {
        if !case.runs_decide {
            return None;
        }
        let explaining = reasons::explaining(&case.measures);
        let concluded = |tier: Tier| explaining.iter().copied().filter(move |measure| measure.tier == tier);
        let fell: Vec<_> = concluded(Tier::Regression).collect();
        let rose: Vec<_> = concluded(Tier::Improvement).collect();
        let maybe: Vec<_> = concluded(Tier::Likely).chain(concluded(Tier::Watch)).collect();
        let undecided: Vec<_> = concluded(Tier::Unknown).filter(|measure| measure.is_lower_on_new()).collect();
        let places = self.places(case);
        // A first failure on new is not noise of the baseline, however few the runs are.
        let may_have_fallen =
            maybe.iter().any(|measure| is_sign(measure)) || undecided.iter().any(|measure| always_held(measure));
        let is_shown = |place: &PlaceNoise| reasons::is_shown(place) || self.is_deterministic;
        // From the strongest evidence to the weakest. Fewer answers alone mean that new is broken, not that its answers got worse.
        let verdict = match () {
            () if !fell.is_empty() && case.is_broken() => Verdict::Broken,
            () if !fell.is_empty() => Verdict::Regressed,
            () if !rose.is_empty() => Verdict::Improved,
            () if places.iter().any(|place| !place.noise && is_shown(place)) => Verdict::Changed,
            () if case.fell_from_one_run && case.is_broken() => Verdict::Broken,
            () if case.fell_from_one_run => Verdict::Regressed,
            () if may_have_fallen || places.iter().any(|place| !place.noise) => Verdict::Undecided,
            () if places.is_empty() => Verdict::Unchanged,
            () => Verdict::Noisy,
        };
        // Pass rates are stronger evidence than places that differ, so their reasons come first.
        let counted = fell.into_iter().chain(rose).chain(maybe).chain(undecided).map(reasons::measure_reason);
        let agent = if self.is_deterministic { Repeatability::Deterministic } else { Repeatability::Variable };
        let places = reasons::places_reason(&places, agent);
        Some(Decision::new(verdict, counted.chain(places).collect()))
    }

    /// The record of a case and its shown pair in the evaluation.
    pub(crate) fn to_record(&self, case: &CaseAnalysis, found: Option<&Differences>) -> CaseRepeats {
        let mut places = self.places(case);
        let omitted = places.len().saturating_sub(PLACES_LISTED);
        places.truncate(PLACES_LISTED);
        // Bounded, so that the record of a case has a bounded size whatever an answer contains.
        let (noise, noise_omitted) = found.map(noise::pointers).unwrap_or_default();
        CaseRepeats {
            shown: ShownRuns { baseline: case.shown.baseline as u64, new: case.shown.new as u64 },
            measures: case.measures.clone(),
            places,
            places_omitted: omitted as u64,
            noise,
            noise_omitted,
        }
    }

    /// The rule about high-risk actions and arguments that no baseline run shows.
    pub(crate) fn unseen_rule(&self, limits: &GateRules) -> Option<GateRule> {
        let test = self.unseen?;
        let passed = limits.unseen_high_risk == Limit::None || !unseen::is_significant(test);
        let rule = gate::at_most("unseen_high_risk", Limit::None, test.fell, self.cases.len() as u64);
        Some(GateRule { test: (limits.unseen_high_risk != Limit::None).then_some(test), passed, ..rule })
    }

    /// The rule about cases that new fails in every run and the baseline in none. `None` if it is switched off.
    pub(crate) fn lost_rule(&self, limits: &GateRules) -> Option<GateRule> {
        let test = self.lost?;
        let rule = gate::at_most("lost", limits.lost, test.fell, self.cases.len() as u64);
        Some(GateRule { test: Some(test), passed: test.fell == 0 || !is_at_most(test.p, test.level), ..rule })
    }

    /// The rule that the baseline is long enough to decide about the lost cases. `None` if it is met.
    pub(crate) fn undecided_rule(&self, limits: &GateRules) -> Option<GateRule> {
        let lost = self.lost.filter(|_| self.is_lost_undecided && limits.lost != Limit::None)?.fell;
        Some(GateRule {
            code: "lost_decided".to_owned(),
            scope: None,
            bound: Bound::AtLeast,
            limit: Some(lost),
            share: None,
            actual: 0,
            of: Some(lost),
            test: None,
            passed: false,
        })
    }

    fn places(&self, case: &CaseAnalysis) -> Vec<PlaceNoise> {
        let record = |place: &DifferingPlace| PlaceNoise {
            place: self.names.get(place.place).unwrap_or("a place without a name").to_owned(),
            baseline: place.baseline,
            new: place.new,
            noise: place.noise,
            basis: place.basis,
        };
        case.places.iter().map(record).collect()
    }
}

/// Returns the cases with a hint, each with its counts, and those with a high-risk value that no run of the baseline shows, in the order
/// of `case_ids`. Confirmation runs are not counted.
pub(crate) fn hints(
    baseline: &SideRuns,
    new: &SideRuns,
    case_ids: &[CaseId],
    expectations: &Expectations,
    thresholds: &Thresholds,
) -> Vec<(CaseId, String)> {
    // Rules of comparison do not affect pass rates.
    let rules = Rules::default();
    let criteria = Criteria { expectations, rules: &rules, side: Side::New };
    let confirms = ConfirmationRuns::from_runs(baseline, new);
    let observe = |id: &CaseId| CaseObservations::from_runs(baseline, new, criteria, id).0;
    let observed = CaseObservations::without_outages(case_ids.par_iter().map(observe).collect());
    let count = |case: &CaseObservations| case_runs(MeasureCode::Solved, &case.results(), &confirms).initial;
    let counted: Vec<CaseTallies> = observed.iter().map(count).collect();
    let mut tests = CaseTests::default();
    let mut found = Vec::new();
    for ((id, case), counted) in case_ids.iter().zip(&observed).zip(counted) {
        // The test of confirmed cases conditions on this choice, so both use `is_hint`.
        if is_hint(counted, &mut tests, thresholds) {
            found.push((id.clone(), counts(counted)));
        } else if baseline.is_repeated() && unseen::may_occur(&case.high_risk_values(&confirms)) {
            found.push((id.clone(), "a high-risk action or argument that no run of the baseline shows".to_owned()));
        }
    }
    found
}

/// Counts in how many runs each case is solved, in the order of `case_ids`.
pub(crate) fn solved_tallies(runs: &[ComparedRun], case_ids: &[CaseId], expectations: &Expectations) -> Vec<Tally> {
    // As for hints, rules of comparison do not matter.
    let rules = Rules::default();
    let criteria = Criteria { expectations, rules: &rules, side: Side::Baseline };
    let is_solved = |run: &ComparedRun, id: &CaseId| {
        RunOutcome::from_run(run, criteria, id, &mut Names::default()).result().passes(MeasureCode::Solved)
    };
    case_ids.par_iter().map(|id| runs.iter().filter_map(|run| is_solved(run, id)).collect()).collect()
}

fn counts(case: CaseTallies) -> String {
    let runs = |tally: Tally| text::count(tally.runs() as usize, "run", "runs");
    format!(
        "{} in {} of {}, baseline in {} of {}",
        messages::measure(MeasureCode::Solved),
        case.new.passed,
        runs(case.new),
        case.baseline.passed,
        case.baseline.runs(),
    )
}

/// The first hard expectation that a run of new does not meet, and in how many runs that is.
fn must_unmet(case: &CaseObservations) -> Option<String> {
    let unmet: Vec<_> = case.new.iter().filter_map(RunOutcome::must_unmet).collect();
    let answered = case.new.iter().filter(|run| run.answered().is_some()).count();
    let runs = text::count(answered, "run", "runs");
    Some(format!("{}, in {} of {runs}", unmet.first()?, unmet.len()))
}

/// Whether the agent does the same in every run: it is declared so and no result contradicts it, or the runs show it.
fn is_deterministic(inputs: &RepeatInputs<'_>, cases: &[CaseObservations]) -> bool {
    // A declaration is a claim: one case whose runs have different results disproves it.
    if inputs.is_declared_deterministic {
        return cases.iter().all(CaseObservations::has_constant_results);
    }
    // The runs of each side agree, so that the sides differ in all runs or in none. An agent that varies may do that by chance.
    let on_both = cases.iter().map(CaseObservations::selected_runs).filter(|runs| runs.baseline > 0 && runs.new > 0);
    let fewest = on_both.reduce(|a, b| Sides::new(a.baseline.min(b.baseline), a.new.min(b.new)));
    let chance = fewest.and_then(|runs| division_bound(runs.baseline, runs.new));
    let is_excluded = chance.is_some_and(|chance| is_at_most(chance, inputs.thresholds.alpha.value()));
    is_excluded && cases.iter().all(CaseObservations::agrees_with_itself)
}

impl CaseAnalysis {
    /// Describes the first hard expectation that a run of new does not meet.
    pub(crate) fn must_unmet_message(&self) -> Option<String> {
        self.must_unmet.clone()
    }

    /// States that all runs of new show a high-risk action or argument that no baseline run shows, if chance does not explain it.
    pub(crate) fn unseen_message(&self) -> Option<String> {
        let message = "all runs show a high-risk action or argument that no baseline run shows";
        self.is_unseen.then(|| message.to_owned())
    }

    /// States in how many runs the answer of new is an outage.
    pub(crate) fn outages_message(&self) -> Option<String> {
        let runs = text::count(self.answers, "answer", "answers");
        (!self.outages.is_empty())
            .then(|| format!("an outage instead of an answer in {} of {runs}", self.outages.len()))
    }

    /// Whether all runs decide the verdict, and not the pair that is shown.
    pub(crate) const fn runs_decide(&self) -> bool {
        self.runs_decide
    }

    /// Whether the runs exclude chance as the reason for a fall of this case.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.measures.iter().any(|measure| measure.tier == Tier::Regression)
    }

    /// Whether new got worse and only further runs of the baseline can decide whether that is chance.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.fell_from_one_run && !self.is_confirmed()
    }

    /// Whether new answers less often, and its answers are no worse.
    fn is_broken(&self) -> bool {
        let part = |code: MeasureCode| self.measures.iter().find(|measure| measure.code == code);
        let fell = |code: MeasureCode| part(code).is_some_and(CaseMeasure::is_lower_on_new);
        fell(MeasureCode::Answered) && !fell(MeasureCode::Expectations) && !fell(MeasureCode::Evidence)
    }

    /// The decision on a case that some runs selected but have no artifact of: the lost artifact could be a failure. `None` if
    /// all artifacts exist.
    pub(crate) fn missing_artifacts(&self) -> Option<Decision> {
        let Sides { baseline, new } = self.missing;
        match () {
            () if new.runs > 0 => Some(Decision::new(Verdict::Missing, vec![reasons::missing_reason(Side::New, new)])),
            () if baseline.runs > 0 => {
                Some(Decision::new(Verdict::Added, vec![reasons::missing_reason(Side::Baseline, baseline)]))
            }
            () => None,
        }
    }

    /// Marks the noise in the shown pair, unless everything in it is noise.
    pub(crate) fn mark_noise(&self, found: &mut Differences, sides: Sides<WithEvidence<'_>>, rules: &Rules) {
        // The pair that decides alone has no other runs to learn noise from.
        if self.runs_decide && self.places.iter().any(|place| place.noise) {
            let noise: HashMap<u64, bool> = self.places.iter().map(|place| (place.place, place.noise)).collect();
            noise::mark(found, sides, rules, &|place| noise.get(&place).copied());
        }
    }

    /// The rates for the severity; `None` if the shown pair decides alone.
    pub(crate) fn for_severity(&self) -> Option<RepeatRates> {
        let fell = |code: MeasureCode| {
            let measure = self.measures.iter().find(|measure| measure.code == code);
            measure.map_or(0.0, |measure| (share(&measure.baseline) - share(&measure.new)).max(0.0))
        };
        self.runs_decide.then(|| RepeatRates {
            noise: self.noise(),
            answered_fell: fell(MeasureCode::Answered),
            met_fell: fell(MeasureCode::Expectations),
            baseline_unmet: self.baseline_unmet(),
            evidence_fell: fell(MeasureCode::Evidence),
        })
    }

    /// The share of the baseline's answers that do not meet every expectation; 0 if none was evaluated.
    fn baseline_unmet(&self) -> f64 {
        let measure = self.measures.iter().find(|measure| measure.code == MeasureCode::Expectations);
        measure.filter(|measure| measure.baseline.runs > 0).map_or(0.0, |measure| 1.0 - share(&measure.baseline))
    }

    /// How much of the differing places is noise, between 0 and 1.
    fn noise(&self) -> f64 {
        let noise: f64 = self.places.iter().filter(|place| place.noise).map(|place| certainty(place.basis)).sum();
        if self.places.is_empty() { 0.0 } else { noise / self.places.len() as f64 }
    }
}

/// Whether a hint is a change: its p-value is small, or the baseline never failed.
fn is_sign(measure: &CaseMeasure) -> bool {
    // A baseline that fails sometimes explains one more failure.
    measure.tier == Tier::Likely || always_held(measure)
}

/// Whether the measure passed in every baseline run. Then a single failure on new is not baseline behaviour.
const fn always_held(measure: &CaseMeasure) -> bool {
    measure.baseline.passed == measure.baseline.runs
}

/// The weight of a place as noise, by the basis of that judgement.
const fn certainty(basis: NoiseBasis) -> f64 {
    match basis {
        // Noise in other cases is weaker evidence than noise in this case.
        NoiseBasis::PooledSeen | NoiseBasis::PooledTest => 0.5,
        NoiseBasis::CaseTest
        | NoiseBasis::CaseSeen
        | NoiseBasis::CaseNeverSeen
        | NoiseBasis::NeverInBaseline
        | NoiseBasis::NeverSeen
        | NoiseBasis::NotKnown => 1.0,
    }
}

/// The pass rate; 0 without runs, so that two empty rates show no fall.
fn share(rate: &Rate) -> f64 {
    if rate.runs == 0 { 0.0 } else { rate.passed as f64 / rate.runs as f64 }
}

/// The pair for a case that is decided by the state of its artifacts: invalid before answer, answer before failure.
pub(super) fn by_states(case: &CaseObservations) -> Sides<usize> {
    let weight = |run: &RunOutcome| match run {
        RunOutcome::Invalid => 0,
        RunOutcome::Answered(_) => 1,
        RunOutcome::Failed => 2,
        RunOutcome::Absent => 3,
        RunOutcome::NotSelected => 4,
    };
    let first = |runs: &[RunOutcome]| {
        let runs = runs.iter().enumerate();
        runs.min_by_key(|(index, run)| (weight(run), *index)).map_or(0, |(index, _)| index)
    };
    Sides { baseline: first(&case.baseline), new: first(&case.new) }
}

/// The pair for a case with answers on both sides: the first pair that shows the change of the deciding measure; else the first
/// that differs at the first listed place; else the first run of each side.
pub(super) fn by_answers(case: &CaseObservations, measures: &[CaseMeasure], places: &[DifferingPlace]) -> Sides<usize> {
    // An undecided measure explains something only if its rate fell.
    let by_tier = |tier: Tier| {
        let moved = measures.iter().filter(move |measure| measure.tier == tier);
        moved.filter(move |measure| tier != Tier::Unknown || measure.is_lower_on_new())
    };
    let tiers = [Tier::Regression, Tier::Improvement, Tier::Likely, Tier::Watch, Tier::Unknown];
    let by_measure = tiers.into_iter().flat_map(by_tier).find_map(|measure| {
        let (before, after) = match measure.tier {
            Tier::Improvement => (Outcome::Fails, Outcome::Passes),
            _ => (Outcome::Passes, Outcome::Fails),
        };
        Some(Sides {
            baseline: first_with(&case.baseline, measure.code, before)?,
            new: first_with(&case.new, measure.code, after)?,
        })
    });
    // A hard expectation decides in any run, so a run that does not meet one is shown before all others.
    let by_must = case.new.iter().position(|run| run.must_unmet().is_some()).map(|new| {
        let met = case.baseline.iter().position(|run| run.answered().is_some() && run.must_unmet().is_none());
        Sides {
            baseline: met.or_else(|| case.baseline.iter().position(|run| run.answered().is_some())).unwrap_or(0),
            new,
        }
    });
    by_must
        .or(by_measure)
        .or_else(|| places.first().and_then(|place| differing(case, *place)))
        .unwrap_or_else(|| by_states(case))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passes,
    Fails,
}

fn first_with(runs: &[RunOutcome], code: MeasureCode, wanted: Outcome) -> Option<usize> {
    runs.iter().position(|run| run.result().passes(code) == Some(wanted == Outcome::Passes))
}

fn differing(case: &CaseObservations, DifferingPlace { place, basis, .. }: DifferingPlace) -> Option<Sides<usize>> {
    let label = |run: &RunOutcome| run.answered().map(|answered| answered.hashes.at(place));
    let known: Vec<u64> = case.baseline.iter().filter_map(label).collect();
    let is_unseen = |run: &&RunOutcome| label(run).is_some_and(|label| !known.contains(&label));
    if basis == NoiseBasis::NeverInBaseline
        && let Some(new) = case.new.iter().position(|run| is_unseen(&run))
    {
        return Some(Sides { baseline: case.baseline.iter().position(|run| run.answered().is_some())?, new });
    }
    // The earliest run of new first: the pair does not change when later runs are added.
    case.new.iter().enumerate().find_map(|(new, other)| {
        let other = label(other)?;
        let baseline = case.baseline.iter().position(|run| label(run).is_some_and(|label| label != other))?;
        Some(Sides { baseline, new })
    })
}
