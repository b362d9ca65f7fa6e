//! The designs that a number of runs allows, and the ways to deal the runs to the sides.

use std::fmt;

use fastrand::Rng;

/// Numbers of runs a side that people use.
pub(super) const RUNS_A_SIDE: [usize; 4] = [1, 3, 5, 10];

/// The seed of the deals that are drawn, so that the same runs give the same figures.
const SEED: u64 = 1;

/// How many runs each side of a comparison has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Design {
    /// The runs of the baseline.
    pub baseline: usize,
    /// The runs of new.
    pub new: usize,
    /// The further runs of new, in which only cases that look worse are asked.
    pub confirmation: usize,
}

impl Design {
    /// The designs that need no more than these runs: equal sides, and one run of new that others confirm.
    pub fn up_to(runs: usize) -> Vec<Self> {
        let equal = |side: usize| Self { baseline: side, new: side, confirmation: 0 };
        let mut sides = RUNS_A_SIDE.to_vec();
        // Also with few runs: two a side are the least that show noise.
        sides.push(2);
        sides.sort_unstable();
        let mut designs: Vec<_> = sides.into_iter().filter(|side| 2 * side <= runs).map(equal).collect();
        let confirmed = Self { baseline: runs.div_ceil(2), new: 1, confirmation: (runs / 2).saturating_sub(1) };
        designs.extend((confirmed.confirmation > 0).then_some(confirmed));
        designs
    }

    const fn runs(self) -> usize {
        self.baseline + self.new + self.confirmation
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.baseline, self.new)?;
        if self.confirmation > 0 {
            write!(f, " + confirm {}", self.confirmation)?;
        }
        Ok(())
    }
}

/// The runs of one deal, as indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deal {
    pub(super) baseline: Vec<usize>,
    pub(super) new: Vec<usize>,
    pub(super) confirmation: Vec<usize>,
}

/// The deals of a design.
#[derive(Debug)]
pub(super) struct Deals {
    pub(super) deals: Vec<Deal>,
    /// Whether these are all deals, and not a sample.
    pub(super) is_complete: bool,
}

impl Deals {
    /// All ways to deal the runs, or `most` drawn at random if there are more.
    pub(super) fn new(design: Design, runs: usize, most: usize) -> Self {
        let mut deals = Vec::new();
        if add_deals(design, runs, &mut Deal::default(), most, &mut deals) {
            return Self { deals, is_complete: true };
        }
        let mut random = Rng::with_seed(SEED);
        let draw = |_| {
            let mut order: Vec<usize> = (0..runs).collect();
            random.shuffle(&mut order);
            let mut order = order.into_iter();
            let mut take = |count: usize| order.by_ref().take(count).collect();
            Deal { baseline: take(design.baseline), new: take(design.new), confirmation: take(design.confirmation) }
        };
        Self { deals: (0..most).map(draw).collect(), is_complete: false }
    }
}

/// A field of a deal.
type Part = fn(&mut Deal) -> &mut Vec<usize>;

/// Deals the last `left` runs in all ways. False if there are more than `most` deals.
fn add_deals(design: Design, left: usize, dealt: &mut Deal, most: usize, deals: &mut Vec<Deal>) -> bool {
    let open = design.runs() - dealt.baseline.len() - dealt.new.len() - dealt.confirmation.len();
    if open == 0 {
        deals.push(dealt.clone());
        return deals.len() <= most;
    }
    let Some(run) = left.checked_sub(1) else { return true };
    // A run that no side gets.
    if left > open && !add_deals(design, run, dealt, most, deals) {
        return false;
    }
    let parts: [(Part, usize); 3] = [
        (|deal| &mut deal.baseline, design.baseline),
        (|deal| &mut deal.new, design.new),
        (|deal| &mut deal.confirmation, design.confirmation),
    ];
    parts.into_iter().all(|(part, size)| {
        if part(dealt).len() == size {
            return true;
        }
        part(dealt).push(run);
        let is_within = add_deals(design, run, dealt, most, deals);
        part(dealt).pop();
        is_within
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const EQUAL: fn(usize) -> Design = |side| Design { baseline: side, new: side, confirmation: 0 };

    #[test]
    fn the_number_of_runs_decides_which_designs_are_possible() {
        let names = |runs| Design::up_to(runs).iter().map(Design::to_string).collect::<Vec<_>>();
        assert!(names(1).is_empty());
        assert_eq!(names(2), ["1/1"]);
        assert_eq!(names(5), ["1/1", "2/2", "3/1 + confirm 1"]);
        assert_eq!(names(10), ["1/1", "2/2", "3/3", "5/5", "5/1 + confirm 4"]);
    }

    #[test]
    fn few_deals_are_complete_and_different() {
        for (design, runs, count) in [
            (EQUAL(1), 2, 2),
            (EQUAL(2), 4, 6),
            (EQUAL(2), 5, 30),
            (Design { baseline: 2, new: 1, confirmation: 1 }, 4, 12),
        ] {
            let deals = Deals::new(design, runs, 100);
            let different: BTreeSet<_> = deals.deals.iter().collect();
            assert!(deals.is_complete);
            assert_eq!((deals.deals.len(), different.len()), (count, count), "{design}");
        }
    }

    #[test]
    fn many_deals_are_a_sample_in_which_no_run_is_on_both_sides() {
        let deals = Deals::new(EQUAL(5), 10, 40);
        assert!(!deals.is_complete && deals.deals.len() == 40);
        for deal in deals.deals {
            let runs: BTreeSet<_> = deal.baseline.iter().chain(&deal.new).collect();
            assert_eq!(runs.len(), 10);
        }
    }
}
