//! The three formats of the report.

use counterproof_conformance::SubjectKind;
use counterproof_conformance::report::{Report, json, junit, text};
use serde_json::json;

use crate::kit::{Scripts, run, vectors};

#[test]
fn all_formats_have_the_same_results() {
    let scripts = Scripts::new();
    let subjects = [scripts.subject(SubjectKind::Tool, "shift; \"$@\"; echo 'a <b> \u{1b}[31m' >&2")];
    let vectors = vectors();
    let vectors = vectors.only(&["run-success", "check-windows"]);
    let mut results = run(&vectors, &subjects);
    // The text of a problem can contain anything that a program prints.
    results[0].status = counterproof_conformance::VectorStatus::Failed(vec!["a <b> \u{1b}[31m\nsecond".to_owned()]);
    let report = Report { vectors: &vectors, subjects: &subjects, results: &results };
    assert!(!report.passes());

    let lines = text(&report);
    assert!(lines.contains("  FAIL  run-success  Success leaves no files\n        a <b> \u{1b}[31m\n        second\n"));
    assert!(lines.contains("  skip  check-windows  A command of Windows (only on windows)\n"), "{lines}");
    assert!(lines.ends_with("0 passed, 1 failed, 1 skipped, 0 out of scope\n"), "{lines}");

    let document = json(&report);
    assert_eq!((&document["passed"], &document["failed"], &document["skipped"]), (&json!(0), &json!(1), &json!(1)));
    let result = &document["subjects"][0]["results"][0];
    assert_eq!((&result["status"], &result["wrong"][0]), (&json!("failed"), &json!("a <b> \u{1b}[31m\nsecond")));

    let xml = junit(&report).unwrap();
    for part in [
        "<testsuites name=\"conformance\" tests=\"2\" skipped=\"1\" failures=\"1\" errors=\"0\">",
        "name=\"run-success: Success leaves no files\"",
        "<failure message=\"a &lt;b&gt; \\u{1b}[31m\">a &lt;b&gt; \\u{1b}[31m\nsecond</failure>",
        "<skipped message=\"only on windows\"",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
}
