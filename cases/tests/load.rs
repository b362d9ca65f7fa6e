//! Loads suites in every format, and reports their problems.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test writes its own input, and panics if it cannot"
)]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_cases::{LoadError, Problem, Suite, load};
use proptest::prelude::*;
use serde_json::json;

/// A temporary folder with files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().to_owned()
    }

    fn load(&self, name: &str) -> Result<Suite, LoadError> {
        load(&self.path().join(name))
    }

    /// The messages of a failed load, without the path of the folder.
    fn refusal(&self, name: &str) -> String {
        let error = self.load(name).unwrap_err();
        let text = match error.problems() {
            [] => error.to_string(),
            problems => problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"),
        };
        text.replace(&format!("{}/", self.path()), "").replace(self.path().as_str(), ".")
    }
}

fn refusal(name: &str, text: &str) -> String {
    Folder::with(&[(name, text)]).refusal(name)
}

fn ids(suite: &Suite) -> Vec<&str> {
    suite.cases.iter().map(|case| case.id.as_str()).collect()
}

#[test]
fn a_json_list_with_every_field_is_loaded() {
    let text = r#"[{
        "id": "refund_001", "title": "Refund", "suite": "shop", "owner": "ana",
        "input": {"user": "hi", "context": {"vip": true}, "locale": "de"},
        "expected": {
            "action_required": ["refund"], "tool_required": ["refund_order"], "tool_sequence": ["get_order"],
            "json_schema": {"type": "object"}, "retrieval_required": {"doc_ids": ["d1"]},
            "must_include": ["a"], "must_not_include": ["b"], "evidence_required_for_actions": true,
            "no_refused_calls": true,
            "expect": [
                "size(events) > 0", {"name": "says so", "expr": "final_output.content.contains('a')"},
                {"expr": "size(events) < 9", "must": true}
            ],
            "must": false
        },
        "metadata": {"tags": ["x"], "severity": "high", "kind": "tool_agent", "team": 7}
    }]"#;
    let suite = Folder::with(&[("cases.json", text)]).load("cases.json").unwrap();
    assert_eq!(suite.warnings, []);
    assert_eq!(serde_json::to_value(&suite.cases).unwrap(), serde_json::from_str::<serde_json::Value>(text).unwrap());
    let input = serde_json::to_value(&suite.cases[0].input).unwrap();
    assert_eq!(input, json!({"user": "hi", "context": {"vip": true}, "locale": "de"}));
}

#[test]
fn an_invalid_expression_is_reported_at_its_position() {
    let yaml = "- id: a\n  input: {user: x}\n  expected:\n    expect:\n      - size(events) > 0 && output.ok\n      \
                - {name: n, expr: \"events.length() > 0\"}\n      - 7\n      - {nam: n, expr: 'true'}\n      - |\n        \
                size(events) > 0 &&\n        input.user == who\n";
    insta::assert_snapshot!(refusal("cases.yaml", yaml), @r#"
    cases.yaml:5:29: case `a`: `expected.expect[0]` is not a valid expression: unknown variable `output` (known variables: final_output, proposed_actions, events, input)
    cases.yaml:6:33: case `a`: `expected.expect[1].expr` is not a valid expression: unknown function `length` (write `size(x)`)
    cases.yaml:7:9: case `a`: `expected.expect[2]` is the number 7; expected an expression, or an object with `name` and `expr` (write a string such as "final_output.content.contains('refund')")
    cases.yaml:8:9: case `a`: `expected.expect[3]` has the unknown key `nam` (write it as {name: …, expr: …})
    cases.yaml:10:9: case `a`: `expected.expect[4]` is not a valid expression: unknown variable `who` (known variables: final_output, proposed_actions, events, input)
    "#);
    let json = r#"[{"id": "a", "input": {"user": "x"}, "expected": {"expect": ["input.user ="]}}]"#;
    insta::assert_snapshot!(refusal("cases.json", json), @"
    cases.json:1:74: case `a`: `expected.expect[0]` is not a valid expression: syntax error: `=` is not an operator; write `==` (correct the CEL at this position)
    ");
    let one = "- id: a\n  input: {user: x}\n  expected: {expect: 'true'}\n";
    insta::assert_snapshot!(refusal("cases.yaml", one), @r#"cases.yaml:3:22: case `a`: `expected.expect` is a string; expected a list of expressions (write it as a list: ["true"])"#);
}

#[test]
fn the_expressions_in_the_docs_are_valid() {
    let docs = include_str!("../../docs/cases.md");
    let section = docs.split("\n## Expressions\n").nth(1).unwrap();
    let block = section.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let cases = format!("- id: a\n  input: {{user: x}}\n{block}");
    let suite = Folder::with(&[("cases.yaml", &cases)]).load("cases.yaml").unwrap();
    assert_eq!(suite.cases[0].expected.expect.as_ref().map(Vec::len), Some(4));
}

#[test]
fn the_same_suite_is_read_from_every_format() {
    let files = [
        ("a.json", r#"{"cases": [{"id": "1a", "input": {"user": "x"}}, {"case_id": "no", "input": {"user": "y"}}]}"#),
        ("b.yaml", "- id: 1a\n  input: {user: x}\n- case_id: no\n  input:\n    user: y\n"),
        ("c.yml", "cases:\n  - {id: 1a, input: {user: x}}\n  - {id: no, input: {user: y}}\n"),
        ("d.jsonl", "{\"id\":\"1a\",\"input\":{\"user\":\"x\"}}\n\n{\"id\":\"no\",\"input\":{\"user\":\"y\"}}\r\n"),
        ("e.ndjson", "\u{feff}{\"id\":\"1a\",\"input\":{\"user\":\"x\"}}\n{\"id\":\"no\",\"input\":{\"user\":\"y\"}}"),
    ];
    let folder = Folder::with(&files);
    let expected = folder.load("a.json").unwrap();
    assert_eq!(ids(&expected), ["1a", "no"]);
    for (name, _) in files {
        assert_eq!(folder.load(name).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_folder_is_read_whole_in_the_order_of_its_names() {
    let one = |id: &str| format!("id: {id}\ninput: {{user: hi}}\n");
    let folder = Folder::with(&[
        ("z.yaml", &one("last")),
        ("b/deep/x.yml", &one("middle")),
        ("a.json", r#"[{"id": "first", "input": {"user": "hi"}}]"#),
        ("README.md", "not a case"),
        (".hidden.json", "not json"),
        (".git/x.json", "not json"),
    ]);
    assert_eq!(ids(&folder.load("").unwrap()), ["first", "middle", "last"]);
}

#[test]
fn yaml_words_and_numbers_with_leading_zeros_stay_strings() {
    let text = "- id: 007\n  input: {user: yes}\n  expected: {must_include: [no, 1_000, on]}\n";
    let suite = Folder::with(&[("cases.yaml", text)]).load("cases.yaml").unwrap();
    assert_eq!(ids(&suite), ["007"]);
    assert_eq!(suite.cases[0].expected.must_include.as_deref().unwrap(), ["no", "1_000", "on"]);
}

#[test]
fn unknown_expectations_are_stored_and_reported() {
    let text = "- id: a\n  inputs: 1\n  owner: ana\n  input: {user: x}\n  expected:\n    must_inclde: [x]\n    semantic: {}\n    \
                retrieval_required: {doc_ids: [], min: 1}\n";
    let suite = Folder::with(&[("cases.yaml", text)]).load("cases.yaml").unwrap();
    let messages: Vec<String> =
        suite.warnings.iter().map(|it| it.to_string().rsplit_once('/').unwrap().1.to_owned()).collect();
    insta::assert_snapshot!(messages.join("\n"), @"
    cases.yaml:2:3: case `a`: `inputs` is not a known field; it is stored but not used (did you mean `input`?)
    cases.yaml:6:5: case `a`: `expected.must_inclde` is not a known expectation and is not evaluated (did you mean `must_include`?)
    cases.yaml:7:5: case `a`: `expected.semantic` is not a known expectation and is not evaluated (known names: action_required, tool_required, tool_sequence, json_schema, retrieval_required, must_include, must_not_include, evidence_required_for_actions, no_refused_calls, max_latency_ms, max_steps, max_tokens, max_cost, expect, must)
    cases.yaml:8:39: case `a`: `expected.retrieval_required.min` is not a known field and is not evaluated (known names: doc_ids)
    ");
    let extra = &suite.cases[0].expected.extra;
    assert_eq!(extra.keys().collect::<Vec<_>>(), ["must_inclde", "semantic"]);
}

#[test]
fn schemas_that_are_always_undecided_are_reported() {
    let text = "- id: a\n  input: {user: x}\n  expected:\n    json_schema:\n      definitions: {a: {allOf: [{$ref: '#/definitions/a'}]}}\n      \
                $ref: '#/definitions/a'\n";
    let suite = Folder::with(&[("cases.yaml", text)]).load("cases.yaml").unwrap();
    let warning = suite.warnings[0].to_string();
    let reason =
        "cases.yaml:4:5: case `a`: `expected.json_schema` is always undecided: a reference leads back to itself";
    assert!(warning.contains(reason), "{warning}");
}

#[test]
fn all_fields_of_the_wrong_type_are_reported_at_once() {
    let text = r#"[
  {"id": 42, "title": null, "input": {"user": ["hi"]}},
  {"id": "b", "input": "hi", "expected": {"must_include": "x", "tool_required": ["a", 1],
    "evidence_required_for_actions": "yes", "json_schema": "s", "retrieval_required": {}}},
  {"input": {"context": null}, "expected": null},
  "c",
  {"id": "../d", "input": {"user": "x"}, "metadata": {"tags": null}}
]"#;
    insta::assert_snapshot!(refusal("cases.json", text), @r#"
    cases.json:2:10: case `42`: `id` is the number 42; expected a string (put it in quotes: "42")
    cases.json:2:23: case `42`: `title` is null; expected a string (give it a value, or remove the field)
    cases.json:2:47: case `42`: `input.user` is a list; expected a string (write a string)
    cases.json:3:24: case `b`: `input` is a string; expected an object (write an object, such as {user: Where is my money?})
    cases.json:3:59: case `b`: `expected.must_include` is a string; expected a list of strings (write it as a list: ["x"])
    cases.json:3:87: case `b`: `expected.tool_required[1]` is the number 1; expected a string (put it in quotes: "1")
    cases.json:4:38: case `b`: `expected.evidence_required_for_actions` is a string; expected true or false (write true or false)
    cases.json:4:60: case `b`: `expected.json_schema` is a string; expected a JSON Schema (write a JSON Schema)
    cases.json:4:87: case `b`: `expected.retrieval_required.doc_ids` is missing (list the ids of the documents)
    cases.json:5:3: `id` is missing (give the case a unique `id`)
    cases.json:5:13: `input.user` is missing (add the message of the user)
    cases.json:5:44: `expected` is null; expected an object (give it a value, or remove the field)
    cases.json:6:3: found a string; expected a case, which is an object (write an object with an `id` and an `input`)
    cases.json:7:10: case `../d`: `id` cannot be used as a file name: the id holds '/' at byte 2; only ASCII letters, digits and ._-+=@,~()[] are safe in a file name on every system (write an id of letters, digits, `_` and `-`)
    cases.json:7:63: case `../d`: `metadata.tags` is null; expected a list of strings (give it a value, or remove the field)
    "#);
}

#[test]
fn duplicate_ids_are_reported_with_the_position_of_the_first() {
    let folder = Folder::with(&[
        ("a.yaml", "- id: refund\n  input: {user: x}\n- id: refund\n  input: {user: x}\n"),
        ("b.jsonl", "\n{\"id\":\"Refund\",\"input\":{\"user\":\"x\"}}\n"),
    ]);
    insta::assert_snapshot!(folder.refusal(""), @"
    a.yaml:3:7: case `refund`: the id `refund` is already used at a.yaml:1 (change one of the two ids)
    b.jsonl:2:7: case `Refund`: the id `Refund` differs from `refund` at a.yaml:1 only in letter case, which some file systems ignore (change one of the two ids)
    ");
}

#[test]
fn syntax_errors_are_reported_with_line_and_column() {
    let messages = [
        refusal("a.json", "[\n  {\"id\": }\n]"),
        refusal("b.json", ""),
        refusal("c.jsonl", "{\"id\":\"a\",\"input\":{\"user\":\"x\"}}\n{\n}{"),
        refusal("d.yaml", "- id: a\n  input: {user: x\n"),
        refusal("e.yaml", "- id: a\n  id: b\n"),
        refusal("f.yaml", "a: 1\n---\nb: 2\n"),
        refusal("g.json", &"[".repeat(100_000)),
        refusal("h.json", "7"),
        refusal("i.yaml", "cases: 7"),
        refusal("j.json", "[{\"id\": \"a\",\n \"id\": \"b\", \"input\": {\"user\": \"x\"}}]"),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    a.json:2:10: invalid JSON: expected value (correct the JSON at this position)
    b.json:1:1: invalid JSON: EOF while parsing a value (correct the JSON at this position)
    c.jsonl:2:1: invalid JSON: EOF while parsing an object (correct the JSON at this position)
    c.jsonl:3:1: invalid JSON: expected value (correct the JSON at this position)
    d.yaml:2:10: invalid YAML: unclosed bracket '{' (correct the YAML at this position)
    e.yaml:2:3: duplicate key "id" (keep one of the two)
    f.yaml:3:1: a second YAML document starts here (write one document, without `---` between its parts)
    g.json:1:128: invalid JSON: recursion limit exceeded (correct the JSON at this position)
    h.json:1:1: found the number 7; expected a list of cases, or an object with a list named `cases` (write the cases as a list)
    i.yaml:1:8: found the number 7; expected a list of cases (write the cases as a list)
    j.json:2:2: duplicate key "id" (keep one of the two)
    "#);
}

#[test]
fn a_large_yaml_file_whose_cases_all_use_one_default_is_loaded() {
    let mut text =
        "- &default\n  id: first\n  input: {user: hi}\n  metadata: &tags {tags: [a, b, c], severity: high}\n"
            .to_owned();
    for number in 0..30_000 {
        let case = format!(
            "- id: case_{number}\n  input: {{user: Where is my order {number}?}}\n  metadata: {{<<: *tags, kind: x}}\n"
        );
        text.push_str(&case);
    }
    let suite = Folder::with(&[("cases.yaml", &text)]).load("cases.yaml").unwrap();
    assert_eq!(suite.cases.len(), 30_001);
    assert_eq!(suite.cases[30_000].metadata.tags, ["a", "b", "c"]);
}

#[test]
fn aliases_that_grow_without_bounds_are_refused() {
    let level = |level: usize| {
        let below = format!("*a{}", level.wrapping_sub(1));
        let item = if level == 0 { "x" } else { &below };
        format!("a{level}: &a{level} [{}]\n", [item; 9].join(", "))
    };
    let text: String = (0..12).map(level).collect();
    let messages = refusal("cases.yaml", &text);
    assert!(
        messages.starts_with("cases.yaml:") && messages.contains("the aliases expand to more than 1000000 YAML events"),
        "{messages}"
    );
}

#[test]
fn a_large_yaml_file_below_anchors_is_loaded() {
    // Each anchor keeps a copy of the text, which has an escape and thus differs from the file: 68 MiB in total.
    let text = "x".repeat(17 << 20);
    let text = format!("cases: &all\n  - &first\n    id: a\n    input: &input\n      user: &text \"\\t{text}\"\n");
    let suite = Folder::with(&[("cases.yaml", &text)]).load("cases.yaml").unwrap();
    assert_eq!(suite.cases.len(), 1);
}

#[test]
fn anchors_inside_each_other_are_refused_with_their_own_message() {
    let level = |level| format!("{}k{level}: &a{level}\n", " ".repeat(level));
    let many: String = (0..60).map(level).collect();
    let items = format!("{}- x\n", " ".repeat(61)).repeat(20_000);
    let messages = refusal("cases.yaml", &format!("{many}{items}"));
    assert!(messages.contains("the values below anchors") && !messages.contains("aliases expand"), "{messages}");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_a_folder_is_ignored_and_a_named_pipe_is_read() {
    let folder = Folder::with(&[("b.yaml", "- id: b\n  input: {user: x}\n")]);
    let pipe = folder.path().join("a.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(folder.load("").unwrap().cases.len(), 1);
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "- id: a\n  input: {user: x}\n").unwrap()
    });
    assert_eq!(load(&pipe).unwrap().cases.len(), 1);
    writer.join().unwrap();
}

#[test]
fn bytes_that_are_not_utf8_are_reported_with_line_and_column() {
    let folder = Folder::with(&[]);
    std::fs::write(folder.path().join("a.json"), b"[\n \"\xff\"]").unwrap();
    insta::assert_snapshot!(folder.refusal("a.json"), @"a.json:2:3: the file is not UTF-8 text (save the file as UTF-8)");
}

#[test]
fn paths_without_cases_are_reported() {
    let folder = Folder::with(&[("a.json", "[]"), ("b.yaml", "# nothing yet\n"), ("c.txt", "x"), ("d/readme.md", "")]);
    let messages = ["a.json", "b.yaml", "c.txt", "d", "none.json"].map(|name| folder.refusal(name));
    insta::assert_snapshot!(messages.join("\n"), @"
    `a.json` contains no case: expected at least one with an `id` and an `input`
    `b.yaml` contains no case: expected at least one with an `id` and an `input`
    `c.txt` is not a cases file: expected the extension .json, .jsonl, .ndjson, .yaml or .yml
    the folder `d` contains no cases file: expected .json, .jsonl, .ndjson, .yaml or .yml files
    failed to read `none.json`
    ");
}

#[test]
fn the_manual_quotes_the_actual_messages() {
    let manual = include_str!("../../docs/cases.md");
    let example = manual.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let suite = Folder::with(&[("cases.yaml", example)]).load("cases.yaml").unwrap();
    assert_eq!(ids(&suite), ["refund_damaged_001"]);
    assert_eq!(suite.warnings, []);

    let case = "- id: refund_001\n  input: {user: x}\n  expected:\n";
    let mistyped = refusal("cases.yaml", &format!("{case}    must_include: [x, 50]\n"));
    assert!(manual.contains(&mistyped), "{mistyped}");
    let folder = Folder::with(&[("cases.yaml", &format!("{case}    tool_required: []\n    must_inclde: []\n"))]);
    let warning = folder.load("cases.yaml").unwrap().warnings[0].to_string();
    assert!(manual.contains(&warning.replace(&format!("{}/", folder.path()), "")), "{warning}");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), format in 0..3_usize) {
        let folder = Folder::with(&[]);
        let name = ["a.json", "a.yaml", "a.jsonl"][format];
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let _ = folder.load(name);
    }

    #[test]
    fn no_text_that_looks_like_cases_makes_it_panic(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"", "id", "\"id\":", "\"input\":", "user", "\n", "  ", "- ", "null", "1e9999",
            "&a ", "*a", "<<: ", "!!binary ", "|\n", "é", "\u{2028}", "\t", "? ", "---\n", "cases", "expected",
        ]), 0..60),
        format in 0..3_usize,
    ) {
        let name = ["a.json", "a.yaml", "a.jsonl"][format];
        let folder = Folder::with(&[(name, &pieces.concat())]);
        let _ = folder.load(name);
    }
}

#[test]
fn turns_stand_next_to_the_input_or_instead_of_it() {
    let cases = "- id: a\n  turns: [{user: One, expected: {max_steps: 1}}, {user: Two, tool_results: {t: {error: gone}}}]\n\
                 - id: b\n  input: {context: {n: 1}}\n  turns: [{user: One}]\n";
    let suite = Folder::with(&[("cases.yaml", cases)]).load("cases.yaml").unwrap();
    assert_eq!(suite.warnings, []);
    let users: Vec<_> = suite.cases.iter().map(|case| case.input.user.as_str()).collect();
    assert_eq!(users, ["One", "One"]);
    assert_eq!(suite.cases[0].turns[1].tool_results["t"]["error"], "gone");
    let both = "- id: a\n  input: {user: Zero}\n  turns: [{user: One}]\n";
    let suite = Folder::with(&[("cases.yaml", both)]).load("cases.yaml").unwrap();
    assert!(suite.warnings[0].message.contains("`input.user` is not sent"));
    let messages = [
        refusal("cases.yaml", "- id: a\n  turns: []\n"),
        refusal("cases.yaml", "- id: a\n  turns: [{usr: One}]\n"),
        refusal("cases.yaml", "- id: a\n  turns: One\n"),
        refusal("cases.yaml", "- id: a\n  input: {user: x}\n  tool_results: [1]\n"),
    ];
    let expected =
        ["`turns` is an empty list", "`turns[0].user` is missing", "`turns` is a string", "`tool_results` is a list"];
    for (message, part) in messages.iter().zip(expected) {
        assert!(message.contains(part), "{message}");
    }
}
