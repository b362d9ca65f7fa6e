//! The exports: every file keeps its format and its size limit for any agent text.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::collections::HashMap;

use camino::Utf8Path;
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_report::{
    CaseLocation, PageSelection, ReportContext, ReportUrl, ReportWriter, SUMMARY_UP_TO_BYTES, summary,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sarif;
use crate::test_results::{assert_ctrf, assert_junit};
use crate::xml::{self, Element};

/// An evaluation with one case per verdict. Every text of an agent or a cases file comes from `say`.
fn evaluation(verdicts: &[Verdict], say: impl Fn() -> String) -> Evaluation {
    let of_cluster = |index: usize| {
        json!({"code": "arguments", "place": say(), "message": say(), "pointers": [], "path": [],
               "cluster": format!("{:08x}", index / 2)})
    };
    let case = |(index, verdict): (usize, &Verdict)| {
        json!({
            "case_id": format!("case_{index}"), "title": say(), "verdict": verdict, "risk_level": "high",
            "reasons": [{"code": "action-params-changed", "message": say(),
                         "pointers": [{"side": "new", "pointer": format!("/proposed_actions/0/params/{}", say())}]},
                        {"code": say(), "message": say(), "pointers": []}],
            "findings": [{"code": "ungrounded-argument", "message": say(), "in_baseline": false,
                          "pointers": [{"side": "new", "pointer": format!("/events/{index}/args/{}", say())}]}],
            "cause": of_cluster(index), "severity": {"score": 0.5, "parts": []},
            "expectations": [{"code": say(), "expected": say(), "new": {"passed": false, "found": say()}}],
        })
    };
    let cases: Vec<_> = verdicts.iter().enumerate().map(case).collect();
    let count = |verdict: &Verdict| verdicts.iter().filter(|other| *other == verdict).count();
    let counts: serde_json::Map<_, _> =
        Verdict::ALL.iter().map(|verdict| (verdict.to_string(), json!(count(verdict)))).collect();
    let run = |id: &str| {
        json!({"run_id": id, "generated_at": "2026-11-20T02:00:00Z", "runner_version": say(), "cases_selected": 1,
               "repo_commit": say()})
    };
    let rule = |code: &str, scope: Value, passed: bool| json!({"code": code, "scope": scope, "bound": "at_most", "limit": 0, "actual": 3, "of": 4, "passed": passed});
    let mut rules =
        vec![rule("regressed", Value::Null, false), rule("changed", json!({"kind": "tag", "name": say()}), false)];
    rules.push(rule("invalid", json!({"kind": "suite", "name": say()}), true));
    serde_json::from_value(json!({
        "schema_version": "evaluation.v1", "evaluator_version": say(), "baseline": run("one"), "new": run("two"),
        "notices": [{"code": "different-records", "message": say()}], "counts": counts, "gate": {"passed": false, "outcome": "failed", "rules": rules}, "cases": cases,
        "clusters": [],
    }))
    .unwrap()
}

/// The content of the three files.
struct Exports {
    summary: String,
    junit: String,
    ctrf: Value,
    sarif: String,
}

fn written(evaluation: &Evaluation, context: &ReportContext) -> Exports {
    let folder = tempfile::tempdir().unwrap();
    let out = Utf8Path::from_path(folder.path()).unwrap().join("report");
    let report = ReportWriter::without_runs(&out, evaluation).unwrap();
    report.finish_with(evaluation, context).unwrap();
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let ctrf = serde_json::from_str(&read("ctrf.json")).unwrap();
    Exports { summary: read("summary.md"), junit: read("junit.xml"), ctrf, sarif: read("results.sarif") }
}

fn context() -> ReportContext {
    ReportContext { report_url: Some("https://ci.example/r/".parse().unwrap()), ..ReportContext::default() }
}

/// Asserts that a summary consists of headings, sentences, and tables whose rows have all cells.
fn assert_is_whole(summary: &str) {
    let mut cells = None;
    for line in summary.lines() {
        if line.starts_with('|') {
            // Pipes within cells are escaped, so every pipe separates cells.
            let here = line.matches('|').count();
            assert!(line.ends_with('|') && *cells.get_or_insert(here) == here, "{line}");
            assert!(line.matches('`').count() % 2 == 0, "{line}");
        } else {
            cells = None;
            let known = ["## ", "### ", "Baseline `", "To refresh the baseline: `", "Summary: ", "**", "No changes."];
            let notes = ["not shown here; the report has all of them.", "not shown.", "is met.", "are met."];
            let is_note = notes.iter().any(|end| line.ends_with(end));
            assert!(line.is_empty() || is_note || known.iter().any(|start| line.starts_with(start)), "{line}");
        }
    }
}

/// The tests of both suites in one. Each suite has the tests of its name alone, and counts them.
fn tests(junit: &str) -> Element {
    let root = xml::parse(junit).unwrap_or_else(|error| panic!("{error}\n{junit}"));
    assert_junit(&root);
    for (suite, name) in root.elements.iter().zip(["counterproof.gate", "counterproof.cases"]) {
        assert_eq!(suite.attribute("name"), Some(name));
        assert!(suite.all("testcase").all(|test| test.attribute("classname") == Some(name)));
        let said = |name: &str| suite.attribute(name).unwrap().parse::<usize>().unwrap();
        let with = |name: &'static str| suite.all("testcase").filter(|test| test.all(name).next().is_some()).count();
        assert_eq!(said("tests"), suite.all("testcase").count());
        let counted = (said("failures"), said("errors"), said("skipped"));
        assert_eq!(counted, (with("failure"), with("error"), with("skipped")));
    }
    let [mut gate, cases] = <[Element; 2]>::try_from(root.elements).unwrap_or_else(|_| panic!("two suites: {junit}"));
    gate.elements.extend(cases.elements);
    gate
}

fn results(sarif: &str) -> Vec<Value> {
    let log: Value = serde_json::from_str(sarif).unwrap();
    sarif::assert_holds(&log);
    log["runs"][0]["results"].as_array().unwrap().clone()
}

fn fingerprints(results: &[Value]) -> Vec<String> {
    results.iter().map(|result| result["partialFingerprints"]["counterproofCase/v1"].to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_text_in_any_field_stays_plain_text(
        texts in prop::collection::vec(prop_oneof![any::<String>(), "[-|`<>&\"'@#\\]\\[()!*_~:$\n\r\t\\\\\u{0}\u{1b}\u{202e}\u{fffe}a1]{0,40}"], 1..8),
        verdicts in prop::collection::vec(prop::sample::select(Verdict::ALL.to_vec()), 0..12),
    ) {
        let next = RefCell::new(texts.iter().cycle());
        let evaluation = evaluation(&verdicts, || next.borrow_mut().next().unwrap().clone());
        let files = written(&evaluation, &context());
        assert_is_whole(&files.summary);
        let unseen = files.summary.contains(['\u{0}', '\u{1b}', '\u{202e}', '\r']);
        prop_assert!(!unseen);
        let suite = tests(&files.junit);
        prop_assert_eq!(suite.all("testcase").count(), 3 + verdicts.len());
        prop_assert_eq!(assert_ctrf(&files.ctrf).len(), 3 + verdicts.len());
        results(&files.sarif);
    }

    #[test]
    fn no_summary_exceeds_its_size_limit(most in 0_usize..4_000, cases in 0_usize..60, long in 1_usize..2_000) {
        let verdicts: Vec<_> = Verdict::ALL.into_iter().cycle().take(cases).collect();
        let evaluation = evaluation(&verdicts, || "ä|`".repeat(long));
        let Some(text) = summary(&evaluation, &context(), PageSelection::All, most) else {
            prop_assert!(most < 2_000, "the first line does not fit into {most}");
            return Ok(());
        };
        prop_assert!(text.len() <= most);
        assert_is_whole(&text);
    }
}

#[test]
fn a_summary_of_very_many_cases_lists_the_worst_and_counts_the_others() {
    let mut verdicts = vec![Verdict::Changed; 5_000];
    verdicts[4_000] = Verdict::Regressed;
    let evaluation = evaluation(&verdicts, || "a sentence of some words: amount 50 → 500 ".repeat(4));
    let text = written(&evaluation, &ReportContext::default()).summary;
    assert!(text.len() <= SUMMARY_UP_TO_BYTES && text.len() > SUMMARY_UP_TO_BYTES - 2_000, "{}", text.len());
    assert_is_whole(&text);
    let rows: Vec<_> = text.lines().skip_while(|line| !line.starts_with("| Verdict")).skip(2).collect();
    assert!(rows[0].contains("case_4000") && rows[0].contains("regressed"), "{}", rows[0]);
    // Two cases share a root cause, so a row names two of them.
    let named: usize = rows.iter().map(|row| row.matches("`case_").count()).sum();
    let note = rows.last().unwrap();
    assert_eq!(
        *note,
        format!(
            "{} more rows with {} cases are not shown here; the report has all of them.",
            (5_000 - named) / 2,
            5_000 - named
        )
    );
}

#[test]
fn the_summary_has_links_only_with_a_report_address() {
    let evaluation = evaluation(&[Verdict::Regressed], || "x".to_owned());
    let url =
        |url: &str| ReportContext { report_url: Some(url.parse::<ReportUrl>().unwrap()), ..ReportContext::default() };
    let of = |context: &ReportContext, pages| summary(&evaluation, context, pages, 10_000).unwrap();
    assert!(!of(&ReportContext::default(), PageSelection::All).contains("]("));
    let job = of(&url("https://ci.example/job/7"), PageSelection::All);
    assert!(job.contains("[full report](https://ci.example/job/7)") && !job.contains("cases/"), "{job}");
    let folder = of(&url("https://ci.example/r/"), PageSelection::All);
    assert!(folder.contains("[`case_0`](https://ci.example/r/cases/case_0.html)"), "{folder}");
    let no_pages = of(&url("https://ci.example/r/"), PageSelection::None);
    assert!(no_pages.contains("(https://ci.example/r/index.html)") && !no_pages.contains("cases/"), "{no_pages}");
}

#[test]
fn a_test_fails_only_for_what_the_gate_counts() {
    let verdicts = Verdict::ALL;
    let mut evaluation = evaluation(&verdicts, || "x".to_owned());
    evaluation.cases.iter_mut().for_each(|case| case.expectations.clear());
    let went = |evaluation: &Evaluation| -> HashMap<String, String> {
        let suite = tests(&written(evaluation, &ReportContext::default()).junit);
        let how = |test: &Element| {
            let kinds = ["failure", "error", "skipped"];
            kinds.into_iter().find(|kind| test.all(kind).next().is_some()).unwrap_or("passed").to_owned()
        };
        let ctrf = assert_ctrf(&written(evaluation, &ReportContext::default()).ctrf);
        for (test, ctrf) in suite.all("testcase").zip(&ctrf) {
            let status = match how(test).as_str() {
                "failure" | "error" => "failed",
                _ => ctrf["status"].as_str().filter(|status| *status == how(test)).unwrap(),
            };
            assert_eq!((ctrf["name"].as_str(), ctrf["status"].as_str()), (test.attribute("name"), Some(status)));
            assert_eq!(ctrf.get("rawStatus").is_some(), how(test) == "error");
        }
        let of_cases = suite.all("testcase").filter(|test| test.attribute("classname") == Some("counterproof.cases"));
        of_cases.map(|test| (test.attribute("name").unwrap().to_owned(), how(test))).collect()
    };
    let expect = |evaluation: &Evaluation, failing: &[(Verdict, &str)]| {
        let went = went(evaluation);
        for case in &evaluation.cases {
            let otherwise = match case.verdict {
                Verdict::Changed
                | Verdict::Undecided
                | Verdict::Noisy
                | Verdict::Improved
                | Verdict::Recovered
                | Verdict::Unchanged => "passed",
                _ => "skipped",
            };
            let expected =
                failing.iter().find(|(verdict, _)| *verdict == case.verdict).map_or(otherwise, |(_, how)| *how);
            assert_eq!(went[case.case_id.as_str()], expected, "{}", case.verdict);
        }
    };
    // The rule of a tag fails as a separate test: the evaluation does not record which cases have the tag.
    expect(&evaluation, &[(Verdict::Regressed, "failure")]);
    evaluation.gate.rules[0].code = "broken".to_owned();
    expect(&evaluation, &[(Verdict::Broken, "error")]);
    evaluation.gate.rules[0].code = "unpaired".to_owned();
    expect(&evaluation, &[(Verdict::Missing, "failure"), (Verdict::Added, "failure")]);
    evaluation.gate.rules[0].passed = true;
    expect(&evaluation, &[]);
}

#[test]
fn the_fingerprint_of_a_result_does_not_depend_on_other_results() {
    let verdicts = [Verdict::Regressed, Verdict::Changed, Verdict::Broken];
    let text = RefCell::new("one".to_owned());
    let first = evaluation(&verdicts, || text.borrow().clone());
    let known = results(&written(&first, &ReportContext::default()).sarif);
    let known = fingerprints(&known);
    assert_eq!(known.len(), 6);
    assert!(known.iter().all(|one| known.iter().filter(|other| one == *other).count() == 1));

    // Another order, other cases, other values, another list index, another location.
    let mut second = first.clone();
    second.cases.reverse();
    second.cases.truncate(2);
    for case in &mut second.cases {
        case.reasons[0].message = "another".to_owned();
        case.findings[0].pointers[0].pointer = case.findings[0].pointers[0].pointer.replace("/events/1", "/events/77");
    }
    let place = CaseLocation { file: "suite/cases.yaml".to_owned(), line: 7 };
    let places = second.cases.iter().map(|case| (case.case_id.clone(), place.clone())).collect();
    let again = results(&written(&second, &ReportContext { case_locations: places, ..ReportContext::default() }).sarif);
    assert!(fingerprints(&again).iter().all(|one| known.contains(one)) && again.len() == 4);
    let location = &again[0]["locations"][0]["physicalLocation"];
    assert_eq!(location, &json!({"artifactLocation": {"uri": "suite/cases.yaml"}, "region": {"startLine": 7}}));
}

#[test]
fn results_stay_within_the_limits_of_code_hosts_and_a_note_counts_the_others() {
    let verdicts: Vec<_> = std::iter::repeat_n(Verdict::Changed, 13_000).chain([Verdict::Regressed]).collect();
    let many = evaluation(&verdicts, || "x".to_owned());
    let sarif = written(&many, &ReportContext::default()).sarif;
    let kept = results(&sarif);
    assert!(sarif.len() < 10_000_000 && kept.len() <= 25_000, "{} {}", sarif.len(), kept.len());
    assert_eq!(kept[0]["level"], "error", "the worst come first");
    let log: Value = serde_json::from_str(&sarif).unwrap();
    let note = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
    let omitted = 26_002 - kept.len();
    assert!(note.as_str().unwrap().starts_with(&format!("{omitted} results are omitted")), "{note}");
}
