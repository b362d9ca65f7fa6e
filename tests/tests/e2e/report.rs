//! `report` and `history`, and the exports that `compare` writes next to the pages.

use camino::Utf8Path;
use counterproof_tests::{Sandbox, files_below};
use serde_json::json;

const BASELINE: &str = "runs/baseline/sample-baseline";
const NEW: &str = "runs/new/sample-new";

/// Creates a sandbox with the checked-in sample.
fn sample() -> Sandbox {
    Sandbox::new().with_sample_runs(".")
}

const ADDRESS: &str = "https://ci.example/report/";

fn compare(sandbox: &Sandbox, more: &[&str]) {
    let known = ["compare", "--cases", "cases.json", "--report-url", ADDRESS, "--out", "first"];
    let compared = sandbox.run(known.iter().chain(more));
    assert_eq!(compared.code, Some(1), "{compared}");
}

fn rerender(sandbox: &Sandbox, more: &[&str]) {
    let runs = ["--cases", "cases.json", "--report-url", ADDRESS, "--out", "second"];
    let known = ["report", "first/evaluation.json"];
    let reported = sandbox.run(known.iter().chain(&runs).chain(more));
    assert_eq!(reported.code, Some(0), "{reported}");
    assert_eq!(reported.stdout, "report: second/index.html\n");
}

#[test]
fn the_evaluation_and_its_runs_give_the_same_report() {
    let rules = "[[compare.rule]]\ntool = \"refund_*\"\npath = \"/**/amount\"\nignore = true\n";
    for (config, pages) in [("", "all"), ("", "changed"), ("[gate]\nregressed = 9\n", "none"), (rules, "all")] {
        let sandbox = sample().with_file("rules.toml", config);
        let usual = ["--pages", pages, "--config", "rules.toml"];
        let compared = sandbox.run(["validate", "runs"]);
        assert_eq!(compared.code, Some(0), "{compared}");
        compare(&sandbox, &usual);
        rerender(&sandbox, &[&usual[..], &["--baseline", BASELINE, "--new", NEW]].concat());
        let (first, second) = (files_below(&sandbox.path("first")), files_below(&sandbox.path("second")));
        assert_eq!(
            first.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            second.iter().map(|(path, _)| path).collect::<Vec<_>>()
        );
        for ((path, first), (_, second)) in first.iter().zip(&second) {
            assert!(first == second, "{path} differs");
        }
    }
}

#[test]
fn repeats_are_rendered_for_any_order_of_their_folders() {
    let mut sandbox = sample();
    for (side, from) in [("baseline", BASELINE), ("new", NEW)] {
        for (path, bytes) in files_below(&sandbox.path(from)) {
            let text =
                String::from_utf8(bytes).unwrap().replace(&format!("\"sample-{side}\""), &format!("\"twin-{side}\""));
            sandbox = sandbox.with_file(&format!("runs/{side}/twin-{side}/{path}"), &text);
        }
    }
    let (twin_baseline, twin_new) = ("runs/baseline/twin-baseline", "runs/new/twin-new");
    let compared =
        sandbox.run(["compare", "--out", "first", "--baseline", BASELINE, twin_baseline, "--new", NEW, twin_new]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let runs = ["--out", "second", "--baseline", twin_baseline, BASELINE, "--new", twin_new, NEW];
    let reported = sandbox.run(["report", "first/evaluation.json"].iter().chain(&runs));
    assert_eq!(reported.code, Some(0), "{reported}");
    assert!(files_below(&sandbox.path("first")) == files_below(&sandbox.path("second")));
}

#[test]
fn a_report_without_its_runs_has_all_pages_except_those_of_cases() {
    let sandbox = sample();
    compare(&sandbox, &[]);
    rerender(&sandbox, &[]);
    let names: Vec<_> = files_below(&sandbox.path("second")).into_iter().map(|(path, _)| path).collect();
    for name in ["index.html", "summary.md", "junit.xml", "results.sarif", "evaluation.json"] {
        assert!(names.iter().any(|path| path == name), "{name}");
    }
    assert!(names.iter().all(|path| !path.starts_with("cases") && !path.starts_with("artifacts")), "{names:?}");
    let read = |path: &str| std::fs::read_to_string(sandbox.path(path)).unwrap();
    assert_eq!(read("first/evaluation.json"), read("second/evaluation.json"));
    let (index, summary) = (read("second/index.html"), read("second/summary.md"));
    assert!(!index.contains("href=\"cases/") && index.contains("refund_damaged_001"), "{index}");
    assert!(!summary.contains("/cases/") && summary.contains("`refund_damaged_001`"), "{summary}");
    assert_eq!(read("first/junit.xml"), read("second/junit.xml"));
    assert_eq!(read("first/results.sarif"), read("second/results.sarif"));
}

#[test]
fn a_report_can_replace_itself() {
    let sandbox = sample();
    compare(&sandbox, &[]);
    let bare = sandbox.run(["report", "first/evaluation.json", "--out", "first"]);
    assert_eq!(bare.code, Some(2), "its cases' pages would be lost: {bare}");
    let whole = ["report", "first/evaluation.json", "--out", "first", "--baseline", BASELINE, "--new", NEW];
    let reported = sandbox.run(whole);
    assert_eq!(reported.code, Some(0), "{reported}");
    assert_eq!(sandbox.json("first/evaluation.json")["counts"]["regressed"], 3);
    assert!(sandbox.path("first/artifacts").is_dir());
}

#[test]
fn other_files_than_the_evaluation_and_its_runs_are_refused() {
    let sandbox = sample();
    compare(&sandbox, &[]);
    let other = sandbox.run(["report", "first/evaluation.json", "--out", "x", "--baseline", NEW, "--new", NEW]);
    insta::assert_snapshot!(other, @"
    exit code: 2
    --- stderr
    error: `runs/new/sample-new` contains the run sample-new, but the baseline of the evaluation is sample-baseline
    hint: pass the run folders that were compared; to compare others, use `counterproof compare`
    ");
    let document = sandbox.run(["report", "cases.json", "--out", "x"]);
    assert_eq!(document.code, Some(3), "{document}");
    let missing = sandbox.run(["report", "none.json", "--out", "x"]);
    assert_eq!(missing.code, Some(3), "{missing}");
    let folder = sandbox.run(["report", "first", "--out", "x"]);
    insta::assert_snapshot!(folder, @"
    exit code: 3
    --- stderr
    error: failed to read `first`
      caused by: it is a folder; a regular file is needed here
    hint: pass the file in this folder: `counterproof report first/evaluation.json`
    ");
    let other_folder = sandbox.run(["report", "runs", "--out", "x"]);
    insta::assert_snapshot!(other_folder, @"
    exit code: 3
    --- stderr
    error: failed to read `runs`
      caused by: it is a folder; a regular file is needed here
    hint: pass an evaluation.json: `counterproof compare` writes one into the report and into each run folder
    ");
    let half = sandbox.run(["report", "first/evaluation.json", "--out", "x", "--new", NEW]);
    assert_eq!(half.code, Some(2), "{half}");
    assert!(!sandbox.path("x").exists());
    let url = sandbox.run(["report", "first/evaluation.json", "--report-url", "javascript:alert(1)"]);
    assert_eq!(url.code, Some(2), "{url}");
}

#[test]
fn the_summary_is_appended_to_the_step_summary() {
    let summary = |sandbox: &Sandbox| std::fs::read_to_string(sandbox.path("step.md")).unwrap();
    let compare = |sandbox: &Sandbox| {
        let compared = sandbox.run(["compare", "--cases", "cases.json"]);
        assert_eq!(compared.code, Some(1), "{compared}");
        compared
    };
    let new = sample().with_variable("GITHUB_STEP_SUMMARY", "step.md");
    let said = compare(&new);
    assert_eq!(said.stderr, "");
    assert_eq!(summary(&new), std::fs::read_to_string(new.path("report/summary.md")).unwrap());

    let begun = sample().with_variable("GITHUB_STEP_SUMMARY", "step.md").with_file("step.md", "# Earlier");
    compare(&begun);
    assert_eq!(summary(&begun), format!("# Earlier\n\n{}", summary(&new)));
}

#[test]
fn a_full_step_summary_gets_a_shorter_summary_or_none() {
    let full = 1024 * 1024;
    for (left, has_some) in [(1_000, true), (40, false), (0, false)] {
        let before = "x".repeat(full - left);
        let sandbox = sample().with_variable("GITHUB_STEP_SUMMARY", "step.md").with_file("step.md", &before);
        let compared = sandbox.run(["compare", "--cases", "cases.json"]);
        assert_eq!(compared.code, Some(1), "{compared}");
        let after = std::fs::read_to_string(sandbox.path("step.md")).unwrap();
        assert!(after.len() <= full, "{}", after.len());
        assert_eq!(after[before.len()..].contains("Gate failed"), has_some);
        assert_eq!(compared.stderr.contains("warning: cannot append to the step summary"), !has_some, "{compared}");
    }
}

#[test]
fn a_step_summary_that_cannot_be_written_does_not_change_the_result() {
    for path in ["runs", "nowhere/step.md"] {
        let sandbox = sample().with_variable("GITHUB_STEP_SUMMARY", path);
        let compared = sandbox.run(["compare", "--cases", "cases.json"]);
        assert_eq!(compared.code, Some(1), "{compared}");
        assert!(compared.stderr.contains("warning: cannot append to the step summary"), "{compared}");
        assert!(sandbox.path("report/summary.md").is_file());
    }
}

#[test]
fn a_document_of_another_kind_is_rejected_without_rust_types() {
    let sandbox = sample().with_file("list.json", "[1]");
    insta::assert_snapshot!(sandbox.run(["report", "runs/new/sample-new/run.json"]), @"
    exit code: 3
    --- stderr
    error: `runs/new/sample-new/run.json` is a `run.v1` document, not an evaluation
    hint: pass an evaluation.json: `counterproof compare` writes one into the report and into each run folder
    ");
    insta::assert_snapshot!(sandbox.run(["report", "list.json"]), @"
    exit code: 3
    --- stderr
    error: `list.json` is not a valid document
      caused by: invalid type: sequence, expected an object with the fields of an evaluation at line 1 column 0
    hint: list all violations with `counterproof validate list.json`
    ");
}

/// Three nights of the checked-in sample, each with its report. The second night has no problems.
fn nights() -> Sandbox {
    let samples = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-runs");
    let mut sandbox = Sandbox::new();
    let runs = [samples.join("runs/baseline/sample-baseline"), samples.join("runs/new/sample-new")];
    let compared = sandbox.run(["compare", runs[0].as_str(), runs[1].as_str(), "--no-write-back"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let evaluation = sandbox.json("report/evaluation.json");
    for (number, id) in ["one", "two", "three"].into_iter().enumerate() {
        let mut night = evaluation.clone();
        night["new"]["run_id"] = json!(id);
        night["new"]["generated_at"] = json!(format!("2026-11-0{}T02:00:00Z", number + 1));
        if id == "two" {
            night["gate"]["outcome"] = json!("passed");
            for case in night["cases"].as_array_mut().unwrap() {
                case["verdict"] = json!("unchanged");
                case["expectations"] = json!([]);
            }
        }
        sandbox = sandbox.with_file(&format!("nights/{id}/evaluation.json"), &night.to_string());
    }
    sandbox.with_file("nights/three/index.html", "<!doctype html>")
}

fn page(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.path("history/index.html")).unwrap()
}

#[test]
fn nights_below_a_folder_become_a_page_with_links_to_them() {
    let sandbox = nights();
    let finished = sandbox.run(["history", "nights"]);
    insta::assert_snapshot!(finished, @r"
    exit code: 0
    --- stdout
    history of 3 evaluations: history/index.html
    ");
    let html = page(&sandbox);
    assert!(html.contains("The gate passed in 1 of 3 nights") && html.contains(", 2 changes"), "{html}");
    let links: Vec<_> = html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(
        links.contains(&"../nights/three/index.html") && links.contains(&"../nights/one/evaluation.json"),
        "{links:?}"
    );
    for link in links.into_iter().filter(|link| !link.starts_with('#')) {
        let file = link.split('#').next().unwrap();
        assert!(sandbox.path("history").join(file).is_file(), "{link}");
    }
    // The same nights, named one by one in another order, over an existing history.
    let before = files_below(&sandbox.path("history"));
    sandbox.run(["history", "nights/three", "nights/one", "nights/two"]);
    assert!(files_below(&sandbox.path("history")) == before);
}

#[test]
fn unreadable_reports_are_named_and_the_others_are_shown() {
    let sandbox =
        nights().with_file("nights/torn/evaluation.json", "{\"schema_version\"").with_file("nights/empty/x", "");
    let finished = sandbox.run(["history", "nights", "nights/one", "nowhere"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let html = page(&sandbox);
    for (path, why) in [
        ("nights/torn/evaluation.json", ": not a valid document: EOF"),
        ("nights/empty", "no evaluation.json"),
        ("nights/one/evaluation.json", "same comparison as in `nights/one`"),
        ("nowhere", "No such file or directory"),
    ] {
        let told = format!("skipped `{path}`");
        let line = finished.stderr.lines().find(|line| line.contains(&told)).unwrap_or_else(|| panic!("{finished}"));
        assert!(line.contains(why) && line.matches(path).count() == 1, "{line}");
        assert!(html.contains(&told), "{path}: {html}");
    }
    assert!(html.contains("3 nights"), "{html}");
}

#[test]
fn an_empty_history_and_a_foreign_target_folder_are_refused() {
    let sandbox = nights().with_file("mine/notes.txt", "mine");
    let nothing = sandbox.run(["history", "mine"]);
    assert_eq!(nothing.code, Some(2), "{nothing}");
    assert!(nothing.stderr.contains("no evaluation.json in any of the folders"), "{nothing}");
    let taken = sandbox.run(["history", "nights", "--out", "mine"]);
    assert_eq!(taken.code, Some(2), "{taken}");
    let report = sandbox.run(["history", "nights", "--out", "report"]);
    assert_eq!(report.code, Some(2), "a report is no history: {report}");
    assert_eq!(files_below(&sandbox.path("mine")).len(), 1);
}
