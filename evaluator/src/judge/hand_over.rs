//! Hand-overs of a case to a person, and whether new makes one that the baseline does not, or no longer makes one.

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{RiskLevel, Side, Sides};
use serde::{Deserialize, Serialize};

use super::outcomes::Outcomes;
use crate::load::{LoadedAnswer, tool_names};
use crate::values::text;

/// A hand-over that took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandOver {
    pub(crate) tool: String,
    /// The pointer to its call, or to its action if the transcript has no call.
    pub(crate) pointer: String,
    pub(crate) risk: RiskLevel,
}

/// Returns the first hand-over of an answer that took effect.
pub(crate) fn of_answer(loaded: &LoadedAnswer) -> Option<HandOver> {
    let (events, actions) = (&loaded.answer.events, &loaded.answer.proposed_actions);
    let calls = events.iter().enumerate().filter_map(|(index, event)| Some((index, event.tool_call()?)));
    let mut calls = calls.filter(|(_, call)| tool_names::is_hand_over(&call.tool)).peekable();
    let mut proposed = actions.iter().enumerate().filter(|(_, action)| tool_names::is_hand_over(&action.tool_name));
    if calls.peek().is_none() {
        let (index, action) = proposed.next()?;
        let pointer = format!("/proposed_actions/{index}");
        return Some(HandOver { tool: action.tool_name.clone(), pointer, risk: action.risk_level });
    }
    let outcomes = Outcomes::new(loaded);
    let (index, call) = calls.find(|(_, call)| !outcomes.call_failed(call))?;
    // Not every producer names the action in the call.
    let of_action = proposed.find(|(_, action)| action.tool_name == call.tool).map(|(_, action)| action.risk_level);
    let risk = of_action.or(call.risk_level).unwrap_or(RiskLevel::Unknown);
    Some(HandOver { tool: call.tool.clone(), pointer: format!("/events/{index}"), risk })
}

/// How new differs in a hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandOverChange {
    /// New hands the case over, and the baseline never does.
    Newly,
    /// The baseline always hands the case over, and new does not.
    NoLonger,
}

/// A difference in the hand-over of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedHandOver {
    pub(crate) change: HandOverChange,
    pub(crate) risk: RiskLevel,
    pub(crate) message: String,
    pub(crate) pointers: Vec<SidePointer>,
}

/// Compares the hand-overs of all answers of a case. `shown` are those of the shown pair.
pub(crate) fn compare(answers: Sides<&[Option<HandOver>]>, shown: Sides<Option<&HandOver>>) -> Option<ChangedHandOver> {
    let count = |side: Side| answers.get(side).iter().flatten().count();
    let (before, after) = (count(Side::Baseline), count(Side::New));
    let (of_baseline, of_new) = (answers.baseline.len(), answers.new.len());
    // What the baseline does in some of its runs is its own variation.
    let (side, change) = match () {
        () if of_baseline == 0 || of_new == 0 => return None,
        () if before == 0 && after > 0 => (Side::New, HandOverChange::Newly),
        () if before == of_baseline && after < of_new => (Side::Baseline, HandOverChange::NoLonger),
        () => return None,
    };
    let how = match change {
        HandOverChange::Newly => "newly",
        HandOverChange::NoLonger => "no longer",
    };
    let first = answers.get(side).iter().flatten().next()?;
    let (tool, risk) = (text::one_line(&first.tool, 60), first.risk);
    let runs = if of_baseline.max(of_new) > 1 {
        format!(": in {after} of {}, baseline in {before} of {of_baseline}", text::count(of_new, "run", "runs"))
    } else {
        String::new()
    };
    let pointer = shown.get(side).map(|found| SidePointer::new(side, found.pointer.clone()));
    Some(ChangedHandOver {
        change,
        risk,
        message: format!("{tool}, {how}{runs}"),
        pointers: pointer.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(answers: [&[bool]; 2]) -> Option<String> {
        let hand_over = || HandOver {
            tool: "transfer_to_human".to_owned(),
            pointer: "/events/0".to_owned(),
            risk: RiskLevel::Medium,
        };
        let [baseline, new] = answers.map(|runs| runs.iter().map(|made| made.then(hand_over)).collect::<Vec<_>>());
        compare(Sides::new(&baseline, &new), Sides::new(None, None)).map(|found| found.message)
    }

    #[test]
    fn a_hand_over_counts_where_baseline_never_or_always_makes_it() {
        assert_eq!(found([&[false], &[true]]).as_deref(), Some("transfer_to_human, newly"));
        assert_eq!(found([&[true], &[false]]).as_deref(), Some("transfer_to_human, no longer"));
        assert_eq!(found([&[true], &[true]]), None);
        assert_eq!(found([&[true], &[]]), None, "no answer");
        let no_longer = "transfer_to_human, no longer: in 1 of 3 runs, baseline in 2 of 2";
        assert_eq!(found([&[true, true], &[false, true, false]]).as_deref(), Some(no_longer));
        assert_eq!(found([&[true, false], &[true, true]]), None, "baseline hands over now and then");
        assert_eq!(found([&[true, false], &[false, false]]), None);
    }
}
