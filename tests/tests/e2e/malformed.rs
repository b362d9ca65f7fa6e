//! The malformed files of `tests/malformed/`, each in an otherwise valid run folder: `validate` names the rule, `compare` gives the
//! one case the verdict `invalid`, and all other cases keep their verdicts. Ids that are not valid file names are rejected.

use std::collections::BTreeMap;

use camino::Utf8Path;
use counterproof_store::write::{self, Durability};
use counterproof_tests::{Agent, Finished, Reply, Sandbox, files_below, minimal_answer};
use serde_json::{Value, json};

const BASELINE: &str = "runs/baseline/one";
const NEW: &str = "runs/new/two";

/// A malformed file and the rule in its row of the table.
struct Malformed {
    stem: String,
    bytes: Vec<u8>,
    rule: String,
}

/// The files of one folder of the corpus, each with its row.
fn corpus(kind: &str) -> Vec<Malformed> {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("malformed");
    let table = std::fs::read_to_string(root.join("README.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        let name = cells.get(1)?.strip_prefix(kind)?.strip_prefix('/')?.strip_suffix(".json")?.to_owned();
        Some((name, cells.get(2)?.clone()))
    };
    let mut rules: BTreeMap<String, String> = table.lines().filter_map(row).collect();
    let files = files_below(&root.join(kind)).into_iter().map(|(path, bytes)| {
        let stem = path.file_stem().unwrap().to_owned();
        let rule = rules.remove(&stem).unwrap_or_else(|| panic!("{kind}/{path} has no row in the table"));
        Malformed { stem, bytes, rule }
    });
    let files: Vec<_> = files.collect();
    assert!(rules.is_empty(), "rows without a file: {rules:?}");
    assert!(!files.is_empty());
    files
}

fn artifact(case_id: &str, side: &str) -> String {
    let mut artifact = minimal_answer();
    artifact["schema_version"] = json!("case.v1");
    artifact["case_id"] = json!(case_id);
    artifact["version"] = json!(side);
    artifact["status"] = json!("ok");
    artifact.to_string()
}

fn run(side: &str, id: &str, cases: &[&str]) -> String {
    let run = json!({
        "schema_version": "run.v1", "run_id": id, "version": side, "generated_at": "2026-11-20T00:00:00Z",
        "base_url": "http://agent.example", "cases_path": "../../../cases.json", "out_dir": "../..",
        "selected_case_ids": cases, "runner_version": "test/1",
    });
    run.to_string()
}

/// Adds a valid run of these cases in a folder.
fn with_run(sandbox: Sandbox, folder: &str, side: &str, id: &str, cases: &[&str]) -> Sandbox {
    let sandbox = sandbox.with_file(&format!("{folder}/run.json"), &run(side, id, cases));
    cases
        .iter()
        .fold(sandbox, |sandbox, case| sandbox.with_file(&format!("{folder}/{case}.json"), &artifact(case, side)))
}

/// Two valid runs of these cases.
fn whole(cases: &[&str]) -> Sandbox {
    with_run(with_run(Sandbox::new(), BASELINE, "baseline", "one", cases), NEW, "new", "two", cases)
}

/// A valid baseline, and one new run for each file, in a folder with the name of the file.
fn one_run_each(files: &[Malformed]) -> Sandbox {
    let cases = ["before", "after"];
    files.iter().fold(whole(&cases), |sandbox, file| with_run(sandbox, &file.stem, "new", &file.stem, &cases))
}

fn put(sandbox: &Sandbox, name: &str, bytes: &[u8]) {
    write::write(&sandbox.path(name), bytes, Durability::Cached).unwrap();
}

/// Returns the rules that `validate` names, by the path of the file.
#[track_caller]
fn rules(sandbox: &Sandbox, folders: &[&str]) -> BTreeMap<String, Vec<String>> {
    let finished = sandbox.run([&["validate", "--format", "json"], folders].concat());
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(1), ""));
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let mut rules: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let file = finding["file"].as_str().unwrap().to_owned();
        rules.entry(file).or_default().push(finding["code"].as_str().unwrap().to_owned());
    }
    rules
}

/// Compares, and returns the verdict of each case. Every case must have its page.
#[track_caller]
fn verdicts(sandbox: &Sandbox, new: &str) -> (Finished, BTreeMap<String, String>) {
    let finished = sandbox.run(["compare", BASELINE, new, "--no-write-back"]);
    assert!(!finished.stderr.contains("panicked"), "{finished}");
    let evaluation = sandbox.json("report/evaluation.json");
    let mut verdicts = BTreeMap::new();
    for case in evaluation["cases"].as_array().unwrap() {
        let id = case["case_id"].as_str().unwrap();
        assert!(sandbox.path(&format!("report/cases/{id}.html")).is_file(), "{id} has no page");
        verdicts.insert(id.to_owned(), case["verdict"].as_str().unwrap().to_owned());
    }
    (finished, verdicts)
}

#[test]
fn a_malformed_artifact_is_reported_by_its_rule_and_affects_no_other_case() {
    let corpus = corpus("case");
    let mut cases: Vec<_> = corpus.iter().map(|file| file.stem.as_str()).collect();
    cases.insert(0, "before");
    cases.push("after");
    for side in [NEW, BASELINE] {
        let sandbox = whole(&cases);
        for file in &corpus {
            put(&sandbox, &format!("{side}/{}.json", file.stem), &file.bytes);
        }
        let rules = rules(&sandbox, &[side]);
        let (finished, verdicts) = verdicts(&sandbox, NEW);
        assert_eq!(finished.code, Some(1), "{finished}");
        for file in &corpus {
            let found =
                rules.get(&format!("{side}/{}.json", file.stem)).unwrap_or_else(|| panic!("{}: no finding", file.stem));
            assert!(found.contains(&file.rule), "{}: {found:?}", file.stem);
            assert_eq!(verdicts[&file.stem], "invalid", "{}", file.stem);
        }
        for whole in ["before", "after"] {
            assert!(!rules.contains_key(&format!("{side}/{whole}.json")), "{rules:?}");
            assert_eq!(verdicts[whole], "unchanged");
        }
    }
}

#[test]
fn a_malformed_run_document_is_reported_by_its_rule_and_stops_the_comparison() {
    let corpus = corpus("run");
    let sandbox = one_run_each(&corpus);
    for file in &corpus {
        put(&sandbox, &format!("{}/run.json", file.stem), &file.bytes);
    }
    let rules = rules(&sandbox, &corpus.iter().map(|file| file.stem.as_str()).collect::<Vec<_>>());
    for Malformed { stem, rule, .. } in &corpus {
        let document = format!("{stem}/run.json");
        assert!(rules[&document].contains(rule), "{stem}: {rules:?}");
        let finished = sandbox.run(["compare", BASELINE, stem, "--no-write-back"]);
        assert_eq!(finished.code, Some(3), "{stem}: {finished}");
        assert!(finished.stderr.starts_with(&format!("error: `{document}` is not a valid document")), "{finished}");
        assert!(!sandbox.path("report").exists(), "{stem}");
    }
}

#[test]
fn a_malformed_manifest_is_reported_by_its_rule_and_affects_no_case() {
    let corpus = corpus("manifest");
    let mut sandbox = one_run_each(&corpus);
    for file in &corpus {
        sandbox = sandbox.with_file(&format!("{}/assets/note.txt", file.stem), "hello");
        put(&sandbox, &format!("{}/assets/manifest.json", file.stem), &file.bytes);
    }
    let rules = rules(&sandbox, &corpus.iter().map(|file| file.stem.as_str()).collect::<Vec<_>>());
    for Malformed { stem, rule, .. } in &corpus {
        assert!(rules[&format!("{stem}/assets/manifest.json")].contains(rule), "{stem}: {rules:?}");
        let (finished, verdicts) = verdicts(&sandbox, stem);
        assert_eq!(finished.code, Some(0), "{stem}: {finished}");
        assert!(verdicts.values().all(|verdict| verdict == "unchanged"), "{stem}: {verdicts:?}");
    }
}

const CASES: &str = r#"[{"id": "c1", "input": {"user": "go"}}]"#;

#[test]
fn a_new_id_that_looks_like_an_option_or_a_formula_is_refused_before_any_request() {
    let agent = Agent::start(|_case| Reply::json(&minimal_answer()));
    let url = agent.base_url();
    let sandbox = Sandbox::new().with_file("good.json", CASES);
    for id in ["-rf", "=1+1", "+1", "@sum"] {
        let sandbox = Sandbox::new().with_file("cases.json", &CASES.replace("c1", id)).with_file("good.json", CASES);
        let run = ["run", "--side", "new", "--base-url", &url, "--cases"];
        let run_id = format!("--run-id={id}");
        let merged = format!("runs/{id}");
        for arguments in [
            [&run[..], &["cases.json"]].concat(),
            [&run[..], &["cases.json", "--dry-run"]].concat(),
            [&run[..], &["good.json", &run_id]].concat(),
            vec!["accept", "--reason", "ok", &run_id],
            vec!["export-run", "log", "--side", "new", &run_id],
            vec!["export-run", "log", "--side", "new", "--run-id", "r", &format!("--case-id={id}")],
        ] {
            let refused = sandbox.run(&arguments);
            assert_eq!(refused.code, Some(2), "{arguments:?}: {refused}");
            assert!(refused.stderr.contains(&format!("the id starts with `{}`", &id[..1])), "{arguments:?}: {refused}");
        }
        assert!(!sandbox.path("runs").exists() && !sandbox.path(&merged).exists());
    }
    assert_eq!(agent.requests().len(), 0);

    let sharded =
        ["run", "--side", "new", "--base-url", &url, "--cases", "good.json", "--run-id", "n", "--shard", "1/1"];
    assert_eq!(sandbox.run(sharded).code, Some(0));
    let refused = sandbox.run(["merge", "runs/new/n-s1of1", "--out", "runs/new/=n"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("the id starts with `=`"), "{refused}");
}

#[test]
fn existing_files_with_such_ids_are_read_compared_and_accepted() {
    let agent = Agent::start(|_case| Reply::json(&minimal_answer()));
    let url = agent.base_url();
    let mut sandbox = Sandbox::new().with_file("cases.json", CASES);
    let run = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url];
    assert_eq!(sandbox.run(run.iter().chain(&["--run-id", "r1", "--no-keep-requests"])).code, Some(0));
    for (path, bytes) in files_below(&sandbox.path("runs/new/r1")) {
        let text = String::from_utf8(bytes).unwrap().replace("\"c1\"", "\"-c1\"").replace("\"r1\"", "\"=r1\"");
        let path = path.as_str().replace("c1", "-c1");
        sandbox = sandbox.with_file(&format!("old/new/=r1/{path}"), &text);
    }
    let validated = sandbox.run(["validate", "old"]);
    assert_eq!(validated.code, Some(0), "{validated}");
    let accepted = sandbox.run(["accept", "--runs", "old", "--reason", "ok", "old/new/=r1"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    let old_cases = CASES.replace("c1", "-c1");
    let sandbox = sandbox.with_file("old-cases.json", &old_cases);
    let compared = sandbox.run(["compare", "--runs", "old", "--cases", "old-cases.json"]);
    assert!(matches!(compared.code, Some(0 | 1)), "{compared}");
    assert!(sandbox.path("report/cases/-c1.html").is_file());
}
