//! The nights as a picture: a bar for each, of the cases that moved, and a mark for the gate. It is drawn in shapes alone, so
//! that it needs neither scripts nor styles of its own; the table beside it has the same numbers.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{GateOutcome, Verdict};

use super::nights::Night;
use crate::report::{shown, verdicts};

/// Width of a night, in the picture's units.
const NIGHT: usize = 10;

/// Height of the tallest bar, were all its parts as tall as their counts say.
const TALLEST: u64 = 1000;

/// A verdict that any case has is seen, however many cases there are.
const LEAST: u64 = 24;

/// Height of the gate's marks.
const MARK: u64 = 24;

/// The picture.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) width: usize,
    pub(super) height: u64,
    pub(super) bars: Vec<Bar>,
    /// The most cases that moved in a night.
    pub(super) most: String,
    pub(super) mark_height: u64,
}

/// A night.
#[derive(Debug)]
pub(super) struct Bar {
    /// What the bar and the mark say, in words.
    pub(super) title: String,
    pub(super) parts: Vec<Part>,
    pub(super) mark: Part,
}

/// A rectangle.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) class: &'static str,
    pub(super) x: usize,
    pub(super) y: u64,
    pub(super) width: usize,
    pub(super) height: u64,
}

/// The picture of the nights, oldest first.
pub(super) fn of(nights: &[Night]) -> Chart {
    let moved = |night: &Night| counted(night).map(|(_, count)| count).sum::<u64>();
    let most = nights.iter().map(moved).max().unwrap_or_default();
    let tall = |count: u64| (count * TALLEST / most.max(1)).max(LEAST);
    let height = nights.iter().map(|night| counted(night).map(|(_, count)| tall(count)).sum()).max().unwrap_or(LEAST);
    let height = height.max(LEAST);
    let width = if nights.len() > 120 { NIGHT } else { NIGHT - 2 };
    let bar = |(number, night): (usize, &Night)| {
        let x = number * NIGHT;
        let mut top = height;
        let part = |(verdict, count): (Verdict, u64)| {
            top -= tall(count);
            Part { class: verdicts::show(verdict).class, x, y: top, width, height: tall(count) }
        };
        Bar { parts: counted(night).map(part).collect(), mark: mark(night.gate, x, width), title: title(night) }
    };
    Chart {
        width: (nights.len() * NIGHT).max(1),
        height,
        bars: nights.iter().enumerate().map(bar).collect(),
        most: shown::number(most),
        mark_height: MARK,
    }
}

/// A passed gate is a low mark and a failed one a tall one: colour is not the only sign.
const fn mark(gate: GateOutcome, x: usize, width: usize) -> Part {
    let (class, height) = match gate {
        GateOutcome::Passed => ("improved", MARK / 3),
        GateOutcome::NotEnoughData => ("changed", 2 * MARK / 3),
        GateOutcome::Failed => ("regressed", MARK),
    };
    Part { class, x, y: MARK - height, width, height }
}

/// The verdicts of cases that moved, the worst first, as it stands at the foot of the bar.
fn counted(night: &Night) -> impl Iterator<Item = (Verdict, u64)> {
    let counts = Verdict::WORST_FIRST.into_iter().zip(night.counts);
    counts.filter(|(verdict, count)| *count > 0 && !verdicts::is_quiet(*verdict))
}

fn title(night: &Night) -> String {
    let mut title = format!("{}: {}", shown::visible(&night.time), shown::visible(&night.sentence));
    for (verdict, count) in counted(night) {
        let _ = write!(title, "; {} {}", shown::number(count), verdicts::show(verdict).word);
    }
    title
}
