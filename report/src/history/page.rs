//! The history page: the chart over time, and the cases that fail or change between passing and failing.

use std::fmt::Write as _;

use askama::Template;
use counterproof_artifact::evaluation::{GateOutcome, Verdict};
use counterproof_evaluator::text;

use super::evaluations::{self, CaseOverTime, CaseStatus, History, HistoryEntry};
use super::folder::SkippedPath;
use crate::view::display;
use crate::view::verdict::{self, VerdictView};

const CASES_DRAWN: usize = 200;

const CASES_LISTED: usize = 1000;

const SKIPPED_NAMED: usize = 50;

#[derive(Debug, Template)]
#[template(path = "history/page.html")]
pub(crate) struct HistoryPage {
    root: &'static str,
    title: String,
    span: String,
    gate: String,
    skipped: Vec<String>,
    more_skipped: String,
    chart: Chart,
    first: String,
    last: String,
    legend: Vec<VerdictView>,
    columns: Vec<VerdictView>,
    evaluations: Vec<EvaluationView>,
    flipping: Vec<CaseView>,
    more_flipping: String,
    failing: Vec<CaseView>,
    more_failing: String,
    /// The width of the strip of a case: one unit per evaluation.
    width: usize,
}

#[derive(Debug)]
struct EvaluationView {
    time: String,
    href: Option<String>,
    new: String,
    baseline: String,
    gate: GateView,
    counts: Vec<CountView>,
}

#[derive(Debug)]
struct GateView {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    headline: String,
}

#[derive(Debug)]
struct CountView {
    word: &'static str,
    count: String,
    is_zero: bool,
}

#[derive(Debug)]
struct CaseView {
    id: String,
    flips: String,
    failed: String,
    /// The outline of the evaluations in which it failed; empty if it is not drawn.
    failing_path: String,
    /// The outline of the evaluations in which it passed; empty if it is not drawn.
    passing_path: String,
    first: DayLink,
    since: Option<DayLink>,
    reason: String,
}

/// The day of an evaluation with a link to it.
#[derive(Debug, Clone)]
struct DayLink {
    time: String,
    href: Option<String>,
}

impl HistoryPage {
    pub(crate) fn new(history: &History, skipped: &[SkippedPath]) -> Self {
        let entries = history.entries();
        let time = |entry: Option<&HistoryEntry>| entry.map(|entry| day(&entry.time)).unwrap_or_default();
        let (first, last) = (time(entries.first()), time(entries.last()));
        let count = text::count(entries.len(), "evaluation", "evaluations");
        let passed = entries.iter().filter(|entry| entry.gate == GateOutcome::Passed).count();
        // Only verdicts that occur, because a column for each of twelve would not fit on the page.
        let columns = columns(entries);
        let legend = columns.iter().filter(|verdict| !verdict::is_quiet(**verdict));
        let failed = evaluations::ever_failed(history);
        let (flipping, failing) = (flipping(&failed), failing(&failed));
        Self {
            root: "",
            span: if entries.len() > 1 { format!("{first} to {last}") } else { first.clone() },
            gate: format!("The gate passed in {passed} of {count}"),
            title: count,
            skipped: skipped.iter().take(SKIPPED_NAMED).map(|path| display::visible(&path.to_string())).collect(),
            more_skipped: match skipped.len().saturating_sub(SKIPPED_NAMED) {
                0 => String::new(),
                more => format!("and {more} more"),
            },
            chart: chart(entries),
            first,
            last,
            // Newest first, unlike the chart, which is read from left to right.
            evaluations: entries.iter().rev().map(|entry| evaluation_view(entry, &columns)).collect(),
            legend: legend.map(|verdict| verdict::show(*verdict)).collect(),
            more_flipping: more(flipping.len()),
            flipping: case_views(history, &flipping),
            more_failing: more(failing.len()),
            failing: case_views(history, &failing),
            columns: columns.into_iter().map(verdict::show).collect(),
            width: entries.len().max(1),
        }
    }
}

/// The verdicts that occur in any evaluation, worst first.
fn columns(entries: &[HistoryEntry]) -> Vec<Verdict> {
    let verdicts = Verdict::WORST_FIRST.into_iter().enumerate();
    let occurs = |index: &usize| entries.iter().any(|entry| entry.counts[*index] > 0);
    verdicts.filter(|(index, _)| occurs(index)).map(|(_, verdict)| verdict).collect()
}

/// The cases that changed between passing and failing, most changes first.
fn flipping<'a, 'h>(cases: &'a [CaseOverTime<'h>]) -> Vec<&'a CaseOverTime<'h>> {
    let mut flipping: Vec<_> = cases.iter().filter(|case| case.flips > 0).collect();
    // By id at last, so that equal cases have the same order each time.
    flipping.sort_by(|a, b| b.flips.cmp(&a.flips).then(b.failed.cmp(&a.failed)).then(a.id.cmp(b.id)));
    flipping
}

/// All cases, most recent failures first.
fn failing<'a, 'h>(cases: &'a [CaseOverTime<'h>]) -> Vec<&'a CaseOverTime<'h>> {
    let mut failing: Vec<_> = cases.iter().collect();
    let order = |case: &CaseOverTime<'_>| (case.failing_since, case.first_failure);
    failing.sort_by(|a, b| order(b).cmp(&order(a)).then(a.id.cmp(b.id)));
    failing
}

fn more(count: usize) -> String {
    match count.saturating_sub(CASES_LISTED) {
        0 => String::new(),
        more => format!("{} not listed; see the evaluations", text::count(more, "more case is", "more cases are")),
    }
}

/// The day of a time, or any other text as it is.
fn day(time: &str) -> String {
    let is_date = |day: &str| {
        day.bytes().enumerate().all(|(at, b)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() })
    };
    match time.get(..10) {
        Some(day) if is_date(day) => day.to_owned(),
        _ => display::visible(time),
    }
}

fn evaluation_view(entry: &HistoryEntry, columns: &[Verdict]) -> EvaluationView {
    let (class, sign, word) = match entry.gate {
        GateOutcome::Passed => ("improved", "✓", "passed"),
        GateOutcome::Failed => ("regressed", "✗", "failed"),
        GateOutcome::NotEnoughData => ("changed", "?", "not enough data"),
        GateOutcome::NotJudged => ("changed", "?", "not judged"),
    };
    let counts = Verdict::WORST_FIRST.into_iter().zip(entry.counts).filter(|(verdict, _)| columns.contains(verdict));
    let counts = counts.map(|(verdict, count)| CountView {
        word: verdict::show(verdict).word,
        count: display::number(count),
        is_zero: count == 0,
    });
    EvaluationView {
        time: display::visible(&entry.time),
        href: entry.source.href.clone(),
        new: entry.new.clone(),
        baseline: entry.baseline.clone(),
        gate: GateView { class, sign, word, headline: entry.headline.clone() },
        counts: counts.collect(),
    }
}

fn case_views(history: &History, cases: &[&CaseOverTime<'_>]) -> Vec<CaseView> {
    let cases = cases.iter().take(CASES_LISTED).enumerate();
    cases
        .map(|(number, case)| {
            let (failing_path, passing_path) = if number < CASES_DRAWN { paths(case) } else { Default::default() };
            CaseView { failing_path, passing_path, ..case_view(history, case) }
        })
        .collect()
}

/// The view of a case that is not drawn.
fn case_view(history: &History, case: &CaseOverTime<'_>) -> CaseView {
    let link = |index: usize| {
        let entry = &history.entries()[index];
        DayLink { time: day(&entry.time), href: entry.source.href.clone() }
    };
    CaseView {
        id: case.id.to_string(),
        flips: case.flips.to_string(),
        failed: format!("{} of {}", case.failed, case.known),
        failing_path: String::new(),
        passing_path: String::new(),
        first: link(case.first_failure),
        since: case.failing_since.map(link),
        reason: display::visible(history.first_reason(case.first_failure, case.id)),
    }
}

/// The outlines of the evaluations in which a case failed, as tall blocks, and in which it passed, as a low line.
fn paths(case: &CaseOverTime<'_>) -> (String, String) {
    let failing = outline(&case.statuses, CaseStatus::Failing, &Block { top: 0, height: 8 });
    (failing, outline(&case.statuses, CaseStatus::Passing, &Block { top: 6, height: 2 }))
}

struct Block {
    top: usize,
    height: usize,
}

/// The evaluations with a status as one SVG path: a rectangle for each stretch.
fn outline(statuses: &[Option<CaseStatus>], wanted: CaseStatus, block: &Block) -> String {
    let Block { top, height } = block;
    // Attributes of SVG, because content policies of CI systems block scripts and inline styles.
    let mut path = String::new();
    let mut from = None;
    // One step past the end, to close the last stretch.
    for index in 0..=statuses.len() {
        let is_wanted = statuses.get(index).is_some_and(|status| *status == Some(wanted));
        match (from, is_wanted) {
            (None, true) => from = Some(index),
            (Some(start), false) => {
                let _ = write!(path, "M{start} {top}H{index}v{height}H{start}z");
                from = None;
            }
            _ => {}
        }
    }
    path
}

const COLUMN: usize = 10;

/// The height of the tallest bar before minimum heights are applied.
const TALLEST: u64 = 1000;

/// The minimum height of a part, so that a single case is visible.
const LEAST: u64 = 24;

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

#[derive(Debug)]
pub(crate) struct Bar {
    /// The text alternative of the bar and the mark.
    pub(crate) title: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) mark: Part,
}

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
    let changed = |entry: &HistoryEntry| verdict_counts(entry).map(|(_, count)| count).sum::<u64>();
    let most = entries.iter().map(changed).max().unwrap_or_default();
    let scaled = |count: u64| (count * TALLEST / most.max(1)).max(LEAST);
    // From the parts and not from the scale: their minimum heights can make a bar taller than the scale.
    let height =
        entries.iter().map(|entry| verdict_counts(entry).map(|(_, count)| scaled(count)).sum()).max().unwrap_or(LEAST);
    let height = height.max(LEAST);
    // With more evaluations, the gaps would be too narrow to be seen.
    let width = if entries.len() > 120 { COLUMN } else { COLUMN - 2 };
    let bar = |(number, entry): (usize, &HistoryEntry)| {
        let x = number * COLUMN;
        let mut top = height;
        let part = |(verdict, count): (Verdict, u64)| {
            top -= scaled(count);
            Part { class: verdict::show(verdict).class, x, y: top, width, height: scaled(count) }
        };
        Bar {
            parts: verdict_counts(entry).map(part).collect(),
            mark: mark(entry.gate, x, width),
            title: bar_title(entry),
        }
    };
    Chart {
        width: (entries.len() * COLUMN).max(1),
        height,
        bars: entries.iter().enumerate().map(bar).collect(),
        most: display::number(most),
        mark_height: MARK,
    }
}

/// The mark of a gate.
const fn mark(gate: GateOutcome, x: usize, width: usize) -> Part {
    // Low for passed and tall for failed, so that colour is not the only sign.
    let (class, height) = match gate {
        GateOutcome::Passed => ("improved", MARK / 3),
        GateOutcome::NotEnoughData | GateOutcome::NotJudged => ("changed", 2 * MARK / 3),
        GateOutcome::Failed => ("regressed", MARK),
    };
    Part { class, x, y: MARK - height, width, height }
}

/// The number of changed cases by verdict, worst first, which is the bottom of the bar.
fn verdict_counts(entry: &HistoryEntry) -> impl Iterator<Item = (Verdict, u64)> {
    let counts = Verdict::WORST_FIRST.into_iter().zip(entry.counts);
    counts.filter(|(verdict, count)| *count > 0 && !verdict::is_quiet(*verdict))
}

fn bar_title(entry: &HistoryEntry) -> String {
    let mut title = format!("{}: {}", display::visible(&entry.time), display::visible(&entry.headline));
    for (verdict, count) in verdict_counts(entry) {
        let _ = write!(title, "; {} {}", display::number(count), verdict::show(verdict).word);
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stretch_is_one_rectangle() {
        use CaseStatus::{Failing, Passing};
        let statuses = [Some(Failing), Some(Failing), None, Some(Passing), Some(Failing)];
        assert_eq!(outline(&statuses, Failing, &Block { top: 0, height: 8 }), "M0 0H2v8H0zM4 0H5v8H4z");
        assert_eq!(outline(&statuses, Passing, &Block { top: 6, height: 2 }), "M3 6H4v2H3z");
        assert_eq!(outline(&[], Passing, &Block { top: 6, height: 2 }), "");
    }

    #[test]
    fn a_time_is_shown_as_its_day_and_any_other_text_as_it_is() {
        assert_eq!(day("2026-11-20T02:00:00Z"), "2026-11-20");
        assert_eq!(day("last Tuesday\u{202e}"), "last Tuesday\\u{202e}");
    }
}
