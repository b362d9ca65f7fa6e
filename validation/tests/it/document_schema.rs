//! Findings of documents of any kind: their places, their messages, and the rules of the caller.

use std::fmt::Write as _;

use camino::Utf8Path;
use counterproof_validation::{CheckedDocument, Code, DocumentSchema, DocumentText, RuleFinding};
use serde_json::{Value, json};

fn schema() -> DocumentSchema {
    let source = json!({
        "type": "object",
        "required": ["id"],
        "additionalProperties": false,
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z]+$"},
            "check": {"$ref": "#/$defs/check"},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}}
        },
        "$defs": {"check": {
            "type": "object",
            "additionalProperties": false,
            "properties": {"command": {"type": "string"}, "timeout_ms": {"type": "integer", "minimum": 1}}
        }}
    });
    DocumentSchema::compile("task.v1", &source).unwrap()
}

fn check(text: &[u8], first_line: usize, rules: impl FnOnce(&Value) -> Vec<RuleFinding>) -> CheckedDocument {
    schema().check(DocumentText { file: Utf8Path::new("tasks.jsonl"), bytes: text, first_line }, rules)
}

fn listed(checked: &CheckedDocument) -> String {
    let mut text = String::new();
    for finding in &checked.findings {
        let place = finding.position.map(|position| format!("{}:{}", position.line, position.column)).unwrap();
        let excerpt = finding.excerpt.as_ref().unwrap();
        let marked = &excerpt.text[excerpt.span.clone()];
        let (code, pointer, message, expected, remedy) =
            (finding.code, &finding.pointer, &finding.message, &finding.expected, &finding.remedy);
        writeln!(text, "{place} {pointer} {marked}\n  {code}: {message}; {expected} ({remedy})").unwrap();
    }
    text
}

#[test]
fn violations_of_the_schema_are_found_with_the_field_that_was_meant() {
    let text = br#"{
  "id": "A",
  "check": {"comand": "x", "timeout_ms": 0, "zzzzzz": 1},
  "tag": []
}"#;
    insta::assert_snapshot!(listed(&check(text, 1, |_| Vec::new())), @r##"
2:9 /id "A"
  wrong-value: the value is the string `A`; a text that matches `^[a-z]+$` (write one of the allowed values)
3:23 /check/comand "x"
  unexpected-field: the field `comand` is unknown; did you mean `command`?; one of `command`, `timeout_ms` (rename the field to `command`, or remove it)
3:42 /check/timeout_ms 0
  wrong-value: the value is 0; at least 1 (write a number within the limit)
3:55 /check/zzzzzz 1
  unexpected-field: the field `zzzzzz` is unknown; one of `command`, `timeout_ms` (remove the field)
4:10 /tag []
  unexpected-field: the field `tag` is unknown; did you mean `tags`?; one of `id`, `check`, `tags` (rename the field to `tags`, or remove it)
    "##);
}

#[test]
fn a_document_of_a_line_is_found_in_its_file() {
    let checked = check(br#"{"id": 1, "tags": "x"}"#, 12, |_| Vec::new());
    insta::assert_snapshot!(listed(&checked), @r##"
12:8 /id 1
  wrong-type: the value is 1; a string (put the value in quotes)
12:19 /tags "x"
  wrong-type: the value is the string `x`; null or an array (write a value of the right type, or remove an optional field)
    "##);
    assert_eq!(checked.findings[0].excerpt.as_ref().unwrap().first_line, 12);
    assert_eq!(checked.value.unwrap()["id"], 1);
}

#[test]
fn rules_see_each_document_and_mark_parts_of_texts() {
    let text = "{\"id\": \"a\", \"check\": {\"command\": \"say \\\"\\u00e9\\\" && fial\"}, \"x\": 0}";
    let checked = check(text.as_bytes(), 1, |document| {
        let command = document["check"]["command"].as_str().unwrap();
        let at = command.find("fial").unwrap();
        let finding = RuleFinding::new(Code::WrongValue, "/check/command", "`fial` is no command", "a command");
        vec![finding.with_remedy("write `fail`").within(at..at + 4)]
    });
    insta::assert_snapshot!(listed(&checked), @r##"
1:53 /check/command fial
  wrong-value: `fial` is no command; a command (write `fail`)
1:66 /x 0
  unexpected-field: the field `x` is unknown; one of `id`, `check`, `tags` (remove the field)
    "##);
}

#[test]
fn text_that_is_not_json_has_no_value_and_no_rule_is_checked() {
    for text in ["", "{", "\u{feff}", "[1e999]"] {
        let checked = check(text.as_bytes(), 3, |_| panic!("no rule applies"));
        assert!(checked.value.is_none() && !checked.findings.is_empty(), "{text:?}");
    }
    let twice = check(br#"{"id": "a", "id": "b"}"#, 3, |_| Vec::new());
    assert_eq!(twice.findings[0].code, Code::DuplicateKey);
    assert_eq!(twice.findings[0].position.unwrap().line, 3);
}

#[test]
fn hostile_names_are_shortened_and_many_findings_are_counted() {
    let name = "c\u{1b}[2Jheck".repeat(100_000);
    let checked = check(format!("{{\"id\": \"a\", {}: 1}}", json!(name)).as_bytes(), 1, |_| Vec::new());
    let message = &checked.findings[0].message;
    assert!(message.len() < 400 && !message.contains('\u{1b}'), "{message}");
    let many = |_: &Value| (0..5000).map(|_| RuleFinding::new(Code::WrongValue, "/id", "bad", "good")).collect();
    let checked = check(br#"{"id": "a"}"#, 1, many);
    let last = checked.findings.last().unwrap();
    assert_eq!((last.code, &*last.message), (Code::MoreFindings, "4000 more findings are not listed"));
}
