//! The verdict on one case, with all its reasons. `docs/verdicts.md` describes the rules.

use std::collections::HashSet;

use counterproof_artifact::evaluation::{ExpectationResult, Reason, SidePointer, Verdict};
use counterproof_artifact::{EventBody, EvidenceTarget, ProposedAction, RiskLevel, Side, Sides};

use super::ReasonCode;
use super::outage;
use super::outcomes::HighRisk;
use super::reason_code::at;
use super::reasons::{self, AnswerPair, Turn};
use super::signals::Signal;
use crate::diff::Differences;
use crate::diff::actions::{ActionRow, EvidenceChange};
use crate::diff::align::Row;
use crate::diff::json::JsonChange;
use crate::diff::output::OutputChange;
use crate::diff::rows::{output_pointers, row_pointers};
use crate::judge::findings::{Findings, LocatedFinding};
use crate::load::evidence::{FollowedRef, Resolved, resolved_count};
use crate::load::{Artifact, LoadedAnswer};
use crate::messages;
use crate::messages::step_name;
use crate::values::text;

/// Maximum number of listed reasons of one kind; further ones are counted.
const REASONS_LISTED: usize = 20;

const REFS_NAMED: usize = 3;

/// A verdict with its reasons, the deciding reason first.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) reasons: Vec<Reason>,
}

impl Decision {
    pub(crate) fn new(verdict: Verdict, reasons: Vec<Reason>) -> Self {
        Self { verdict, reasons }
    }
}

/// Decides on two artifacts. `compared` is the comparison of their answers, present where both have one.
pub(crate) fn judge(baseline: &Artifact, new: &Artifact, compared: Option<AnswerPair<'_>>) -> Decision {
    use Artifact::{Absent, Answer, Failure, Invalid, Outage};
    let decision = |verdict, code: ReasonCode, message: String, pointers| {
        Decision::new(verdict, vec![code.reason(message, pointers)])
    };
    match (baseline, new) {
        // The order matters: an invalid artifact decides before an absent one, and an absent one before a failure.
        (Invalid(_), _) | (_, Invalid(_)) => Decision::new(Verdict::Invalid, violations(baseline, new)),
        (Absent, Absent) => {
            let message = "the case is selected, but neither side has an artifact of it".to_owned();
            decision(Verdict::Invalid, ReasonCode::ArtifactAbsent, message, Vec::new())
        }
        (_, Absent) => {
            let message = "new has no artifact of the case".to_owned();
            decision(Verdict::Missing, ReasonCode::OnlyInBaseline, message, Vec::new())
        }
        (Absent, _) => {
            let message = "baseline has no artifact of the case".to_owned();
            decision(Verdict::Added, ReasonCode::OnlyInNew, message, Vec::new())
        }
        (Answer(_), Failure(new)) => {
            let message = format!("runner error on new: {}", messages::failure(&new.failure));
            decision(Verdict::Broken, ReasonCode::RunnerFailure, message, at(Side::New, "/runner_failure"))
        }
        (Answer(_), Outage(new)) => {
            decision(Verdict::Broken, ReasonCode::AnswerOutage, outage_message(new), at(Side::New, OUTPUT))
        }
        (Failure(_) | Outage(_), Outage(new)) => {
            decision(Verdict::StillBroken, ReasonCode::AnswerOutage, outage_message(new), at(Side::New, OUTPUT))
        }
        // Only answers of new are searched for outages.
        (Outage(_), _) => Decision::new(Verdict::Unchanged, Vec::new()),
        (Failure(old), Answer(_)) => {
            let message = format!("runner error on baseline: {}", messages::failure(&old.failure));
            let pointers = at(Side::Baseline, "/runner_failure");
            decision(Verdict::Recovered, ReasonCode::RunnerFailureGone, message, pointers)
        }
        (Failure(old), Failure(new)) => {
            let (old, new) = (messages::failure(&old.failure), messages::failure(&new.failure));
            let message = format!("runner errors on both sides: baseline {old}; new {new}");
            let pointers = Side::BOTH.map(|side| SidePointer::new(side, "/runner_failure")).to_vec();
            decision(Verdict::StillBroken, ReasonCode::RunnerFailureOnBothSides, message, pointers)
        }
        (Answer(_), Answer(_)) => compared.map_or_else(|| Decision::new(Verdict::Unchanged, Vec::new()), of_answers),
    }
}

/// Decides on the artifact of a run without a baseline: an answer, with the expectations that it does not meet, or none.
pub(crate) fn judge_alone(new: &Artifact, expectations: &[ExpectationResult]) -> Decision {
    match new {
        Artifact::Failure(failure) => {
            let message = messages::failure(&failure.failure);
            let reason = ReasonCode::RunnerFailure.reason(message, at(Side::New, "/runner_failure"));
            Decision::new(Verdict::StillBroken, vec![reason])
        }
        Artifact::Answer(_) => Decision::new(Verdict::Unchanged, reasons::unmet(expectations)),
        Artifact::Absent | Artifact::Invalid(_) | Artifact::Outage(_) => judge(new, new, None),
    }
}

/// Decides on a case that was added after the baseline. The reasons that fail it come first.
pub(crate) fn judge_new_case(new: &Artifact, expectations: &[ExpectationResult]) -> Decision {
    let mut reasons = match new {
        Artifact::Outage(answer) => {
            vec![ReasonCode::AnswerOutage.reason(outage_message(answer), at(Side::New, OUTPUT))]
        }
        _ => judge_alone(new, expectations).reasons,
    };
    let message = "the case is new: the baseline does not have it, so its expectations decide";
    reasons.push(ReasonCode::NewCase.reason(message.to_owned(), Vec::new()));
    Decision::new(Verdict::Added, reasons)
}

const OUTPUT: &str = "/final_output/content";

/// States that an answer is the message of an outage.
pub(crate) fn outage_message(loaded: &LoadedAnswer) -> String {
    format!("an outage instead of an answer: “{}”", text::one_line(&outage::text_of(loaded), OUTAGE_CHARS))
}

/// Characters of the text of an outage in a message.
pub(crate) const OUTAGE_CHARS: usize = 100;

fn of_answers(compared: AnswerPair<'_>) -> Decision {
    // Expectations first: they are the only evidence of what is right; everything else shows that something differs.
    let mut worse = reasons::turned(compared.expectations, Turn::Worse);
    worse.extend(reasons::failed_evidence(compared));
    worse.extend(lost_evidence(compared));
    worse.extend(risks_without_evidence(compared));
    // After the other evidence reasons, because it skips the actions that these already name.
    let unsupported = without_evidence(compared, &worse);
    worse.extend(unsupported);
    let better = reasons::turned(compared.expectations, Turn::Better);
    // An ungrounded value is a change, even if the rules of comparison ignore it.
    let made_up = fresh(compared.findings, ReasonCode::UngroundedArgument);
    let unrecorded = fresh(compared.findings, ReasonCode::UnrecordedSource);
    let repeated = fresh(compared.findings, ReasonCode::RepeatedCall);
    let mut changes: Vec<_> = made_up.chain(repeated).map(finding_reason).collect();
    let (urgent, other): (Vec<_>, Vec<_>) =
        compared.findings.fresh_signals().partition(|signal| signal.code.is_urgent_signal());
    changes.extend(urgent.into_iter().map(signal_reason));
    changes.append(&mut self::changes(compared, |reworded| !reworded));
    changes.extend(unrecorded.map(finding_reason));
    changes.extend(other.into_iter().map(signal_reason));
    changes.extend(reasons::undecided(compared.expectations));
    // What only says the same in another way hides other reasons, and is one only where there is no other.
    if worse.is_empty() && better.is_empty() && changes.is_empty() {
        changes = self::changes(compared, |reworded| reworded);
    }
    // One regression outweighs any number of improvements.
    let verdict = if !worse.is_empty() {
        Verdict::Regressed
    } else if !better.is_empty() {
        Verdict::Improved
    } else if changes.is_empty() {
        Verdict::Unchanged
    } else {
        Verdict::Changed
    };
    // A hard expectation is a separate reason, also if the baseline does not meet it either.
    let standing = reasons::must_unmet_on_both(compared.expectations);
    let mut reasons: Vec<_> = worse.into_iter().chain(better).chain(changes).chain(standing).collect();
    let answers = Sides::new(compared.baseline.loaded, compared.new.loaded);
    reasons.sort_by_key(|reason| weight(reason, compared, HighRisk { answers }));
    Decision::new(verdict, reasons)
}

/// The position of a reason in the list, smallest first: hard expectations, high-risk actions, other expectations, evidence,
/// then everything else in the order in which it was found.
fn weight(reason: &Reason, compared: AnswerPair<'_>, high_risk: HighRisk<'_>) -> u8 {
    let is_fabricated = || {
        let fresh = compared.findings.fresh().filter(|found| found.is_fabricated() && high_risk.holds(found.holder));
        fresh.into_iter().any(|found| found.finding.message == reason.message)
    };
    match ReasonCode::parse(&reason.code) {
        Some(ReasonCode::MustUnmet) => 0,
        Some(ReasonCode::UngroundedArgument) if is_fabricated() => 1,
        // The risk and the lack of evidence come before the change that brought them, in the order in which they were found.
        Some(ReasonCode::RiskRoseWithoutEvidence | ReasonCode::HighRiskWithoutEvidence) => 2,
        Some(
            ReasonCode::ToolError
            | ReasonCode::ActionParamsChanged
            | ReasonCode::ActionAdded
            | ReasonCode::ActionRemoved
            | ReasonCode::RiskChanged
            | ReasonCode::ActionChanged
            | ReasonCode::ToolCallAdded
            | ReasonCode::ToolCallRemoved
            | ReasonCode::ToolArgsChanged,
        ) if high_risk.is_of(reason) => 2,
        Some(ReasonCode::ExpectationFailed | ReasonCode::ExpectationMet) => 3,
        Some(ReasonCode::EvidenceFailed | ReasonCode::EvidenceLost) => 4,
        // Actions of lower risk, steps and the output are already in order.
        _ => 5,
    }
}

/// The highest risk that an action or a call of either side states.
pub(crate) fn highest_risk<'a>(answers: impl IntoIterator<Item = &'a LoadedAnswer>) -> Option<RiskLevel> {
    let risks = answers.into_iter().flat_map(|loaded| {
        let of_calls = loaded.answer.events.iter().filter_map(|event| event.tool_call()?.risk_level);
        loaded.answer.proposed_actions.iter().map(|action| action.risk_level).chain(of_calls)
    });
    highest(risks)
}

/// The highest of some levels; a stated level takes precedence over an unknown one.
pub(crate) fn highest(risks: impl Iterator<Item = RiskLevel>) -> Option<RiskLevel> {
    risks.reduce(|highest, risk| if risk.exceeds(highest) || highest == RiskLevel::Unknown { risk } else { highest })
}

fn violations(baseline: &Artifact, new: &Artifact) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (side, artifact) in [(Side::Baseline, baseline), (Side::New, new)] {
        let Artifact::Invalid(findings) = artifact else { continue };
        for finding in findings.iter().take(REASONS_LISTED) {
            // The finding's own code, not one of `ReasonCode`: contract violations have the codes of the validator.
            let message = format!("{side} violates the contract: {}", text::one_line(&finding.message, 200));
            reasons.push(Reason {
                code: finding.code.to_string(),
                message,
                pointers: at(side, finding.pointer.clone()),
            });
        }
        if findings.len() > REASONS_LISTED {
            let message = format!("{side} violates the contract in {} more places", findings.len() - REASONS_LISTED);
            reasons.push(ReasonCode::MoreViolations.reason(message, at(side, "")));
        }
        if findings.is_empty() {
            reasons.push(ReasonCode::Unreadable.reason(format!("the artifact of {side} cannot be read"), at(side, "")));
        }
    }
    reasons
}

fn lost_evidence(compared: AnswerPair<'_>) -> Vec<Reason> {
    let actions = &compared.new.loaded.answer.proposed_actions;
    let lost = compared.differences.actions.iter().filter(|row| row.evidence == EvidenceChange::Lost);
    lost.filter_map(|row| {
        let Row::Both { baseline, new } = row.row else { return None };
        let (held, refs) = (&compared.baseline.evidence[baseline], &compared.new.evidence[new]);
        let named = |refs: &[FollowedRef], answer: &LoadedAnswer, resolved: bool| {
            let refs = refs.iter().filter(|followed| followed.resolved.is_some() == resolved);
            text::list(&refs.map(|followed| ref_name(followed, answer)).collect::<Vec<_>>())
        };
        // A ref that does not resolve and a missing ref need different fixes, so they have different messages.
        let held = named(held, compared.baseline.loaded, true);
        let unresolved = refs.iter().any(|followed| followed.resolved.is_none());
        let tool = text::one_line(&actions[new].tool_name, 60);
        let message = if unresolved {
            let nowhere = named(refs, compared.new.loaded, false);
            format!("evidence for {tool} does not resolve: {nowhere}; baseline had {held}")
        } else {
            format!("evidence for {tool} is missing: baseline had {held}, new has none")
        };
        let pointers = row_pointers("/proposed_actions", row.row)
            .into_iter()
            .map(|place| SidePointer::new(place.side, format!("{}/evidence_refs", place.pointer)))
            .collect();
        Some(ReasonCode::EvidenceLost.reason(message, pointers))
    })
    .collect()
}

/// What a ref resolves to, or the ref itself if it does not resolve.
fn ref_name(followed: &FollowedRef, answer: &LoadedAnswer) -> String {
    match followed.resolved {
        Some(Resolved::Event(index)) if !matches!(followed.target, EvidenceTarget::RetrievalDoc { .. }) => {
            step_name(&answer.answer.events[index], answer)
        }
        _ => text::one_line(&followed.target.to_string(), 80),
    }
}

fn risks_without_evidence(compared: AnswerPair<'_>) -> Vec<Reason> {
    let (old, new) = (&compared.baseline.loaded.answer.proposed_actions, &compared.new.loaded.answer.proposed_actions);
    let highest_before = highest(old.iter().map(|action| action.risk_level));
    let unsupported = |index: usize| resolved_count(&compared.new.evidence[index]) == 0;
    let rose = |row: &ActionRow| match row.row {
        Row::Both { baseline, new: index } => {
            let (before, after) = (old[baseline].risk_level, new[index].risk_level);
            (after.exceeds(before) && unsupported(index))
                .then(|| (index, format!("risk {before} → {after} without evidence")))
        }
        // A new high-risk action is a rise for the case, unless baseline already had an action of that risk.
        Row::Added(index) => {
            let after = new[index].risk_level;
            let exceeds = highest_before.map_or(after == RiskLevel::High, |before| after.exceeds(before));
            (exceeds && after == RiskLevel::High && unsupported(index)).then(|| {
                (index, "proposed at high risk without evidence; baseline proposed no action of that risk".to_owned())
            })
        }
        Row::Removed(_) => None,
    };
    compared
        .differences
        .actions
        .iter()
        .filter_map(|row| {
            let (index, what) = rose(row)?;
            let message = format!("{}: {what}", text::one_line(&new[index].tool_name, 60));
            Some(ReasonCode::RiskRoseWithoutEvidence.reason(message, row_pointers("/proposed_actions", row.row)))
        })
        .collect()
}

/// The findings of one kind that baseline does not have.
fn fresh(findings: &Findings, code: ReasonCode) -> impl Iterator<Item = &LocatedFinding> {
    findings.fresh().filter(move |found| found.code == code)
}

fn signal_reason(signal: &Signal) -> Reason {
    signal.code.reason(signal.message.clone(), signal.pointers.clone())
}

fn finding_reason(found: &LocatedFinding) -> Reason {
    found.code.reason(found.finding.message.clone(), found.finding.pointers.clone())
}

/// Reasons for high-risk actions without evidence that baseline does not have, except actions that already have a reason.
fn without_evidence(compared: AnswerPair<'_>, worse: &[Reason]) -> Vec<Reason> {
    let said: HashSet<&str> = worse
        .iter()
        .filter(|reason| {
            matches!(
                ReasonCode::parse(&reason.code),
                Some(ReasonCode::EvidenceLost | ReasonCode::RiskRoseWithoutEvidence)
            )
        })
        .flat_map(|reason| &reason.pointers)
        .filter(|place| place.side == Side::New)
        .map(|place| place.pointer.trim_end_matches("/evidence_refs"))
        .collect();
    let is_new = |reason: &Reason| {
        reason.pointers.iter().all(|place| !said.contains(place.pointer.trim_end_matches("/evidence_refs")))
    };
    let lacking = fresh(compared.findings, ReasonCode::HighRiskWithoutEvidence).map(finding_reason);
    lacking.filter(is_new).collect()
}

/// Reasons for the differences, by weight: proposed actions, then steps, then the output. `is_listed` is asked for each action
/// and step whether it is listed, given whether it only says the same in another way.
fn changes(compared: AnswerPair<'_>, is_listed: impl Fn(bool) -> bool) -> Vec<Reason> {
    let Differences { actions, events, output, exact, .. } = compared.differences;
    let changed = actions.iter().filter(|row| !row.is_same() && is_listed(row.is_only_reworded()));
    let mut reasons: Vec<_> = changed.map(|row| action_change(row, compared)).collect();
    let paired = reasons::paired_events(events);
    let steps = events.iter().filter(|row| !row.is_same() && is_listed(row.is_only_reworded()));
    let steps = steps.filter_map(|row| reasons::event_change(row, compared, &paired));
    let (refused, mut steps) = reasons::refused_actions(compared, steps.collect());
    // A failed action weighs more than changed parameters, and an action more than its evidence.
    reasons.sort_by_key(|action| ReasonCode::EvidenceChanged.is_code_of(action));
    // At the front: an action that failed had no effect, which outweighs how it was proposed.
    reasons.splice(0..0, refused);
    // A failed tool explains more than the calls after it.
    steps.sort_by_key(|step| !ReasonCode::ToolError.is_code_of(step));
    reasons.append(&mut steps);
    if reasons.len() > REASONS_LISTED {
        let more = reasons.len() - REASONS_LISTED;
        reasons.truncate(REASONS_LISTED);
        reasons.push(ReasonCode::MoreChanges.reason(format!("{more} more places differ"), Vec::new()));
    }
    if *output != OutputChange::Same {
        let code =
            if *output == OutputChange::Form { ReasonCode::OutputTypeChanged } else { ReasonCode::OutputChanged };
        reasons.push(code.reason(messages::output(output), output_pointers()));
    }
    if !exact && !reasons.is_empty() {
        let message = "the lists are too long to be aligned exactly; the pairs may not be the closest ones".to_owned();
        reasons.push(ReasonCode::AlignmentBounded.reason(message, Vec::new()));
    }
    reasons
}

fn action_change(row: &ActionRow, compared: AnswerPair<'_>) -> Reason {
    let (old, new): (&[ProposedAction], &[ProposedAction]) =
        (&compared.baseline.loaded.answer.proposed_actions, &compared.new.loaded.answer.proposed_actions);
    let touches = |field: &str| row.changes.iter().any(|change| in_field(change, field));
    let code = match row.row {
        Row::Added(_) => ReasonCode::ActionAdded,
        Row::Removed(_) => ReasonCode::ActionRemoved,
        Row::Both { .. } if row.has_only_other_evidence() => ReasonCode::EvidenceChanged,
        Row::Both { .. } if touches("params") => ReasonCode::ActionParamsChanged,
        Row::Both { .. } if touches("risk_level") => ReasonCode::RiskChanged,
        Row::Both { .. } => ReasonCode::ActionChanged,
    };
    let message = match row.row {
        Row::Both { baseline, new: index }
            if code == ReasonCode::EvidenceChanged && row.evidence == EvidenceChange::Changed =>
        {
            let tool = text::one_line(&new[index].tool_name, 60);
            format!("{tool}: {}", other_evidence(compared, baseline, index))
        }
        Row::Both { new: index, .. } if code == ReasonCode::EvidenceChanged => {
            format!("{}: evidence lost", text::one_line(&new[index].tool_name, 60))
        }
        _ => messages::action(row, old, new),
    };
    code.reason(message, row_pointers("/proposed_actions", row.row))
}

/// The evidence that only one of the two sides has.
fn other_evidence(compared: AnswerPair<'_>, baseline: usize, new: usize) -> String {
    let (before, after) = (&compared.baseline.evidence[baseline], &compared.new.evidence[new]);
    // By meaning: ids differ between runs, so equal targets can have different refs.
    let only_in = |refs: &[FollowedRef], others: &[FollowedRef], answer: &LoadedAnswer| {
        let known: HashSet<u64> = others.iter().map(|followed| followed.meaning).collect();
        let alone = refs.iter().filter(|followed| !known.contains(&followed.meaning));
        let names: Vec<_> = alone.take(REFS_NAMED).map(|followed| ref_in_full(followed, answer)).collect();
        text::list(&names)
    };
    let gone = only_in(before, after, compared.baseline.loaded);
    let come = only_in(after, before, compared.new.loaded);
    match (gone.is_empty(), come.is_empty()) {
        (true, _) => format!("evidence added: {come}"),
        (_, true) => format!("evidence removed: {gone}"),
        (false, false) => format!("evidence changed from {gone} to {come}"),
    }
}

/// What a ref resolves to; for a call with its arguments, which distinguish two calls of one tool.
fn ref_in_full(followed: &FollowedRef, answer: &LoadedAnswer) -> String {
    let name = ref_name(followed, answer);
    let Some(Resolved::Event(index)) = followed.resolved else { return name };
    let events = &answer.answer.events;
    let call = match &events[index].body {
        EventBody::ToolResult(result) => answer.index.call(events, &result.call_id),
        _ => events[index].tool_call(),
    };
    match call.filter(|call| !call.args.is_empty()).and_then(|call| serde_json::to_string(&call.args).ok()) {
        Some(args) => format!("{name} {}", text::one_line(&args, 60)),
        None => name,
    }
}

/// Whether a change is within this field of an action, as in `/proposed_actions/0/params/amount`.
fn in_field(change: &JsonChange, field: &str) -> bool {
    change.pointer().split('/').nth(3) == Some(field)
}
