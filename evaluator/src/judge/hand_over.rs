//! Hand-overs of a case to a person, and whether new makes one that the baseline does not, or no longer makes one.

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Side, Sides};

use super::outcomes::Outcomes;
use crate::load::{LoadedAnswer, tool_names};
use crate::values::text;

/// A hand-over that took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandOver {
    pub(crate) tool: String,
    /// The pointer to its call, or to its action if the transcript has no call.
    pub(crate) pointer: String,
}

/// Returns the first hand-over of an answer that took effect.
pub(crate) fn of_answer(loaded: &LoadedAnswer) -> Option<HandOver> {
    let (events, actions) = (&loaded.answer.events, &loaded.answer.proposed_actions);
    let calls = events.iter().enumerate().filter_map(|(index, event)| Some((index, event.tool_call()?)));
    let mut calls = calls.filter(|(_, call)| tool_names::is_hand_over(&call.tool)).peekable();
    let mut proposed = actions.iter().enumerate().filter(|(_, action)| tool_names::is_hand_over(&action.tool_name));
    if calls.peek().is_none() {
        let (index, action) = proposed.next()?;
        return Some(HandOver { tool: action.tool_name.clone(), pointer: format!("/proposed_actions/{index}") });
    }
    let outcomes = Outcomes::new(loaded);
    let (index, call) = calls.find(|(_, call)| !outcomes.call_failed(call))?;
    Some(HandOver { tool: call.tool.clone(), pointer: format!("/events/{index}") })
}

/// That new hands a case over as the baseline never does, or does not as the baseline always does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedHandOver {
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
        () if before == 0 && after > 0 => (Side::New, "newly"),
        () if before == of_baseline && after < of_new => (Side::Baseline, "no longer"),
        () => return None,
    };
    let tool = text::one_line(&answers.get(side).iter().flatten().next()?.tool, 60);
    let runs = if of_baseline.max(of_new) > 1 {
        format!(": in {after} of {}, baseline in {before} of {of_baseline}", text::count(of_new, "run", "runs"))
    } else {
        String::new()
    };
    let pointer = shown.get(side).map(|found| SidePointer::new(side, found.pointer.clone()));
    Some(ChangedHandOver { message: format!("{tool}, {change}{runs}"), pointers: pointer.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(answers: [&[bool]; 2]) -> Option<String> {
        let hand_over = || HandOver { tool: "transfer_to_human".to_owned(), pointer: "/events/0".to_owned() };
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
