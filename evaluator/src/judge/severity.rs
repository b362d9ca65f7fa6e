//! The severity of a case: a score between 0 and 1 that ranks cases for a reader. The gate does not use it.
//!
//! Each part is independent evidence that new is worse, so they combine as 1 − Π(1 − weight · size). Actions weigh most and
//! wording weighs least, since it is mostly noise. `docs/verdicts.md` has the details.

use counterproof_artifact::evaluation::{ExpectationResult, Judgement, Severity, SeverityShare};
use counterproof_artifact::{Content, EventBody, FinalOutput, ProposedAction, RiskLevel, Sides};
use serde_json::Value;

use super::{ReasonCode, SeverityPart};
use crate::diff::Differences;
use crate::diff::actions::EvidenceChange;
use crate::diff::align::Row;
use crate::diff::elements;
use crate::diff::json::{JsonChanges, LocatedValue};
use crate::diff::output::OutputChange;
use crate::grounding::{self, Holder};
use crate::judge::findings::Findings;
use crate::judge::outcomes::{CallKind, Outcomes};
use crate::load::{Artifact, LoadedAnswer};
use crate::values::distance::{leaves_below, leaves_of};

/// New has no answer, and the baseline has one.
const NO_ANSWER: f64 = 1.0;
/// For each expectation that held and fails.
const EXPECTATION: f64 = 0.7;
/// High-risk actions.
const HIGH_RISK_ACTIONS: f64 = 0.8;
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
/// The fields of an output that is an object.
const OUTPUT_FIELDS: f64 = 0.3;
/// The numbers in an output that is a text.
const OUTPUT_NUMBERS: f64 = 0.1;

/// The distance between a step and the same step at another position.
const MOVED: f64 = 0.25;

/// The cost of a pair that differs everywhere; an unpaired element costs 1.
const PAIR: f64 = 1.5;

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
    /// The fall of the share of runs whose evidence holds.
    pub evidence_fell: f64,
}

/// Computes the severity of a case.
pub(crate) fn compute(input: SeverityInput<'_>) -> Severity {
    // Rates over runs already account for noise, so only the differences between the two answers are reduced by it.
    let counted = match &input.runs {
        Some(runs) => counted_over(runs),
        None => counted_once(&input),
    };
    let differing = differing(&input);
    let noise = input.runs.map_or(0.0, |runs| runs.noise.clamp(0.0, 1.0));
    let score = any([any(shares(&counted)), any(shares(&differing)) * (1.0 - noise)].into_iter());
    let mut parts = counted;
    let lessened = noise > 0.0 && !differing.is_empty();
    parts.extend(differing);
    // The sort is stable, so equal shares keep the order in which the parts were computed.
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    if lessened {
        // Last, because noise lowers the score and is not a part of it.
        parts.push(SeverityShare { code: SeverityPart::Noise.as_str().to_owned(), share: rounded(noise) });
    }
    Severity { score: rounded(score), parts }
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

/// The parts for the differences between the two shown answers.
fn differing(input: &SeverityInput<'_>) -> Vec<SeverityShare> {
    let (Some(old), Some(new), Some(differences)) = (input.baseline.answer(), input.new.answer(), input.differences)
    else {
        return Vec::new();
    };
    let (before, after) = (Outcomes::new(old), Outcomes::new(new));
    let invented = input.findings.fresh().filter(|found| found.code == ReasonCode::UngroundedArgument).map(|found| {
        let each =
            if found.baseline_has_value || all_calls_failed(new, &after, found.holder) { UNSEEN } else { INVENTED };
        each * weight(risk(new, found.holder))
    });
    let distances = ActionDistances::new(Sides::new(old, new), Sides::new(&before, &after), differences);
    let (code, share) = output(&old.answer.final_output, &new.answer.final_output, &differences.output);
    let parts = [
        part(SeverityPart::UngroundedArgument, any(invented)),
        part(SeverityPart::HighRiskActions, HIGH_RISK_ACTIONS * distances.high.distance()),
        part(SeverityPart::OtherActions, OTHER_ACTIONS * distances.other.distance()),
        part(SeverityPart::Steps, STEPS * distances.steps.distance()),
        part(code, share),
    ];
    parts.into_iter().flatten().collect()
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

/// The accumulated distance of two aligned lists.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    cost: f64,
    elements: usize,
}

impl Sum {
    /// The distance, from 0 (equal) to 1 (nothing in common).
    fn distance(self) -> f64 {
        if self.elements == 0 { 0.0 } else { (self.cost / self.elements as f64).min(1.0) }
    }

    /// Adds a row. A pair costs by its distance, which is not computed for other rows.
    fn add<T>(&mut self, row: Sides<Option<T>>, distance: impl FnOnce() -> f64) {
        self.elements += usize::from(row.baseline.is_some()) + usize::from(row.new.is_some());
        self.cost += match (row.baseline, row.new) {
            (Some(_), Some(_)) => PAIR * distance(),
            (None, None) => 0.0,
            (Some(_), None) | (None, Some(_)) => 1.0,
        };
    }
}

/// The distances between the actions, and between the steps, of both sides.
#[derive(Debug, Default)]
struct ActionDistances {
    high: Sum,
    other: Sum,
    steps: Sum,
}

impl ActionDistances {
    fn new(answers: Sides<&LoadedAnswer>, outcomes: Sides<&Outcomes<'_>>, differences: &Differences) -> Self {
        let (Sides { baseline: old, new }, Sides { baseline: before, new: after }) = (answers, outcomes);
        let mut distances = Self::default();
        let (old_actions, new_actions) = (&old.answer.proposed_actions, &new.answer.proposed_actions);
        for row in &differences.actions {
            let (i, j) = indexes(row.row);
            // An action whose calls all failed had no effect.
            let i = i.filter(|i| !before.failed(&old_actions[*i]));
            let j = j.filter(|j| !after.failed(&new_actions[*j]));
            let is_high = |action: &ProposedAction| action.risk_level == RiskLevel::High;
            let high = i.is_some_and(|i| is_high(&old_actions[i])) || j.is_some_and(|j| is_high(&new_actions[j]));
            // A pair counts as high risk if either side does: a lowered risk level is a change of a high-risk action.
            let sum = if high { &mut distances.high } else { &mut distances.other };
            sum.add(Sides::new(i, j), || {
                let params = |action: Option<&ProposedAction>| action.map_or(0, |action| leaves_below(&action.params));
                share_changed(&row.changes, || params(i.map(|i| &old_actions[i])) + params(j.map(|j| &new_actions[j])))
            });
        }
        for row in &differences.events {
            let (i, j) = indexes(row.row);
            let (i, j) = (i.map(|i| &old.answer.events[i].body), j.map(|j| &new.answer.events[j].body));
            // Paired events have the same type, so either body decides.
            let Some(body) = i.or(j) else { continue };
            let moved = if row.moved { MOVED } else { 0.0 };
            match body {
                EventBody::ToolCall(_) => {
                    let call = |body: Option<&'_ EventBody>, outcomes: &Outcomes<'_>| match body {
                        Some(EventBody::ToolCall(call)) => Some(outcomes.kind(call)),
                        _ => None,
                    };
                    // Calls that are counted through their action drop out of the row here. The rest may then be unpaired.
                    let (a, b) = (call(i, before), call(j, after));
                    let is_high_risk = |kind: Option<CallKind>| kind == Some(CallKind::HighRisk);
                    let is_counted = |kind: &CallKind| matches!(kind, CallKind::HighRisk | CallKind::Step);
                    let sum =
                        if is_high_risk(a) || is_high_risk(b) { &mut distances.high } else { &mut distances.steps };
                    sum.add(Sides::new(a.filter(is_counted), b.filter(is_counted)), || {
                        let args = |body: Option<&EventBody>| match body {
                            Some(EventBody::ToolCall(call)) => leaves_below(&call.args),
                            _ => 0,
                        };
                        share_changed(&row.changes, || args(i) + args(j)).max(moved)
                    });
                }
                EventBody::Retrieval(_) => {
                    let of = |body: Option<&EventBody>| match body {
                        Some(EventBody::Retrieval(found)) => 1 + found.doc_ids.len(),
                        _ => 0,
                    };
                    distances.steps.add(Sides::new(i, j), || share_changed(&row.changes, || of(i) + of(j)).max(moved));
                }
                EventBody::ToolResult(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
            }
        }
        distances
    }
}

const fn indexes(row: Row) -> (Option<usize>, Option<usize>) {
    match row {
        Row::Both { baseline, new } => (Some(baseline), Some(new)),
        Row::Removed(baseline) => (Some(baseline), None),
        Row::Added(new) => (None, Some(new)),
    }
}

/// The share of all leaves that differ. Prose counts by its numbers.
fn share_changed(changes: &JsonChanges, leaves: impl FnOnce() -> usize) -> f64 {
    if changes.count() == 0 {
        return 0.0;
    }
    let below = |place: &Option<LocatedValue>| place.as_ref().map_or(0, |place| leaves_of(&place.value)) as f64;
    let listed: f64 = changes
        .iter()
        .map(|change| {
            let differ = match (&change.baseline, &change.new) {
                // In a reordered array, only the elements that moved relative to the others differ.
                (
                    Some(LocatedValue { value: Value::Array(old), .. }),
                    Some(LocatedValue { value: Value::Array(new), .. }),
                ) => {
                    let moved = elements::out_of_order(old, new);
                    return moved.baseline.iter().chain(&moved.new).map(|value| leaves_of(value)).sum::<usize>() as f64;
                }
                (Some(old), Some(new)) => grounding::distance_of_values(&old.value, &new.value),
                _ => 1.0,
            };
            differ * (below(&change.baseline) + below(&change.new))
        })
        .sum();
    // The values of changes that are not listed are unknown; each counts as one leaf per side.
    let all = listed + 2.0 * changes.omitted as f64;
    (all / leaves().max(1) as f64).min(1.0)
}

fn output(old: &FinalOutput, new: &FinalOutput, change: &OutputChange) -> (SeverityPart, f64) {
    match (change, &old.content, &new.content) {
        (OutputChange::Same, ..) => (SeverityPart::OutputNumbers, 0.0),
        (OutputChange::Json(changes), Content::Json(a), Content::Json(b)) => {
            (SeverityPart::OutputFields, OUTPUT_FIELDS * share_changed(changes, || leaves_below(a) + leaves_below(b)))
        }
        (_, Content::Text(a), Content::Text(b)) => {
            (SeverityPart::OutputNumbers, OUTPUT_NUMBERS * grounding::distance_of_numbers(a, b))
        }
        // One output is a text and the other an object.
        _ => (SeverityPart::OutputFields, OUTPUT_FIELDS),
    }
}
