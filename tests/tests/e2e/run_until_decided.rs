//! `run --repeat-until-decided`: repeats only the cases that are undecided, tested with agents of known pass rates.

use std::collections::HashMap;
use std::sync::Mutex;

use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer};
use serde_json::{Value, json};

/// An agent with a pass rate for each case. The same seed gives the same answers for each case.
fn agent(seed: u64, chance: impl Fn(&str) -> f64 + Send + Sync + 'static) -> Agent {
    let asked = Mutex::new(HashMap::<String, u64>::new());
    Agent::start(move |case_id| {
        let mut asked = asked.lock().unwrap();
        let count = asked.entry(case_id.to_owned()).or_default();
        *count += 1;
        // SplitMix64 (Steele, Lea, Flood 2014), with a stream for each case.
        let place = case_id.bytes().fold(seed, |place, byte| place.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut bits = (place << 32).wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let fraction = ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        let mut answer = minimal_answer();
        let text = if fraction < chance(case_id) { "refunded" } else { "sorry" };
        answer["final_output"]["content"] = json!(text);
        Reply::json(&answer)
    })
}

fn sandbox(ids: &[&str]) -> Sandbox {
    let case = |id: &&str| json!({"id": id, "input": {"user": "go"}, "expected": {"must_include": ["refunded"]}});
    Sandbox::new().with_file("cases.json", &Value::from(ids.iter().map(case).collect::<Vec<_>>()).to_string())
}

fn requests(agent: &Agent, case: &str) -> usize {
    agent.requests().iter().filter(|request| request["case_id"] == case).count()
}

/// Ten baseline runs, `runs/baseline/b-r1` to `b-r10`.
fn baseline(sandbox: &Sandbox, agent: &Agent) -> Vec<String> {
    let url = agent.base_url();
    let line =
        ["run", "--cases", "cases.json", "--side", "baseline", "--base-url", &url, "--run-id", "b", "--repeat", "10"];
    let finished = sandbox.run(line);
    assert_eq!(finished.code, Some(0), "{finished}");
    (1..=10).map(|number| format!("runs/baseline/b-r{number}")).collect()
}

#[test]
fn only_undecided_cases_are_repeated_and_decided_ones_are_not_missing() {
    let sandbox = sandbox(&["steady", "fell", "flaky"]);
    let old = agent(2, |case| if case == "flaky" { 0.8 } else { 1.0 });
    let against = baseline(&sandbox, &old);
    let new = agent(5, |case| match case {
        "steady" => 1.0,
        "fell" => 0.05,
        _ => 0.6,
    });
    let url = new.base_url();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--run-id", "n"];
    let rounds = ["--repeat-until-decided", "--max", "9", "--against"];
    let words: Vec<&str> = line.into_iter().chain(rounds).chain(against.iter().map(String::as_str)).collect();
    let finished = sandbox.run(&words);
    assert_eq!(finished.code, Some(0), "{finished}");

    // All cases run in the five full rounds. Seven passes exclude a relevant fall.
    assert_eq!(requests(&new, "steady"), 7, "{finished}");
    assert!((5..9).contains(&requests(&new, "fell")), "{finished}");
    // After five rounds, four more can neither confirm nor exclude a fall.
    assert_eq!(requests(&new, "flaky"), 5, "{finished}");
    let last = sandbox.json("runs/new/n-r7/run.json");
    assert_eq!(last["selected_case_ids"], json!(["steady"]));
    assert_eq!((&last["group_id"], &last["repeat"], &last["repeats"]), (&json!("n"), &json!(7), &json!(9)));
    assert_eq!(last["until_decided"]["full_rounds"], json!(5));
    assert_eq!(last["until_decided"]["against"][9], json!("b-r10"));
    assert_eq!(sandbox.run(["validate", "runs/new/n-r7"]).code, Some(0));
    let last = "round 7 of at most 9: 1 worse, 1 steady, 0 open, 1 undecidable in the remaining rounds";
    assert!(finished.stderr.contains(last), "{finished}");
    assert!(finished.stderr.contains("  undecidable  flaky  "), "{finished}");
    assert!(finished.stderr.contains("1 case undecided"), "{finished}");

    // The printed next command: cases with fewer repeats are not missing, and the fall is found.
    let next = finished.stderr.lines().find_map(|line| line.strip_prefix("next: counterproof ")).unwrap();
    let compared = sandbox.run(next.split(' '));
    assert_eq!(compared.code, Some(1), "{compared}");
    let evaluation = sandbox.json("report/evaluation.json");
    assert_eq!((&evaluation["counts"]["missing"], &evaluation["counts"]["regressed"]), (&json!(0), &json!(1)));
    let fell = evaluation["cases"].as_array().unwrap().iter().find(|case| case["case_id"] == "fell").unwrap();
    assert_eq!(fell["verdict"], json!("regressed"));

    // Resuming a complete group sends no request and has the same result.
    let before = new.requests().len();
    let resumed: Vec<&str> = words.iter().map(|word| if *word == "--run-id" { "--resume" } else { word }).collect();
    let resumed = sandbox.run(resumed);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(new.requests().len(), before);
    assert!(resumed.stderr.contains("1 case undecided"), "{resumed}");
}

#[test]
fn the_baseline_must_have_the_cases_and_the_side_must_be_new() {
    let sandbox = sandbox(&["steady"]);
    let agent = agent(1, |_| 1.0);
    let url = agent.base_url();
    let run = |side: &str, against: &str| {
        let line = ["run", "--cases", "cases.json", "--base-url", &url, "--side", side, "--repeat-until-decided"];
        sandbox.run(line.into_iter().chain(["--max", "3", "--against", against]))
    };
    assert_eq!(run("new", "runs/baseline/none").code, Some(3));
    assert_eq!(run("baseline", "runs/baseline/none").code, Some(2));
    assert!(agent.requests().is_empty());
}

#[test]
fn a_group_with_an_early_decision_can_become_the_baseline() {
    let sandbox = sandbox(&["steady", "calm"]);
    let agent = agent(3, |_| 1.0);
    let against = baseline(&sandbox, &agent);
    let url = agent.base_url();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--run-id", "n"];
    let rounds = ["--repeat-until-decided", "--max", "12", "--against"];
    let finished = sandbox.run(line.into_iter().chain(rounds).chain(against.iter().map(String::as_str)));
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(!sandbox.path("runs/new/n-r12").exists(), "{finished}");

    let accepted = sandbox.run(["accept", "runs/new/n-r1", "--reason", "nothing is worse"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    assert!(sandbox.path("runs/baseline/n-r7").is_dir(), "{accepted}");
}

#[test]
fn new_runs_as_a_baseline_are_accepted_and_reported() {
    let sandbox = sandbox(&["steady"]);
    let agent = agent(1, |_| 1.0);
    let url = agent.base_url();
    let line = ["run", "--cases", "cases.json", "--side", "new", "--base-url", &url, "--run-id"];
    assert_eq!(sandbox.run(line.into_iter().chain(["before"])).code, Some(0));
    let rounds = ["n", "--repeat-until-decided", "--max", "2", "--against", "runs/new/before"];
    let finished = sandbox.run(line.into_iter().chain(rounds));
    let said = "warning: `runs/new/before` is a new run, but is used as baseline";
    assert!(finished.code == Some(0) && finished.stderr.contains(said), "{finished}");
}
