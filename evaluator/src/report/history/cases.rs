//! Cases over time: which go back and forth, and since when one is wrong.

use counterproof_artifact::CaseId;

use super::nights::{History, Stand};

/// A case that was wrong in a night.
#[derive(Debug)]
pub(super) struct CaseOverTime<'a> {
    pub(super) id: &'a CaseId,
    /// How it was in each night, oldest first.
    pub(super) stands: Vec<Option<Stand>>,
    /// How often it changed between fine and wrong.
    pub(super) flips: usize,
    /// Nights in which it was wrong.
    pub(super) wrong: usize,
    /// Nights that have it.
    pub(super) known: usize,
    /// The first night in which it was wrong.
    pub(super) first_wrong: usize,
    /// The night since which it is wrong; `None` where it is fine in the last night that has it.
    pub(super) wrong_since: Option<usize>,
}

/// The cases that were ever wrong, in the order in which they were first met.
pub(super) fn ever_wrong(history: &History) -> Vec<CaseOverTime<'_>> {
    history.stands().into_iter().filter_map(|(id, stands)| over_time(id, stands)).collect()
}

fn over_time(id: &CaseId, stands: Vec<Option<Stand>>) -> Option<CaseOverTime<'_>> {
    let known: Vec<(usize, Stand)> =
        stands.iter().enumerate().filter_map(|(night, stand)| Some((night, (*stand)?))).collect();
    let first_wrong = known.iter().find(|(_, stand)| *stand == Stand::Wrong)?.0;
    let flips = known.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let wrong = known.iter().filter(|(_, stand)| *stand == Stand::Wrong).count();
    let last_stretch = known.iter().rev().take_while(|(_, stand)| *stand == Stand::Wrong);
    let wrong_since = last_stretch.last().map(|(night, _)| *night);
    Some(CaseOverTime { id, flips, wrong, known: known.len(), first_wrong, wrong_since, stands })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(letters: &str) -> Option<(usize, usize, usize, usize, Option<usize>)> {
        let id: CaseId = "a".parse().unwrap();
        let stand = |letter| match letter {
            'w' => Some(Stand::Wrong),
            'f' => Some(Stand::Fine),
            _ => None,
        };
        let case = over_time(&id, letters.chars().map(stand).collect())?;
        Some((case.flips, case.wrong, case.known, case.first_wrong, case.wrong_since))
    }

    #[test]
    fn nights_that_do_not_have_a_case_say_nothing_of_it() {
        assert_eq!(of("ff-f"), None);
        assert_eq!(of("f-w-w"), Some((1, 2, 3, 2, Some(2))));
        assert_eq!(of("w-f"), Some((1, 1, 2, 0, None)));
        assert_eq!(of("wfwfw-"), Some((4, 3, 5, 0, Some(4))));
    }

    proptest! {
        #[test]
        fn a_case_that_is_wrong_now_is_so_since_a_night_of_its_own(letters in "[wf-]{0,40}") {
            let Some((flips, wrong, known, first, since)) = of(&letters) else {
                prop_assert!(!letters.contains('w'));
                return Ok(());
            };
            prop_assert!(wrong <= known && flips < known.max(1) && letters.as_bytes()[first] == b'w');
            let is_wrong_now = letters.trim_end_matches('-').ends_with('w');
            prop_assert_eq!(since.is_some(), is_wrong_now);
            if let Some(since) = since {
                prop_assert!(since >= first && !letters[since..].contains('f'));
                prop_assert!(!letters[..since].trim_end_matches('-').ends_with('w'));
            }
        }
    }
}
