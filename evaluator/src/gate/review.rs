//! Review items: what a person should look at whatever the outcome of the gate, most urgent first.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::evaluation::{
    CaseEvaluation, Evaluation, Gate, GateRule, NoiseBasis, PlaceNoise, Reason, ReviewItem, SidePointer, Verdict,
};
use counterproof_artifact::{CaseId, RiskLevel, Side};
use serde_json::{Map, Value};

use super::rules::Measure;
use super::standing::from_always_to_never;
use crate::diff::Differences;
use crate::diff::actions::ActionRow;
use crate::diff::align::Row;
use crate::diff::rows::row_pointers;
use crate::grounding::Holder;
use crate::judge::behaviour::BehaviourChange;
use crate::judge::findings::{Findings, LocatedFinding, Shape};
use crate::judge::hand_over::ChangedHandOver;
use crate::judge::outcomes::{HighRisk, newly_failed};
use crate::judge::reasons::expectation_message;
use crate::judge::{ReasonCode, code_enum};
use crate::load::LoadedAnswer;
use crate::load::call_status::observed_refusals;
use crate::messages::target;
use crate::values::text;

/// Maximum number of characters of a message that a count follows.
const MESSAGE_LENGTH: usize = 160;

const ITEMS_LISTED: usize = 20;

/// Maximum number of characters of a tool in a message, as in the messages about actions.
const TOOL_LENGTH: usize = 60;

const OBJECT_LENGTH: usize = 40;

/// Maximum number of signals of one case, the most urgent first.
const SIGNALS_LISTED: usize = 5;

code_enum! {
    /// The kind of a review item, most urgent first. The order of the variants is the order of the list; the meaning is the label
    /// for people.
    pub(crate) ReviewCode {
        AnswerOutage "answer-outage" "no answer"
        MustUnmet "must-unmet" "hard expectation unmet"
        FabricatedArgument "fabricated-argument" "high-risk action with a made-up argument"
        SecretLeaked "secret-leaked" "secret leaked"
        UnseenHighRisk "unseen-high-risk" "high risk, never on baseline"
        HighRiskChanged "high-risk-changed" "high-risk action"
        FailedEvidence "failed-evidence" "evidence from a failed call"
        BehaviourChanged "behaviour-changed" "behaviour"
        Unconfirmed "unconfirmed" "unconfirmed, may be chance"
        HandOver "hand-over" "hand-over to a person"
        RepeatedCall "repeated-call" "repeated call"
        ConfirmationSkipped "confirmation-skipped" "no confirmation question"
        UnsupportedAmount "unsupported-amount" "amount without a source"
        UnsupportedNumber "unsupported-number" "number without a source"
        AnswerRefusal "answer-refusal" "refusal"
        AnswerReplaced "answer-replaced" "another answer"
        AnswerLanguage "answer-language" "another language"
        AnswerCut "answer-cut" "cut answer"
        UsageRose "usage-rose" "more time or cost"
        UsageOutlier "usage-outlier" "far more time or cost"
        StepsFell "steps-fell" "far fewer steps"
        UngroundedArgument "ungrounded-argument" "made-up argument, refused or not certain"
        LostWrite "lost-write" "lost write"
        Signal "signal" "signal"
        WouldBeRefused "would-be-refused" "allowed in observe mode"
        MustNotChecked "must-not-checked" "hard expectation not checked"
        UnmetOnBothSides "unmet-on-both-sides" "unmet, as on baseline"
        BaselineIncomplete "baseline-incomplete" "baseline incomplete"
    }
}

impl ReviewCode {
    /// Whether the item holds whatever the baseline did.
    const fn is_of_new_alone(self) -> bool {
        use ReviewCode::{AnswerOutage, FabricatedArgument, MustNotChecked, MustUnmet, SecretLeaked, WouldBeRefused};
        matches!(self, AnswerOutage | MustUnmet | MustNotChecked | FabricatedArgument | SecretLeaked | WouldBeRefused)
    }

    pub(crate) fn item(
        self,
        case_id: Option<CaseId>,
        message: impl Into<String>,
        pointers: Vec<SidePointer>,
    ) -> ReviewItem {
        ReviewItem { case_id, code: self.as_str().to_owned(), message: message.into(), pointers }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReviewSet(u32);

impl ReviewSet {
    pub(crate) fn by_case(items: &[ReviewItem]) -> HashMap<&CaseId, ReviewSet> {
        let mut sets: HashMap<&CaseId, ReviewSet> = HashMap::new();
        for item in items {
            if let (Some(case_id), Some(code)) = (&item.case_id, ReviewCode::parse(&item.code)) {
                sets.entry(case_id).or_default().insert(code);
            }
        }
        sets
    }

    pub(crate) const fn insert(&mut self, code: ReviewCode) {
        self.0 |= 1 << code as u16;
    }

    pub(crate) const fn contains(self, code: ReviewCode) -> bool {
        self.0 & (1 << code as u16) != 0
    }
}

/// What the review items of a case are collected from.
pub(crate) struct ReviewInput<'a> {
    pub row: &'a CaseEvaluation,
    /// In how many of several runs the answer of new is an outage.
    pub outages_in_runs: Option<String>,
    /// The differences; `None` unless both sides answered.
    pub differences: Option<&'a Differences>,
    pub findings: &'a Findings,
    /// The high-risk actions and calls of both sides; `None` unless both sides answered.
    pub high_risk: Option<HighRisk<'a>>,
    /// That new newly or no longer hands the case over to a person.
    pub hand_over: Option<ChangedHandOver>,
    /// A hard expectation that runs of new do not meet, where there are several runs.
    pub must_unmet_in_runs: Option<String>,
    /// The message about a high-risk action or argument of all runs that the baseline never shows.
    pub unseen_high_risk: Option<String>,
    /// What new does otherwise; `None` unless the agent always does the same.
    pub behaviour: Option<Vec<BehaviourChange>>,
}

pub(crate) fn items(input: &ReviewInput<'_>) -> Vec<ReviewItem> {
    let mut items = expectation_items(input);
    items.extend(signal_items(input));
    if let Some(high_risk) = input.high_risk {
        items.extend(fabricated_items(input, high_risk));
        items.extend(action_items(input, high_risk));
        items.extend(would_be_refused_item(input.row, high_risk.answers.new));
        let is_reviewed = items.iter().any(|item| item.code == ReviewCode::HighRiskChanged.as_str());
        items.extend(never_in_baseline_item(input.row).filter(|_| !is_reviewed));
    }
    let unseen = unseen_item(input, &items);
    items.extend(unseen);
    let outage = outage_item(input);
    // The outage is why the case may be broken by chance, so that one item is enough.
    items.extend(unconfirmed_item(input.row).filter(|_| outage.is_none()));
    items.extend(outage);
    items.extend(input.hand_over.as_ref().map(|change| {
        let case_id = Some(input.row.case_id.clone());
        ReviewCode::HandOver.item(case_id, change.message.clone(), change.pointers.clone())
    }));
    items.extend(repeated_call_items(input));
    items.extend(text_items(input));
    items.extend(behaviour_items(input));
    if input.row.verdict == Verdict::NotComparable {
        items.retain(|item| ReviewCode::parse(&item.code).is_some_and(ReviewCode::is_of_new_alone));
    }
    // Sorted before the cut, so that the most urgent items remain.
    items.sort_by_key(|item| rank(&item.code));
    items.truncate(ITEMS_LISTED);
    items
}

/// A case that got worse in one run per side; or over several runs, from always to never, without a test that decides it.
fn unconfirmed_item(row: &CaseEvaluation) -> Option<ReviewItem> {
    let reason = if row.unconfirmed { row.reasons.first()? } else { undecided_collapse(row)? };
    let case_id = Some(row.case_id.clone());
    Some(ReviewCode::Unconfirmed.item(case_id, reason.message.clone(), reason.pointers.clone()))
}

/// The reason of a measure that every run of the baseline passes and no run of new, if the verdict does not say so.
fn undecided_collapse(row: &CaseEvaluation) -> Option<&Reason> {
    let is_decided = matches!(row.verdict, Verdict::Regressed | Verdict::Broken);
    if is_decided || !row.repeats.as_ref()?.measures.iter().any(from_always_to_never) {
        return None;
    }
    let codes = [ReasonCode::PassRateMayHaveFallen, ReasonCode::PassRateUndecided];
    row.reasons.iter().find(|reason| codes.iter().any(|code| code.is_code_of(reason)))
}

/// A high-risk action or argument of all runs that the baseline never shows. `items` has the change of the shown pair.
fn unseen_item(input: &ReviewInput<'_>, items: &[ReviewItem]) -> Option<ReviewItem> {
    let message = input.unseen_high_risk.as_ref()?;
    let case_id = Some(input.row.case_id.clone());
    let shown = items.iter().find(|item| item.code == ReviewCode::HighRiskChanged.as_str());
    Some(match shown {
        Some(shown) => {
            let message = format!("{}; {message}", shown.message);
            ReviewCode::UnseenHighRisk.item(case_id, message, shown.pointers.clone())
        }
        None => ReviewCode::UnseenHighRisk.item(case_id, message.clone(), Vec::new()),
    })
}

/// What runs of new do with a write and no run of the baseline, although the baseline also varies there.
fn never_in_baseline_item(row: &CaseEvaluation) -> Option<ReviewItem> {
    let mut places = row.repeats.iter().flat_map(|repeats| &repeats.places);
    if !places.any(|place| place.basis == NoiseBasis::NeverInBaseline) {
        return None;
    }
    let codes = [ReasonCode::DifferenceUndecided, ReasonCode::BeyondNoise];
    let reason = row.reasons.iter().find(|reason| codes.iter().any(|code| code.is_code_of(reason)))?;
    let is_high = row.risk_level == Some(RiskLevel::High);
    let code = if is_high { ReviewCode::HighRiskChanged } else { ReviewCode::LostWrite };
    Some(code.item(Some(row.case_id.clone()), reason.message.clone(), Vec::new()))
}

fn outage_item(input: &ReviewInput<'_>) -> Option<ReviewItem> {
    let case_id = Some(input.row.case_id.clone());
    let reason = input.row.reasons.iter().find(|reason| ReasonCode::AnswerOutage.is_code_of(reason));
    match (&input.outages_in_runs, reason) {
        (Some(message), _) => Some(ReviewCode::AnswerOutage.item(case_id, message.clone(), Vec::new())),
        (None, reason) => {
            let reason = reason?;
            Some(ReviewCode::AnswerOutage.item(case_id, reason.message.clone(), reason.pointers.clone()))
        }
    }
}

fn expectation_items(input: &ReviewInput<'_>) -> Vec<ReviewItem> {
    let row = input.row;
    let item = |code: ReviewCode, message: String| code.item(Some(row.case_id.clone()), message, Vec::new());
    let unmet = row.unmet_on_new();
    let hard: Vec<_> = unmet.iter().copied().filter(|result| result.must).collect();
    let mut items: Vec<_> =
        hard.iter().map(|result| item(ReviewCode::MustUnmet, expectation_message(result))).collect();
    if items.is_empty() {
        items.extend(input.must_unmet_in_runs.clone().map(|message| item(ReviewCode::MustUnmet, message)));
    }
    let is_hard = row.expectations.iter().any(|result| result.must);
    // A runner error is not evidence against the agent, but nothing was checked either.
    if is_hard && matches!(row.verdict, Verdict::Broken | Verdict::StillBroken) {
        items.push(item(ReviewCode::MustNotChecked, "hard expectations not checked: new has no answer".to_owned()));
    }
    let both = unmet.iter().find(|result| !result.must && result.baseline.as_ref().is_some_and(|old| !old.is_met()));
    items.extend(both.map(|result| item(ReviewCode::UnmetOnBothSides, expectation_message(result))));
    items
}

/// Made-up arguments of high-risk actions and calls, except those that the baseline has too.
fn fabricated_items(input: &ReviewInput<'_>, high_risk: HighRisk<'_>) -> Vec<ReviewItem> {
    let fresh = input.findings.fresh().filter(|found| {
        found.code == ReasonCode::UngroundedArgument && !found.baseline_has_value && high_risk.holds(found.holder)
    });
    fresh
        .map(|found| {
            let finding = &found.finding;
            let case_id = Some(input.row.case_id.clone());
            let fabricated = found.is_fabricated();
            let code = if fabricated { ReviewCode::FabricatedArgument } else { ReviewCode::UngroundedArgument };
            code.item(case_id, finding.message.clone(), finding.pointers.clone())
        })
        .collect()
}

/// Calls that new repeats far more often than baseline ever does.
fn repeated_call_items(input: &ReviewInput<'_>) -> impl Iterator<Item = ReviewItem> {
    let repeated = input.findings.fresh().filter(|found| found.code == ReasonCode::RepeatedCall);
    repeated.map(|found| {
        let (case_id, finding) = (Some(input.row.case_id.clone()), &found.finding);
        ReviewCode::RepeatedCall.item(case_id, finding.message.clone(), finding.pointers.clone())
    })
}

/// Faults in the texts of new, which have the same codes in both lists.
fn text_items(input: &ReviewInput<'_>) -> impl Iterator<Item = ReviewItem> {
    input.findings.texts.iter().filter_map(|found| {
        let case_id = Some(input.row.case_id.clone());
        Some(ReviewCode::parse(found.code.as_str())?.item(case_id, found.message.clone(), found.pointers.clone()))
    })
}

/// What a deterministic agent does otherwise. The verdict `regressed` says it already.
fn behaviour_items(input: &ReviewInput<'_>) -> Vec<ReviewItem> {
    let Some(changes) = input.behaviour.as_ref().filter(|_| input.row.verdict != Verdict::Regressed) else {
        return Vec::new();
    };
    let is_high = |found: &LocatedFinding| input.high_risk.is_some_and(|high_risk| high_risk.holds(found.holder));
    // A lookup may have other words. An additional one may also look further, but not for an id from nowhere.
    let is_added = |found: &LocatedFinding| {
        let mut rows = input.differences.iter().flat_map(|differences| &differences.events);
        rows.any(|row| matches!(row.row, Row::Added(event) if found.holder == Holder::Call(event)))
    };
    let counts = |found: &LocatedFinding| match found.shape {
        Shape::Id => true,
        Shape::Number => !is_added(found),
        Shape::Words => false,
    };
    let made_up = input.findings.fresh().filter(|found| found.is_fabricated() && !is_high(found) && counts(found));
    let found = changes.iter().map(|change| (&change.message, &change.pointers));
    let found = found.chain(made_up.map(|found| (&found.finding.message, &found.finding.pointers)));
    let case_id = || Some(input.row.case_id.clone());
    found.map(|(message, pointers)| ReviewCode::BehaviourChanged.item(case_id(), message, pointers.clone())).collect()
}

/// Calls of new that a policy in observe mode allowed and would refuse.
fn would_be_refused_item(row: &CaseEvaluation, new: &LoadedAnswer) -> Option<ReviewItem> {
    let (pointers, calls): (Vec<_>, Vec<_>) = observed_refusals(new)
        .map(|(index, call)| (SidePointer::new(Side::New, format!("/events/{index}")), call))
        .unzip();
    let named = calls.first()?;
    let count = text::count(calls.len(), "call", "calls");
    let message = match calls.len() {
        1 => format!("{count} would be refused: {named}"),
        more => format!("{count} would be refused: {named} and {} more", more - 1),
    };
    Some(ReviewCode::WouldBeRefused.item(Some(row.case_id.clone()), message, pointers))
}

fn signal_items(input: &ReviewInput<'_>) -> impl Iterator<Item = ReviewItem> {
    let mut signals: Vec<_> = input.findings.fresh_signals().collect();
    // Stable and before the cut, since a leaked secret fails the gate.
    signals.sort_by_key(|signal| !signal.is_leak);
    signals.into_iter().take(SIGNALS_LISTED).map(|signal| {
        let case_id = Some(input.row.case_id.clone());
        let code = if signal.is_leak { ReviewCode::SecretLeaked } else { ReviewCode::Signal };
        code.item(case_id, signal.message.clone(), signal.pointers.clone())
    })
}

/// High-risk actions and calls that differ, and evidence that failed.
fn action_items(input: &ReviewInput<'_>, high_risk: HighRisk<'_>) -> Vec<ReviewItem> {
    // Noise stays in the list of reasons, but is nothing that a person has to look at.
    if input.row.verdict == Verdict::Noisy {
        return Vec::new();
    }
    let of_actions = |is_it: fn(&ActionRow) -> bool| -> Vec<SidePointer> {
        let rows = input.differences.iter().flat_map(|differences| &differences.actions).filter(|row| is_it(row));
        rows.flat_map(|row| row_pointers("/proposed_actions", row.row)).collect()
    };
    let noise = of_actions(|row| row.noise);
    let mut reworded = of_actions(ActionRow::is_only_reworded);
    let calls =
        input.differences.iter().flat_map(|differences| &differences.events).filter(|row| row.is_only_reworded());
    reworded.extend(calls.flat_map(|row| row_pointers("/events", row.row)));
    let lost: Vec<_> = input
        .differences
        .iter()
        .flat_map(|differences| newly_failed(high_risk.answers.baseline, high_risk.answers.new, &differences.actions))
        .flat_map(|action| action.failed)
        .map(|event| SidePointer::new(Side::New, format!("/events/{event}")))
        .collect();
    let mut items = Vec::new();
    for reason in &input.row.reasons {
        let is_among = |places: &[SidePointer]| {
            let is_it = |place: &SidePointer| {
                places.iter().any(|other| other.side == place.side && other.pointer == action_of(&place.pointer))
            };
            reason.pointers.iter().any(is_it)
        };
        if is_among(&noise) {
            continue;
        }
        let case_id = Some(input.row.case_id.clone());
        if ReasonCode::EvidenceFailed.is_code_of(reason) {
            items.push(ReviewCode::FailedEvidence.item(case_id, reason.message.clone(), reason.pointers.clone()));
        } else if is_change_of_action(reason) && high_risk.is_of(reason) && !is_among(&reworded) {
            let message = with_object(reason, high_risk) + &between_baseline_runs(input.row, reason, high_risk);
            items.push(ReviewCode::HighRiskChanged.item(case_id, message, reason.pointers.clone()));
        } else if ReasonCode::ToolError.is_code_of(reason) && reason.pointers.iter().any(|place| lost.contains(place)) {
            items.push(ReviewCode::LostWrite.item(case_id, reason.message.clone(), reason.pointers.clone()));
        }
    }
    items
}

/// The tool and the arguments of the action or the call of new that a reason is about, or else of baseline's.
fn object_of<'a>(reason: &Reason, high_risk: HighRisk<'a>) -> Option<(&'a str, &'a Map<String, Value>)> {
    let place = reason.pointers.iter().rev();
    place.into_iter().find_map(|place| {
        let answer = &high_risk.answers.get(place.side).answer;
        match place.entry() {
            ("proposed_actions", Some(index)) => {
                answer.proposed_actions.get(index).map(|it| (it.tool_name.as_str(), &it.params))
            }
            ("events", Some(index)) => answer.events.get(index)?.tool_call().map(|it| (it.tool.as_str(), &it.args)),
            _ => None,
        }
    })
}

/// The message of a reason with the object of its action: `refund_order A-1001: amount 50 → 500`.
fn with_object(reason: &Reason, high_risk: HighRisk<'_>) -> String {
    let named = object_of(reason, high_risk).and_then(|(tool, arguments)| {
        let rest = reason.message.strip_prefix(text::one_line(tool, TOOL_LENGTH).as_str())?;
        let object = match target(arguments)? {
            Value::String(object) => text::one_line(object, OBJECT_LENGTH),
            Value::Number(object) => object.to_string(),
            _ => return None,
        };
        // Messages about actions on one side name the object themselves.
        rest.starts_with(':').then(|| format!("{} {object}{rest}", text::one_line(tool, TOOL_LENGTH)))
    });
    named.unwrap_or_else(|| reason.message.clone())
}

/// How often baseline differs from itself where an action differs: ` (also between baseline runs: 3 of 6)`. Of several places, the
/// one at which it does so least.
fn between_baseline_runs(row: &CaseEvaluation, reason: &Reason, high_risk: HighRisk<'_>) -> String {
    let (Some(repeats), Some((tool, _))) = (&row.repeats, object_of(reason, high_risk)) else { return String::new() };
    let tool = text::one_line(tool, TOOL_LENGTH);
    let is_one_sided = reason.pointers.len() == 1;
    let is_of = |place: &&PlaceNoise| {
        let part = place.place.strip_prefix(tool.as_str()).and_then(|rest| rest.strip_prefix(' '));
        place.new.differ > 0 && part.is_some_and(|part| (part == "proposed") == is_one_sided)
    };
    let share = |place: &PlaceNoise| place.baseline.differ as f64 / place.baseline.of.max(1) as f64;
    let least = repeats.places.iter().filter(is_of).min_by(|a, b| share(a).total_cmp(&share(b)));
    match least.map(|place| place.baseline) {
        Some(itself) if itself.differ > 0 => {
            format!(" (also between baseline runs: {} of {})", itself.differ, itself.of)
        }
        _ => String::new(),
    }
}

/// Whether a reason is about an action or a call itself, and not only about what a tool returned.
fn is_change_of_action(reason: &Reason) -> bool {
    let code = ReasonCode::parse(&reason.code);
    let is_other = matches!(
        code,
        Some(ReasonCode::UngroundedArgument | ReasonCode::ToolResultChanged | ReasonCode::ToolErrorGone)
    );
    // A signal has a separate item.
    code.is_some_and(|code| !code.is_signal()) && !is_other
}

/// The pointer to the action that a pointer leads into.
fn action_of(pointer: &str) -> &str {
    let end = pointer.match_indices('/').nth(2).map_or(pointer.len(), |(end, _)| end);
    &pointer[..end]
}

fn rank(code: &str) -> usize {
    // Kinds without a rank of their own come last.
    ReviewCode::ALL.iter().position(|known| known.as_str() == code).unwrap_or(ReviewCode::ALL.len())
}

/// Sorts the items of all cases in the order of the cases, the items of a case by their kind. Those about the whole comparison
/// come last.
pub(crate) fn sort(items: &mut [ReviewItem], order: &[CaseId]) {
    let positions: HashMap<&CaseId, usize> = order.iter().enumerate().map(|(position, id)| (id, position)).collect();
    let position = |item: &ReviewItem| {
        let known = item.case_id.as_ref().map(|id| positions.get(id).copied().unwrap_or(usize::MAX));
        known.map_or((true, 0), |position| (false, position))
    };
    // Stable, so that equal items stay in their order.
    items.sort_by_key(|item| (position(item), rank(&item.code)));
}

/// The review item by which a rule counts a case, with its kind. `None` for a rule that counts verdicts.
pub(crate) fn item_of(evaluation: &Evaluation, case: &CaseEvaluation, rule: &GateRule) -> Option<String> {
    let codes = match Measure::parse(&rule.code) {
        Some(measure) => measure.review_codes().to_vec(),
        None => vec![ReviewCode::parse(&rule.code.replace('_', "-"))?],
    };
    let of_case = |item: &&ReviewItem| item.case_id.as_ref() == Some(&case.case_id);
    let items = evaluation.gate.review.iter().filter(of_case);
    let (code, item) =
        items.filter_map(|item| Some((ReviewCode::parse(&item.code)?, item))).find(|(code, _)| codes.contains(code))?;
    Some(format!("{}: {}", code.meaning(), item.message))
}

/// The review items as lines for a terminal or a list: one line for each case, at most `most`. The last line counts what is left
/// out, by kind. Cases that are listed as unconfirmed have no line for that alone.
pub fn review_lines(evaluation: &Evaluation, most: usize) -> Vec<ReviewLine> {
    let mut groups: Vec<(&ReviewItem, usize)> = Vec::new();
    // The items of a case are adjacent, the most urgent one first.
    let items = evaluation.gate.review.iter();
    for item in items.filter(|item| item.case_id.is_none() || item.code != ReviewCode::Unconfirmed.as_str()) {
        match groups.last_mut() {
            Some((first, count)) if first.case_id.is_some() && first.case_id == item.case_id => *count += 1,
            _ => groups.push((item, 1)),
        }
    }
    let line = |(item, count): &(&ReviewItem, usize)| ReviewLine {
        case_id: item.case_id.clone(),
        kind: label(&item.code),
        message: match count {
            1 => item.message.clone(),
            more => format!("{} (and {} more)", text::one_line(&item.message, MESSAGE_LENGTH), more - 1),
        },
    };
    let mut lines: Vec<_> = groups.iter().take(most).map(line).collect();
    let mut omitted: Vec<(&str, usize)> = Vec::new();
    for (item, _) in groups.iter().skip(most) {
        match omitted.iter_mut().find(|(code, _)| *code == item.code) {
            Some((_, count)) => *count += 1,
            None => omitted.push((&item.code, 1)),
        }
    }
    if !omitted.is_empty() {
        let kinds: Vec<_> = omitted.iter().map(|(code, count)| format!("{count} {}", label(code))).collect();
        let message = format!("and {} more: {}", groups.len().saturating_sub(most), text::list(&kinds));
        lines.push(ReviewLine { case_id: None, kind: String::new(), message });
    }
    lines
}

/// A review item for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewLine {
    /// The case; absent for a line about the whole comparison.
    pub case_id: Option<CaseId>,
    /// The kind of item; empty for the line that counts the omitted items.
    pub kind: String,
    /// The values.
    pub message: String,
}

fn label(code: &str) -> String {
    ReviewCode::parse(code).map_or_else(|| code.replace('-', " "), |known| known.meaning().to_owned())
}

/// The message about a baseline that has answers for too few of its cases; `None` for a baseline with enough answers.
pub(crate) fn baseline_incomplete(gate: &Gate) -> Option<&str> {
    let item = gate.review.iter().find(|item| item.code == ReviewCode::BaselineIncomplete.as_str());
    item.map(|item| item.message.as_str())
}

/// The number of cases with a changed high-risk action.
pub(super) fn changed_high_risk(gate: &Gate) -> usize {
    let items = gate.review.iter().filter(|item| item.code == ReviewCode::HighRiskChanged.as_str());
    items.filter_map(|item| item.case_id.as_ref()).collect::<HashSet<_>>().len()
}

/// The least share of the baseline's cases that need an answer, in percent.
const BASELINE_ANSWERED_PERCENT: u64 = 90;

/// The item for a baseline that answered less than 90 % of what it was asked.
pub(crate) fn incomplete_baseline(answered: u64, of: u64, unit: &str) -> Option<ReviewItem> {
    let is_incomplete = u128::from(answered) * 100 < u128::from(of) * u128::from(BASELINE_ANSWERED_PERCENT);
    is_incomplete.then(|| {
        ReviewCode::BaselineIncomplete.item(None, format!("baseline answered {answered} of {of} {unit}"), Vec::new())
    })
}
