//! The design of the runs: either all are planned in advance, or new is run in rounds, where each round only includes cases that
//! are still open. The design decides which runs count and which test is valid.

use counterproof_artifact::{Count, Run};

use crate::load::SideRuns;

/// The design of the runs of both sides.
#[derive(Debug)]
pub(super) struct Design {
    /// For each run of baseline, how its outcomes are counted.
    baseline: Vec<RunUse>,
    /// The same for new.
    new: Vec<RunUse>,
    /// The rounds of new; `None` if its runs were planned in advance.
    pub(super) rounds: Option<Rounds>,
}

/// How the outcomes of a run are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunUse {
    /// As one of the first runs.
    Initial,
    /// As a confirmation of cases that looked worse in the first runs.
    Confirmation,
    /// Not at all.
    Ignored,
}

/// Runs of new in rounds: after the full rounds, each round includes only the cases that are still open.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The indexes of the runs on the side, in the order of the rounds.
    pub(super) order: Vec<usize>,
    /// The maximum number of rounds.
    pub(super) max: u32,
    /// The number of full rounds: the first rounds, which include every case.
    pub(super) full: u32,
}

impl Design {
    pub(super) fn from_runs(baseline: &SideRuns, new: &SideRuns) -> Self {
        let documents = |side: &SideRuns| side.iter().map(|run| run.reader().run().clone()).collect::<Vec<_>>();
        Design::from_documents(&documents(baseline), &documents(new))
    }

    fn from_documents(baseline: &[Run], new: &[Run]) -> Self {
        let baseline = baseline.iter().map(|run| match (&run.confirmation, &run.until_decided, run.repeat) {
            (Some(_), _, _) => RunUse::Confirmation,
            // After the full rounds, how often a case runs depends on its results, so counting these runs would bias the
            // baseline.
            (None, Some(until), Some(repeat)) if repeat.get() > until.full_rounds.get() => RunUse::Ignored,
            _ => RunUse::Initial,
        });
        let of_new = |run: &Run| if run.confirmation.is_some() { RunUse::Confirmation } else { RunUse::Initial };
        Self { baseline: baseline.collect(), new: new.iter().map(of_new).collect(), rounds: Rounds::from_runs(new) }
    }

    /// A design of one run per side.
    pub(super) fn one_run() -> Self {
        Self { baseline: vec![RunUse::Initial], new: vec![RunUse::Initial], rounds: None }
    }

    /// Whether the outcomes of a run of baseline are counted before the confirmation.
    pub(super) fn counts_baseline(&self, run: usize) -> bool {
        self.baseline.get(run) == Some(&RunUse::Initial)
    }

    /// Whether a run of baseline is a confirmation run.
    pub(super) fn confirms_baseline(&self, run: usize) -> bool {
        self.baseline.get(run) == Some(&RunUse::Confirmation)
    }

    /// Whether a run of new is a confirmation run.
    pub(super) fn confirms_new(&self, run: usize) -> bool {
        self.new.get(run) == Some(&RunUse::Confirmation)
    }
}

impl Rounds {
    fn from_runs(runs: &[Run]) -> Option<Self> {
        let until = runs.iter().filter_map(|run| run.until_decided.as_ref());
        // The minimum: a round is full only if every run agrees that it includes all cases.
        let full = until.map(|until| until.full_rounds.get()).min()?;
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let number = |run: &Run| run.repeat.map_or(u64::MAX, Count::get);
        // Confirmation runs select their cases by the rounds, so they are no rounds.
        let mut order: Vec<usize> = (0..runs.len()).filter(|index| runs[*index].confirmation.is_none()).collect();
        order.sort_by_key(|index| number(&runs[*index]));
        // More runs than planned are rounds too, so the maximum covers both.
        let planned = runs.iter().filter_map(|run| run.repeats).map(Count::get).max().unwrap_or(0);
        Some(Self { order, max: narrow(planned.max(runs.len() as u64)), full: narrow(full) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn round(number: u64) -> Run {
        serde_json::from_value(json!({
            "schema_version": "run.v1", "run_id": format!("n-r{number}"), "version": "new", "generated_at": "2026-01-31",
            "base_url": "http://a", "cases_path": "c.json", "out_dir": "..", "selected_case_ids": [],
            "runner_version": "v", "group_id": "n", "repeat": number, "repeats": 20,
            "until_decided": {"against": ["b"], "full_rounds": 2}
        }))
        .unwrap()
    }

    fn planned(number: u64) -> Run {
        Run { until_decided: None, ..round(number) }
    }

    #[test]
    fn rounds_are_counted_in_the_order_in_which_they_were_made() {
        // As a shell sorts the folders.
        let rounds = Design::from_documents(&[planned(1)], &[round(1), round(10), round(2)]).rounds.unwrap();
        assert_eq!((rounds.order, rounds.max, rounds.full), (vec![0, 2, 1], 20, 2));
        assert!(Design::from_documents(&[round(1)], &[planned(1), planned(2)]).rounds.is_none());
    }

    #[test]
    fn of_a_baseline_that_was_made_in_rounds_only_the_full_ones_count() {
        let design = Design::from_documents(&[planned(9), round(1), round(2), round(3)], &[planned(1)]);
        assert_eq!([0, 1, 2, 3].map(|run| design.counts_baseline(run)), [true, true, true, false]);
    }
}
