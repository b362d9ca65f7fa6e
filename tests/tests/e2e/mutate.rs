//! `counterproof mutate` and `counterproof calibrate`, on the sample runs.

use camino::Utf8Path;
use counterproof_tests::{Finished, Sandbox, files_below};
use serde_json::{Value, json};

const KINDS: [&str; 12] = [
    "drop",
    "repeat",
    "reorder",
    "id",
    "amount",
    "recipient",
    "evidence",
    "refusal",
    "leak",
    "language",
    "cut",
    "quota",
];

const BASELINE: &str = "runs/baseline/sample-baseline";

/// The sample runs and their cases.
fn sample() -> Sandbox {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs");
    let mut sandbox = Sandbox::new();
    for (name, bytes) in files_below(&folder) {
        sandbox = sandbox.with_file(name.as_str(), &String::from_utf8(bytes).unwrap());
    }
    sandbox
}

fn kinds(finished: &Finished) -> Vec<Value> {
    let printed: Value = serde_json::from_str(&finished.stdout).unwrap();
    printed["kinds"].as_array().unwrap().clone()
}

#[test]
fn mutate_prints_a_line_for_each_kind_and_changes_no_file() {
    let sandbox = sample();
    let before = files_below(sandbox.root());
    let finished = sandbox.run(["mutate", "--cases", "cases.json"]);
    let lines: Vec<_> = finished.stdout.lines().take(12).collect();
    for (line, kind) in lines.iter().zip(KINDS) {
        assert!(line.starts_with(kind) && line.contains(" killed "), "{finished}");
    }
    // The agent is declared deterministic, so that the gate needs no expectation to find a fault.
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(!finished.stdout.contains("survived"), "{finished}");
    assert!(lines[6].contains("killed 3 of 3"), "lost evidence: {finished}");
    assert_eq!(files_below(sandbox.root()), before);
}

#[test]
fn the_drafts_of_a_kind_kill_it_when_they_are_copied_into_the_cases_file() {
    // Without these rules, the gate leaves such faults to expectations.
    let limits = "[gate]\nbehaviour_changed = \"none\"\ntext_faults = \"none\"\n";
    let sandbox = sample().with_file("counterproof.toml", limits);
    let finished = sandbox.run(["mutate", BASELINE, "--cases", "cases.json", "--json"]);
    let mut cases = sandbox.json("cases.json");
    let mut undrafted = Vec::new();
    for kind in kinds(&finished) {
        let drafts = kind["draft"].as_array().unwrap();
        for case in kind["survived"].as_array().unwrap() {
            match drafts.iter().find(|draft| draft["id"] == *case) {
                Some(draft) => add(&mut cases, draft),
                None => undrafted.push((kind["kind"].clone(), case.clone())),
            }
        }
    }
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(undrafted.is_empty(), "{undrafted:?}");
    let sandbox = sandbox.with_file("cases.json", &cases.to_string());
    let finished = sandbox.run(["mutate", BASELINE, "--cases", "cases.json", "--json"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(kinds(&finished).iter().all(|kind| kind["survived"] == json!([]) && kind["draft"] == json!([])));
}

/// Copies the expectations of a draft into its case.
fn add(cases: &mut Value, draft: &Value) {
    let case = cases.as_array_mut().unwrap().iter_mut().find(|case| case["id"] == draft["id"]).unwrap();
    let expect = &mut case["expected"]["expect"];
    if expect.is_null() {
        *expect = json!([]);
    }
    expect.as_array_mut().unwrap().extend(draft["expected"]["expect"].as_array().unwrap().iter().cloned());
}

#[test]
fn one_run_of_an_agent_that_varies_confirms_nothing_and_mutate_says_so() {
    let sandbox = sample();
    let mut run = sandbox.json(&format!("{BASELINE}/run.json"));
    run.as_object_mut().unwrap().remove("deterministic");
    let sandbox = sandbox.with_file(&format!("{BASELINE}/run.json"), &run.to_string());
    let finished = sandbox.run(["mutate", "--cases", "cases.json"]);
    assert_eq!(finished.code, Some(1), "{finished}");
    assert!(finished.stderr.contains("one run of an agent that varies confirms nothing"), "{finished}");
}

#[test]
fn calibrate_measures_each_design_that_the_runs_allow() {
    let mut sandbox = sample();
    let folder = sandbox.path(BASELINE);
    let files = files_below(&folder);
    for number in 2..=4 {
        for (name, bytes) in &files {
            let mut text = String::from_utf8(bytes.clone()).unwrap();
            if name == "run.json" {
                text = text.replace("\"sample-baseline\"", &format!("\"sample-{number}\""));
            }
            sandbox = sandbox.with_file(&format!("runs/baseline/sample-{number}/{name}"), &text);
        }
    }
    let runs = ["sample-baseline", "sample-2", "sample-3", "sample-4"].map(|id| format!("runs/baseline/{id}"));
    let arguments = |more: &[&str]| {
        let named = ["calibrate"].into_iter().chain(runs.iter().map(String::as_str));
        named.chain(["--cases", "cases.json"]).chain(more.iter().copied()).map(str::to_owned).collect::<Vec<_>>()
    };
    let finished = sandbox.run(arguments(&[]));
    assert_eq!(finished.code, Some(0), "{finished}");
    let lines: Vec<_> = finished.stdout.lines().filter(|line| line.contains("false alarms 0.0 % (0.0–")).collect();
    assert_eq!(lines.len(), 3, "1/1, 2/2 and a confirmation: {finished}");
    let printed: Value = serde_json::from_str(&sandbox.run(arguments(&["--json"])).stdout).unwrap();
    let designs: Vec<_> = printed["false_alarms"].as_array().unwrap().iter().map(|it| it["design"].clone()).collect();
    assert_eq!(designs, ["1/1", "2/2", "2/1 + confirm 1"]);
    let runs: Vec<_> = printed["smallest_fall"].as_array().unwrap().iter().map(|it| it["runs"].clone()).collect();
    assert_eq!((runs, &printed["noisy"]), (vec![json!(1), json!(3), json!(5), json!(10)], &json!([])));
}

#[test]
fn a_calibration_needs_two_runs() {
    let finished = sample().run(["calibrate", BASELINE]);
    assert_eq!(finished.code, Some(2), "{finished}");
    assert!(finished.stderr.contains("at least two runs"), "{finished}");
}
