//! A queue of pages that wait for their neighbours. Where only some cases have a page, a page waits until the nearest page
//! before it and the nearest page after it are known.
//!
//! Cases are decided nearly in case order, so few pages wait at a time: at most the two ends of each contiguous stretch of
//! decided cases.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(crate) struct PageQueue<P> {
    undecided: BTreeSet<usize>,
    /// The decided cases that have a page.
    paged: BTreeSet<usize>,
    waiting: BTreeMap<usize, P>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadyPage<P> {
    pub(crate) index: usize,
    /// The nearest case with a page before it.
    pub(crate) previous: Option<usize>,
    /// The nearest case with a page after it.
    pub(crate) next: Option<usize>,
    pub(crate) page: P,
}

impl<P> PageQueue<P> {
    pub(crate) fn new(cases: usize) -> Self {
        Self { undecided: (0..cases).collect(), paged: BTreeSet::new(), waiting: BTreeMap::new() }
    }

    /// Records the page of a case, or that it has none. Returns the pages whose neighbours are now known.
    pub(crate) fn decide(&mut self, index: usize, page: Option<P>) -> Vec<ReadyPage<P>> {
        self.undecided.remove(&index);
        if let Some(page) = page {
            self.paged.insert(index);
            self.waiting.insert(index, page);
        }
        // Only the nearest pages can be affected: any other has a page or an undecided case in between.
        let before = self.waiting.range(..index).next_back().map(|(index, _)| *index);
        let after = self.waiting.range(index..).map(|(index, _)| *index).take(2);
        let touched: Vec<_> = before.into_iter().chain(after).collect();
        // All are checked before any is taken, and `paged` retains the taken ones: they remain neighbours of later pages.
        let ready = touched.into_iter().filter(|index| self.is_known_around(*index)).collect::<Vec<_>>();
        ready.into_iter().filter_map(|index| self.take(index)).collect()
    }

    /// The pages that still wait, once every case is decided.
    pub(crate) fn drain(&mut self) -> Vec<ReadyPage<P>> {
        let waiting: Vec<_> = self.waiting.keys().copied().collect();
        waiting.into_iter().filter_map(|index| self.take(index)).collect()
    }

    fn is_known_around(&self, index: usize) -> bool {
        let (undecided_before, undecided_after) = nearest(&self.undecided, index);
        let (paged_before, paged_after) = nearest(&self.paged, index);
        let is_paged_first = |undecided| paged_after.is_some_and(|paged| paged < undecided);
        // `None` is less than any index: no undecided case before this one, or a page that is nearer.
        undecided_before <= paged_before && undecided_after.is_none_or(is_paged_first)
    }

    fn take(&mut self, index: usize) -> Option<ReadyPage<P>> {
        let (previous, next) = nearest(&self.paged, index);
        self.waiting.remove(&index).map(|page| ReadyPage { index, previous, next, page })
    }
}

fn nearest(set: &BTreeSet<usize>, index: usize) -> (Option<usize>, Option<usize>) {
    (set.range(..index).next_back().copied(), set.range(index + 1..).next().copied())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_ready_when_both_neighbours_are_known() {
        let mut queue = PageQueue::new(4);
        assert_eq!(queue.decide(1, Some("b")), []);
        assert_eq!(queue.decide(0, None), []);
        assert_eq!(queue.decide(2, None), []);
        let both = queue.decide(3, Some("d"));
        assert_eq!(
            both,
            [
                ReadyPage { index: 1, previous: None, next: Some(3), page: "b" },
                ReadyPage { index: 3, previous: Some(1), next: None, page: "d" }
            ]
        );
    }

    proptest! {
        #[test]
        fn in_any_order_each_page_is_ready_once_with_its_true_neighbours(
            (pages, order) in proptest::collection::vec(any::<bool>(), 1..40)
                .prop_flat_map(|pages| { let order: Vec<_> = (0..pages.len()).collect(); (Just(pages), Just(order).prop_shuffle()) })
        ) {
            let mut queue = PageQueue::new(pages.len());
            let mut placed = Vec::new();
            for index in order {
                placed.extend(queue.decide(index, pages[index].then_some(index)));
            }
            // The last decision makes every page ready.
            prop_assert!(queue.drain().is_empty());
            placed.sort_by_key(|placed| placed.page);
            let expected: Vec<_> = (0..pages.len()).filter(|index| pages[*index]).map(|index| ReadyPage {
                index,
                previous: (0..index).rev().find(|other| pages[*other]),
                next: (index + 1..pages.len()).find(|other| pages[*other]),
                page: index,
            }).collect();
            prop_assert_eq!(placed, expected);
        }
    }
}
