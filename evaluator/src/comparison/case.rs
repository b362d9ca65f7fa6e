//! Compares one case: the pair that is shown, its judgement, and the signals of all runs of new.

use std::sync::Arc;

use counterproof_artifact::evaluation::{CaseEvaluation, CaseUsage, Cause, ExpectationResult, ReviewItem, Verdict};
use counterproof_artifact::{CaseId, Extra, Side, Sides};
use counterproof_cases::CaseSpec;

use super::request::Request;
use crate::diff::{Differences, WithEvidence, differences};
use crate::gate::{self, ReviewInput};
use crate::grounding::{Provenance, TracedArgument, arguments, records};
use crate::judge::answer_texts::{self, AnswerStyle, BaselineEndings, TextFinding, TextInput};
use crate::judge::behaviour;
use crate::judge::deterministic_texts::{self, SameRequest};
use crate::judge::findings::{self, BaselineValues, Findings};
use crate::judge::hand_over::{self, ChangedHandOver};
use crate::judge::outage::{self, AnswerFeatures, Candidate, OutageDecision, ShortTexts};
use crate::judge::outcomes::HighRisk;
use crate::judge::reasons::{AnswerPair, expectation_message};
use crate::judge::signals::{self, BaselineContacts, RunNumber, SignalInput, SignalSet};
use crate::judge::story::{self, StoryInput};
use crate::judge::verdict::{self, Decision};
use crate::judge::{ReasonCode, severity};
use crate::load::case_input::CaseInput;
use crate::load::{Artifact, LoadedAnswer, SideRuns, call_status, evidence, run};
use crate::repeats::{CaseAnalysis, RepeatAnalysis, RunResult, noise};
use crate::values::meaning::HashedSet;
use crate::{cause, judge, messages};

/// Everything about one case while it is compared.
#[derive(Debug)]
pub struct CaseComparison<'a> {
    /// The position among all cases, counted from 0.
    pub index: usize,
    /// The case in the cases file, where it is known.
    pub spec: Option<&'a CaseSpec>,
    /// The pair of runs that the artifacts and everything below come from.
    pub shown: Sides<usize>,
    /// Whether there is no baseline.
    pub is_alone: bool,
    /// Whether the agent is declared or shown to do the same in every run.
    pub is_deterministic: bool,
    /// The baseline's artifact.
    pub baseline: Artifact,
    /// New's artifact.
    pub new: Artifact,
    /// What the evidence refs of the baseline's actions resolve to; empty without an answer.
    pub baseline_evidence: Vec<Vec<evidence::FollowedRef>>,
    /// What the evidence refs of new's actions resolve to; empty without an answer.
    pub new_evidence: Vec<Vec<evidence::FollowedRef>>,
    /// The differences of the answers; `None` unless both sides answered.
    pub differences: Option<Differences>,
    /// The evaluation of the case.
    pub row: CaseEvaluation,
    /// The arguments of the calls of each side; empty unless both sides answered and differ.
    pub arguments: Sides<Vec<TracedArgument>>,
    /// What a person should look at.
    pub(crate) review: Vec<ReviewItem>,
    /// What the measures count in the pair.
    pub(crate) results: Sides<RunResult>,
    /// The answer of new, if other cases may show that it is an outage.
    pub(crate) outage_candidate: Option<Candidate>,
    /// The text of the outage that new gave instead of an answer.
    pub(crate) outage: Option<String>,
    /// Whether no id that one agent received was received by the other; `None` if the runs record what they asked, or too few ids are
    /// known.
    pub(crate) has_different_records: Option<bool>,
    /// Whether the result depends on values of baseline's other cases, and those were not all loaded yet.
    pub(crate) undecided: bool,
    /// The arguments for which the baseline passed a value without an origin.
    pub(crate) unsourced: HashedSet,
}

/// What is known of a case before its artifacts are loaded.
#[derive(Clone, Copy)]
pub(super) struct CaseContext<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) index: usize,
    pub(super) case_id: &'a CaseId,
    pub(super) spec: Option<&'a CaseSpec>,
    /// What several runs per side say; `None` with one run per side.
    pub(super) repeats: Option<CaseRepeats<'a>>,
    pub(super) baseline_values: BaselineValues<'a>,
    /// Whether the agent is declared or shown to do the same in every run.
    pub(super) is_deterministic: bool,
    /// Whether the sides were asked with different inputs.
    pub(super) has_changed_input: bool,
    pub(super) baseline_contacts: &'a BaselineContacts,
    pub(super) short_texts: &'a ShortTexts,
    pub(super) baseline_endings: &'a BaselineEndings,
}

/// What several runs say of all cases, and of this one.
#[derive(Clone, Copy)]
pub(super) struct CaseRepeats<'a> {
    pub(super) all: &'a RepeatAnalysis,
    pub(super) case: &'a CaseAnalysis,
}

pub(super) fn compare_case(context: CaseContext<'_>) -> CaseComparison<'_> {
    // Of several runs, the pair that shows best what they say.
    let shown = context.repeats.map(|repeats| repeats.case.shown).unwrap_or_default();
    let runs = Sides::new(&context.request.baseline, &context.request.new);
    let mut pair = LoadedPair::load(runs, shown, context.case_id);
    let candidate = pair.outage_candidate();
    let outage = decide_outage(context, candidate);
    if outage == OutageDecision::Outage {
        pair.count_as_outage();
    }
    let examination = pair.examine(context);
    // A hard expectation alone fails the gate, so it is the first reason, whatever decided the verdict.
    let decision = with_must_first(decide(context, &pair, &examination), &examination.expectations);
    let row = evaluation(context, &pair, &examination, decision);
    let review = review(context, &row, &examination);
    let undecided = examination.findings.undecided || outage == OutageDecision::Undecided;
    let outage = outage_text(context, &pair);
    let results = if context.has_changed_input {
        Sides::new(RunResult::Unknown, RunResult::Unknown)
    } else {
        pair.results(&examination.expectations)
    };
    let has_different_records = examination.has_different_records();
    let arguments = examination.arguments();
    let provenance = examination.answers.as_ref().map(|answers| &answers.provenance);
    let unsourced = provenance.map(|found| found.unsourced_in_baseline().collect()).unwrap_or_default();
    let differences = examination.answers.map(|answers| answers.differences);
    let (spec, index) = (context.spec, context.index);
    let LoadedPair { shown, artifacts, evidence } = pair;
    CaseComparison {
        index,
        spec,
        shown,
        is_alone: context.request.is_alone,
        is_deterministic: context.is_deterministic,
        baseline: artifacts.baseline,
        new: artifacts.new,
        baseline_evidence: evidence.baseline,
        new_evidence: evidence.new,
        differences,
        row,
        arguments,
        review,
        results,
        has_different_records,
        undecided,
        unsourced,
        outage_candidate: candidate,
        outage,
    }
}

/// Whether the answer of new is an outage. Several runs were all seen before; of one run, the other cases may decide.
fn decide_outage(context: CaseContext<'_>, candidate: Option<Candidate>) -> OutageDecision {
    match (context.repeats, candidate) {
        (Some(CaseRepeats { case, .. }), _) if case.outages.contains(&case.shown.new) => OutageDecision::Outage,
        (Some(_), _) | (None, None) => OutageDecision::Answer,
        (None, Some(candidate)) => context.short_texts.decide(candidate, context.baseline_values.coverage),
    }
}

/// The text of the outage, if the case counts as not answered for it: with several runs, if at least half of the answers are
/// outages.
fn outage_text(context: CaseContext<'_>, pair: &LoadedPair) -> Option<String> {
    if let Some(CaseRepeats { case, .. }) = context.repeats {
        let run = *case.outages.first().filter(|_| 2 * case.outages.len() >= case.answers)?;
        let artifact = context.request.new.get(run)?.load(context.case_id);
        return artifact.answer().map(outage::text_of);
    }
    match &pair.artifacts.new {
        Artifact::Outage(answer) => Some(outage::text_of(answer)),
        _ => None,
    }
}

fn review(context: CaseContext<'_>, row: &CaseEvaluation, examination: &Examination<'_>) -> Vec<ReviewItem> {
    let answers = examination.answers.as_ref();
    gate::review_items(&ReviewInput {
        row,
        outages_in_runs: context.repeats.and_then(|CaseRepeats { case, .. }| case.outages_message()),
        differences: answers.map(|answers| &answers.differences),
        findings: &examination.findings,
        high_risk: answers.map(|answers| HighRisk { answers: answers.sides.map(|side| side.loaded) }),
        hand_over: answers.and_then(|answers| answers.hand_over.clone()),
        unseen_high_risk: context.repeats.and_then(|repeats| repeats.case.unseen_message()),
        must_unmet_in_runs: context.repeats.and_then(|repeats| repeats.case.must_unmet_message()),
        behaviour: answers
            .filter(|_| context.is_deterministic)
            .map(|answers| behaviour::find(answers.sides, &answers.differences)),
    })
}

/// Whether new newly or no longer hands the case over to a person.
fn changed_hand_over(context: CaseContext<'_>, sides: Sides<WithEvidence<'_>>) -> Option<ChangedHandOver> {
    let shown = sides.map(|side| [hand_over::of_answer(side.loaded)]);
    let of_pair = shown.as_ref().map(|found| &found[..]);
    let all = context.repeats.map_or(of_pair, |repeats| repeats.case.hand_overs.as_ref().map(Vec::as_slice));
    hand_over::compare(all, shown.as_ref().map(|[found]| found.as_ref()))
}

/// The artifacts of one run per side, with their evidence refs resolved.
pub(super) struct LoadedPair {
    pub(super) shown: Sides<usize>,
    pub(super) artifacts: Sides<Artifact>,
    pub(super) evidence: Sides<Vec<Vec<evidence::FollowedRef>>>,
}

struct Examination<'p> {
    inputs: Sides<CaseInput<'p>>,
    expectations: Vec<ExpectationResult>,
    findings: Findings,
    /// `None` unless both sides answered.
    answers: Option<ExaminedAnswers<'p>>,
}

struct ExaminedAnswers<'p> {
    sides: Sides<WithEvidence<'p>>,
    differences: Differences,
    provenance: Provenance<'p>,
    hand_over: Option<ChangedHandOver>,
}

impl CaseComparison<'_> {
    /// Whether the agents received other records, such as those of other customers, so that their answers are hardly comparable.
    pub fn has_other_records(&self) -> bool {
        self.has_different_records == Some(true)
    }
}

impl Examination<'_> {
    fn arguments(&self) -> Sides<Vec<TracedArgument>> {
        let Some(answers) = self.answers.as_ref().filter(|answers| !answers.differences.is_empty()) else {
            return Sides::default();
        };
        let Provenance { baseline, new, .. } = &answers.provenance;
        Sides::new(baseline, new).zip(answers.sides).map(|(origins, side)| arguments::of_side(side.loaded, origins))
    }

    fn has_different_records(&self) -> Option<bool> {
        let answers = self.answers.as_ref()?;
        have_different_records(answers.sides, &answers.differences, self.inputs.as_ref())
    }
}

/// Whether the agents received different records. Equal digests of the input are better evidence than the values received.
pub(super) fn have_different_records(
    sides: Sides<WithEvidence<'_>>,
    differences: &Differences,
    inputs: Sides<&CaseInput<'_>>,
) -> Option<bool> {
    if inputs.baseline.is_recorded() && inputs.new.is_recorded() {
        return None;
    }
    // Equal answers rest on equal records. Most cases are equal, and reading all words of both sides takes time.
    if differences.is_empty() {
        return Some(false);
    }
    records::are_different(sides.baseline.loaded, sides.new.loaded)
}

impl LoadedPair {
    /// Step 1: loads one run per side.
    pub(super) fn load(runs: Sides<&SideRuns>, shown: Sides<usize>, case_id: &CaseId) -> Self {
        let load =
            |(runs, index): (&SideRuns, usize)| runs.get(index).map_or(Artifact::Absent, |run| run.load(case_id));
        let mut artifacts = runs.zip(shown).map(load);
        if let (Artifact::Answer(baseline), Artifact::Answer(new)) = (&artifacts.baseline, &mut artifacts.new) {
            // An artifact that many comparisons share is not read from a file here, and keeps what its own text tells.
            if let Some(new) = Arc::get_mut(new) {
                call_status::add_changed_form(baseline, new);
            }
        }
        Self::new(shown, artifacts)
    }

    pub(super) fn new(shown: Sides<usize>, artifacts: Sides<Artifact>) -> Self {
        let evidence = artifacts.as_ref().map(|artifact| artifact.answer().map(evidence::follow).unwrap_or_default());
        Self { shown, artifacts, evidence }
    }

    fn outage_candidate(&self) -> Option<Candidate> {
        let baseline = self.artifacts.baseline.answer().map(AnswerFeatures::new);
        let new = AnswerFeatures::new(self.artifacts.new.answer()?);
        Candidate::new(&baseline.iter().collect::<Vec<_>>(), &new)
    }

    pub(super) fn count_as_outage(&mut self) {
        self.evidence.new.clear();
        self.artifacts.new = match std::mem::replace(&mut self.artifacts.new, Artifact::Absent) {
            Artifact::Answer(answer) => Artifact::Outage(answer),
            other => other,
        };
    }

    pub(super) fn answers(&self) -> Sides<Option<WithEvidence<'_>>> {
        Sides::from_fn(|side| {
            let loaded = self.artifacts.get(side).answer()?;
            Some(WithEvidence { loaded, evidence: self.evidence.get(side) })
        })
    }

    pub(super) fn inputs<'p>(
        &'p self,
        request: &'p Request<'_>,
        case_id: &'p CaseId,
        spec: Option<&'p CaseSpec>,
    ) -> Sides<CaseInput<'p>> {
        Sides::from_fn(|side| {
            let runs = request.runs(side);
            let run = runs.get(*self.shown.get(side)).unwrap_or_else(|| runs.first());
            CaseInput::new(case_id, spec, run, self.artifacts.get(side).envelope())
        })
    }

    /// What the measures count in the pair.
    fn results(&self, expectations: &[ExpectationResult]) -> Sides<RunResult> {
        Sides::from_fn(|side| {
            let judged = expectations.iter().filter_map(|result| match side {
                Side::Baseline => result.baseline.as_ref(),
                Side::New => result.new.as_ref(),
            });
            RunResult::new(self.artifacts.get(side), judged, self.evidence.get(side))
        })
    }

    /// Step 2: judges the expectations, and compares the answers where both sides have one.
    fn examine<'p>(&'p self, context: CaseContext<'p>) -> Examination<'p> {
        let CaseContext { request, case_id, spec, .. } = context;
        let answers = self.answers();
        let mut expectations = request.expectations.judge(case_id, answers.baseline, answers.new);
        if request.is_alone {
            for result in &mut expectations {
                result.baseline = None;
            }
        }
        let inputs = self.inputs(request, case_id, spec);
        let shown = ShownRuns { index: self.shown, artifacts: self.artifacts.as_ref(), inputs: inputs.as_ref() };
        // Also without answers on both sides: a secret in an answer of new matters whatever the baseline did.
        let signals = find(context, shown);
        let Some(sides) = answers.both() else {
            let mut findings = Findings::default();
            findings.add_signals(signals);
            return Examination { inputs, expectations, findings, answers: None };
        };
        let mut differences = Differences::between(sides.baseline, sides.new, &request.rules);
        // Noise is marked before the causes and the findings are looked for, since both skip it.
        if let Some(repeats) = context.repeats {
            repeats.case.mark_noise(&mut differences, sides, &request.rules);
        }
        let provenance = Provenance::trace(sides, &differences, inputs.as_ref());
        let mut findings = findings::find(sides, &differences, &provenance, context.baseline_values);
        findings.add_signals(signals);
        // Several runs are compared with each other, also if the shown pair is equal.
        if context.repeats.is_some() || !differences.is_empty() {
            let (texts, undecided) = find_text_faults(context, sides, &inputs.new, &differences);
            findings.texts = texts;
            findings.undecided |= undecided;
        }
        Examination {
            inputs,
            expectations,
            findings,
            answers: Some(ExaminedAnswers {
                sides,
                differences,
                provenance,
                hand_over: changed_hand_over(context, sides),
            }),
        }
    }
}

/// Finds faults in the texts of new, compared with all runs of the baseline.
fn find_text_faults(
    context: CaseContext<'_>,
    sides: Sides<WithEvidence<'_>>,
    input: &CaseInput<'_>,
    differences: &Differences,
) -> (Vec<TextFinding>, bool) {
    let shown = sides.map(|side| AnswerStyle::new(side.loaded));
    let of_pair = (vec![&shown.baseline], vec![&shown.new]);
    let (baseline_runs, new_runs) = context.repeats.map_or(of_pair, |repeats| {
        (repeats.case.styles.baseline.iter().collect(), repeats.case.styles.new.iter().collect())
    });
    let (mut found, undecided) = answer_texts::find(&TextInput {
        new: sides.new.loaded,
        input,
        shown: &shown.new,
        baseline_runs: &baseline_runs,
        new_runs: &new_runs,
        endings: context.baseline_endings,
        coverage: context.baseline_values.coverage,
    });
    if context.is_deterministic {
        let answers = sides.map(|side| side.loaded);
        let results_differ = differences.has_other_results(answers);
        for more in deterministic_texts::find(&SameRequest { answers, input, results_differ }) {
            if found.iter().all(|known| known.code != more.code) {
                found.push(more);
            }
        }
    }
    (found, undecided)
}

/// The decision on a pair that was asked with different inputs. A side without a valid artifact is a fault of its own.
fn with_changed_input(mut decision: Decision, examination: &Examination<'_>) -> Decision {
    if matches!(decision.verdict, Verdict::Invalid | Verdict::Missing | Verdict::Added) {
        return decision;
    }
    decision.verdict = Verdict::NotComparable;
    let message = cause::input_changed_message(examination.inputs.as_ref());
    decision.reasons.insert(0, ReasonCode::InputChanged.reason(message, Vec::new()));
    decision
}

/// Step 3: the verdict of the pair; replaced by that of several runs, where these decide; replaced again where runs have
/// lost their artifact of the case.
fn decide(context: CaseContext<'_>, pair: &LoadedPair, examination: &Examination<'_>) -> Decision {
    let compared = examination.answers.as_ref().map(|answers| AnswerPair {
        baseline: answers.sides.baseline,
        new: answers.sides.new,
        differences: &answers.differences,
        expectations: &examination.expectations,
        findings: &examination.findings,
    });
    if context.request.is_alone {
        return verdict::judge_alone(&pair.artifacts.new, &examination.expectations);
    }
    if is_new_case(context, pair) {
        return verdict::judge_new_case(&pair.artifacts.new, &examination.expectations);
    }
    // Also if several runs decide: the reasons of the shown pair explain their verdict.
    let of_pair = verdict::judge(&pair.artifacts.baseline, &pair.artifacts.new, compared);
    if context.has_changed_input {
        return with_changed_input(of_pair, examination);
    }
    let Some(CaseRepeats { all, case }) = context.repeats else { return of_pair };
    let of_runs = match all.verdict(case) {
        Some(mut of_runs) => {
            // Every pair of a deterministic agent shows the same, so one pair is enough.
            if context.is_deterministic && matches!(of_pair.verdict, Verdict::Regressed | Verdict::Broken) {
                return of_pair;
            }
            if differs_beyond_runs(context, examination, of_runs.verdict) {
                of_runs.verdict = Verdict::Changed;
            }
            of_runs.reasons.extend(of_pair.reasons);
            of_runs
        }
        None => of_pair,
    };
    match case.missing_artifacts() {
        Some(missing) => with_missing_artifacts(of_runs, missing),
        None => of_runs,
    }
}

/// Whether the case was added after the baseline, and every run of new has a valid artifact of it.
fn is_new_case(context: CaseContext<'_>, pair: &LoadedPair) -> bool {
    let is_complete = !matches!(pair.artifacts.new, Artifact::Absent | Artifact::Invalid(_))
        && context.repeats.is_none_or(|repeats| repeats.case.missing_artifacts().is_none());
    is_complete && context.request.baseline.precede(context.case_id)
}

/// The decision with the hard expectations that new does not meet as its first reasons, whichever state the baseline is in.
fn with_must_first(mut decision: Decision, expectations: &[ExpectationResult]) -> Decision {
    if !decision.reasons.iter().any(|reason| ReasonCode::MustUnmet.is_code_of(reason)) {
        let unmet = |result: &&ExpectationResult| result.must && result.new.as_ref().is_some_and(|new| !new.is_met());
        let reason = |result| ReasonCode::MustUnmet.reason(expectation_message(result), Vec::new());
        decision.reasons.extend(expectations.iter().filter(unmet).map(reason));
    }
    // Stable: all other reasons stay in their order.
    decision.reasons.sort_by_key(|reason| !ReasonCode::MustUnmet.is_code_of(reason));
    decision
}

/// Whether the pair has a difference that several runs cannot see. It is a change and no more: one run is not enough for a
/// regression.
fn differs_beyond_runs(context: CaseContext<'_>, examination: &Examination<'_>, of_runs: Verdict) -> bool {
    let Some(answers) = &examination.answers else { return false };
    match of_runs {
        Verdict::Unchanged => !answers.differences.is_empty() || examination.findings.has_fresh(),
        Verdict::Noisy => {
            let loaded = answers.sides.map(|side| side.loaded);
            noise::differs_beyond_hashes(&answers.differences, loaded, &context.request.rules)
        }
        _ => false,
    }
}

/// The decision on a case that some runs have no artifact of. The missing artifacts could contain a regression, so they
/// decide, unless the others already do.
fn with_missing_artifacts(mut decision: Decision, mut missing: Decision) -> Decision {
    if gate::fails_by_default(decision.verdict) {
        decision.reasons.append(&mut missing.reasons);
        return decision;
    }
    missing.reasons.append(&mut decision.reasons);
    missing
}

/// Whether the verdict is of one pair of runs that may differ by chance, or of one baseline run.
fn is_unconfirmed(context: CaseContext<'_>, verdict: Verdict) -> bool {
    let decided = context
        .repeats
        .is_some_and(|CaseRepeats { case, .. }| case.is_confirmed() || case.runs_decide() && !case.is_unconfirmed());
    matches!(verdict, Verdict::Regressed | Verdict::Broken) && !context.is_deterministic && !decided
}

fn evaluation(
    context: CaseContext<'_>,
    pair: &LoadedPair,
    examination: &Examination<'_>,
    decision: Decision,
) -> CaseEvaluation {
    let CaseContext { spec, repeats, .. } = context;
    let Sides { baseline, new } = &pair.artifacts;
    let Examination { expectations, findings, answers, .. } = examination;
    let differences = answers.as_ref().map(|answers| &answers.differences);
    let severity = severity::compute(severity::SeverityInput {
        baseline,
        new,
        differences,
        expectations,
        findings,
        hand_over: answers.as_ref().and_then(|answers| answers.hand_over.as_ref()),
        labelled_failed: context.request.baseline.labelled_failed(context.case_id),
        runs: repeats.and_then(|repeats| repeats.case.for_severity()),
    });
    // Both, since the action with the highest risk may be in a run that is not shown.
    let risk_of_pair = verdict::highest_risk([baseline, new].into_iter().filter_map(Artifact::answer));
    let risk_of_runs = repeats.and_then(|repeats| repeats.case.risk);
    let first_divergence = messages::first_divergence(baseline, new, differences);
    let lasting_divergence = answers.as_ref().zip(first_divergence.as_ref()).and_then(|(answers, first)| {
        messages::lasting_divergence(answers.sides.map(|side| side.loaded), &answers.differences, first)
    });
    CaseEvaluation {
        case_id: context.case_id.clone(),
        title: title(spec, [new, baseline]),
        verdict: decision.verdict,
        unconfirmed: is_unconfirmed(context, decision.verdict),
        reasons: decision.reasons,
        first_divergence,
        lasting_divergence,
        alignment: differences.map(differences::summary),
        cause: root_cause(pair, examination, decision.verdict),
        // Nothing that differs is a fault of the agent.
        severity: (decision.verdict != Verdict::NotComparable).then_some(severity),
        risk_level: verdict::highest(risk_of_pair.into_iter().chain(risk_of_runs)),
        tools: run::tool_names([baseline, new]),
        tags: spec.map(|spec| spec.metadata.tags.clone()).unwrap_or_default(),
        suite: spec.and_then(|spec| spec.suite.clone()),
        findings: findings.to_record(),
        story: story::of_case(&StoryInput {
            spec,
            artifacts: pair.artifacts.as_ref(),
            compared: answers.as_ref().map(|answers| (answers.sides, &answers.differences)),
        }),
        expectations: expectations.clone(),
        usage: usage(context, pair),
        repeats: repeats.map(|CaseRepeats { all, case }| all.to_record(case, differences)),
        extra: Extra::new(),
    }
}

/// The time, size and cost of the answers, as medians over several runs; `None` without an answer.
fn usage(context: CaseContext<'_>, pair: &LoadedPair) -> Option<CaseUsage> {
    // Another input takes another time.
    if context.has_changed_input {
        return None;
    }
    let of_pair = || {
        let measure = |artifact: &Artifact| artifact.answer().map(judge::usage::of_answer);
        let Sides { baseline, new } = pair.artifacts.as_ref().map(measure);
        CaseUsage { baseline, new }
    };
    let usage = context.repeats.map_or_else(of_pair, |repeats| repeats.case.usage.clone());
    (usage.baseline.is_some() || usage.new.is_some()).then_some(usage)
}

fn root_cause(pair: &LoadedPair, examination: &Examination<'_>, verdict: Verdict) -> Option<Cause> {
    let Some(ExaminedAnswers { sides, differences, provenance, .. }) = &examination.answers else {
        return cause::of_failures(&pair.artifacts.baseline, &pair.artifacts.new);
    };
    cause::of_answers(cause::Inquiry {
        baseline: sides.baseline,
        new: sides.new,
        differences,
        provenance,
        verdict,
        expectations: &examination.expectations,
        findings: &examination.findings,
        inputs: examination.inputs.as_ref(),
    })
}

/// The title in the cases file, or else in an artifact.
fn title(spec: Option<&CaseSpec>, artifacts: [&Artifact; 2]) -> Option<String> {
    let in_artifact = || artifacts.into_iter().find_map(|artifact| artifact.envelope()?.title.clone());
    spec.and_then(|spec| spec.title.clone()).or_else(in_artifact)
}

#[derive(Clone, Copy)]
pub(super) struct ShownRuns<'a> {
    pub(super) index: Sides<usize>,
    pub(super) artifacts: Sides<&'a Artifact>,
    pub(super) inputs: Sides<&'a CaseInput<'a>>,
}

/// Finds the signals of the shown run of new, then those that only its other runs have.
pub(super) fn find(context: CaseContext<'_>, shown: ShownRuns<'_>) -> SignalSet {
    let mut found = SignalSet::default();
    if let Some(new) = shown.artifacts.new.answer() {
        found = of_answer(context, shown, new, shown.inputs.new);
    }
    // A deterministic agent says the same in every run.
    let others = context.repeats.filter(|_| !context.is_deterministic).into_iter();
    for index in others.flat_map(|repeats| &repeats.case.runs_with_signals).copied() {
        let Some(run) = context.request.new.get(index).filter(|_| index != shown.index.new) else { continue };
        let artifact = run.load(context.case_id);
        let Some(new) = artifact.answer() else { continue };
        let input = CaseInput::new(context.case_id, context.spec, run, artifact.envelope());
        let runs = context.request.new.iter().len();
        found.include(of_answer(context, shown, new, &input), RunNumber { index, runs });
    }
    found
}

/// The signals of one answer of new. Other runs of the baseline are loaded only if the shown one does not have them all.
fn of_answer(context: CaseContext<'_>, shown: ShownRuns<'_>, new: &LoadedAnswer, input: &CaseInput<'_>) -> SignalSet {
    let against = |baseline: Option<&LoadedAnswer>, of_baseline: &CaseInput<'_>| {
        signals::find(SignalInput {
            new,
            baseline,
            inputs: Sides::new(of_baseline, input),
            settings: &context.request.signals,
            baseline_contacts: context.baseline_contacts,
            coverage: context.baseline_values.coverage,
        })
    };
    let mut found = against(shown.artifacts.baseline.answer(), shown.inputs.baseline);
    for (index, run) in context.request.baseline.iter().enumerate() {
        if !found.has_fresh() {
            break;
        }
        if index == shown.index.baseline {
            continue;
        }
        let artifact = run.load(context.case_id);
        if artifact.answer().is_some() {
            let of_baseline = CaseInput::new(context.case_id, context.spec, run, artifact.envelope());
            found.mark_in_baseline(&against(artifact.answer(), &of_baseline));
        }
    }
    found
}
