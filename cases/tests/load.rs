//! Loading suites in every format, and being told what is wrong with them.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test writes its own input, and panics where it cannot"
)]

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_cases::{LoadError, Problem, Suite, load};
use proptest::prelude::*;
use serde_json::json;

/// A folder with files, gone with the value.
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

    /// What the load says, without the folder's own path.
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
            "must_include": ["a"], "must_not_include": ["b"], "evidence_required_for_actions": true
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
fn yaml_words_and_numbers_with_leading_zeros_stay_texts() {
    let text = "- id: 007\n  input: {user: yes}\n  expected: {must_include: [no, 1_000, on]}\n";
    let suite = Folder::with(&[("cases.yaml", text)]).load("cases.yaml").unwrap();
    assert_eq!(ids(&suite), ["007"]);
    assert_eq!(suite.cases[0].expected.must_include.as_deref().unwrap(), ["no", "1_000", "on"]);
}

#[test]
fn expectations_that_are_not_known_are_kept_and_told() {
    let text = "- id: a\n  inputs: 1\n  owner: ana\n  input: {user: x}\n  expected:\n    must_inclde: [x]\n    semantic: {}\n    \
                retrieval_required: {doc_ids: [], min: 1}\n";
    let suite = Folder::with(&[("cases.yaml", text)]).load("cases.yaml").unwrap();
    let told: Vec<String> =
        suite.warnings.iter().map(|it| it.to_string().rsplit_once('/').unwrap().1.to_owned()).collect();
    insta::assert_snapshot!(told.join("\n"), @"");
    let extra = &suite.cases[0].expected.extra;
    assert_eq!(extra.keys().collect::<Vec<_>>(), ["must_inclde", "semantic"]);
}

#[test]
fn fields_of_the_wrong_type_are_all_told_at_once() {
    let text = r#"[
  {"id": 42, "title": null, "input": {"user": ["hi"]}},
  {"id": "b", "input": "hi", "expected": {"must_include": "x", "tool_required": ["a", 1],
    "evidence_required_for_actions": "yes", "json_schema": "s", "retrieval_required": {}}},
  {"input": {"context": null}, "expected": null},
  "c",
  {"id": "../d", "input": {"user": "x"}, "metadata": {"tags": null}}
]"#;
    insta::assert_snapshot!(refusal("cases.json", text), @"");
}

#[test]
fn ids_that_are_taken_are_told_with_the_place_of_the_first() {
    let folder = Folder::with(&[
        ("a.yaml", "- id: refund\n  input: {user: x}\n- id: refund\n  input: {user: x}\n"),
        ("b.jsonl", "\n{\"id\":\"Refund\",\"input\":{\"user\":\"x\"}}\n"),
    ]);
    insta::assert_snapshot!(folder.refusal(""), @"");
}

#[test]
fn files_that_cannot_be_parsed_are_told_with_line_and_column() {
    let told = [
        refusal("a.json", "[\n  {\"id\": }\n]"),
        refusal("b.json", ""),
        refusal("c.jsonl", "{\"id\":\"a\",\"input\":{\"user\":\"x\"}}\n{\n}{"),
        refusal("d.yaml", "- id: a\n  input: {user: x\n"),
        refusal("e.yaml", "- id: a\n  id: b\n"),
        refusal("f.yaml", "a: 1\n---\nb: 2\n"),
        refusal("g.json", &"[".repeat(100_000)),
        refusal("h.json", "7"),
        refusal("i.yaml", "cases: 7"),
    ];
    insta::assert_snapshot!(told.join("\n"), @"");
}

#[test]
fn bytes_that_are_no_text_are_told_with_line_and_column() {
    let folder = Folder::with(&[]);
    std::fs::write(folder.path().join("a.json"), b"[\n \"\xff\"]").unwrap();
    insta::assert_snapshot!(folder.refusal("a.json"), @"");
}

#[test]
fn paths_without_cases_are_told() {
    let folder = Folder::with(&[("a.json", "[]"), ("b.yaml", "# nothing yet\n"), ("c.txt", "x"), ("d/readme.md", "")]);
    let told = ["a.json", "b.yaml", "c.txt", "d", "none.json"].map(|name| folder.refusal(name));
    insta::assert_snapshot!(told.join("\n"), @"");
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
