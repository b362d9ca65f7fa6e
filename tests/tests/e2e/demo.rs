//! The demo, its agent, and the sample runs that are recorded from them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_tests::{Sandbox, files_below};
use serde_json::Value;

/// The planted change of each case, and the expected verdict.
const PLANTED: [(&str, &str); 10] = [
    ("order_history_001", "unchanged"),
    ("return_policy_001", "changed"),
    ("refund_damaged_001", "regressed"),
    ("cancel_order_001", "regressed"),
    ("address_change_001", "regressed"),
    ("invoice_email_001", "changed"),
    ("stock_check_001", "broken"),
    ("gift_advice_001", "broken"),
    ("loyalty_points_001", "broken"),
    ("delivery_slot_001", "recovered"),
];

fn after_the_demo() -> Sandbox {
    let sandbox = Sandbox::new();
    let demo = sandbox.run(["demo"]);
    assert_eq!(demo.code, Some(0), "{demo}");
    sandbox
}

fn verdicts(evaluation: &Value) -> Vec<(&str, &str)> {
    let cases = evaluation["cases"].as_array().unwrap();
    cases.iter().map(|case| (case["case_id"].as_str().unwrap(), case["verdict"].as_str().unwrap())).collect()
}

#[test]
fn the_demo_works_in_an_empty_folder_with_the_planted_verdicts() {
    let sandbox = Sandbox::new();
    let demo = sandbox.run(["demo"]);
    assert_eq!(demo.code, Some(0), "{demo}");
    assert!(demo.stdout.contains("Demo complete"), "{demo}");
    assert!(demo.stdout.ends_with("Open the report: counterproof-demo/report/index.html\n"), "{demo}");
    assert!(sandbox.path("counterproof-demo/report/index.html").is_file());

    let evaluation = sandbox.json("counterproof-demo/report/evaluation.json");
    assert_eq!(verdicts(&evaluation), PLANTED);
    assert_eq!(evaluation["gate"]["passed"], false);
}

#[test]
fn the_demo_can_be_run_again_in_the_same_folder() {
    let sandbox = after_the_demo();
    let again = sandbox.run(["demo", "--out", "counterproof-demo"]);
    assert_eq!(again.code, Some(0), "{again}");
    assert_eq!(sandbox.path("counterproof-demo/runs/new").read_dir_utf8().unwrap().count(), 2);
}

#[test]
fn files_that_are_not_a_demo_are_left_unchanged() {
    let sandbox = Sandbox::new().with_file("taken", "a file").with_file("mine/cases.json", "[]");
    for out in ["taken", "mine"] {
        let demo = sandbox.run(["demo", "--out", out]);
        assert_eq!(demo.code, Some(2), "{demo}");
        assert!(demo.stderr.contains(&format!("`{out}` exists")), "{demo}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("mine/cases.json")).unwrap(), "[]");
}

#[test]
fn the_files_of_the_demo_are_valid_portable_and_movable() {
    let sandbox = after_the_demo();
    assert_whole(&sandbox, "counterproof-demo");

    let moved = sandbox.path("elsewhere/deep");
    counterproof_store::write::create_folder(moved.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "moving the folder is what is tested")]
    std::fs::rename(sandbox.path("counterproof-demo"), &moved).unwrap();
    assert_whole(&sandbox, "elsewhere/deep");

    let compared = sandbox.run([
        "compare",
        "--runs",
        "elsewhere/deep/runs",
        "--cases",
        "elsewhere/deep/cases.json",
        "--out",
        "elsewhere/again",
    ]);
    assert_eq!(compared.code, Some(1), "{compared}");
    assert_eq!(verdicts(&sandbox.json("elsewhere/again/evaluation.json")), PLANTED);
}

/// Asserts that a folder of runs and report is valid and complete.
fn assert_whole(sandbox: &Sandbox, folder: &str) {
    let validated = sandbox.run(["validate", &format!("{folder}/runs")]);
    assert_eq!(validated.code, Some(0), "{validated}");

    let files = files_below(&sandbox.path(folder));
    let workspace = workspace();
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let foreign = [Some(sandbox.root().as_str()), Some(workspace.as_str()), home.as_deref(), Some("file://")];
    for (path, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        for name in foreign.into_iter().flatten() {
            assert!(!text.contains(name), "{path} names {name}");
        }
    }
    let report = sandbox.path(folder).join("report");
    let pages: Vec<Utf8PathBuf> = files_below(&report)
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.extension() == Some("html") && !path.starts_with("artifacts"))
        .collect();
    assert_eq!(pages.iter().filter(|page| page.starts_with("cases")).count(), 10, "{pages:?}");
    for page in pages {
        assert_links_resolve(&report, &page);
    }
}

/// Asserts that every link and resource of a page is a file of the report, and that every anchor exists.
fn assert_links_resolve(report: &Utf8Path, page: &Utf8Path) {
    let html = std::fs::read_to_string(report.join(page)).unwrap();
    let mut links = 0;
    for attribute in ["href=\"", "src=\""] {
        for rest in html.split(attribute).skip(1) {
            let link = rest.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
            links += 1;
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            assert!(!path.starts_with('/') && !path.contains(':'), "{page}: {link} leaves the report");
            let target =
                if path.is_empty() { report.join(page) } else { report.join(page).parent().unwrap().join(path) };
            let resolved = target.canonicalize_utf8().unwrap_or_else(|error| panic!("{page}: {link}: {error}"));
            assert!(resolved.starts_with(report.canonicalize_utf8().unwrap()), "{page}: {link} leaves the report");
            if !fragment.is_empty() {
                let target = std::fs::read_to_string(&resolved).unwrap();
                assert!(target.contains(&format!("id=\"{fragment}\"")), "{page}: {link}: no such place");
            }
        }
    }
    assert!(links > 1, "{page} has no links");
}

fn workspace() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn the_sample_runs_are_valid_and_compare_as_documented() {
    let samples = workspace().join("sample-runs");
    let sandbox = Sandbox::new();
    let validated = sandbox.run(["validate", samples.join("runs").as_str()]);
    assert_eq!(validated.code, Some(0), "{validated}");

    let compared = sandbox.run([
        "compare",
        samples.join("runs/baseline/sample-baseline").as_str(),
        samples.join("runs/new/sample-new").as_str(),
        "--cases",
        samples.join("cases.json").as_str(),
        "--no-write-back",
    ]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let evaluation = sandbox.json("report/evaluation.json");
    assert_eq!(verdicts(&evaluation), PLANTED);
    let readme = std::fs::read_to_string(samples.join("README.md")).unwrap();
    for (case, verdict) in PLANTED {
        assert!(readme.contains(&format!("| `{case}` | {verdict} |")), "{case}");
    }
}

/// The agent, served by the program until it is dropped.
struct Served {
    process: Child,
    base_url: String,
}

impl Served {
    fn start(sandbox: &Sandbox, variant: &str) -> Self {
        let mut command = sandbox.command(["demo-agent", "--listen", "127.0.0.1:0", "--variant", variant]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base_url = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(base_url.starts_with("http://127.0.0.1:"), "{line}");
        Self { process, base_url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_agent_alone_answers_the_runner() {
    let sandbox = Sandbox::new();
    let agent = Served::start(&sandbox, "baseline");
    let cases = workspace().join("sample-runs/cases.json");
    let run = sandbox.run([
        "run",
        "--cases",
        cases.as_str(),
        "--base-url",
        &agent.base_url,
        "--side",
        "baseline",
        "--only",
        "order_history_001,refund_damaged_001",
    ]);
    assert_eq!(run.code, Some(0), "{run}");
    let validated = sandbox.run(["validate", "runs"]);
    assert_eq!(validated.code, Some(0), "{validated}");
}

#[cfg(unix)]
#[test]
fn the_agent_exits_cleanly_when_it_is_interrupted() {
    let sandbox = Sandbox::new();
    for signal in ["-INT", "-TERM"] {
        let mut agent = Served::start(&sandbox, "new");
        let sent = Command::new("kill").args([signal, &agent.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(agent.process.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn an_address_in_use_is_reported_with_a_remedy() {
    let sandbox = Sandbox::new();
    let agent = Served::start(&sandbox, "baseline");
    let address = agent.base_url.trim_start_matches("http://");
    let second = sandbox.run(["demo-agent", "--listen", address]);
    assert_eq!(second.code, Some(3), "{second}");
    assert!(second.stderr.contains(address) && second.stderr.contains("--listen 127.0.0.1:0"), "{second}");
}
