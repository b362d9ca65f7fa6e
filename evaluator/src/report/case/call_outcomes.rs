//! Outcomes of the tool calls that carried out the proposed actions. An action is not done if all of its calls failed.

use counterproof_artifact::{Side, Sides};

use super::context::CaseContext;
use crate::diff::align::Row;
use crate::judge::outcomes::{self, Outcomes};
use crate::load::LoadedAnswer;
use crate::load::failed_result::has_failed;

/// The call outcomes of all actions of a case.
#[derive(Debug, Default)]
pub(crate) struct CallOutcomes {
    /// The outcomes of each side, in the order of its actions; empty where no tool call failed.
    sides: Sides<Vec<CallOutcome>>,
}

/// The outcome of the calls of one action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallOutcome {
    /// The number of calls with a result; 0 for an action that was only proposed.
    calls: usize,
    /// The number of failed calls.
    failed: usize,
}

impl CallOutcome {
    /// Returns whether there were calls and all of them failed.
    pub(crate) const fn is_failed(self) -> bool {
        self.calls > 0 && self.calls == self.failed
    }

    /// The number of failed calls as text, where the mark on the cell does not say it.
    pub(crate) fn summary(self) -> Option<String> {
        (self.failed > 0 && self.calls > 1).then(|| format!("{} of {} calls failed", self.failed, self.calls))
    }
}

impl CallOutcomes {
    /// The call outcomes of both sides.
    pub(crate) fn new(context: &CaseContext<'_>) -> Self {
        let has_failures = |side| context.answer(side).is_some_and(outcomes::any_failed);
        // Without a failed tool call, no outcome is shown.
        if !Side::BOTH.into_iter().any(has_failures) {
            return Self::default();
        }
        let of_side = |side| context.answer(side).map(of_side).unwrap_or_default();
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

fn of_side(loaded: &LoadedAnswer) -> Vec<CallOutcome> {
    let outcomes = Outcomes::new(loaded);
    let outcome = |action| {
        let results = outcomes.results(action);
        let failed = results.iter().filter(|event| has_failed(loaded, **event)).count();
        CallOutcome { calls: results.len(), failed }
    };
    loaded.answer.proposed_actions.iter().map(outcome).collect()
}
