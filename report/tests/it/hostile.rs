//! Run folders that are broken in any way: the case that is meant has a row and a page, whatever its files hold, and all
//! others have the verdicts that they have without it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_evaluator::{ComparedRun, Request};
use counterproof_report::ReportWriter;
use counterproof_store::RunReader;
use counterproof_store::write::{self, Durability};
use counterproof_validation::validate_path;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Pair, answer, answer_of, answer_with, failure_of, step};
use crate::links::files;

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

/// The case whose files are broken.
const TARGET: &str = "target";

/// The files that are broken, within new's run folder.
const FILES: [&str; 6] = [
    "target.json",
    "failed.json",
    "run.json",
    "assets/manifest.json",
    "assets/payload.json",
    "assets/failed.body.json",
];

/// Two runs in a folder of their own.
struct Runs {
    folder: TempDir,
}

impl Runs {
    /// Two complete runs: a case with assets and a failed case, between two unrelated cases.
    fn whole() -> Self {
        static FILES: LazyLock<Vec<(Utf8PathBuf, Vec<u8>)>> = LazyLock::new(whole_files);
        Self::from_files(&FILES)
    }

    fn from_files(files: &[(Utf8PathBuf, Vec<u8>)]) -> Self {
        let runs = Self { folder: tempfile::tempdir().unwrap() };
        for (name, bytes) in files {
            let path = runs.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            write::write(&path, bytes, Durability::Cached).unwrap();
        }
        runs
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    /// The run folder of new, whose files the tests damage.
    fn new_run(&self) -> Utf8PathBuf {
        self.path().join("runs/new/two")
    }

    /// Opens the runs in their current state; `None` if a run document is missing or invalid.
    fn request(&self) -> Option<Request<'static>> {
        let open = |folder: Utf8PathBuf| RunReader::open(&folder).ok().map(|run| ComparedRun::new(run).into());
        Some(Request::new(open(self.path().join("runs/baseline/one"))?, open(self.new_run())?))
    }
}

fn whole_files() -> Vec<(Utf8PathBuf, Vec<u8>)> {
    let target = answer_with(|answer| {
        answer["events"][1]["payload_asset_href"] = json!("assets/payload.json");
        answer["events"][2]["snippets_asset_href"] = json!("assets/payload.json");
        answer["proposed_actions"][0]["evidence_refs"]
            .as_array_mut()
            .unwrap()
            .push(json!({"kind": "asset", "id": "payload.json"}));
    });
    let failed = failure_of(&json!({"body_snippet": "oops", "full_body_saved_to": "assets/failed.body.json"}));
    let mut pair = Pair::empty();
    for side in Side::BOTH {
        pair = pair
            .with_asset(side, "payload.json", br#"{"total": 50, "items": [1, 2, 3]}"#)
            .with_asset(side, "failed.body.json", b"oops, and what came after it")
            .with(side, "first", &answer())
            .with(side, TARGET, &target)
            .with(side, "failed", &failed)
            .with(side, "last", &answer());
    }
    // Writes what belongs to a run beside its artifacts.
    drop(pair.request());
    files(&pair.path()).into_iter().filter(|(name, _)| name.extension() == Some("json")).collect()
}

/// Compares and writes the report: every case has a row of bounded size, and a page.
fn report(runs: &Runs) -> Option<(Evaluation, Utf8PathBuf)> {
    let request = runs.request()?;
    let out = runs.path().join("report");
    let report = ReportWriter::create(&out, &request).unwrap();
    let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case)).unwrap();
    report.finish(&evaluation).unwrap();
    for row in &evaluation.cases {
        let bytes = serde_json::to_vec(row).unwrap().len();
        assert!(bytes < 256 * 1024, "{}: a row of {bytes} bytes", row.case_id);
        let page = out.join(format!("cases/{}.html", row.case_id)).metadata().unwrap().len();
        assert!(page < 16 * 1024 * 1024, "{}: a page of {page} bytes", row.case_id);
    }
    Some((evaluation, out))
}

fn verdict(evaluation: &Evaluation, case: &str) -> Verdict {
    evaluation.cases.iter().find(|row| row.case_id.as_str() == case).unwrap().verdict
}

/// What holds after one file of new's run was broken.
fn assert_holds(runs: &Runs, broken: &str) {
    let found = validate_path(&runs.new_run()).unwrap();
    let Some((evaluation, _)) = report(runs) else {
        assert!(broken == "run.json" && !found.findings.is_empty());
        return;
    };
    for row in &evaluation.cases {
        assert!(row.verdict != Verdict::Invalid || !found.findings.is_empty(), "{row:?}");
    }
    // Another run document may well select other cases.
    if broken != "run.json" {
        assert_eq!(
            (verdict(&evaluation, "first"), verdict(&evaluation, "last")),
            (Verdict::Unchanged, Verdict::Unchanged)
        );
    }
}

/// What is done to a file.
#[derive(Debug, Clone)]
enum Mutation {
    Bytes(Vec<u8>),
    Cut(prop::sample::Index),
    Flip(Vec<(prop::sample::Index, u8)>),
    Insert(prop::sample::Index, Vec<u8>),
    /// Another text in place of one of its values.
    Value(prop::sample::Index, String),
}

impl Mutation {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Mutation::Bytes(bytes) => return bytes.clone(),
            Mutation::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Mutation::Flip(flips) => {
                for (at, mask) in flips {
                    let at = at.index(bytes.len());
                    bytes[at] ^= mask;
                }
            }
            Mutation::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Mutation::Value(place, text) => {
                let Ok(mut document) = serde_json::from_slice::<Value>(&bytes) else { return bytes };
                let mut pointers = Vec::new();
                collect_pointers(&document, "", &mut pointers);
                *document.pointer_mut(&pointers[place.index(pointers.len())]).unwrap() = json!("<here>");
                return document.to_string().replacen("\"<here>\"", text, 1).into_bytes();
            }
        }
        bytes
    }
}

fn collect_pointers(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
    pointers.push(pointer.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect_pointers(item, &format!("{pointer}/{index}"), pointers));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| collect_pointers(value, &format!("{pointer}/{key}"), pointers));
        }
        _ => {}
    }
}

/// Texts that stand where a value should.
fn hostile_texts() -> Vec<String> {
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let fixed = [
        "null",
        "true",
        "-0",
        "-0.0",
        "1e308",
        "1e-400",
        "18446744073709551616",
        "-9223372036854775809",
        "NaN",
        "1e999",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "{\"\": {\"\": 0}}",
        "{\"a\": 1, \"a\": 2}",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\u0000\"",
        "\"\\u202e\\ufeff\"",
        "\"<script>alert(1)</script>\"",
        "\"../../../x\"",
        "\"/etc/passwd\"",
        "\"assets/payload.json\"",
        "\"assets\"",
        "\"events[18446744073709551615]\"",
        "\"c1\"",
        "\"high\"",
        "\"case.v1\"",
    ];
    let mut texts: Vec<String> = fixed.iter().map(|text| (*text).to_owned()).collect();
    texts.extend([deep(100), deep(126), deep(127), deep(5_000), "[".repeat(5_000)]);
    texts.extend([format!("\"{}\"", "x".repeat(40_000)), format!("[{}0]", "0, ".repeat(3_000))]);
    texts
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Mutation::Bytes),
        1 => index().prop_map(Mutation::Cut),
        2 => prop::collection::vec((index(), 1..=255_u8), 1..4).prop_map(Mutation::Flip),
        1 => (index(), prop::collection::vec(any::<u8>(), 1..5)).prop_map(|(at, more)| Mutation::Insert(at, more)),
        2 => (index(), "[\\[\\]{}\",:0-9nul\u{202e}\u{0}]{1,4}").prop_map(|(at, more)| Mutation::Insert(at, more.into())),
        6 => (index(), prop::sample::select(hostile_texts())).prop_map(|(at, text)| Mutation::Value(at, text)),
    ]
}

/// The bytes of two artifacts, each a valid one after a mutation.
fn any_two_artifacts() -> impl Strategy<Value = Vec<u8>> {
    let artifact = |side: &'static str| {
        any_mutation().prop_map(move |mutation| {
            let valid = answer_of(&json!({"case_id": "a", "version": side, "events": answer()["events"]}));
            mutation.apply(serde_json::to_vec(&valid).unwrap())
        })
    };
    (artifact("baseline"), artifact("new")).prop_map(|(baseline, new)| [&baseline[..], &[0], &new[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_broken_file_leaves_the_pages_of_other_cases_whole(
        file in prop::sample::select(FILES.to_vec()), mutation in any_mutation(),
    ) {
        let runs = Runs::whole();
        let path = runs.new_run().join(file);
        let bytes = mutation.apply(std::fs::read(&path).unwrap());
        write::write(&path, &bytes, Durability::Cached).unwrap();
        assert_holds(&runs, file);
    }

    #[test]
    fn reading_any_bytes_does_not_panic(mutation in any_mutation()) {
        let mut valid = answer();
        valid["case_id"] = json!("a");
        valid["version"] = json!("new");
        fuzz::reader(&mutation.apply(serde_json::to_vec(&valid).unwrap()));
    }

    #[test]
    fn comparing_and_rendering_any_two_artifacts_does_not_panic(bytes in any_two_artifacts()) {
        fuzz::differ(&bytes);
        fuzz::renderer(&bytes);
    }
}

#[test]
fn whole_runs_are_unchanged() {
    let runs = Runs::whole();
    assert_eq!(validate_path(&runs.new_run()).unwrap().findings, []);
    let (evaluation, _) = report(&runs).unwrap();
    assert_eq!(verdict(&evaluation, TARGET), Verdict::Unchanged);
    assert_eq!(verdict(&evaluation, "failed"), Verdict::StillBroken);
}

/// Puts something else in the place of a file.
type Replacement = fn(&Utf8Path);

#[cfg(unix)]
#[test]
fn pipes_and_links_are_neither_opened_nor_followed() {
    use std::os::unix::fs::symlink;
    let replacements: [(&str, Replacement); 6] = [
        ("a folder", |path| std::fs::create_dir(path).unwrap()),
        ("a pipe", |path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("a link to itself", |path| symlink(path, path).unwrap()),
        ("a link to nothing", |path| symlink("/nowhere/at/all", path).unwrap()),
        ("a link out of the folder", |path| symlink("/etc/passwd", path).unwrap()),
        ("a link to a device", |path| symlink("/dev/zero", path).unwrap()),
    ];
    for file in FILES {
        for (name, replace) in replacements {
            let runs = Runs::whole();
            let path = runs.new_run().join(file);
            std::fs::remove_file(&path).unwrap();
            replace(&path);
            assert_holds(&runs, file);
            if file == "target.json" {
                let (evaluation, out) = report(&runs).unwrap();
                assert_eq!(verdict(&evaluation, TARGET), Verdict::Invalid, "{name}");
                assert!(!out.join("artifacts/new/target.json").exists(), "{name}");
            }
        }
    }
    let runs = Runs::whole();
    let assets = runs.new_run().join("assets");
    std::fs::remove_dir_all(&assets).unwrap();
    symlink(&assets, &assets).unwrap();
    assert_holds(&runs, "assets");
}

#[test]
fn a_missing_and_a_huge_asset_cost_no_more_than_their_case() {
    let runs = Runs::whole();
    std::fs::remove_file(runs.new_run().join("assets/payload.json")).unwrap();
    assert_holds(&runs, "assets/payload.json");

    let runs = Runs::whole();
    let huge = format!("{{\"total\": \"{}\"}}", "x".repeat(9 * 1024 * 1024));
    for run in ["runs/baseline/one", "runs/new/two"] {
        let path = runs.path().join(run).join("assets/payload.json");
        write::write(&path, huge.as_bytes(), Durability::Cached).unwrap();
    }
    assert_holds(&runs, "assets/payload.json");
}

/// An answer with these events, and what its tool returned.
fn large(change: impl FnOnce(&mut Value)) -> Value {
    let mut made = answer_of(&json!({"events": step("c1", "get_order", &json!({"id": 1}), &json!({"total": 50}))}));
    change(&mut made);
    made
}

fn numbers(from: u64, count: u64) -> Value {
    (from..from + count).map(Value::from).collect()
}

/// Two answers that are large where it costs most: what takes a step for each pair of their parts never ends.
#[test]
fn large_answers_are_compared_in_bounded_work() {
    let line = |word: &str| format!("{} {}", word.repeat(250_000), "one two three ".repeat(20_000));
    let lines = |from: usize| (from..from + 30_000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    let words = |seed: usize| (0..40_000).map(|n| format!("{} ", (n * seed) % 7919)).collect::<Vec<_>>().concat();
    let pages =
        |word: &str| (0..60).map(|n| format!("page {n}\n{}\n", word.repeat(2_000))).collect::<Vec<_>>().concat();
    let output = |text: String| large(|made| made["final_output"]["content"] = json!(text));
    let payload = |value: Value| large(|made| made["events"][1]["payload_summary"] = json!({"all": value}));
    let calls = |tool: &str| {
        let call = |n: usize| json!({"type": "tool_call", "ts": n, "call_id": format!("c{n}"), "tool": format!("{tool}{n}"), "args": {"n": n}});
        large(|made| made["events"] = (0..10_000).map(call).collect())
    };
    let results = |from: u64| {
        large(|made| {
            made["events"][0]["args"] = json!({"all": numbers(from, 20_000)});
            let result = made["events"][1].clone();
            made["events"].as_array_mut().unwrap().extend(std::iter::repeat_n(result, 2_000));
        })
    };
    let refs = |from: usize| {
        let evidence: Vec<_> = (from..from + 900).map(|n| json!({"kind": "event", "id": format!("gone{n}")})).collect();
        large(|made| {
            made["proposed_actions"] = json!([{
                "action_id": "a", "action_type": "write", "tool_name": "t", "params": {}, "risk_level": "high",
                "risk_tags": [], "evidence_refs": evidence,
            }]);
        })
    };
    let keys = |from: usize| (from..from + 20_000).map(|n| (format!("key{n}"), json!(n))).collect::<Value>();
    let pairs = [
        ("a megabyte on a line", output(line("a")), output(line("b"))),
        ("a megabyte of lines", output(lines(0)), output(lines(1_000_000))),
        ("a megabyte of words", output(words(3)), output(words(5))),
        ("many pages of words", output(pages("a b ")), output(pages("b c "))),
        ("an array of other numbers", payload(numbers(0, 100_000)), payload(numbers(1_000_000, 100_000))),
        ("an array of the same numbers, turned", payload(numbers(0, 50_000)), payload((0..50_000).rev().collect())),
        ("other keys", payload(keys(0)), payload(keys(1_000_000))),
        ("other calls", calls("a"), calls("b")),
        ("many results of one large call", results(0), results(7)),
        ("many refs that lead nowhere", refs(0), refs(1_000_000)),
    ];
    let mut made = Pair::empty().with(Side::Baseline, "first", &answer()).with(Side::New, "first", &answer());
    for (index, (_, old, new)) in pairs.iter().enumerate() {
        let id = format!("large_{index}");
        made = made.with(Side::Baseline, &id, old).with(Side::New, &id, new);
    }
    drop(made.request());
    let (evaluation, _) = report(&Runs::from_files(&files(&made.path()).into_iter().collect::<Vec<_>>())).unwrap();
    assert_eq!(evaluation.cases.len(), pairs.len() + 1);
    assert_eq!(verdict(&evaluation, "first"), Verdict::Unchanged);
    for (row, (name, ..)) in evaluation.cases[1..].iter().zip(&pairs) {
        assert!(matches!(row.verdict, Verdict::Changed | Verdict::Regressed), "{name}: {row:?}");
    }
}
