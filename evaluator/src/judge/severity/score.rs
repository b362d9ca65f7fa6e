//! The score: which parts a case has, and how they combine.

use counterproof_artifact::evaluation::{ExpectationResult, Judgement, Severity, SeverityShare};
use counterproof_artifact::{EventBody, RiskLevel, Sides};

use super::SeverityPart;
use super::distances::Distances;
use super::told::told;
use super::writes::differing_writes;
use crate::diff::Differences;
use crate::diff::actions::EvidenceChange;
use crate::diff::align::Row;
use crate::grounding::Holder;
use crate::judge::ReasonCode;
use crate::judge::findings::{Findings, Found};
use crate::judge::outcomes::Outcomes;
use crate::load::{Artifact, LoadedAnswer};

/// New has no answer, and the baseline has one.
const NO_ANSWER: f64 = 1.0;
/// For each expectation that held and fails.
const EXPECTATION: f64 = 0.7;
/// For each urgent signal that the baseline does not have: harm, whatever was expected.
const SIGNAL: f64 = 0.7;
/// The reduction of the score of differences from a baseline that is known to have failed.
const BASELINE_FAILED: f64 = 0.95;
/// The weight of all parts together that decide nothing alone. Below the least share of a write that differs.
const OTHERS: f64 = 0.5;
/// Actions of lower or unstated risk.
const OTHER_ACTIONS: f64 = 0.1;
/// For each action that lost its evidence, or has none and high risk.
const EVIDENCE: f64 = 0.5;
/// For each ungrounded value.
const INVENTED: f64 = 0.4;
/// For each ungrounded value that baseline has too, or whose calls all failed.
const UNSEEN: f64 = 0.05;
/// Other calls, and retrievals.
const STEPS: f64 = 0.2;

/// The inputs of the severity of a case.
#[derive(Clone, Copy)]
pub(crate) struct SeverityInput<'a> {
    /// The baseline's artifact.
    pub baseline: &'a Artifact,
    /// New's artifact.
    pub new: &'a Artifact,
    /// The differences of the answers; `None` unless both sides answered.
    pub differences: Option<&'a Differences>,
    /// The results of the expectations on both sides.
    pub expectations: &'a [ExpectationResult],
    /// The problems of new that do not depend on a comparison.
    pub findings: &'a Findings,
    /// The share of the baseline's runs that did not solve the case by their labels.
    pub labelled_failed: f64,
    /// The rates over several runs; `None` if the pair of answers decides alone.
    pub runs: Option<RepeatRates>,
}

/// The rates of a case over several runs per side, each from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatRates {
    /// The share of the differences that the baseline also has with itself.
    pub noise: f64,
    /// The fall of the share of runs with an answer.
    pub answered_fell: f64,
    /// The fall of the share of runs that meet every expectation.
    pub met_fell: f64,
    /// The share of the baseline's answers that do not meet every expectation.
    pub baseline_unmet: f64,
    /// The fall of the share of runs whose evidence holds.
    pub evidence_fell: f64,
}

/// Computes the severity of a case.
///
/// Parts that decide how a case ends combine as independent evidence. All others together count at most half of what is left,
/// so that a case without a deciding part ranks below every case with a whole one.
pub(crate) fn compute(input: SeverityInput<'_>) -> Severity {
    // Rates over runs already account for noise, so only the differences between the two answers are reduced by it.
    let mut counted = match &input.runs {
        Some(runs) => counted_over(runs),
        None => counted_once(&input),
    };
    let urgent = input.findings.fresh_signals().filter(|signal| signal.kind.is_urgent());
    counted.extend(part(SeverityPart::UrgentSignal, any(urgent.map(|_| SIGNAL))));
    let (mut decisive, mut parts): (Vec<_>, Vec<_>) = counted.into_iter().partition(decides);
    // A baseline that failed is no standard: to differ from it is no evidence of harm.
    let solved = 1.0 - BASELINE_FAILED * baseline_failed(&input);
    let expected = any(shares(&decisive));
    let writes = writes(&input);
    let differing = differing(&input);
    let noise = input.runs.map_or(0.0, |runs| runs.noise.clamp(0.0, 1.0));
    let lessened = noise > 0.0 && !differing.is_empty();
    let others = any([any(shares(&parts)), any(shares(&differing)) * (1.0 - noise)].into_iter());
    let of_differences = any([any(writes.iter().map(|part| part.share)), others * OTHERS].into_iter()) * solved;
    let score = any([expected, of_differences].into_iter());
    decisive.extend(writes);
    parts.extend(differing);
    parts.extend(decisive);
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let reduces =
        |code: SeverityPart, share: f64| SeverityShare { code: code.as_str().to_owned(), share: rounded(share) };
    if lessened {
        parts.push(reduces(SeverityPart::Noise, noise));
    }
    if solved < 1.0 && of_differences > 0.0 {
        parts.push(reduces(SeverityPart::BaselineFailed, 1.0 - solved));
    }
    Severity { score: rounded(score), parts }
}

/// True for a part that decides how a case ends: there is no answer, the answer is not what was expected, or it does harm.
fn decides(part: &SeverityShare) -> bool {
    [SeverityPart::NoAnswer, SeverityPart::ExpectationFailed, SeverityPart::UrgentSignal]
        .iter()
        .any(|code| code.as_str() == part.code)
}

/// How much of the baseline is known to have failed, from 0 to 1: an expectation is not met there, or a label states it.
fn baseline_failed(input: &SeverityInput<'_>) -> f64 {
    let is_unmet = |result: &ExpectationResult| result.baseline.as_ref().is_some_and(Judgement::is_unmet);
    let unmet = match &input.runs {
        Some(runs) => runs.baseline_unmet,
        None => f64::from(u8::from(input.expectations.iter().any(is_unmet))),
    };
    unmet.max(input.labelled_failed)
}

/// A part with its share; `None` for a share of 0.
fn part(part: SeverityPart, share: f64) -> Option<SeverityShare> {
    (share > 0.0).then(|| SeverityShare { code: part.as_str().to_owned(), share: rounded(share.min(1.0)) })
}

fn shares(parts: &[SeverityShare]) -> impl Iterator<Item = f64> + '_ {
    parts.iter().map(|part| part.share)
}

/// The parts that are measured by rates over several runs.
fn counted_over(runs: &RepeatRates) -> Vec<SeverityShare> {
    let parts = [
        part(SeverityPart::NoAnswer, NO_ANSWER * runs.answered_fell),
        part(SeverityPart::ExpectationFailed, EXPECTATION * runs.met_fell),
        part(SeverityPart::EvidenceLost, EVIDENCE * runs.evidence_fell),
    ];
    parts.into_iter().flatten().collect()
}

/// Like [`counted_over`], for one run per side: the parts are met or not.
fn counted_once(input: &SeverityInput<'_>) -> Vec<SeverityShare> {
    let fell = |result: &&ExpectationResult| {
        let (held, fails) = (result.baseline.as_ref(), result.new.as_ref());
        held.is_some_and(Judgement::is_met) && fails.is_some_and(Judgement::is_unmet)
    };
    let no_answer = input.baseline.answer().is_some() && input.new.answer().is_none();
    let mut parts = vec![
        part(SeverityPart::NoAnswer, if no_answer { NO_ANSWER } else { 0.0 }),
        part(SeverityPart::ExpectationFailed, any(input.expectations.iter().filter(fell).map(|_| EXPECTATION))),
    ];
    if let (Some(new), Some(differences)) = (input.new.answer(), input.differences) {
        let lost = differences.actions.iter().filter(|row| row.evidence == EvidenceChange::Lost);
        let lost = lost.filter_map(|row| match row.row {
            Row::Both { new: index, .. } => Some(EVIDENCE * weight(new.answer.proposed_actions[index].risk_level)),
            Row::Added(_) | Row::Removed(_) => None,
        });
        parts.push(part(SeverityPart::EvidenceLost, any(lost)));
        let without = input.findings.fresh().filter(|found| found.code == ReasonCode::HighRiskWithoutEvidence);
        parts.push(part(SeverityPart::HighRiskWithoutEvidence, any(without.map(|_| EVIDENCE))));
    }
    parts.into_iter().flatten().collect()
}

/// The parts for the differences between the two shown answers, other than their writes.
fn differing(input: &SeverityInput<'_>) -> Vec<SeverityShare> {
    let (Some(pair), Some(differences)) = (answers(input), input.differences) else { return Vec::new() };
    let outcomes = pair.map(Outcomes::new);
    let new = pair.new;
    let is_without_origin =
        |found: &&Found| matches!(found.code, ReasonCode::UngroundedArgument | ReasonCode::UnrecordedSource);
    let invented = input.findings.fresh().filter(is_without_origin).map(|found| {
        let each = if found.code == ReasonCode::UnrecordedSource || all_calls_failed(new, &outcomes.new, found.holder) {
            UNSEEN
        } else {
            INVENTED
        };
        each * weight(risk(new, found.holder))
    });
    let distances = Distances::new(pair, outcomes.as_ref(), differences);
    let (code, share) = told(pair, &differences.output);
    let parts = [
        part(SeverityPart::UngroundedArgument, any(invented)),
        part(SeverityPart::OtherActions, OTHER_ACTIONS * distances.actions.distance()),
        part(SeverityPart::Steps, STEPS * distances.steps.distance()),
        part(code, share),
    ];
    parts.into_iter().flatten().collect()
}

/// The part for writes that differ.
fn writes(input: &SeverityInput<'_>) -> Option<SeverityShare> {
    let (pair, differences) = (answers(input)?, input.differences?);
    let outcomes = pair.map(Outcomes::new);
    let shares = differing_writes(pair, outcomes.as_ref(), differences);
    part(SeverityPart::HighRiskActions, any(shares.into_iter()))
}

fn answers<'a>(input: &SeverityInput<'a>) -> Option<Sides<&'a LoadedAnswer>> {
    Sides::new(input.baseline.answer(), input.new.answer()).both()
}

/// Combines independent evidence: 1 − Π(1 − share).
fn any(shares: impl Iterator<Item = f64>) -> f64 {
    1.0 - shares.map(|share| 1.0 - share).product::<f64>()
}

/// Rounds to four digits, which is enough to rank cases.
fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

/// The weight of a risk level; an unstated one counts as medium.
const fn weight(risk: RiskLevel) -> f64 {
    match risk {
        RiskLevel::High => 1.0,
        RiskLevel::Medium | RiskLevel::Unknown => 0.6,
        RiskLevel::Low => 0.3,
    }
}

fn risk(loaded: &LoadedAnswer, holder: Holder) -> RiskLevel {
    match holder {
        Holder::Action(index) => loaded.answer.proposed_actions[index].risk_level,
        Holder::Call(index) => match &loaded.answer.events[index].body {
            EventBody::ToolCall(call) => call.risk_level.unwrap_or(RiskLevel::Unknown),
            _ => RiskLevel::Unknown,
        },
    }
}

/// True if every call that received a value failed, so that the value had no effect.
fn all_calls_failed(loaded: &LoadedAnswer, outcomes: &Outcomes<'_>, holder: Holder) -> bool {
    match holder {
        Holder::Action(index) => outcomes.failed(&loaded.answer.proposed_actions[index]),
        Holder::Call(index) => match &loaded.answer.events[index].body {
            EventBody::ToolCall(call) => outcomes.call_failed(call),
            _ => false,
        },
    }
}
