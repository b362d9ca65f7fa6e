//! Outcomes of the tool calls that carried out the proposed actions. An action is not done if all of its calls failed.

use counterproof_artifact::{Side, Sides};

use super::context::CaseContext;
use counterproof_evaluator::Row;
use counterproof_evaluator::{CallOutcome, any_failed, call_outcomes};

/// The call outcomes of all actions of a case.
#[derive(Debug, Default)]
pub(crate) struct CallOutcomes {
    /// The outcomes of each side, in the order of its actions; empty where no tool call failed.
    sides: Sides<Vec<CallOutcome>>,
}

impl CallOutcomes {
    /// The call outcomes of both sides.
    pub(crate) fn new(context: &CaseContext<'_>) -> Self {
        let has_failures = |side| context.answer(side).is_some_and(any_failed);
        // Without a failed tool call, no outcome is shown.
        if !Side::BOTH.into_iter().any(has_failures) {
            return Self::default();
        }
        let of_side = |side| context.answer(side).map(call_outcomes).unwrap_or_default();
        Self { sides: Sides::from_fn(of_side) }
    }

    /// The outcome of the calls of an action.
    pub(crate) fn of_action(&self, side: Side, index: usize) -> CallOutcome {
        self.sides.get(side).get(index).copied().unwrap_or_default()
    }

    /// Returns whether the cells of a pair of actions show different outcomes.
    pub(crate) fn differ(&self, row: Row) -> bool {
        self.of_pair(row).is_some_and(|Sides { baseline, new }| {
            (baseline.is_failed(), baseline.summary()) != (new.is_failed(), new.summary())
        })
    }

    /// The note on a pair of actions of which only one failed; empty for every other row.
    pub(crate) fn note(&self, row: Row) -> &'static str {
        match self.of_pair(row) {
            // An action without calls was only proposed, so its outcome cannot be compared.
            Some(Sides { baseline, new }) if baseline.calls > 0 && new.calls > 0 => {
                match (baseline.is_failed(), new.is_failed()) {
                    (false, true) => "The call failed on new but not on baseline.",
                    (true, false) => "The call failed on baseline but not on new.",
                    _ => "",
                }
            }
            _ => "",
        }
    }

    fn of_pair(&self, row: Row) -> Option<Sides<CallOutcome>> {
        let Row::Both { baseline, new } = row else { return None };
        let indexes = Sides { baseline, new };
        Some(Sides::from_fn(|side| self.of_action(side, *indexes.get(side))))
    }
}
