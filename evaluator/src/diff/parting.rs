//! The steps from which two answers go separate ways to the end: where they part.
//!
//! Agents differ in single steps and come together again, so the first difference is often chance. Here two steps are in step if
//! more than half of their words are common, by weight: a word in few steps weighs more than one in all of them, such as the field
//! names of a template. The steps are aligned by that, and the answers part after the pair up to which most is gained. Each step of
//! a pair gains what it has in common and loses the rest, and a step without a partner is lost. After a long separation a single
//! similar step is therefore no reunion.

use std::cmp::Ordering;

use counterproof_artifact::{Event, EventBody, Sides};

use super::align::{self, List, Lists};
use super::assign::{Cost, LEFT_OUT};
use super::events::Step;
use crate::load::LoadedAnswer;
use crate::load::case_input;
use crate::values::meaning::{self, HashedMap};
use crate::values::tokens;

/// The first step of a side after the parting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartedStep {
    /// The index of its event.
    pub event: usize,
    /// The index of the result, if it is a call that has one.
    pub result: Option<usize>,
}

/// A step, and whether it is lost without a partner.
struct Walked<'s, 'a> {
    step: &'s Step<'a>,
    counts: bool,
}

/// Finds the first step of each side after the parting. `None` if the steps stay together to the end.
pub(super) fn find(steps: Sides<&[Step<'_>]>, answers: Sides<&LoadedAnswer>) -> Option<Sides<Option<PartedStep>>> {
    let is_output = |event: &Event| matches!(event.body, EventBody::FinalOutput(_));
    let is_turn = |event: &Event| case_input::speaker(event).is_some();
    let sides = steps.zip(answers);
    let mut all =
        sides.into_array().into_iter().flat_map(|(steps, loaded)| steps.iter().map(move |step| event(loaded, step)));
    // Wording differs between any two runs, so a turn counts only where nothing else does.
    let has_only_turns = all.all(|event| is_output(event) || is_turn(event));
    let walked = sides.map(|(steps, loaded)| {
        let steps = steps.iter().filter(|step| !is_output(event(loaded, step)));
        steps.map(|step| Walked { step, counts: has_only_turns || !is_turn(event(loaded, step)) }).collect::<Vec<_>>()
    });
    let after = last_common(walked.as_ref().map(Vec::as_slice));
    let first = walked.as_ref().zip(after).map(|(steps, after)| {
        let step = steps[after..].iter().find(|step| step.counts)?.step;
        Some(PartedStep { event: step.event, result: step.result })
    });
    (first.baseline.is_some() || first.new.is_some()).then_some(first)
}

fn event<'a>(loaded: &'a LoadedAnswer, step: &Step<'_>) -> &'a Event {
    &loaded.answer.events[step.event]
}

/// Returns the number of steps of each side up to the last pair before the parting.
fn last_common(steps: Sides<&[Walked<'_, '_>]>) -> Sides<usize> {
    let bags = WordBags::new(steps);
    let Sides { baseline: old, new: other } = steps;
    let keys = |steps: &[Walked<'_, '_>]| steps.iter().map(|it| it.step.key).collect::<Vec<_>>();
    let groups = |steps: &[Walked<'_, '_>]| steps.iter().map(|it| it.step.group).collect::<Vec<_>>();
    let order = || meaning::compare_lists(old, other, |it, other| it.step.order(other.step));
    let alignment = align::align(&Lists {
        baseline: List { keys: &keys(old), groups: &groups(old) },
        new: List { keys: &keys(other), groups: &groups(other) },
        effort: &|| bags.average(),
        pair: &|i, j| old[i].step.is_of_kind(other[j].step).then(|| bags.cost(i, j)).flatten(),
        order: &order,
    });
    let counted = |steps: &[Walked<'_, '_>]| steps.iter().filter(|it| it.counts).count().cast_signed();
    let (mut reached, mut best) = (Sides::new(0, 0), Sides::new(0, 0));
    let (mut balance, mut most) = (0, 0);
    // The least position on new of each pair and those after it. Pairs of concurrent steps may cross, and no cut separates them.
    let mut least = vec![usize::MAX; alignment.pairs.len() + 1];
    for (number, (_, j)) in alignment.pairs.iter().enumerate().rev() {
        least[number] = least[number + 1].min(*j);
    }
    for (number, (i, j)) in alignment.pairs.iter().copied().enumerate() {
        let cost = if old[i].step.key == other[j].step.key { 0 } else { bags.cost(i, j).unwrap_or(2 * LEFT_OUT) };
        let next = Sides::new(reached.baseline.max(i + 1), reached.new.max(j + 1));
        // All steps on the way to the pair are alone for now, and the pair is taken back from them.
        let passed = counted(&old[reached.baseline..next.baseline]) + counted(&other[reached.new..next.new]);
        let paired = isize::from(old[i].counts) + isize::from(other[j].counts);
        let gain = 2 * LEFT_OUT.cast_signed() - cost.cast_signed();
        balance += gain - (passed - paired) as i64 * LEFT_OUT.cast_signed();
        reached = next;
        if balance > most && least[number + 1] >= reached.new {
            (most, best) = (balance, reached);
        }
    }
    best
}

/// The distinct words of the steps of both sides, with their weights.
struct WordBags {
    bags: Sides<Vec<WordBag>>,
}

struct WordBag {
    /// Each word with its weight, sorted by the word.
    words: Vec<(u64, u64)>,
    weight: u64,
}

impl WordBags {
    fn new(steps: Sides<&[Walked<'_, '_>]>) -> Self {
        let words = steps.map(|steps| steps.iter().map(|it| words(it.step)).collect::<Vec<_>>());
        let mut steps_with = HashedMap::<u32>::default();
        for word in words.baseline.iter().chain(&words.new).flatten() {
            *steps_with.entry(*word).or_default() += 1;
        }
        let all = (words.baseline.len() + words.new.len() + 1) as f64;
        // In thousandths, so that sums do not depend on the order of the words.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the logarithm of a length"
        )]
        let weight = |word: &u64| ((all / f64::from(steps_with[word])).ln() * 1_000.0).round() as u64;
        let bag = |words: Vec<u64>| {
            let words: Vec<_> = words.into_iter().map(|word| (word, weight(&word))).collect();
            WordBag { weight: words.iter().map(|(_, weight)| weight).sum(), words }
        };
        Self { bags: words.map(|steps| steps.into_iter().map(bag).collect()) }
    }

    fn average(&self) -> usize {
        let bags = || self.bags.baseline.iter().chain(&self.bags.new);
        bags().map(|bag| bag.words.len()).sum::<usize>() / bags().count().max(1)
    }

    /// Returns the cost of a pair: nothing for equal words, and as much as two steps alone where half of the words are common.
    /// `None` from there on.
    fn cost(&self, i: usize, j: usize) -> Option<Cost> {
        let (bag, other) = (&self.bags.baseline[i], &self.bags.new[j]);
        let both = bag.weight + other.weight;
        let apart = both - 2 * bag.common(other);
        (2 * apart <= both).then(|| (4 * LEFT_OUT * apart).checked_div(both).unwrap_or(0))
    }
}

impl WordBag {
    /// Returns the weight of the common words.
    fn common(&self, other: &Self) -> u64 {
        let (mut left, mut right) = (self.words.iter().peekable(), other.words.iter().peekable());
        let mut common = 0;
        while let (Some((word, weight)), Some((theirs, _))) = (left.peek(), right.peek()) {
            match word.cmp(theirs) {
                Ordering::Less => drop(left.next()),
                Ordering::Greater => drop(right.next()),
                Ordering::Equal => {
                    common += weight;
                    left.next();
                    right.next();
                }
            }
        }
        common
    }
}

/// The distinct words of a step, sorted: those of the arguments, or of the result of a call without arguments.
fn words(step: &Step<'_>) -> Vec<u64> {
    let mut words = Vec::new();
    for part in step.parts().iter().flatten() {
        tokens::each_word(part.arguments(), &mut |word| words.push(word));
        if !words.is_empty() {
            break;
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}
