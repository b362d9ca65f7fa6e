//! `kill -9` at any moment of a run leaves only complete files.

use std::process::Stdio;
use std::time::{Duration, Instant};

use counterproof_store::write::TEMPORARY_PREFIX;
use counterproof_tests::{Agent, Reply, Sandbox, files_below};
use serde_json::{Value, json};

const KILLS: u32 = 30;
const CASES: usize = 30;

#[test]
fn no_moment_of_a_run_leaves_a_torn_file() {
    let agent = Agent::start(|case_id| Reply::of_every_kind(case_id.len()));
    let cases: Vec<_> = (0..CASES)
        .map(|index| json!({"id": format!("{}{index}", "c".repeat(index % 5 + 1)), "input": {"user": "go"}}))
        .collect();
    let sandbox = Sandbox::new().with_file("cases.json", &Value::from(cases).to_string());
    let url = agent.base_url();
    let arguments = |run_id: String| {
        let fixed = ["run", "--cases", "cases.json", "--side", "new", "--concurrency", "4", "--base-url", &url];
        fixed.map(str::to_owned).into_iter().chain(["--run-id".to_owned(), run_id]).collect::<Vec<_>>()
    };
    let start = Instant::now();
    assert_eq!(sandbox.run(arguments("whole".to_owned())).code, Some(0));
    let whole = start.elapsed().min(Duration::from_secs(1));

    let mut artifacts = Vec::new();
    for kill in 0..KILLS {
        let mut child = sandbox
            .command(arguments(format!("killed-{kill}")))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The golden ratio spreads the moments over the length of the run without large gaps.
        std::thread::sleep(whole.mul_f64((f64::from(kill) * 0.618_033_988_75).fract()));
        child.kill().unwrap();
        child.wait().unwrap();
        artifacts.push(whole_files(&sandbox, &format!("runs/new/killed-{kill}")));
    }
    assert!(artifacts.iter().any(|count| (1..CASES).contains(count)), "no kill struck within a run: {artifacts:?}");
}

/// Parses every JSON file and returns the number of artifacts.
fn whole_files(sandbox: &Sandbox, folder: &str) -> usize {
    let folder = sandbox.path(folder);
    if !folder.exists() {
        return 0;
    }
    let mut artifacts = 0;
    for (path, bytes) in files_below(&folder) {
        if path.extension() != Some("json") || path.file_name().unwrap().starts_with(TEMPORARY_PREFIX) {
            continue;
        }
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{folder}/{path}: {error}"));
        artifacts += usize::from(document["schema_version"] == "case.v1");
    }
    artifacts
}
