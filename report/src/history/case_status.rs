//! Cases over time: how often a case changes between passing and failing, and since when it fails.

use counterproof_artifact::CaseId;

use super::evaluations::{CaseStatus, History};

/// A case that failed in at least one evaluation.
#[derive(Debug)]
pub(crate) struct CaseOverTime<'a> {
    pub(crate) id: &'a CaseId,
    /// The status in each evaluation, oldest first; `None` where the evaluation does not include the case.
    pub(crate) statuses: Vec<Option<CaseStatus>>,
    /// The number of changes between passing and failing.
    pub(crate) flips: usize,
    /// The number of evaluations in which it failed.
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
