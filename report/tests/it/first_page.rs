//! What the first page says about all cases: one number for each word, no number that cannot be, and the worst case first.

use camino::Utf8Path;
use counterproof_artifact::Side;
use counterproof_evaluator::{Request, SideRuns};
use serde_json::{Value, json};

use crate::kit::{Pair, action, answer_of, failure, step};
use crate::links::{attributes, pages};
use crate::report::every_kind;
use crate::reported::Reported as _;

fn index_of(pair: &Pair) -> String {
    pages(&pair.report()).remove(Utf8Path::new("index.html")).unwrap()
}

fn part<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let start = page.find(from).unwrap_or_else(|| panic!("{from}: {page}"));
    let rest = &page[start..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}

/// An answer that took some milliseconds, with one call that took some more.
fn taking(whole: u64, tool: u64) -> Value {
    let mut events = step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}));
    events[1]["latency_ms"] = json!(tool);
    let attempt = json!({"attempt": 1, "started_at": "2026-11-20T00:00:00Z", "latency_ms": whole, "outcome": "ok"});
    answer_of(&json!({"attempts": [attempt], "events": events}))
}

/// The cells of a row of the numbers: baseline, new, change.
fn numbers(index: &str, name: &str) -> Vec<String> {
    let row = part(index, &format!("<th scope=\"row\">{name}</th>"), "</tr>");
    row.split("<td").skip(1).map(|cell| part(cell, ">", "</td>").trim_start_matches('>').to_owned()).collect()
}

#[test]
fn a_tool_time_above_the_duration_is_left_out_and_a_possible_one_is_shown() {
    let impossible = index_of(&Pair::with_answers(&taking(40, 700), &taking(60, 20)));
    assert_eq!(numbers(&impossible, "tool time"), ["–", "–", "longer than the duration"]);
    let possible = index_of(&Pair::with_answers(&taking(2000, 700), &taking(2000, 350)));
    assert_eq!(numbers(&possible, "tool time"), ["700 ms", "350 ms", "−50 %"]);
}

#[test]
fn a_simulated_side_makes_no_absurd_factor() {
    let index = index_of(&Pair::with_answers(&taking(2, 1), &taking(4000, 1)));
    assert_eq!(numbers(&index, "duration"), ["2 ms", "4 s", "over ×100"]);
}

#[test]
fn what_may_be_chance_is_never_named_without_the_word() {
    let looked = answer_of(&json!({"events": step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}))}));
    let index = index_of(&Pair::with_answers(&looked, &failure()));
    for (from, to) in [("class=\"counts\"", "</ul>"), ("class=\"chips\"", "Search"), ("id=\"rows\"", "</table>")] {
        let shown = part(&index, from, to);
        assert!(shown.contains("ailed to answer") && shown.contains("unconfirmed"), "{shown}");
    }
}

#[test]
fn runs_without_expectations_are_answered_and_not_solved() {
    let looked = answer_of(&json!({"events": step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}))}));
    let pair = (0..12).fold(Pair::empty(), |pair, number| {
        let id = format!("case-{number:02}");
        let new = if number < 5 { failure() } else { looked.clone() };
        pair.with(Side::Baseline, &id, &looked).with(Side::New, &id, &new)
    });
    let index = index_of(&pair);
    assert_eq!(numbers(&index, "answered")[..2], ["12/12", "7/12"]);
    assert!(!part(&index, "verdict-card", "id=\"rows\"").contains("solve"), "{index}");
}

#[test]
fn one_word_has_one_number_above_the_rows() {
    let index = index_of(&every_kind());
    let figures = |within: &str| {
        let links = within.split("data-find=\"show=").skip(1);
        let of_link = |link: &str| {
            let word = link.split('"').next().unwrap().to_owned();
            (word, part(link, "figure\">", "<").trim_start_matches("figure\">").to_owned())
        };
        links.map(of_link).collect::<std::collections::BTreeMap<_, _>>()
    };
    let bar = figures(part(&index, "class=\"counts\"", "</ul>"));
    let chips = figures(part(&index, "class=\"chips\"", "Search"));
    assert!(bar.len() > 3, "{bar:?}");
    for (word, number) in &bar {
        assert_eq!(chips.get(word), Some(number), "{word}");
    }
    assert!(chips.values().all(|number| number != "0"), "{chips:?}");
}

#[test]
fn the_first_row_is_the_worst_case_and_noise_is_at_the_end() {
    let read = step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}));
    let with = |actions: Value| answer_of(&json!({"events": read, "proposed_actions": actions}));
    let refund = |amount: u64| action("a1", "refund", &json!({"order": 1, "amount": amount}), &["c1"]);
    let cancel = || action("a2", "cancel_order", &json!({"order": 1}), &["c1"]);
    let pair = Pair::empty()
        .with(Side::Baseline, "amount", &with(json!([refund(50)])))
        .with(Side::New, "amount", &with(json!([refund(500)])))
        .with(Side::Baseline, "same", &with(json!([refund(50)])))
        .with(Side::New, "same", &with(json!([refund(50)])))
        .with(Side::Baseline, "write", &with(json!([])))
        .with(Side::New, "write", &with(json!([cancel()])));
    let index = index_of(&pair);
    let links: Vec<_> = attributes(part(&index, "id=\"rows\"", "</main>"), "href")
        .into_iter()
        .filter(|href| href.starts_with("cases/"))
        .collect();
    assert_eq!(links, ["cases/write.html", "cases/amount.html", "cases/same.html"]);
    let worst = part(&index, "<h2 id=\"worst\"", "</h2>");
    assert!(worst.contains("New proposed cancel_order once"), "{worst}");
}

#[test]
fn every_table_names_its_columns() {
    for (name, page) in pages(&every_kind().report()) {
        for table in page.split("<table").skip(1) {
            let table = table.split("</table>").next().unwrap();
            assert!(table.contains("scope=\"col\""), "{name}: {table}");
        }
    }
}

#[test]
fn a_deterministic_agent_has_no_p_values() {
    let pair = Pair::with_answers(&taking(40, 1), &failure());
    let repeated = |side| SideRuns::new((0..2).map(|_| pair.finished(side)).collect()).unwrap();
    let several = Request::new(repeated(Side::Baseline), repeated(Side::New));
    for (name, mut request) in [("once", pair.request()), ("several", several)] {
        request.is_deterministic = true;
        let out = pair.path().join(name);
        let report = counterproof_report::ReportWriter::create(&out, &request).unwrap();
        let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case)).unwrap();
        report.finish(&evaluation).unwrap();
        for (page, text) in pages(&out) {
            for word in ["may be chance", " p 0", "(p ", "p = ", "p-value"] {
                assert!(!text.contains(word), "{name}, {page}: {word}: {text}");
            }
        }
    }
}
