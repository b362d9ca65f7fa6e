//! The chart: one bar of changed cases per evaluation, and a mark for its gate. It consists of SVG shapes, so that it needs no
//! script. The table of evaluations has the same numbers.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{GateOutcome, Verdict};

use super::evaluations::HistoryEntry;
use crate::view::display;
use crate::view::verdict;

/// The width of an evaluation in chart units.
const COLUMN: usize = 10;

/// The height of the tallest bar before minimum heights are applied.
const TALLEST: u64 = 1000;

/// The minimum height of a part, so that a single case is visible.
const LEAST: u64 = 24;

/// The height of the gate marks.
const MARK: u64 = 24;

#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) width: usize,
    pub(crate) height: u64,
    pub(crate) bars: Vec<Bar>,
    /// The maximum number of changed cases.
    pub(crate) most: String,
    pub(crate) mark_height: u64,
}

/// The bar of an evaluation.
#[derive(Debug)]
pub(crate) struct Bar {
    /// The text alternative of the bar and the mark.
    pub(crate) title: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) mark: Part,
}

/// A rectangle.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) class: &'static str,
    pub(crate) x: usize,
    pub(crate) y: u64,
    pub(crate) width: usize,
    pub(crate) height: u64,
}

/// The chart of the evaluations, oldest first.
pub(crate) fn chart(entries: &[HistoryEntry]) -> Chart {
    let changed = |entry: &HistoryEntry| counts(entry).map(|(_, count)| count).sum::<u64>();
    let most = entries.iter().map(changed).max().unwrap_or_default();
    let scaled = |count: u64| (count * TALLEST / most.max(1)).max(LEAST);
    let height = entries.iter().map(|entry| counts(entry).map(|(_, count)| scaled(count)).sum()).max().unwrap_or(LEAST);
    let height = height.max(LEAST);
    let width = if entries.len() > 120 { COLUMN } else { COLUMN - 2 };
    let bar = |(number, entry): (usize, &HistoryEntry)| {
        let x = number * COLUMN;
        let mut top = height;
        let part = |(verdict, count): (Verdict, u64)| {
            top -= scaled(count);
            Part { class: verdict::show(verdict).class, x, y: top, width, height: scaled(count) }
        };
        Bar { parts: counts(entry).map(part).collect(), mark: mark(entry.gate, x, width), title: title(entry) }
    };
    Chart {
        width: (entries.len() * COLUMN).max(1),
        height,
        bars: entries.iter().enumerate().map(bar).collect(),
        most: display::number(most),
        mark_height: MARK,
    }
}

/// The mark of a gate: low for passed, tall for failed, so that colour is not the only sign.
const fn mark(gate: GateOutcome, x: usize, width: usize) -> Part {
    let (class, height) = match gate {
        GateOutcome::Passed => ("improved", MARK / 3),
        GateOutcome::NotEnoughData | GateOutcome::NotJudged => ("changed", 2 * MARK / 3),
        GateOutcome::Failed => ("regressed", MARK),
    };
    Part { class, x, y: MARK - height, width, height }
}

/// The number of changed cases by verdict, worst first, which is the bottom of the bar.
fn counts(entry: &HistoryEntry) -> impl Iterator<Item = (Verdict, u64)> {
    let counts = Verdict::WORST_FIRST.into_iter().zip(entry.counts);
    counts.filter(|(verdict, count)| *count > 0 && !verdict::is_quiet(*verdict))
}

fn title(entry: &HistoryEntry) -> String {
    let mut title = format!("{}: {}", display::visible(&entry.time), display::visible(&entry.headline));
    for (verdict, count) in counts(entry) {
        let _ = write!(title, "; {} {}", display::number(count), verdict::show(verdict).word);
    }
    title
}
