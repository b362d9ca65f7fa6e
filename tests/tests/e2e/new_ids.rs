//! Ids that look like an option or a formula are refused in new runs, and stay readable in files that have them already.

use counterproof_tests::{Agent, Reply, Sandbox, files_below, minimal_answer};

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
