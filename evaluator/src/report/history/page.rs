//! The page, ready to be shown.

use std::fmt::Write as _;

use askama::Template;
use counterproof_artifact::evaluation::{GateOutcome, Verdict};

use super::cases::{self, CaseOverTime};
use super::chart::{self, Chart};
use super::find::LeftOut;
use super::nights::{History, Night, Stand};
use crate::report::shown;
use crate::report::verdicts::{self, VerdictShown};
use crate::values::text;

/// Cases whose nights are drawn.
const DRAWN: usize = 200;

/// Cases that a list names.
const LISTED: usize = 1000;

/// Folders without an evaluation that are named.
const LEFT_OUT_NAMED: usize = 50;

/// The page.
#[derive(Debug, Template)]
#[template(path = "history/page.html")]
pub(super) struct HistoryPage {
    root: &'static str,
    title: String,
    span: String,
    gate: String,
    left_out: Vec<String>,
    more_left_out: String,
    chart: Chart,
    first: String,
    last: String,
    legend: Vec<VerdictShown>,
    columns: Vec<VerdictShown>,
    nights: Vec<NightShown>,
    flips: Vec<CaseShown>,
    more_flips: String,
    wrong: Vec<CaseShown>,
    more_wrong: String,
    width: usize,
}

/// A row of the table of nights.
#[derive(Debug)]
struct NightShown {
    time: String,
    href: Option<String>,
    new: String,
    baseline: String,
    gate: GateShown,
    counts: Vec<CountShown>,
}

#[derive(Debug)]
struct GateShown {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    sentence: String,
}

#[derive(Debug)]
struct CountShown {
    word: &'static str,
    count: String,
    is_none: bool,
}

/// A case of one of the lists.
#[derive(Debug)]
struct CaseShown {
    id: String,
    flips: String,
    /// In how many nights it was wrong.
    wrong: String,
    /// The nights in which it was wrong and those in which it was fine, as outlines; empty where it is not drawn.
    wrong_path: String,
    fine_path: String,
    first: NightLink,
    since: Option<NightLink>,
    reason: String,
}

/// A night as a link to what was found in it.
#[derive(Debug, Clone)]
struct NightLink {
    time: String,
    href: Option<String>,
}

impl HistoryPage {
    pub(super) fn of(history: &History, left_out: &[LeftOut]) -> Self {
        let nights = history.nights();
        let time = |night: Option<&Night>| night.map(|night| day(&night.time)).unwrap_or_default();
        let (first, last) = (time(nights.first()), time(nights.last()));
        let passed = nights.iter().filter(|night| night.gate == GateOutcome::Passed).count();
        let ever_wrong = cases::ever_wrong(history);
        let mut flipping: Vec<_> = ever_wrong.iter().filter(|case| case.flips > 0).collect();
        flipping.sort_by(|a, b| b.flips.cmp(&a.flips).then(b.wrong.cmp(&a.wrong)).then(a.id.cmp(b.id)));
        let mut wrong: Vec<_> = ever_wrong.iter().collect();
        // What went wrong last is what somebody is looking for.
        wrong.sort_by(|a, b| (b.wrong_since, b.first_wrong).cmp(&(a.wrong_since, a.first_wrong)).then(a.id.cmp(b.id)));
        let more = |all: usize| match all.saturating_sub(LISTED) {
            0 => String::new(),
            more => {
                format!("{} not listed; the evaluations have them", text::count(more, "more case is", "more cases are"))
            }
        };
        let columns: Vec<Verdict> = Verdict::WORST_FIRST
            .into_iter()
            .enumerate()
            .filter(|(place, _)| nights.iter().any(|night| night.counts[*place] > 0))
            .map(|(_, verdict)| verdict)
            .collect();
        Self {
            root: "",
            title: text::count(nights.len(), "night", "nights"),
            span: if nights.len() > 1 { format!("{first} to {last}") } else { first.clone() },
            gate: format!("The gate passed in {passed} of {}", text::count(nights.len(), "night", "nights")),
            left_out: left_out.iter().take(LEFT_OUT_NAMED).map(|left| shown::visible(&left.to_string())).collect(),
            more_left_out: match left_out.len().saturating_sub(LEFT_OUT_NAMED) {
                0 => String::new(),
                more => format!("and {more} more"),
            },
            chart: chart::of(nights),
            first,
            last,
            nights: nights.iter().rev().map(|night| show_night(night, &columns)).collect(),
            legend: columns
                .iter()
                .filter(|verdict| !verdicts::is_quiet(**verdict))
                .map(|v| verdicts::show(*v))
                .collect(),
            columns: columns.into_iter().map(verdicts::show).collect(),
            more_flips: more(flipping.len()),
            flips: shown_cases(history, &flipping),
            more_wrong: more(wrong.len()),
            wrong: shown_cases(history, &wrong),
            width: nights.len().max(1),
        }
    }
}

/// The day of a time, or all of a text that is none.
fn day(time: &str) -> String {
    let is_date = |day: &str| {
        day.bytes().enumerate().all(|(at, b)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() })
    };
    match time.get(..10) {
        Some(day) if is_date(day) => day.to_owned(),
        _ => shown::visible(time),
    }
}

fn show_night(night: &Night, columns: &[Verdict]) -> NightShown {
    let (class, sign, word) = match night.gate {
        GateOutcome::Passed => ("improved", "✓", "passed"),
        GateOutcome::Failed => ("regressed", "✗", "failed"),
        GateOutcome::NotEnoughData => ("changed", "?", "not enough data"),
    };
    let counts = Verdict::WORST_FIRST.into_iter().zip(night.counts).filter(|(verdict, _)| columns.contains(verdict));
    let counts = counts.map(|(verdict, count)| CountShown {
        word: verdicts::show(verdict).word,
        count: shown::number(count),
        is_none: count == 0,
    });
    NightShown {
        time: shown::visible(&night.time),
        href: night.place.href.clone(),
        new: night.new.clone(),
        baseline: night.baseline.clone(),
        gate: GateShown { class, sign, word, sentence: night.sentence.clone() },
        counts: counts.collect(),
    }
}

fn shown_cases(history: &History, cases: &[&CaseOverTime<'_>]) -> Vec<CaseShown> {
    cases.iter().take(LISTED).enumerate().map(|(number, case)| show_case(history, case, number < DRAWN)).collect()
}

fn show_case(history: &History, case: &CaseOverTime<'_>, is_drawn: bool) -> CaseShown {
    let link = |night: usize| {
        let night = &history.nights()[night];
        NightLink { time: day(&night.time), href: night.place.href.clone() }
    };
    let path = |wanted, top, height| if is_drawn { outline(&case.stands, wanted, top, height) } else { String::new() };
    CaseShown {
        id: case.id.to_string(),
        flips: text::count(case.flips, "time", "times"),
        wrong: format!("{} of {}", case.wrong, text::count(case.known, "night", "nights")),
        wrong_path: path(Stand::Wrong, 0, 8),
        fine_path: path(Stand::Fine, 6, 2),
        first: link(case.first_wrong),
        since: case.wrong_since.map(link),
        reason: shown::visible(history.first_reason(case.first_wrong, case.id)),
    }
}

/// The nights in which a case was so, as one outline: a rectangle for each stretch.
fn outline(stands: &[Option<Stand>], wanted: Stand, top: usize, height: usize) -> String {
    let mut path = String::new();
    let mut from = None;
    for night in 0..=stands.len() {
        let is_so = stands.get(night).is_some_and(|stand| *stand == Some(wanted));
        match (from, is_so) {
            (None, true) => from = Some(night),
            (Some(start), false) => {
                let _ = write!(path, "M{start} {top}H{night}v{height}H{start}z");
                from = None;
            }
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_one_rectangle_each() {
        use Stand::{Fine, Wrong};
        let stands = [Some(Wrong), Some(Wrong), None, Some(Fine), Some(Wrong)];
        assert_eq!(outline(&stands, Wrong, 0, 8), "M0 0H2v8H0zM4 0H5v8H4z");
        assert_eq!(outline(&stands, Fine, 6, 2), "M3 6H4v2H3z");
        assert_eq!(outline(&[], Fine, 6, 2), "");
    }

    #[test]
    fn a_day_is_shown_of_a_time_and_all_of_any_other_text() {
        assert_eq!(day("2026-11-20T02:00:00Z"), "2026-11-20");
        assert_eq!(day("last Tuesday\u{202e}"), "last Tuesday\\u{202e}");
    }
}
