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
    let failing_since = known.iter().rev().take_while(is_failing).last().map(|(index, _)| *index);
    Some(CaseOverTime { id, flips, failed, known: known.len(), first_failure, failing_since, statuses })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Flips, failures, known evaluations, first failure, and failing since. `p` is passing, `x` failing, `-` not included.
    fn of(letters: &str) -> Option<(usize, usize, usize, usize, Option<usize>)> {
        let id: CaseId = "a".parse().unwrap();
        let status = |letter| match letter {
            'x' => Some(CaseStatus::Failing),
            'p' => Some(CaseStatus::Passing),
            _ => None,
        };
        let case = over_time(&id, letters.chars().map(status).collect())?;
        Some((case.flips, case.failed, case.known, case.first_failure, case.failing_since))
    }

    #[test]
    fn evaluations_without_the_case_are_ignored() {
        assert_eq!(of("pp-p"), None);
        assert_eq!(of("p-x-x"), Some((1, 2, 3, 2, Some(2))));
        assert_eq!(of("x-p"), Some((1, 1, 2, 0, None)));
        assert_eq!(of("xpxpx-"), Some((4, 3, 5, 0, Some(4))));
    }

    proptest! {
        #[test]
        fn a_failing_case_fails_since_an_evaluation_that_includes_it(letters in "[xp-]{0,40}") {
            let Some((flips, failed, known, first, since)) = of(&letters) else {
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
