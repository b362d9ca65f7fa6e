//! Contract files: the example of the contract schema, and findings that point into the text.

use std::fmt::Write as _;

use camino::Utf8Path;
use counterproof_contracts::contract::RollbackStrategy;
use counterproof_contracts::documents::{CheckedFile, check_file};

use serde_json::json;

use crate::kit::example;

fn listed(checked: &CheckedFile) -> String {
    let mut text = String::new();
    for finding in &checked.findings {
        let place = finding.position.map(|position| format!("{}:{}", position.line, position.column)).unwrap();
        let excerpt = finding.excerpt.as_ref().unwrap();
        let marked = &excerpt.text[excerpt.span.clone()];
        let marked: String = marked.chars().take(40).collect();
        writeln!(text, "{place} {} {marked}", finding.pointer).unwrap();
        writeln!(text, "  {}: {}; {} ({})", finding.code, finding.message, finding.expected, finding.remedy).unwrap();
    }
    text
}

#[test]
fn the_example_of_the_contract_schema_is_valid_and_survives_a_round_trip() {
    let text = example().to_string();
    let checked = check_file(Utf8Path::new("contract.json"), text.as_bytes());
    assert!(checked.findings.is_empty(), "{}", listed(&checked));
    let contract = &checked.contracts[0];
    assert_eq!(contract.id.as_str(), "qwer-q/fix-memory-leak/001");
    assert_eq!((contract.version.get(), contract.rollback.strategy), (1, RollbackStrategy::GitReset));
    assert_eq!((contract.project(), contract.summary()), ("qwer-q", "Fix memory leak in dataset processing"));
    assert_eq!((contract.dependencies().len(), contract.resources().len(), contract.artifacts().len()), (1, 2, 2));
    assert_eq!(serde_json::to_string(contract).unwrap(), text, "every field, in the same order");
}

#[test]
fn every_problem_of_a_contract_is_found_at_its_place() {
    let text = r#"{
  "id": "shop//refund",
  "version": 0,
  "created_at": "yesterday",
  "input": {"type": "task", "data": {}},
  "output": {"type": "result", "schema": {"ok": "boolean"}, "artifacts": ["/etc/passwd", "../x", "src/*.rs"]},
  "verification": {"command": " ", "assertion": ["x"], "assertions": ["output.ok == tru", "size(output.files > 0"]},
  "rollback": {"strategy": "custom"},
  "dependencies": ["a", "a", "shop//refund", "b c"]
}"#;
    insta::assert_snapshot!(listed(&check_file(Utf8Path::new("c.json"), text.as_bytes())), @r##"
    2:9 /id "shop//refund"
      wrong-value: the contract id has an empty segment: write it without a `/` at its start or end, and without `//`; an id such as `shop/refund/001` (write one of the allowed values)
    3:14 /version 0
      wrong-value: the value is 0; at least 1 (write a number within the limit)
    4:17 /created_at "yesterday"
      bad-timestamp: the value is neither a time with a time zone nor a date; a time or a date in ISO 8601, such as `2026-02-02T14:30:00Z` or `2026-02-02` (write it like 2026-01-31T12:00:00Z)
    6:75 /output/artifacts/0 "/etc/passwd"
      wrong-value: `/etc/passwd` is an absolute path; a path relative to the working directory, such as `src/pool.rs` (write one of the allowed values)
    6:90 /output/artifacts/1 "../x"
      wrong-value: `../x` leaves its folder; a path relative to the working directory, such as `src/pool.rs` (write one of the allowed values)
    6:98 /output/artifacts/2 "src/*.rs"
      wrong-value: `src/*.rs` is a pattern; name each file; a path relative to the working directory, such as `src/pool.rs` (write one of the allowed values)
    7:31 /verification/command " "
      wrong-value: the command is empty: nothing would be checked; a command line for `sh -c` (write one of the allowed values)
    7:49 /verification/assertion ["x"]
      unexpected-field: the field `assertion` is unknown; did you mean `assertions`?; one of `command`, `timeout_ms`, `assertions`, `retry` (rename the field to `assertions`, or remove it)
    7:85 /verification/assertions/0 tru
      invalid-expression: unknown variable `tru`; a CEL expression (known variables: output, input, exit_code, stdout, stderr)
    7:113 /verification/assertions/1 
      invalid-expression: syntax error: expected `)`, found the end; a CEL expression (correct the CEL at this position)
    8:15 /rollback {"strategy": "custom"}
      missing-field: the strategy `custom` needs a command; `custom`: a command line for `sh -c` (add `custom` with the command, or choose another strategy)
    9:25 /dependencies/1 "a"
      wrong-value: the dependency `a` is listed twice; each dependency once (write one of the allowed values)
    9:30 /dependencies/2 "shop//refund"
      wrong-value: the contract id has an empty segment: write it without a `/` at its start or end, and without `//`; the id of a contract (write one of the allowed values)
    9:46 /dependencies/3 "b c"
      wrong-value: the contract id contains ' ' at byte 1; use ASCII letters, digits, `.`, `_` and `-`, and `/` between segments; the id of a contract (write one of the allowed values)
    "##);
}

#[test]
fn a_file_of_lines_has_findings_with_its_line_numbers() {
    let valid = example().to_string();
    let text = format!("{valid}\n\n{{\"id\": 1}}\n{{\"record\": \"vote\"}}\n{valid}\n");
    let checked = check_file(Utf8Path::new("c.jsonl"), text.as_bytes());
    let lines: Vec<usize> = checked.findings.iter().map(|finding| finding.position.unwrap().line).collect();
    assert_eq!((checked.contracts.len(), lines), (2, vec![3, 3, 3, 3, 3, 3, 3, 4]));
    let message = &checked.findings.last().unwrap().message;
    assert_eq!(message, "`vote` is not a known kind of record; a newer program may have written it");
}

#[test]
fn hostile_files_have_findings_and_never_panic() {
    for bytes in [
        &b""[..],
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"{\"record\":1}",
        b"{\"verification\":[],\"rollback\":3}",
        b"[[[[",
    ] {
        for name in ["c.json", "c.jsonl"] {
            let checked = check_file(Utf8Path::new(name), bytes);
            assert!(checked.contracts.is_empty());
            assert!(!checked.findings.is_empty() || bytes.is_empty(), "{name} {bytes:?}");
        }
    }
}

#[test]
fn fields_of_other_tools_and_a_date_without_a_time_are_kept() {
    let mut document = example();
    document["x-ticket"] = json!({"number": 7});
    document["metadata"]["priority"] = json!("high");
    document["created_at"] = json!("2026-02-02");
    let checked = check_file(Utf8Path::new("a.json"), document.to_string().as_bytes());
    assert_eq!(checked.findings.len(), 0, "{:?}", checked.findings);
    assert_eq!(serde_json::to_value(&checked.contracts[0]).unwrap(), document);
    for time in ["2026-02-02T14:30:00", "2026-02-30", "today"] {
        document["created_at"] = json!(time);
        assert_eq!(check_file(Utf8Path::new("a.json"), document.to_string().as_bytes()).findings.len(), 1, "{time}");
    }
}
