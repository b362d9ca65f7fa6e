//! `export facts` and `history --facts`: the page of a history from Parquet files equals that from the evaluations.

use counterproof_store::write::{Durability, write};
use counterproof_tests::{Finished, Sandbox, files_below};
use insta::assert_snapshot;

/// Creates a sandbox with the runs of the checked-in sample.
fn sample() -> Sandbox {
    Sandbox::new().with_sample_runs(".")
}

const BASELINE: &str = "runs/baseline/sample-baseline";
const NEW: &str = "runs/new/sample-new";

fn compare(sandbox: &Sandbox, arguments: &[&str]) {
    let compared = sandbox.run(["compare", "--no-write-back", "--cases", "cases.json"].iter().chain(arguments));
    assert!(matches!(compared.code, Some(0 | 1)), "{compared}");
}

#[track_caller]
fn assert_done(finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished}");
}

fn read(sandbox: &Sandbox, path: &str) -> String {
    std::fs::read_to_string(sandbox.path(path)).unwrap()
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let mut names: Vec<_> = files_below(&sandbox.path("facts")).into_iter().map(|(path, _)| path.to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_history_from_facts_equals_that_from_the_reports() {
    let sandbox = sample();
    compare(&sandbox, &[BASELINE, NEW, "--out", "nights/1", "--pages", "all"]);
    compare(&sandbox, &[NEW, BASELINE, "--out", "nights/2"]);
    assert_snapshot!(sandbox.run(["export", "facts", "nights", "--out", "facts"]), @r"
    exit code: 0
    --- stdout
    facts of 2 comparisons: facts
    ");
    let first = names(&sandbox);
    assert_eq!(first.len(), 2, "{first:?}");
    // A second export replaces its files.
    assert_done(&sandbox.run(["export", "facts", "nights/2", "--out", "facts"]));
    assert_eq!(names(&sandbox), first);

    assert_done(&sandbox.run(["history", "nights", "--out", "from-reports"]));
    assert_done(&sandbox.run(["history", "--facts", "facts", "--out", "from-facts"]));
    let page = read(&sandbox, "from-facts/index.html");
    assert_eq!(page, read(&sandbox, "from-reports/index.html"));
    assert!(page.contains("../nights/1/cases/"), "the cases of the night are linked");

    // Without the reports, the same page has no links to them.
    std::fs::remove_dir_all(sandbox.path("nights")).unwrap();
    assert_done(&sandbox.run(["history", "--facts", "facts", "--out", "from-facts"]));
    let alone = read(&sandbox, "from-facts/index.html");
    assert!(!alone.contains("../nights") && alone.contains("cases are failing now"));
}

#[test]
fn each_of_several_runs_has_rows_if_it_is_found() {
    let sandbox = sample();
    for side in ["baseline", "new"] {
        for (path, bytes) in files_below(&sandbox.path(&format!("runs/{side}/sample-{side}"))) {
            let text =
                String::from_utf8(bytes).unwrap().replace(&format!("\"sample-{side}\""), &format!("\"{side}-2\""));
            let path = sandbox.path(&format!("runs/{side}/{side}-2")).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            write(&path, text.as_bytes(), Durability::Cached).unwrap();
        }
    }
    let baseline = ["--baseline", BASELINE, "runs/baseline/baseline-2"];
    let new = ["--new", NEW, "runs/new/new-2"];
    compare(&sandbox, &[&baseline[..], &new, &["--out", "report"]].concat());
    assert_snapshot!(sandbox.run(["export", "facts", "report", "--out", "facts"]), @r"
    exit code: 0
    --- stdout
    facts of 1 comparison: facts
    ");
    let size = || files_below(&sandbox.path("facts")).iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let by_run = size();
    assert_snapshot!(sandbox.run(["export", "facts", "report", "--out", "facts", "--runs", "elsewhere"]), @r"
    exit code: 0
    --- stdout
    facts of 1 comparison: facts
    --- stderr
    warning: `report`: the run `sample-baseline` was not found; its side has the medians of all runs
    hint: pass the folder that holds the sides with `--runs`
    ");
    assert!(size() < by_run);
    assert_done(&sandbox.run(["history", "report", "--out", "from-report"]));
    assert_done(&sandbox.run(["history", "--facts", "facts", "--out", "from-facts"]));
    assert_eq!(read(&sandbox, "from-facts/index.html"), read(&sandbox, "from-report/index.html"));
}

#[test]
fn unreadable_facts_are_left_out_with_what_to_do() {
    let sandbox = sample();
    assert_snapshot!(sandbox.run(["history", "--facts", "none"]), @r"
    exit code: 2
    --- stderr
    error: cannot read the folder `none`: No such file or directory (os error 2)
    ");
    assert_snapshot!(sandbox.run(["history", "--facts", "runs"]), @r"
    exit code: 2
    --- stderr
    error: no Parquet file in `runs`
    hint: write facts of your reports with `counterproof export facts DIR --out runs`
    ");
    compare(&sandbox, &[BASELINE, NEW, "--out", "nights/1"]);
    assert_done(&sandbox.run(["export", "facts", "nights", "--out", "facts"]));
    let whole = std::fs::read(sandbox.path(&format!("facts/{}", names(&sandbox)[0]))).unwrap();
    for (name, bytes) in [("cut", &whole[..whole.len() / 2]), ("copy", &whole[..]), ("text", b"not Parquet")] {
        write(&sandbox.path(&format!("facts/{name}.parquet")), bytes, Durability::Cached).unwrap();
    }
    let history = sandbox.run(["history", "--facts", "facts"]);
    assert_snapshot!(history, @r"
    exit code: 0
    --- stdout
    history of 1 evaluation: history/index.html
    --- stderr
    warning: skipped `facts/copy.parquet`: same comparison as in `facts/20260303T080000Z--sample-new--sample-baseline.parquet`
    warning: skipped `facts/cut.parquet`: not a readable Parquet file: Parquet error: Invalid Parquet file. Corrupt footer
    warning: skipped `facts/text.parquet`: not a readable Parquet file: Parquet error: Invalid Parquet file. Corrupt footer
    hint: write the facts of these nights again with `counterproof export facts`
    ");
}
