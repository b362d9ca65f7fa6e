//! `history`: finds the reports of many nights and shows them on one page.

use camino::Utf8Path;
use counterproof_tests::{Sandbox, files_below};
use serde_json::json;

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
    assert!(html.contains("The gate passed in 1 of 3 evaluations") && html.contains("flips</span> 2"), "{html}");
    let links: Vec<_> = html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(
        links.contains(&"../nights/three/index.html") && links.contains(&"../nights/one/evaluation.json"),
        "{links:?}"
    );
    for link in links.into_iter().filter(|link| !link.starts_with('#')) {
        assert!(sandbox.path("history").join(link).is_file(), "{link}");
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
    assert!(html.contains("3 evaluations"), "{html}");
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
