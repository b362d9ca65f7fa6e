//! The evaluations of a history. Of each, only a summary and the status of each case are kept.

use std::collections::HashMap;

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, Verdict};
use counterproof_evaluator::{AddedCase, evaluation_text, text};

const LONGEST_REASON: usize = 160;

/// The source of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationSource {
    /// The folder as the user named it.
    pub folder: String,
    /// The link to the report or the evaluation file, relative to the history folder and percent-encoded; `None` without a link.
    pub href: Option<String>,
}

/// All evaluations, in the order in which their new runs started.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<HistoryEntry>,
    ids: Vec<CaseId>,
    indexes: HashMap<CaseId, usize>,
}

#[derive(Debug)]
pub(crate) struct HistoryEntry {
    /// The start of the new run. Texts that are not a time sort before all times.
    started: (Option<i128>, String),
    pub(crate) source: EvaluationSource,
    pub(crate) time: String,
    pub(crate) baseline: String,
    pub(crate) new: String,
    pub(crate) counts: [u64; Verdict::WORST_FIRST.len()],
    pub(crate) gate: GateOutcome,
    pub(crate) headline: String,
    /// The status of each case, by the index of the case.
    cases: Vec<(u32, CaseStatus)>,
    /// The reason of each failing case, by the index of the case.
    reasons: HashMap<u32, String>,
}

/// The status of a case in an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseStatus {
    Passing,
    /// New is worse than baseline, has no valid answer, or does not meet its expectations.
    Failing,
}

impl HistoryEntry {
    fn new(evaluation: &Evaluation, source: EvaluationSource) -> Self {
        let new = &evaluation.new;
        let mut counts = [0; Verdict::WORST_FIRST.len()];
        // Counted from the cases, so that the chart and the case tables cannot contradict each other.
        for case in &evaluation.cases {
            if let Some(index) = Verdict::WORST_FIRST.iter().position(|verdict| *verdict == case.verdict) {
                counts[index] += 1;
            }
        }
        Self {
            // Parsed, because texts with different time zones do not sort by time.
            started: (new.started(), new.generated_at.clone()),
            source,
            time: new.generated_at.clone(),
            baseline: evaluation.baseline.run_id.to_string(),
            new: new.run_id.to_string(),
            counts,
            gate: evaluation.gate.outcome,
            headline: evaluation_text::outcome(evaluation),
            cases: Vec::with_capacity(evaluation.cases.len()),
            reasons: HashMap::new(),
        }
    }

    fn order(&self) -> impl Ord {
        (&self.started, &self.new, &self.baseline)
    }

    fn is_same_comparison(&self, other: &Self) -> bool {
        (&self.new, &self.baseline, &self.time) == (&other.new, &other.baseline, &other.time)
    }
}

impl CaseStatus {
    fn from_case(case: &CaseEvaluation) -> Self {
        match case.verdict {
            Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid | Verdict::Missing => {
                CaseStatus::Failing
            }
            // Even if baseline fails it as well: otherwise a bad run would hide its failures by becoming the baseline.
            _ if case.is_unmet_on_new() || AddedCase::find(case) == Some(AddedCase::Unanswered) => CaseStatus::Failing,
            // `changed` included: no rule states that it is worse.
            _ => CaseStatus::Passing,
        }
    }
}

impl History {
    /// Adds an evaluation. A second evaluation of the same two runs at the same time is rejected with the source of the first.
    pub fn add(&mut self, evaluation: &Evaluation, source: EvaluationSource) -> Result<(), EvaluationSource> {
        let mut entry = HistoryEntry::new(evaluation, source);
        // The report and both run folders have a copy of the same evaluation.
        if let Some(known) = self.entries.iter().find(|known| known.is_same_comparison(&entry)) {
            return Err(known.source.clone());
        }
        for case in &evaluation.cases {
            // Neither passing nor failing: the sides were asked different things.
            if case.verdict == Verdict::NotComparable && !case.is_unmet_on_new() {
                continue;
            }
            let index = self.index(&case.case_id);
            let status = CaseStatus::from_case(case);
            entry.cases.push((index, status));
            if status == CaseStatus::Failing {
                entry.reasons.insert(index, reason(case));
            }
        }
        self.retain_first_reasons(&mut entry);
        // Inserted in the order of the runs: evaluations are added in any order.
        let at = self.entries.iter().position(|known| known.order() > entry.order()).unwrap_or(self.entries.len());
        self.entries.insert(at, entry);
        Ok(())
    }

    /// Drops reasons that are never shown.
    fn retain_first_reasons(&mut self, entry: &mut HistoryEntry) {
        // The page shows only the reason of the first failure of a case. All reasons of many evaluations would fill the memory.
        for known in &mut self.entries {
            if known.reasons.is_empty() {
                continue;
            }
            if known.order() < entry.order() {
                entry.reasons.retain(|index, _| !known.reasons.contains_key(index));
            } else {
                known.reasons.retain(|index, _| !entry.reasons.contains_key(index));
            }
        }
    }

    fn index(&mut self, id: &CaseId) -> u32 {
        // Case ids are stored once and referred to by index: a history holds every case of every evaluation.
        let index = *self.indexes.entry(id.clone()).or_insert_with(|| {
            self.ids.push(id.clone());
            self.ids.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[HistoryEntry] {
        &self.entries
    }

    /// Every case with its status in each evaluation, oldest first; `None` where an evaluation does not include the case.
    pub(crate) fn statuses(&self) -> Vec<(&CaseId, Vec<Option<CaseStatus>>)> {
        let mut statuses: Vec<_> = self.ids.iter().map(|id| (id, vec![None; self.entries.len()])).collect();
        for (number, entry) in self.entries.iter().enumerate() {
            for (index, status) in &entry.cases {
                statuses[*index as usize].1[number] = Some(*status);
            }
        }
        statuses
    }

    /// The reason of the first failure of a case.
    pub(crate) fn first_reason(&self, entry: usize, id: &CaseId) -> &str {
        let index = self.indexes.get(id).and_then(|index| u32::try_from(*index).ok());
        index.and_then(|index| self.entries[entry].reasons.get(&index)).map_or("", String::as_str)
    }
}

fn reason(case: &CaseEvaluation) -> String {
    match (case.reasons.first(), case.unmet_on_new().first()) {
        (Some(reason), _) => text::one_line(&reason.message, LONGEST_REASON),
        (None, Some(unmet)) => {
            let found = unmet.new.as_ref().map_or("", |new| new.found());
            text::one_line(&format!("{} not met on both sides: {found}", unmet.code), LONGEST_REASON)
        }
        (None, None) => String::new(),
    }
}

/// A case that failed in at least one evaluation.
#[derive(Debug)]
pub(crate) struct CaseOverTime<'a> {
    pub(crate) id: &'a CaseId,
    /// The status in each evaluation, oldest first; `None` where the evaluation does not include the case.
    pub(crate) statuses: Vec<Option<CaseStatus>>,
    /// The number of changes between passing and failing.
    pub(crate) flips: usize,
    pub(crate) failed: usize,
    /// The number of evaluations that include it.
    pub(crate) known: usize,
    /// The index of the first evaluation in which it failed.
    pub(crate) first_failure: usize,
    /// The index of the evaluation since which it fails; `None` if it passes in the last one that includes it.
    pub(crate) failing_since: Option<usize>,
}

/// The cases that failed in at least one evaluation, in the order of their first appearance.
pub(crate) fn ever_failed(history: &History) -> Vec<CaseOverTime<'_>> {
    history.statuses().into_iter().filter_map(|(id, statuses)| over_time(id, statuses)).collect()
}

fn over_time(id: &CaseId, statuses: Vec<Option<CaseStatus>>) -> Option<CaseOverTime<'_>> {
    let known: Vec<(usize, CaseStatus)> =
        statuses.iter().enumerate().filter_map(|(index, status)| Some((index, (*status)?))).collect();
    let is_failing = |(_, status): &&(usize, CaseStatus)| *status == CaseStatus::Failing;
    let first_failure = known.iter().find(is_failing)?.0;
    let flips = known.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let failed = known.iter().filter(is_failing).count();
    // Evaluations without the case neither end a series of failures nor extend it, so only `known` ones count.
    let failing_since = known.iter().rev().take_while(is_failing).last().map(|(index, _)| *index);
    Some(CaseOverTime { id, flips, failed, known: known.len(), first_failure, failing_since, statuses })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The numbers of a [`CaseOverTime`].
    #[derive(Debug, PartialEq, Eq)]
    struct Counts {
        flips: usize,
        failed: usize,
        known: usize,
        first_failure: usize,
        failing_since: Option<usize>,
    }

    /// The numbers of a case with these statuses: `p` is passing, `x` failing, `-` not included.
    fn counts(letters: &str) -> Option<Counts> {
        let id: CaseId = "a".parse().unwrap();
        let status = |letter| match letter {
            'x' => Some(CaseStatus::Failing),
            'p' => Some(CaseStatus::Passing),
            _ => None,
        };
        let CaseOverTime { flips, failed, known, first_failure, failing_since, .. } =
            over_time(&id, letters.chars().map(status).collect())?;
        Some(Counts { flips, failed, known, first_failure, failing_since })
    }

    #[test]
    fn evaluations_without_the_case_are_ignored() {
        assert_eq!(counts("pp-p"), None);
        let counted = Counts { flips: 1, failed: 2, known: 3, first_failure: 2, failing_since: Some(2) };
        assert_eq!(counts("p-x-x"), Some(counted));
        let counted = Counts { flips: 1, failed: 1, known: 2, first_failure: 0, failing_since: None };
        assert_eq!(counts("x-p"), Some(counted));
        let counted = Counts { flips: 4, failed: 3, known: 5, first_failure: 0, failing_since: Some(4) };
        assert_eq!(counts("xpxpx-"), Some(counted));
    }

    proptest! {
        #[test]
        fn a_failing_case_fails_since_an_evaluation_that_includes_it(letters in "[xp-]{0,40}") {
            let Some(Counts { flips, failed, known, first_failure: first, failing_since: since }) = counts(&letters) else {
                prop_assert!(!letters.contains('x'));
                return Ok(());
            };
            prop_assert!(failed <= known && flips < known.max(1) && letters.as_bytes()[first] == b'x');
            let is_failing_now = letters.trim_end_matches('-').ends_with('x');
            prop_assert_eq!(since.is_some(), is_failing_now);
            if let Some(since) = since {
                prop_assert!(since >= first && !letters[since..].contains('p'));
                prop_assert!(!letters[..since].trim_end_matches('-').ends_with('x'));
            }
        }
    }
}
