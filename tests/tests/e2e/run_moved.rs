//! A run folder is portable: it contains no path of the machine that wrote it.

use counterproof_tests::{Agent, Reply, Sandbox, files_below, minimal_answer};
use serde_json::json;

use crate::run::assert_holds_to_the_contract;

#[test]
fn a_moved_run_folder_is_valid_and_contains_no_absolute_path() {
    let agent = Agent::start(|id| match id {
        "fails" => Reply::text(500, "text/plain", "oops"),
        _ => Reply::json(&minimal_answer()),
    });
    let cases = json!([{"id": "answers", "input": {"user": "a"}}, {"id": "fails", "input": {"user": "b"}}]).to_string();
    let elsewhere = Sandbox::new();
    // The program gets absolute paths, one of them with `..`.
    for (run_id, cases_path) in [("r1", "deep/cases.json".to_owned()), ("r2", "deep/../deep/cases.json".to_owned())] {
        let sandbox = Sandbox::new().with_file("deep/cases.json", &cases);
        let (absolute, out) = (sandbox.path(&cases_path).into_string(), sandbox.path("out").into_string());
        let arguments =
            ["run", "--side", "new", "--retries", "1", "--run-id", run_id, "--cases", &absolute, "--out", &out];
        let finished = sandbox.run(arguments.into_iter().chain(["--base-url", &agent.base_url()]));
        assert_eq!(finished.code, Some(0), "{finished}");

        let moved = elsewhere.path("new").join(run_id);
        std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
        #[allow(clippy::disallowed_methods, reason = "this is what a user's `mv` does")]
        std::fs::rename(sandbox.path("out/new").join(run_id), &moved).unwrap();
        assert_holds_to_the_contract(&moved);
        for (path, bytes) in files_below(&moved) {
            let text = String::from_utf8_lossy(&bytes);
            for place in [sandbox.root().as_str(), env!("CARGO_MANIFEST_DIR"), "/home/", "/tmp/", "\"/"] {
                assert!(!text.contains(place), "{path} holds {place}: {text}");
            }
        }
        assert_eq!(elsewhere.json(&format!("new/{run_id}/run.json"))["cases_path"], "../../../deep/cases.json");
    }
}
