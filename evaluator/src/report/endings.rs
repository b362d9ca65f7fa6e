//! How the calls ended that carried the proposed actions out: an action of which nothing came is no action that was done.

use counterproof_artifact::Side;

use super::case_page::CaseView;
use crate::diff::align::Row;
use crate::judge::outcomes::{self, Outcomes};
use crate::load::LoadedAnswer;

/// How the calls of all actions of a case ended.
#[derive(Debug, Default)]
pub(super) struct Endings {
    baseline: Vec<Ending>,
    new: Vec<Ending>,
}

/// How the calls that carried one action out ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ending {
    /// How many have a result; none where the action was only proposed.
    calls: usize,
    /// How many of these failed.
    failed: usize,
}

impl Ending {
    /// True where there were calls, and each of them failed.
    pub(super) const fn is_failed(self) -> bool {
        self.calls > 0 && self.calls == self.failed
    }

    /// How many failed, where one word for all does not say it.
    pub(super) fn in_words(self) -> Option<String> {
        (self.failed > 0 && self.calls > 1).then(|| format!("{} of {} calls failed", self.failed, self.calls))
    }
}

impl Endings {
    /// The endings of both sides' actions.
    pub(super) fn of(view: &CaseView<'_>) -> Self {
        let sides = Side::BOTH.map(|side| view.answer(side));
        // Where no tool failed, nothing is said of how calls ended.
        if !sides.iter().flatten().any(|loaded| outcomes::any_failed(loaded)) {
            return Self::default();
        }
        let [baseline, new] = sides.map(|loaded| loaded.map(of_side).unwrap_or_default());
        Self { baseline, new }
    }

    /// How the calls of an action ended.
    pub(super) fn of_action(&self, side: Side, index: usize) -> Ending {
        let endings = if side == Side::Baseline { &self.baseline } else { &self.new };
        endings.get(index).copied().unwrap_or_default()
    }

    /// True where the cards of a pair of actions do not say the same of its calls.
    pub(super) fn differ(&self, row: Row) -> bool {
        self.of_pair(row).is_some_and(|[baseline, new]| {
            (baseline.is_failed(), baseline.in_words()) != (new.is_failed(), new.in_words())
        })
    }

    /// What is said of a pair of which nothing came on one side only; empty for any other.
    pub(super) fn note(&self, row: Row) -> &'static str {
        match self.of_pair(row) {
            Some([baseline, new]) if baseline.calls > 0 && new.calls > 0 && baseline.is_failed() != new.is_failed() => {
                if new.is_failed() {
                    "The call failed, and did not in baseline."
                } else {
                    "The call failed in baseline, and no longer does."
                }
            }
            _ => "",
        }
    }

    fn of_pair(&self, row: Row) -> Option<[Ending; 2]> {
        let Row::Both { baseline, new } = row else { return None };
        Some([self.of_action(Side::Baseline, baseline), self.of_action(Side::New, new)])
    }
}

fn of_side(loaded: &LoadedAnswer) -> Vec<Ending> {
    let outcomes = Outcomes::of(loaded);
    let ending = |action| {
        let results = outcomes.results(action);
        let failed = results.iter().filter(|event| outcomes::is_error(&loaded.answer.events[**event])).count();
        Ending { calls: results.len(), failed }
    };
    loaded.answer.proposed_actions.iter().map(ending).collect()
}
