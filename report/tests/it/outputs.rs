//! What every output of a report shows alike: the index, a case page, the summary and the test results.

use camino::Utf8Path;
use serde_json::{Value, json};

use crate::kit::{Pair, answer_of, step};
use crate::links::pages;
use crate::reported::Reported as _;

fn calls(count: usize) -> Vec<Value> {
    let call = |id: usize| step(&format!("c{id}"), "get_order", &json!({"id": "W1"}), &json!({"total": 50}));
    (0..count).flat_map(call).collect()
}

#[test]
fn a_runaway_loop_is_a_finding_a_reason_and_a_review_item_in_every_output() {
    let pair = Pair::with_answers(&answer_of(&json!({"events": calls(2)})), &answer_of(&json!({"events": calls(95)})));
    let out = pair.path().join("report");
    let evaluation = pair.report_into(&out).unwrap();
    let case = &evaluation.cases[0];
    let message = "get_order: called 95 times in a row with the same arguments";
    assert_eq!(case.findings[0].code, "repeated-call");
    assert!(case.findings[0].message.starts_with(message), "{:?}", case.findings);
    assert!(case.reasons.iter().any(|reason| reason.code == "repeated-call"), "{:?}", case.reasons);
    let item = evaluation.gate.review.iter().find(|item| item.code == "repeated-call").unwrap();
    assert_eq!(item.case_id.as_ref(), Some(&case.case_id));
    let summary = std::fs::read_to_string(out.join("summary.md")).unwrap();
    let review = &summary[summary.find("### Review").unwrap()..];
    assert!(review.contains("| repeated call |") && review.contains("95 times in a row"), "{review}");
    let pages = pages(&out);
    let index = &pages[Utf8Path::new("index.html")];
    assert!(index.contains(&format!("repeated call: {message}")), "{index}");
    let page = &pages[Utf8Path::new("cases/refund_001.html")];
    assert!(page.contains(message) && page.contains("repeated-call"), "{page}");
}

#[test]
fn every_output_reports_next_to_the_gate_that_no_expectations_were_judged() {
    const UNJUDGED: &str = "No expectations were judged; the gate only compares new with baseline";
    let changed = || Pair::with_answers(&answer_of(&json!({})), &answer_of(&json!({"workflow_id": "other"})));
    for (pair, is_reported) in [(changed(), true), (changed().expecting(&json!({"tool_required": []})), false)] {
        let gate = "Gate passed: no case got worse";
        let report = pair.report();
        let read = |name: &str| std::fs::read_to_string(report.join(name)).unwrap();
        let index = read("index.html");
        let headline = index.split("<h1").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap();
        assert!(headline.contains("Nothing got worse in 1 case"), "{headline}");
        let below = index.split("</h1>").nth(1).and_then(|rest| rest.split("</section>").next()).unwrap();
        assert_eq!(below.contains(UNJUDGED), is_reported, "{below}");
        for text in [read("summary.md").lines().next().unwrap(), &read("junit.xml")] {
            assert!(text.contains(gate), "{text}");
            assert_eq!(text.contains(UNJUDGED), is_reported, "{text}");
        }
    }
}
