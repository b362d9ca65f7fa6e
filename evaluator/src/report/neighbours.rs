//! The neighbours of a page where only some cases have one: a page waits until it is known which case before it and which
//! case behind it is the nearest with a page.
//!
//! Cases are decided in nearly the order that they stand in, so few pages wait at a time: at most the two ends of each
//! stretch of cases that are decided.

use std::collections::{BTreeMap, BTreeSet};

/// Pages that wait, by the place of their case.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    undecided: BTreeSet<usize>,
    /// The cases that are known to have a page.
    paged: BTreeSet<usize>,
    held: BTreeMap<usize, P>,
}

/// A page with its neighbours.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placed<P> {
    /// The place of its case.
    pub(super) index: usize,
    /// The nearest case before it with a page.
    pub(super) previous: Option<usize>,
    /// The nearest case behind it with a page.
    pub(super) next: Option<usize>,
    /// The page.
    pub(super) page: P,
}

impl<P> Waiting<P> {
    /// Nothing is known of a number of cases.
    pub(super) fn of(cases: usize) -> Self {
        Self { undecided: (0..cases).collect(), paged: BTreeSet::new(), held: BTreeMap::new() }
    }

    /// Notes that a case has no page, or takes its page; gives the pages that need not wait any longer.
    pub(super) fn decide(&mut self, index: usize, page: Option<P>) -> Vec<Placed<P>> {
        self.undecided.remove(&index);
        if let Some(page) = page {
            self.paged.insert(index);
            self.held.insert(index, page);
        }
        // Whatever lies farther away has a page or an undecided case in between.
        let before = self.held.range(..index).next_back().map(|(index, _)| *index);
        let behind = self.held.range(index..).map(|(index, _)| *index).take(2);
        let touched: Vec<_> = before.into_iter().chain(behind).collect();
        let ready = touched.into_iter().filter(|index| self.is_known_around(*index)).collect::<Vec<_>>();
        ready.into_iter().filter_map(|index| self.place(index)).collect()
    }

    /// The pages that are still waiting, where no more cases will be decided.
    pub(super) fn rest(&mut self) -> Vec<Placed<P>> {
        let held: Vec<_> = self.held.keys().copied().collect();
        held.into_iter().filter_map(|index| self.place(index)).collect()
    }

    fn is_known_around(&self, index: usize) -> bool {
        let (undecided_before, undecided_behind) = nearest(&self.undecided, index);
        let (paged_before, paged_behind) = nearest(&self.paged, index);
        let is_paged_first = |undecided| paged_behind.is_some_and(|paged| paged < undecided);
        // `None` sorts before any place: nothing undecided, or a page that is nearer.
        undecided_before <= paged_before && undecided_behind.is_none_or(is_paged_first)
    }

    fn place(&mut self, index: usize) -> Option<Placed<P>> {
        let (previous, next) = nearest(&self.paged, index);
        self.held.remove(&index).map(|page| Placed { index, previous, next, page })
    }
}

/// The nearest members before and behind a place.
fn nearest(set: &BTreeSet<usize>, index: usize) -> (Option<usize>, Option<usize>) {
    (set.range(..index).next_back().copied(), set.range(index + 1..).next().copied())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_leaves_when_both_its_neighbours_are_known() {
        let mut waiting = Waiting::of(4);
        assert_eq!(waiting.decide(1, Some("b")), []);
        assert_eq!(waiting.decide(0, None), []);
        assert_eq!(waiting.decide(2, None), []);
        let both = waiting.decide(3, Some("d"));
        assert_eq!(
            both,
            [
                Placed { index: 1, previous: None, next: Some(3), page: "b" },
                Placed { index: 3, previous: Some(1), next: None, page: "d" }
            ]
        );
    }

    proptest! {
        #[test]
        fn in_whatever_order_cases_are_decided_each_page_comes_once_with_its_true_neighbours(
            (pages, order) in proptest::collection::vec(any::<bool>(), 1..40)
                .prop_flat_map(|pages| { let order: Vec<_> = (0..pages.len()).collect(); (Just(pages), Just(order).prop_shuffle()) })
        ) {
            let mut waiting = Waiting::of(pages.len());
            let mut placed = Vec::new();
            for index in order {
                placed.extend(waiting.decide(index, pages[index].then_some(index)));
            }
            // The last decision sets all free, so that nothing is left to be guessed.
            prop_assert!(waiting.rest().is_empty());
            placed.sort_by_key(|placed| placed.page);
            let expected: Vec<_> = (0..pages.len()).filter(|index| pages[*index]).map(|index| Placed {
                index,
                previous: (0..index).rev().find(|other| pages[*other]),
                next: (index + 1..pages.len()).find(|other| pages[*other]),
                page: index,
            }).collect();
            prop_assert_eq!(placed, expected);
        }
    }
}
