//! The drawings of a history: a column for each night, and the lines of duration and cost.

use std::fmt::Write as _;

use counterproof_artifact::evaluation::{GateOutcome, UsageCode};
use counterproof_evaluator::{DecisionKind, messages, text};
use counterproof_store::write::INDEX_FILE;

use super::evaluations::{History, HistoryEntry, Mean, NightCase, is_quiet};
use crate::view::display;
use crate::view::word::Word;

/// The nights with a column.
pub(crate) const NIGHTS_DRAWN: usize = 20;

/// The nights on the lines.
const NIGHTS_ON_LINES: usize = 200;

/// A night with more cases is a bar.
const SQUARES: usize = 60;

/// Up to this many nights, the columns are wide.
const WIDE_UP_TO: usize = 10;

/// The distance from one square to the next.
const STEP: usize = 12;

const SQUARE: usize = 10;

/// The height of the tallest bar before minimum heights are applied.
const TALLEST: u64 = 160;

/// The minimum height of a part of a bar, which holds its number.
const LEAST: u64 = 13;

const LONGEST_MODEL: usize = 24;

const COMMIT_CHARS: usize = 8;

/// The columns of the newest nights, oldest first.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) nights: Vec<Column>,
    pub(crate) has_squares: bool,
    pub(crate) is_wide: bool,
    /// The size of each drawing.
    pub(crate) width: usize,
    pub(crate) height: u64,
    /// The words that occur.
    pub(crate) legend: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) day: String,
    pub(crate) time: String,
    pub(crate) href: Option<String>,
    pub(crate) gate: GateView,
    /// The number of cases that fail, and of all.
    pub(crate) failing: String,
    pub(crate) of: String,
    /// The model and the commit, where they differ from those of the night before.
    pub(crate) origin: Vec<String>,
    pub(crate) marks: Vec<Mark>,
}

/// The outcome of a gate.
#[derive(Debug)]
pub(crate) struct GateView {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
    pub(crate) headline: String,
}

impl GateView {
    pub(crate) fn new(entry: &HistoryEntry) -> Self {
        let (class, sign, word) = match (entry.gate, entry.kind) {
            // A pass that one run decides must not look like an all-clear.
            (GateOutcome::Passed, _) if entry.is_unconfirmed => ("different", "?", "unconfirmed"),
            (GateOutcome::Passed, DecisionKind::Open) => ("different", "!", "passed, review"),
            (GateOutcome::Passed, _) => ("better", "✓", "passed"),
            (GateOutcome::Failed, _) => ("worse", "✗", "failed"),
            (GateOutcome::NotEnoughData, _) => ("different", "?", "not enough data"),
            (GateOutcome::NotJudged, _) => ("different", "?", "not judged"),
        };
        Self { class, sign, word, headline: display::visible(&entry.headline) }
    }
}

/// A square or a part of a bar.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) class: &'static str,
    pub(crate) title: String,
    pub(crate) href: Option<String>,
    /// A sign or a number, in the middle.
    pub(crate) text: String,
    pub(crate) x: usize,
    pub(crate) y: u64,
    pub(crate) width: usize,
    pub(crate) height: u64,
}

impl Mark {
    pub(crate) const fn middle(&self) -> usize {
        self.x + self.width / 2
    }

    /// The base line of the text.
    pub(crate) const fn base(&self) -> u64 {
        self.y + self.height / 2 + 3
    }
}

pub(crate) fn columns(history: &History) -> Columns {
    let entries = history.entries();
    let start = entries.len().saturating_sub(NIGHTS_DRAWN);
    let drawn = &entries[start..];
    let is_wide = drawn.len() <= WIDE_UP_TO;
    let has_squares = drawn.iter().all(|entry| entry.cases.len() <= SQUARES);
    let in_row = if is_wide { 6 } else { 3 };
    let width = in_row * STEP;
    let marks: Vec<_> = if has_squares {
        drawn.iter().map(|entry| squares(history, entry, in_row)).collect()
    } else {
        bars(drawn, width)
    };
    let height = marks.iter().flatten().map(|mark| mark.y).max().unwrap_or_default();
    let column = |(number, (entry, marks)): (usize, (&HistoryEntry, Vec<Mark>))| {
        let before = (start + number).checked_sub(1).map(|index| &entries[index]);
        Column {
            day: day(&entry.time),
            time: display::visible(&entry.time),
            href: entry.source.href.clone(),
            gate: GateView::new(entry),
            failing: display::number(entry.failing() as u64),
            of: display::number(entry.cases.len() as u64),
            origin: origin(entry, before),
            // Their y is the distance from the bottom until the height of the tallest column is known.
            marks: marks.into_iter().map(|mark| Mark { y: height - mark.y, ..mark }).collect(),
        }
    };
    let occurs = |word: &Word| (has_squares || !is_quiet(*word)) && drawn.iter().any(|entry| entry.count(*word) > 0);
    Columns {
        nights: drawn.iter().zip(marks).enumerate().map(column).collect(),
        has_squares,
        is_wide,
        width,
        height: height.max(STEP as u64),
        legend: Word::ALL.into_iter().filter(occurs).collect(),
    }
}

/// The squares of a night from the bottom up, the most harmful first. Their y is the distance of the upper edge from the bottom.
fn squares(history: &History, entry: &HistoryEntry, in_row: usize) -> Vec<Mark> {
    let square = |(number, case): (usize, &NightCase)| Mark {
        class: case.class(),
        title: format!("{}: {}, {}", history.id(*case), case.text(), day(&entry.time)),
        href: history.href(entry, *case),
        text: if case.is_quiet() { String::new() } else { case.sign().to_owned() },
        x: number % in_row * STEP + (STEP - SQUARE) / 2,
        y: ((number / in_row + 1) * STEP) as u64,
        width: SQUARE,
        height: SQUARE as u64,
    };
    entry.cases.iter().enumerate().map(square).collect()
}

/// A bar for each night: the number of cases of each word, the worst at the bottom, without the words that need no look.
fn bars(drawn: &[HistoryEntry], width: usize) -> Vec<Vec<Mark>> {
    let counts = |entry: &HistoryEntry| {
        let counts = Word::ALL.map(|word| (word, entry.count(word))).into_iter();
        counts.filter(|(word, count)| *count > 0 && !is_quiet(*word)).collect::<Vec<_>>()
    };
    let most = drawn.iter().map(|entry| counts(entry).iter().map(|(_, count)| count).sum()).max().unwrap_or(1).max(1);
    let bar = |entry: &HistoryEntry| {
        let mut top = 0;
        let part = |(word, count): (Word, u64)| {
            let height = (count * TALLEST / most).max(LEAST);
            top += height;
            Mark {
                class: word.class(),
                title: format!("{} {}, {}", display::number(count), word.as_str(), day(&entry.time)),
                href: entry.source.href.as_ref().map(|href| filtered(href, word)),
                text: display::number(count),
                x: 1,
                y: top,
                width: width - 2,
                height,
            }
        };
        counts(entry).into_iter().map(part).collect()
    };
    drawn.iter().map(bar).collect()
}

/// The index of a night that shows only the cases of a word.
pub(super) fn filtered(href: &str, word: Word) -> String {
    // Only the index has lists; an evaluation is data.
    if href.ends_with(INDEX_FILE) { format!("{href}#show={}", word.class()) } else { href.to_owned() }
}

/// The model and the commit of a night, where they differ from those of the night before.
fn origin(entry: &HistoryEntry, before: Option<&HistoryEntry>) -> Vec<String> {
    let model = entry.source.model.as_ref();
    let model = model.filter(|model| before.and_then(|before| before.source.model.as_ref()) != Some(*model));
    let commit = entry.commit.as_ref();
    let commit = commit.filter(|commit| before.and_then(|before| before.commit.as_ref()) != Some(*commit));
    let model = model.map(|model| text::one_line(model, LONGEST_MODEL));
    let commit = commit.map(|commit| commit.chars().take(COMMIT_CHARS).collect::<String>());
    model.into_iter().chain(commit).map(|part| display::visible(&part)).collect()
}

/// The day of a time, or any other text as it is.
pub(crate) fn day(time: &str) -> String {
    let is_date = |day: &str| {
        day.bytes().enumerate().all(|(at, b)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() })
    };
    match time.get(..10) {
        Some(day) if is_date(day) => day.to_owned(),
        _ => display::visible(time),
    }
}

/// The height of a line's drawing, and the distance of the line from its edges.
const LINE_HEIGHT: u32 = 60;
const LINE_EDGE: u32 = 6;

/// The distance from one night to the next.
const LINE_STEP: usize = 10;

/// A quantity over the nights.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) width: usize,
    pub(crate) height: u32,
    /// The line as an SVG path, with a gap where a night does not know the quantity. Empty if none knows it.
    pub(crate) path: String,
    pub(crate) points: Vec<Point>,
    pub(crate) first: String,
    pub(crate) last: String,
    pub(crate) most: String,
}

#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) title: String,
    pub(crate) href: Option<String>,
    pub(crate) x: usize,
    pub(crate) y: u32,
    /// The left edge of the area that shows the title.
    pub(crate) left: usize,
}

pub(crate) fn lines(entries: &[HistoryEntry]) -> [Line; 2] {
    let drawn = &entries[entries.len().saturating_sub(NIGHTS_ON_LINES)..];
    [
        line("duration", "Duration per case", UsageCode::Duration, drawn, |entry| entry.duration.as_ref()),
        line("cost", "Cost per case", UsageCode::Cost, drawn, |entry| entry.cost.as_ref()),
    ]
}

fn line(
    id: &'static str,
    name: &'static str,
    code: UsageCode,
    drawn: &[HistoryEntry],
    mean: fn(&HistoryEntry) -> Option<&Mean>,
) -> Line {
    let amount = |mean: &Mean| messages::usage::amount(code, mean.value, mean.currency.as_deref());
    // Amounts of another currency have another scale. The newest one is shown.
    let currency = drawn.iter().rev().find_map(mean).and_then(|mean| mean.currency.as_ref());
    let known = drawn.iter().enumerate().filter_map(|(number, entry)| {
        Some((number, entry, mean(entry).filter(|mean| mean.currency.as_ref() == currency)?))
    });
    let known: Vec<_> = known.collect();
    let most = known.iter().map(|(.., mean)| mean).max_by(|a, b| a.value.total_cmp(&b.value));
    let scale = most.map_or(1.0, |most| most.value).max(f64::MIN_POSITIVE);
    let room = f64::from(LINE_HEIGHT - 2 * LINE_EDGE);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the height")]
    let height_of = |value: f64| (value / scale * room).round().clamp(0.0, room) as u32;
    let mut path = String::new();
    let mut points = Vec::new();
    let mut before = None;
    for (number, entry, mean) in &known {
        let (x, y) = (number * LINE_STEP + LINE_STEP / 2, LINE_HEIGHT - LINE_EDGE - height_of(mean.value));
        // A night that does not know the quantity ends a stretch.
        let is_next = before.is_some_and(|before: usize| before + 1 == *number);
        let _ = write!(path, "{}{x} {y}", if is_next { 'L' } else { 'M' });
        before = Some(*number);
        points.push(Point {
            title: format!("{}: {}", day(&entry.time), amount(mean)),
            href: entry.source.href.clone(),
            x,
            y,
            left: number * LINE_STEP,
        });
    }
    let labelled = |found: Option<&(usize, &HistoryEntry, &Mean)>| {
        found.map(|(_, entry, mean)| format!("{}: {}", day(&entry.time), amount(mean))).unwrap_or_default()
    };
    Line {
        id,
        name,
        width: (drawn.len() * LINE_STEP).max(1),
        height: LINE_HEIGHT,
        path,
        points,
        first: labelled(known.first()),
        last: labelled(known.last()),
        most: most.map(|mean| amount(mean)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_its_day_and_any_other_text_as_it_is() {
        assert_eq!(day("2026-11-20T02:00:00Z"), "2026-11-20");
        assert_eq!(day("last Tuesday\u{202e}"), "last Tuesday\\u{202e}");
    }

    #[test]
    fn only_a_page_is_filtered() {
        assert_eq!(filtered("../a/index.html", Word::Worse), "../a/index.html#show=worse");
        assert_eq!(filtered("../a/evaluation.json", Word::Worse), "../a/evaluation.json");
    }
}
