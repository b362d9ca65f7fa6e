//! The history page: what fails now, a column a night, and the cases over the last nights: those that fail, that recovered, that
//! alternate, and all others.

use std::collections::HashSet;

use askama::Template;
use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::GateOutcome;
use counterproof_evaluator::{DecisionKind, text};

use super::evaluations::{self, CaseOverTime, History, HistoryEntry};
use super::folder::SkippedPath;
use super::nights::{self, Columns, GateView, Line, NIGHTS_DRAWN, day, filtered};
use crate::site::{case_anchor, night_anchor};
use crate::view::display;
use crate::view::word::Word;

/// The nights in the tables of cases: those with a column, so that the tables have the links of its squares.
const NIGHTS_IN_TABLE: usize = NIGHTS_DRAWN;

/// The nights in the tables of cases on a narrow screen.
const NIGHTS_ON_NARROW: usize = 10;

/// The cases of a table with their nights. The others are listed without.
const CASES_DRAWN: usize = 200;

const CASES_LISTED: usize = 1000;

const SKIPPED_NAMED: usize = 50;

/// The failing cases that the first card names.
const FAILING_NAMED: usize = 5;

#[derive(Debug, Template)]
#[template(path = "history/page.html")]
pub(crate) struct HistoryPage {
    root: &'static str,
    title: String,
    span: String,
    card: Card,
    skipped: Vec<String>,
    more_skipped: String,
    columns: Columns,
    lines: [Line; 2],
    /// How many nights there are, and which are drawn.
    all: usize,
    drawn: String,
    /// The nights of the tables of cases, oldest first.
    heads: Vec<NightHead>,
    tables: [CaseTable; 4],
    words: Vec<Word>,
    evaluations: Vec<EvaluationView>,
}

/// What the newest night means.
#[derive(Debug)]
struct Card {
    /// The CSS class: `stop`, `open` or `go`.
    class: &'static str,
    headline: String,
    newest: DayLink,
    decision: String,
    gate: String,
    failing: Vec<FailingCase>,
    more_failing: usize,
}

#[derive(Debug)]
struct FailingCase {
    id: String,
    href: Option<String>,
    result: String,
    since: String,
}

/// Cases with something in common.
#[derive(Debug)]
struct CaseTable {
    id: &'static str,
    heading: String,
    /// What the cases have in common.
    lead: &'static str,
    /// The sentence for no case.
    none: &'static str,
    cases: Vec<CaseView>,
    more: String,
}

#[derive(Debug)]
struct CaseView {
    id: String,
    /// What links to the case lead to; `None` if another table has the case as well, before this one.
    anchor: Option<String>,
    /// The link to the page of its last night.
    href: Option<String>,
    class: &'static str,
    sign: &'static str,
    result: String,
    since: Option<DayLink>,
    flips: usize,
    failed: String,
    first: Option<DayLink>,
    reason: String,
    /// Empty if they are not drawn.
    cells: Vec<Cell>,
}

/// The result of a case in a night.
#[derive(Debug)]
struct Cell {
    class: &'static str,
    sign: &'static str,
    title: String,
    href: Option<String>,
    /// Whether a narrow screen leaves it out.
    is_old: bool,
}

#[derive(Debug)]
struct NightHead {
    day: DayLink,
    gate: GateView,
}

#[derive(Debug)]
struct EvaluationView {
    /// What links to the night lead to; `None` if a newer evaluation is of the same run.
    anchor: Option<String>,
    time: String,
    href: Option<String>,
    new: String,
    baseline: String,
    gate: GateView,
    counts: Vec<CountView>,
    previous: Option<DayLink>,
}

#[derive(Debug)]
struct CountView {
    word: Word,
    count: String,
    is_zero: bool,
    /// The cases of the word in the report of the night; `None` for no case.
    href: Option<String>,
}

/// The day of an evaluation with a link to it.
#[derive(Debug, Clone)]
struct DayLink {
    day: String,
    href: Option<String>,
}

impl DayLink {
    fn new(entry: &HistoryEntry) -> Self {
        Self { day: day(&entry.time), href: entry.source.href.clone() }
    }
}

impl HistoryPage {
    pub(crate) fn new(history: &History, skipped: &[SkippedPath]) -> Self {
        let entries = history.entries();
        let time = |entry: Option<&HistoryEntry>| entry.map(|entry| day(&entry.time)).unwrap_or_default();
        let (first, last) = (time(entries.first()), time(entries.last()));
        // Only words that occur, because a column for each of nine would not fit on the page.
        let words: Vec<_> =
            Word::ALL.into_iter().filter(|word| entries.iter().any(|entry| entry.count(*word) > 0)).collect();
        let cases = evaluations::over_time(history);
        let failing = failing(&cases);
        let from = entries.len().saturating_sub(NIGHTS_IN_TABLE);
        let heads =
            entries.iter().skip(from).map(|entry| NightHead { day: DayLink::new(entry), gate: GateView::new(entry) });
        Self {
            root: "",
            title: text::count(entries.len(), "night", "nights"),
            span: if entries.len() > 1 { format!("{first} to {last}") } else { first },
            card: card(history, &failing),
            skipped: skipped.iter().take(SKIPPED_NAMED).map(|path| display::visible(&path.to_string())).collect(),
            more_skipped: match skipped.len().saturating_sub(SKIPPED_NAMED) {
                0 => String::new(),
                more => format!("and {more} more"),
            },
            columns: nights::columns(history),
            lines: nights::lines(entries),
            all: entries.len(),
            drawn: match entries.len() {
                many if many > NIGHTS_DRAWN => format!("The newest {NIGHTS_DRAWN} of {many} nights"),
                few => text::count(few, "night", "nights"),
            },
            heads: heads.collect(),
            tables: tables(history, &failing, &cases),
            evaluations: evaluation_views(entries, &words),
            words,
        }
    }
}

/// Whether a narrow screen leaves a night out of the tables of cases.
const fn is_old(entries: &[HistoryEntry], number: usize) -> bool {
    number + NIGHTS_ON_NARROW < entries.len()
}

/// The cases that fail now, most recent failures first.
fn failing<'a, 'h>(cases: &'a [CaseOverTime<'h>]) -> Vec<&'a CaseOverTime<'h>> {
    let mut failing: Vec<_> = cases.iter().filter(|case| case.is_failing()).collect();
    let order = |case: &CaseOverTime<'_>| (case.failing_since, case.first_failure);
    // By id at last, so that equal cases have the same order each time.
    failing.sort_by(|a, b| order(b).cmp(&order(a)).then(a.id.cmp(b.id)));
    failing
}

fn card(history: &History, failing: &[&CaseOverTime<'_>]) -> Card {
    let entries = history.entries();
    let open = failing.iter().filter(|case| case.last().is_some_and(|(_, last)| last.is_unconfirmed())).count();
    let kind = entries.last().map_or(DecisionKind::Open, |entry| entry.kind);
    let newest = match entries.len() {
        1 => "the only night".to_owned(),
        many => format!("the newest of {many} nights"),
    };
    let fail = match failing.len() {
        1 => "1 case is failing now".to_owned(),
        many => format!("{many} cases are failing now"),
    };
    let headline = match (failing.len(), open, kind) {
        (0, _, DecisionKind::Go) => format!("Nothing fails in {newest}"),
        (0, _, DecisionKind::Open) => format!("No case fails in {newest}, but this is not an all-clear"),
        (0, _, DecisionKind::Stop) => format!("No case fails in {newest}, but its gate failed"),
        (_, 0, _) => fail,
        (all, open, _) if all == open => format!("{fail}, none confirmed"),
        (_, open, _) => format!("{fail}, {open} of them unconfirmed"),
    };
    let class = match (failing.len() > open, kind) {
        (true, _) | (_, DecisionKind::Stop) => "stop",
        (false, DecisionKind::Go) if failing.is_empty() => "go",
        (false, _) => "open",
    };
    let is_passed = |entry: &&HistoryEntry| entry.gate == GateOutcome::Passed;
    let passed = entries.iter().filter(is_passed).filter(|entry| !entry.is_unconfirmed).count();
    let unconfirmed = entries.iter().filter(is_passed).filter(|entry| entry.is_unconfirmed).count();
    let unconfirmed = if unconfirmed > 0 { format!(", and unconfirmed in {unconfirmed}") } else { String::new() };
    Card {
        class,
        headline,
        newest: entries.last().map_or_else(|| DayLink { day: String::new(), href: None }, DayLink::new),
        decision: entries.last().map(|entry| display::visible(&entry.headline)).unwrap_or_default(),
        gate: format!("The gate passed in {passed} of {}{unconfirmed}", text::count(entries.len(), "night", "nights")),
        failing: failing.iter().take(FAILING_NAMED).map(|case| failing_case(history, case)).collect(),
        more_failing: failing.len().saturating_sub(FAILING_NAMED),
    }
}

fn failing_case(history: &History, case: &CaseOverTime<'_>) -> FailingCase {
    let since = case.failing_since.map(|since| day(&history.entries()[since].time));
    FailingCase {
        id: case.id.to_string(),
        href: last_href(history, case),
        result: case.last().map(|(_, last)| last.text()).unwrap_or_default(),
        since: since.unwrap_or_default(),
    }
}

/// The link to the page of a case in the last night that includes it.
fn last_href(history: &History, case: &CaseOverTime<'_>) -> Option<String> {
    let (number, result) = case.last()?;
    history.href(&history.entries()[number], result)
}

fn tables<'h>(history: &History, failing: &[&CaseOverTime<'h>], cases: &[CaseOverTime<'h>]) -> [CaseTable; 4] {
    let mut alternating: Vec<_> = cases.iter().filter(|case| case.flips > 2).collect();
    alternating.sort_by(|a, b| b.flips.cmp(&a.flips).then(b.failed.cmp(&a.failed)).then(a.id.cmp(b.id)));
    let has_recovered = |case: &&CaseOverTime<'_>| case.failed > 0 && !case.is_failing() && case.flips < 3;
    let mut recovered: Vec<_> = cases.iter().filter(has_recovered).collect();
    recovered.sort_by(|a, b| b.first_failure.cmp(&a.first_failure).then(a.id.cmp(b.id)));
    let mut passing: Vec<_> = cases.iter().filter(|case| case.failed == 0).collect();
    // Differences first: their cases are the ones to look at.
    passing.sort_by_key(|case| (case.last().is_none_or(|(_, last)| last.is_quiet()), case.id));
    // A case that fails and alternates is in two tables.
    let mut anchored = HashSet::new();
    let mut table = |id, name: &str, lead, none, cases: &[&CaseOverTime<'h>]| CaseTable {
        id,
        heading: format!("{name}: {}", text::count(cases.len(), "case", "cases")),
        lead,
        none,
        cases: case_views(history, cases, &mut anchored),
        more: match cases.len().saturating_sub(CASES_LISTED) {
            0 => String::new(),
            more => format!("{} not listed; see the nights", text::count(more, "more case is", "more cases are")),
        },
    };
    [
        table(
            "failing",
            "Failing now",
            "They fail in the last night that includes them.",
            "No case fails in the last night that includes it.",
            failing,
        ),
        table(
            "recovered",
            "Recovered",
            "They failed and pass again; those that changed more often are alternating.",
            "No case failed and passes again.",
            &recovered,
        ),
        table(
            "flips",
            "Alternating",
            "They changed at least three times between failing and passing.",
            "No case changed three times between failing and passing.",
            &alternating,
        ),
        table("passing", "Never failed", "They failed in no night.", "Each case failed in a night.", &passing),
    ]
}

fn case_views<'h>(history: &History, cases: &[&CaseOverTime<'h>], anchored: &mut HashSet<&'h CaseId>) -> Vec<CaseView> {
    let cases = cases.iter().take(CASES_LISTED).enumerate();
    cases
        .map(|(number, case)| {
            let cells = if number < CASES_DRAWN { cells(history, case) } else { Vec::new() };
            let anchor = anchored.insert(case.id).then(|| case_anchor(case.id));
            case_view(history, case, anchor, cells)
        })
        .collect()
}

fn case_view(history: &History, case: &CaseOverTime<'_>, anchor: Option<String>, cells: Vec<Cell>) -> CaseView {
    let link = |index: usize| DayLink::new(&history.entries()[index]);
    let last = case.last().map(|(_, last)| last);
    CaseView {
        id: case.id.to_string(),
        anchor,
        href: last_href(history, case),
        class: last.map_or("", |last| last.class()),
        sign: last.map_or("", |last| last.sign()),
        result: last.map(evaluations::NightCase::text).unwrap_or_default(),
        since: case.failing_since.map(link),
        flips: case.flips,
        failed: format!("{} of {}", case.failed, case.known),
        first: case.first_failure.map(link),
        reason: case
            .first_failure
            .map(|first| display::visible(history.first_reason(first, case.id)))
            .unwrap_or_default(),
        cells,
    }
}

fn cells(history: &History, case: &CaseOverTime<'_>) -> Vec<Cell> {
    let entries = history.entries();
    let from = entries.len().saturating_sub(NIGHTS_IN_TABLE);
    let nights = entries.iter().zip(&case.results).enumerate().skip(from);
    let cell = |(number, (entry, result)): (usize, (&HistoryEntry, &Option<evaluations::NightCase>))| {
        let day = day(&entry.time);
        let is_old = is_old(entries, number);
        match result {
            Some(case) => Cell {
                class: case.class(),
                sign: case.sign(),
                title: format!("{day}: {}", case.text()),
                href: history.href(entry, *case),
                is_old,
            },
            None => Cell { class: "", sign: "–", title: format!("{day}: not in this night"), href: None, is_old },
        }
    };
    nights.map(cell).collect()
}

/// The nights, newest first, unlike the columns, which are read from left to right.
fn evaluation_views(entries: &[HistoryEntry], words: &[Word]) -> Vec<EvaluationView> {
    // A run can be compared with several baselines.
    let mut anchored = HashSet::new();
    let view = |number: usize| {
        let new = &entries[number].new;
        evaluation_view(entries, number, anchored.insert(new).then(|| night_anchor(new)), words)
    };
    (0..entries.len()).rev().map(view).collect()
}

fn evaluation_view(entries: &[HistoryEntry], number: usize, anchor: Option<String>, words: &[Word]) -> EvaluationView {
    let entry = &entries[number];
    let counts = words.iter().map(|word| {
        let count = entry.count(*word);
        let href = entry.source.href.as_ref().filter(|_| count > 0).map(|href| filtered(href, *word));
        CountView { word: *word, count: display::number(count), is_zero: count == 0, href }
    });
    EvaluationView {
        anchor,
        time: display::visible(&entry.time),
        href: entry.source.href.clone(),
        new: entry.new.clone(),
        baseline: entry.baseline.clone(),
        gate: GateView::new(entry),
        counts: counts.collect(),
        previous: number.checked_sub(1).map(|number| DayLink::new(&entries[number])),
    }
}
