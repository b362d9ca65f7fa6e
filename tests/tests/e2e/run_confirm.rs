//! `run --confirm`: flipped cases run again, on new and on the baseline, and `compare` judges them by all runs.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;

use counterproof_tests::{Agent, Finished, Reply, Sandbox, minimal_answer};
use serde_json::{Value, json};

/// An agent with an answer for a case and the number of its request, from 1.
fn counting(answer: impl Fn(&str, u64) -> Value + Send + Sync + 'static) -> Agent {
    let asked = Mutex::new(HashMap::<String, u64>::new());
    Agent::start(move |case_id| {
        let mut asked = asked.lock().unwrap();
        let number = asked.entry(case_id.to_owned()).or_default();
        *number += 1;
        Reply::json(&answer(case_id, *number))
    })
}

/// An agent that answers `refunded`, the expected text, if `is_right` says so.
fn agent(is_right: impl Fn(&str, u64) -> bool + Send + Sync + 'static) -> Agent {
    counting(move |case_id, number| {
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!(if is_right(case_id, number) { "refunded" } else { "sorry" });
        answer
    })
}

fn sandbox(ids: &[&str]) -> Sandbox {
    let case = |id: &&str| json!({"id": id, "input": {"user": "go"}, "expected": {"must_include": ["refunded"]}});
    Sandbox::new().with_file("cases.json", &Value::from(ids.iter().map(case).collect::<Vec<_>>()).to_string())
}

fn run(sandbox: &Sandbox, agent: &Agent, line: &str) -> Finished {
    let url = agent.base_url();
    let words = ["run", "--cases", "cases.json", "--base-url", &url];
    sandbox.run(words.into_iter().chain(line.split_whitespace()))
}

#[track_caller]
fn done(finished: Finished) -> Finished {
    assert_eq!(finished.code, Some(0), "{finished}");
    finished
}

fn requests(agent: &Agent, case: &str) -> usize {
    agent.requests().iter().filter(|request| request["case_id"] == case).count()
}

/// The row of a case in the report.
#[track_caller]
fn evaluated(sandbox: &Sandbox, case: &str) -> Value {
    let evaluation = sandbox.json("report/evaluation.json");
    evaluation["cases"].as_array().unwrap().iter().find(|row| row["case_id"] == case).unwrap().clone()
}

/// A night in which `flaky` fails once by chance and `fell` always: the runs, with the agents of new and of the baseline.
fn night(confirm: &str) -> (Sandbox, Agent, Agent, Finished) {
    let sandbox = sandbox(&["steady", "flaky", "fell"]);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let new = agent(|case, number| case == "steady" || (case == "flaky" && number > 1));
    let line = format!("--side new --run-id n {}", confirm.replace("OLD", &old.base_url()));
    let finished = done(run(&sandbox, &new, &line));
    (sandbox, old, new, finished)
}

#[test]
fn flipped_cases_run_again_on_both_sides_and_are_judged_by_all_runs() {
    let (sandbox, old, new, finished) = night("--confirm 4 --confirm-baseline-url OLD");
    let said = "2 of 3 cases are worse than in `runs/baseline/good`; confirming with 4 more runs of new and of the baseline:\n  \
                flaky  must_include no longer met";
    assert!(finished.stderr.contains(said), "{finished}");
    for (case, count) in [("steady", 1), ("flaky", 5), ("fell", 5)] {
        assert_eq!((requests(&old, case), requests(&new, case)), (count, count), "{case}");
    }
    for side in ["baseline", "new"] {
        let run = sandbox.json(&format!("runs/{side}/n-c3/run.json"));
        assert_eq!(run["confirmation"], json!({"of": "n", "against": ["good"], "index": 3, "count": 4}));
        assert_eq!((&run["version"], &run["selected_case_ids"]), (&json!(side), &json!(["flaky", "fell"])));
    }
    done(sandbox.run(["validate", "runs"]));

    // Without folders, and with them.
    let named = "compare runs/baseline/good runs/new/n --cases cases.json".split(' ').collect::<Vec<_>>();
    for line in [vec!["compare", "--cases", "cases.json"], named] {
        let compared = sandbox.run(line);
        assert_eq!(compared.code, Some(1), "{compared}");
        let note = "note: judging the flipped cases with 4 confirmation runs of `n`, and 4 of the baseline";
        assert!(compared.stderr.contains(note) && !compared.stderr.contains("warning"), "{compared}");
        assert_eq!(evaluated(&sandbox, "fell")["verdict"], json!("regressed"), "{compared}");
        assert_ne!(evaluated(&sandbox, "flaky")["verdict"], json!("regressed"), "{compared}");
        let evaluation = sandbox.json("report/evaluation.json");
        assert_eq!(evaluation["new"]["run_id"], json!("n"));
        assert_eq!(evaluation["counts"]["missing"], json!(0));
    }
    assert!(sandbox.path("runs/new/n/evaluation.json").is_file());
    assert!(!sandbox.path("runs/new/n-c1/evaluation.json").exists());
    let history = done(sandbox.run(["history", "runs/new"]));
    assert!(!history.stderr.contains("skipped"), "{history}");
}

#[test]
fn a_case_that_failed_once_by_chance_does_not_fail_the_gate() {
    let sandbox = sandbox(&["steady", "flaky"]);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let new = agent(|case, number| case == "steady" || number > 1);
    done(run(&sandbox, &new, &format!("--side new --run-id n --confirm 4 --confirm-baseline-url {}", old.base_url())));
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(compared.code, Some(0), "{compared}");
}

#[test]
fn without_a_flipped_case_nothing_runs_again() {
    let sandbox = sandbox(&["steady", "calm"]);
    let agent = agent(|_, _| true);
    let first = done(run(&sandbox, &agent, "--side new --run-id first --confirm 4"));
    assert!(first.stderr.contains("no case is confirmed"), "{first}");
    done(sandbox.run(["accept", "--reason", "first"]));
    let second = done(run(&sandbox, &agent, "--side new --run-id second --confirm 4"));
    assert!(second.stderr.contains("no case is worse than in `runs/baseline/first`; nothing to confirm"), "{second}");
    assert_eq!(agent.requests().len(), 4);
    assert!(!sandbox.path("runs/new/second-c1").exists());
}

#[test]
fn a_baseline_agent_that_does_not_answer_is_left_out() {
    // Port 9 is discard: nothing listens there.
    let (sandbox, _, new, finished) = night("--confirm 2 --confirm-baseline-url http://127.0.0.1:9");
    assert!(finished.stderr.contains("the agent of the baseline at http://127.0.0.1:9 answered none"), "{finished}");
    assert!(!sandbox.path("runs/baseline/n-c1").exists() && sandbox.path("runs/new/n-c2").is_dir(), "{finished}");
    assert_eq!(requests(&new, "fell"), 3);
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(compared.stderr.contains("with 2 confirmation runs of `n`\n"), "{compared}");
}

#[test]
fn a_confirmation_is_resumed_with_the_cases_that_it_has() {
    let (sandbox, _, new, _) = night("--confirm 1");
    // As if the first confirmation run was stopped before its second case.
    std::fs::remove_file(sandbox.path("runs/new/n-c1/fell.json")).unwrap();
    let mut stopped = sandbox.json("runs/new/n-c1/run.json");
    stopped["interrupted"] = json!(true);
    let sandbox = sandbox.with_file("runs/new/n-c1/run.json", &stopped.to_string());
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(compared.stderr.contains("warning: ignoring the confirmation run `runs/new/n-c1`: it was stopped"));
    // A confirmation keeps its cases, also if another baseline now has more flipped cases.
    let resumed = done(run(&sandbox, &new, "--side new --resume n --confirm 3"));
    assert!(!resumed.stderr.contains("worse than"), "{resumed}");
    assert_eq!((requests(&new, "steady"), requests(&new, "flaky"), requests(&new, "fell")), (1, 4, 5));
    assert_eq!(sandbox.json("runs/new/n-c2/run.json")["selected_case_ids"], json!(["flaky", "fell"]));
}

#[test]
fn confirmation_runs_are_neither_the_latest_run_nor_a_baseline() {
    let (sandbox, ..) = night("--confirm 2 --confirm-baseline-url OLD");
    let refused = sandbox.run(["accept", "runs/new/n-c1", "--reason", "no"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    let said = "`runs/new/n-c1` is a confirmation run of `n`, and only a complete run can be the baseline\n\
                hint: accept the run that it confirms: counterproof accept runs/new/n --reason no";
    assert!(refused.stderr.contains(said), "{refused}");
    let accepted = done(sandbox.run(["accept", "--reason", "as intended", "--run-id", "next"]));
    assert!(accepted.stdout.contains("baseline: runs/baseline/next (3 cases)"), "{accepted}");
    // Compared with another baseline, the runs of the old agent say nothing.
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(
        compared.stderr.contains("using the latest baseline in `runs/baseline`, `runs/baseline/next`"),
        "{compared}"
    );
    assert!(compared.stderr.contains("2 confirmation runs of `n`\n"), "{compared}");
}

#[test]
fn a_merged_run_is_confirmed_by_resuming_it() {
    let sandbox = sandbox(&["steady", "flaky", "fell"]);
    let agent = agent(|case, number| case == "steady" || number == 1);
    done(run(&sandbox, &agent, "--side baseline --run-id good"));
    for shard in ["1/2", "2/2"] {
        done(run(&sandbox, &agent, &format!("--side new --run-id n --shard {shard}")));
    }
    done(sandbox.run(["merge", "runs/new/n-s1of2", "runs/new/n-s2of2", "--out", "runs/new/n"]));
    done(run(&sandbox, &agent, "--side new --resume n --confirm 2"));
    assert_eq!(sandbox.json("runs/new/n-c2/run.json")["selected_case_ids"], json!(["flaky", "fell"]));
    let together = run(&sandbox, &agent, "--side new --run-id m --shard 1/2 --confirm 2");
    assert_eq!(together.code, Some(2), "{together}");
}

#[test]
fn a_deterministic_agent_is_not_asked_again() {
    let sandbox = sandbox(&["fell"]).with_file("counterproof.toml", "[agent]\ndeterministic = true\n");
    let agent = agent(|_, number| number == 1);
    done(run(&sandbox, &agent, "--side baseline --run-id good"));
    let finished = done(run(&sandbox, &agent, "--side new --run-id n --confirm 4"));
    assert!(finished.stderr.contains("note: the agent is declared deterministic"), "{finished}");
    assert_eq!(sandbox.json("runs/new/n/run.json")["deterministic"], json!(true));
    assert_eq!(agent.requests().len(), 2);
}

#[test]
fn wrong_options_are_reported_before_the_first_request() {
    let sandbox = sandbox(&["steady"]);
    let agent = agent(|_, _| true);
    for line in [
        "--side baseline --confirm 2",
        "--side new --confirm 2 --repeat 2",
        "--side new --confirm-baseline-url http://127.0.0.1:9",
        "--side new --confirm 2 --confirm-baseline-url not-a-url",
        "--side new --confirm 0",
    ] {
        let finished = run(&sandbox, &agent, line);
        assert_eq!(finished.code, Some(2), "{line}: {finished}");
    }
    assert_eq!(run(&sandbox, &agent, "--side new --confirm 2 --against runs/baseline/none").code, Some(3));
    let dry = done(run(&sandbox, &agent, "--side new --run-id n --confirm 2 --dry-run"));
    assert!(dry.stdout.contains("would run flipped cases again in runs/new/n-c1 to runs/new/n-c2"), "{dry}");
    assert!(agent.requests().is_empty());
}

#[test]
fn compare_states_how_to_confirm_what_one_run_shows() {
    let sandbox = sandbox(&["steady", "fell"]);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let new = agent(|case, _| case == "steady");
    done(run(&sandbox, &new, "--side new --run-id n"));
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    // One failure in one run may be chance, so it does not fail the gate.
    assert_eq!(compared.code, Some(0), "{compared}");
    assert_eq!(evaluated(&sandbox, "fell")["unconfirmed"], json!(true), "{compared}");
    let first: Vec<_> = compared.stdout.lines().take(4).collect();
    assert_eq!(
        first[0],
        "Not confirmed: 1 case looks worse, and one run does not exclude chance; no rule of the gate is violated"
    );
    assert!(first[2].starts_with("  fell  regressed (unconfirmed): must_include no longer met"), "{compared}");
    let (new_url, old_url) = (new.base_url(), old.base_url());
    let next = format!("to decide: counterproof run --cases cases.json --side new --base-url {new_url} --resume n");
    assert!(first[3].contains(&next) && first[3].contains(&format!("--confirm-baseline-url {old_url}")), "{compared}");

    let confirmed = format!("--side new --resume n --confirm 4 --confirm-baseline-url {}", old.base_url());
    let confirmed = done(run(&sandbox, &new, &confirmed));
    assert!(
        confirmed.stderr.contains("4 of 4 as baseline: 1 case: 1 ok, 0 failed, 0 retried\n4 of 4 as new: 1 case"),
        "{confirmed}"
    );
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    assert!(
        evaluated(&sandbox, "fell")["unconfirmed"].is_null() && !compared.stdout.contains("to decide"),
        "{compared}"
    );
}

#[test]
fn a_program_can_be_the_agent_of_the_baseline() {
    let mut right = minimal_answer();
    right["final_output"]["content"] = json!("refunded");
    let script = format!("cat > /dev/null\necho '{right}'\n");
    let sandbox = sandbox(&["steady", "fell"]).with_file("old.sh", &script);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let new = agent(|case, _| case == "steady");
    let url = new.base_url();
    let line = ["run", "--cases", "cases.json", "--base-url", &url, "--side", "new", "--run-id", "n", "--confirm", "2"];
    done(sandbox.run(line.iter().chain(&["--confirm-baseline-cmd", "sh old.sh"])));
    for index in 1..=2 {
        let answer = sandbox.json(&format!("runs/baseline/n-c{index}/fell.json"));
        assert_eq!(answer["final_output"]["content"], json!("refunded"));
    }
    assert_eq!(requests(&old, "fell"), 1, "the server of the first run is not asked again");
}

#[test]
fn another_configuration_can_be_the_agent_of_the_baseline() {
    let reply = |content: &str| {
        let message = json!({"role": "assistant", "content": content});
        Reply::json(&json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    };
    let is_first = Mutex::new(true);
    // One server with two models: the first request is that of the baseline.
    let agent = Agent::start(move |_| {
        let is_first = std::mem::take(&mut *is_first.lock().unwrap());
        reply(if is_first { "refunded" } else { "sorry" })
    });
    let sandbox = sandbox(&["fell"])
        .with_file("old.toml", "[agent]\nmodel = \"old-model\"\n")
        .with_file("new.toml", "[agent]\nmodel = \"new-model\"\n");
    let chat = "--protocol openai-chat --concurrency 1";
    done(run(&sandbox, &agent, &format!("--side baseline --run-id good --config old.toml {chat}")));
    let confirm = "--confirm 2 --confirm-baseline-config old.toml";
    done(run(&sandbox, &agent, &format!("--side new --run-id n --config new.toml {confirm} {chat}")));
    let models: Vec<_> = agent.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["old-model", "new-model", "old-model", "new-model", "old-model", "new-model"]);
    assert!(sandbox.path("runs/baseline/n-c2/fell.json").is_file());
}

#[cfg(unix)]
#[test]
fn an_interrupted_confirmation_resumes_with_its_cases() {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let sandbox = sandbox(&["steady", "fell"]);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let asked = Mutex::new(0);
    // The third request is the first one of the confirmation.
    let new = Agent::start(move |case| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!(if case == "steady" { "refunded" } else { "sorry" });
        Reply::json(&answer).after(Duration::from_secs(if *asked == 3 { 60 } else { 0 }))
    });
    let url = new.base_url();
    let line = ["run", "--cases", "cases.json", "--base-url", &url, "--side", "new", "--timeout", "5m"];
    let child = sandbox
        .command(line.iter().chain(&["--run-id", "n", "--confirm", "2"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while new.requests().len() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Two signals: the second one does not wait for requests in flight.
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    let resume =
        format!("counterproof run --resume n --cases cases.json --base-url {url} --timeout 5m --side new --confirm 2");
    assert!(stderr.contains(&resume), "{stderr}");
    // The run itself is whole, so it can be compared and confirmed later.
    assert!(sandbox.json("runs/new/n/run.json").get("interrupted").is_none());

    let resumed = done(sandbox.run(line.iter().chain(&["--resume", "n", "--confirm", "2"])));
    assert!(!resumed.stderr.contains("worse than"), "{resumed}");
    assert_eq!((requests(&new, "steady"), requests(&new, "fell")), (1, 4));
    for index in 1..=2 {
        let run = sandbox.json(&format!("runs/new/n-c{index}/run.json"));
        assert_eq!(run["selected_case_ids"], json!(["fell"]));
    }
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert!(compared.stderr.contains("with 2 confirmation runs of `n`"), "{compared}");
}

#[test]
fn the_first_lines_are_the_verdict_and_the_cases_that_always_fail() {
    let ids = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    let sandbox = sandbox(&ids);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good --repeat 5"));
    let new = agent(|case, _| !["one", "two", "three"].contains(&case));
    done(run(&sandbox, &new, "--side new --run-id n --repeat 5"));
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let lines: Vec<_> = compared.stdout.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].starts_with("Gate failed: 3 cases always fail"), "{}", lines[0]);
    for id in &ids[..3] {
        let line = lines[1..4].iter().find(|line| line.starts_with(&format!("  {id}"))).unwrap();
        assert!(line.contains("regressed: must_include"), "{line}");
        assert!(line.ends_with("expectations met in 0 of 5 runs, baseline in 5 of 5"), "{line}");
    }
    assert!(!compared.stdout.contains("p 0") && !compared.stdout.contains("✓"), "{compared}");
    assert!(compared.stdout.contains("other rules are met"), "{compared}");
    let verbose = sandbox.run(["compare", "--cases", "cases.json", "--verbose"]);
    // All runs of a side are equal, so nothing is a matter of chance.
    assert!(verbose.stdout.contains("✓ must") && !verbose.stdout.contains("; p "), "{verbose}");
    // The summary starts with the same lines.
    let summary = fs::read_to_string(sandbox.path("report/summary.md")).unwrap();
    assert!(summary.starts_with("## ✗ Gate failed: 3 cases always fail"), "{summary}");
    let places: Vec<_> =
        ["`one`", "| baseline", "other rules are met"].map(|it| summary.to_lowercase().find(it)).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{summary}");
}

#[test]
fn a_case_that_fails_against_one_baseline_run_stays_unconfirmed_and_in_the_review() {
    let sandbox = sandbox(&["steady", "fell"]);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let new = agent(|case, _| case == "steady");
    let confirmed = done(run(&sandbox, &new, "--side new --run-id n --confirm 4"));
    let warning = "warning: even a case that fails in all of them may do so by chance: the baseline has 1 run\n\
                   hint: a baseline of 3 runs decides: `counterproof run --cases cases.json --side baseline --repeat 3`";
    assert!(confirmed.stderr.contains(warning), "{confirmed}");
    assert!(confirmed.stderr.contains("hint: with `[side.baseline]` in the configuration"), "{confirmed}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    let case = evaluated(&sandbox, "fell");
    assert_eq!((&case["verdict"], &case["unconfirmed"]), (&json!("regressed"), &json!(true)), "{compared}");
    let message = case["reasons"][0]["message"].as_str().unwrap();
    assert!(message.contains("0 of 5 runs, baseline in 1 of 1"), "{message}");
    assert!(message.ends_with("2 more runs of the baseline would confirm it"), "{message}");
    let first: Vec<_> = compared.stdout.lines().take(10).collect();
    assert!(first.iter().any(|line| line.contains("fell") && line.contains("unconfirmed")), "{compared}");
    assert!(
        first.iter().any(|line| line.contains("counterproof run --cases cases.json --side baseline")),
        "{compared}"
    );
    let limited = "[gate]\nunconfirmed = 0\n";
    let sandbox = sandbox.with_file("counterproof.toml", limited);
    assert_eq!(sandbox.run(["compare", "--cases", "cases.json"]).code, Some(1));
}

const EIGHT: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

/// Runs of eight cases, of which the first always fail on new: with the options of the baseline and of new.
fn broken(broken: usize, baseline: &str, new: &str) -> (Sandbox, Finished, Finished) {
    let sandbox = sandbox(&EIGHT);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, &format!("--side baseline --run-id good {baseline}")));
    let agent = agent(move |case, _| !EIGHT[..broken].contains(&case));
    let ran = done(run(&sandbox, &agent, &format!("--side new --run-id n {new}")));
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    (sandbox, ran, compared)
}

fn convicted(sandbox: &Sandbox) -> Vec<String> {
    let evaluation = sandbox.json("report/evaluation.json");
    let cases = evaluation["cases"].as_array().unwrap().iter();
    let convicted = cases.filter(|case| case["verdict"] == "regressed" && case["unconfirmed"].is_null());
    convicted.map(|case| case["case_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_readme_commands_convict_every_case_that_always_fails_however_many_there_are() {
    for count in 1..=EIGHT.len() {
        let (sandbox, _, compared) = broken(count, "--repeat 5", "--confirm");
        assert_eq!(compared.code, Some(1), "{compared}");
        assert_eq!(convicted(&sandbox), EIGHT[..count], "{compared}");
        let top: Vec<_> = compared.stdout.lines().filter(|line| !line.trim().is_empty()).take(5).collect();
        assert!(top[0].starts_with("Gate failed"), "{compared}");
        let named =
            EIGHT[..count].iter().filter(|id| top[1..].iter().any(|line| line.starts_with(&format!("  {id} "))));
        assert_eq!(named.count(), count.min(4), "the first five lines name the cases: {compared}");
    }
}

#[test]
fn one_accepted_run_convicts_three_of_eight_cases_and_names_the_command_for_fewer() {
    for count in 1..=EIGHT.len() {
        let (sandbox, ran, compared) = broken(count, "", "--confirm");
        let is_decided = count >= 2;
        assert_eq!(compared.code, Some(1), "{ran}{compared}");
        let outcome = if is_decided { "Gate failed" } else { "Gate undecided" };
        assert!(compared.stdout.starts_with(outcome), "{compared}");
        assert_eq!(convicted(&sandbox).len(), if is_decided { count } else { 0 }, "{compared}");
        let command = "decides: `counterproof run --cases cases.json --side baseline --repeat";
        assert_eq!(ran.stderr.contains(command), !is_decided, "{ran}");
        assert!(sandbox.path("runs/new/n-c7").is_dir(), "{ran}");
    }
}

#[test]
fn a_longer_baseline_decides_what_the_same_runs_of_new_could_not() {
    let (sandbox, ran, compared) = broken(1, "", "--confirm");
    assert!(compared.stdout.starts_with("Gate undecided: 1 case fails in every run of new"), "{compared}");
    let said = "c0 fails in all 8 runs of new, which may be chance: the baseline has 1 run\nhint: a baseline of 3 runs decides";
    assert!(ran.stderr.contains(said), "{ran}");
    assert!(
        evaluated(&sandbox, "c0")["reasons"][0]["message"]
            .as_str()
            .unwrap()
            .ends_with("2 more runs of the baseline would confirm it")
    );
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id longer --repeat 3"));
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!((compared.code, convicted(&sandbox)), (Some(1), vec!["c0".to_owned()]), "{compared}");
}

#[test]
fn a_case_that_passes_again_is_asked_less_often_than_one_that_always_fails() {
    let sandbox = sandbox(&["steady", "flaky", "late", "fell"]);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good --repeat 5"));
    let new = agent(|case, number| match case {
        "steady" => true,
        "flaky" => number > 1,
        "late" => number > 2,
        _ => false,
    });
    let finished = done(run(&sandbox, &new, "--side new --run-id n --confirm auto"));
    assert!(
        finished.stderr.contains("3 of 4 cases are worse than in `runs/baseline/good-r1`; confirming with up to"),
        "{finished}"
    );
    let counts = ["steady", "flaky", "late", "fell"].map(|case| requests(&new, case));
    assert_eq!(counts, [1, 2, 3, 3], "{finished}");
    let confirmation = sandbox.json("runs/new/n-c2/run.json")["confirmation"].clone();
    assert_eq!(
        (&confirmation["index"], &confirmation["count"], &confirmation["ends_early"]),
        (&json!(2), &json!(2), &json!(true))
    );
    assert_eq!(sandbox.json("runs/new/n-c2/run.json")["selected_case_ids"], json!(["late", "fell"]));
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!((compared.code, convicted(&sandbox)), (Some(1), vec!["fell".to_owned()]), "{compared}");
    assert!(!compared.stderr.contains("found only"), "{compared}");
    done(sandbox.run(["validate", "runs"]));
    // Nothing is left to do.
    done(run(&sandbox, &new, "--side new --resume n --confirm auto"));
    assert_eq!(["flaky", "late", "fell"].map(|case| requests(&new, case)), [2, 3, 3]);
}

#[test]
fn the_agent_of_the_baseline_makes_one_baseline_run_enough() {
    let (old, sandbox) = (agent(|_, _| true), sandbox(&EIGHT));
    done(run(&sandbox, &old, "--side baseline --run-id good"));
    let new = agent(|case, _| case != "c0");
    let line = format!("--side new --run-id n --confirm --confirm-baseline-url {}", old.base_url());
    let finished = done(run(&sandbox, &new, &line));
    assert!(!finished.stderr.contains("warning"), "{finished}");
    assert_eq!((requests(&new, "c0"), requests(&old, "c0")), (5, 5), "{finished}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!((compared.code, convicted(&sandbox)), (Some(1), vec!["c0".to_owned()]), "{compared}");
}

#[test]
fn a_confirmation_run_without_an_answer_is_made_up_for() {
    let sandbox = sandbox(&EIGHT);
    let old = agent(|_, _| true);
    done(run(&sandbox, &old, "--side baseline --run-id good --repeat 5"));
    let asked = Mutex::new(0);
    let new = Agent::start(move |case| {
        let mut answer = minimal_answer();
        answer["final_output"]["content"] = json!(if case == "c0" { "sorry" } else { "refunded" });
        let mut asked = asked.lock().unwrap();
        *asked += u32::from(case == "c0");
        if case == "c0" && *asked == 3 { Reply::text(500, "text/plain", "down") } else { Reply::json(&answer) }
    });
    let finished = done(run(&sandbox, &new, "--side new --run-id n --confirm --retries 0"));
    assert_eq!(requests(&new, "c0"), 5, "{finished}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!((compared.code, convicted(&sandbox)), (Some(1), vec!["c0".to_owned()]), "{compared}");
}

/// An agent that refunds what `amount` says.
fn refunding(amount: impl Fn(&str, u64) -> u64 + Send + Sync + 'static) -> Agent {
    counting(move |case_id, number| {
        let mut answer = minimal_answer();
        answer["proposed_actions"] = json!([{
            "action_id": "a1", "action_type": "refund", "tool_name": "refund_order",
            "params": {"order_id": "A-1", "amount": amount(case_id, number)}, "risk_level": "high",
            "risk_tags": ["money"], "evidence_refs": []
        }]);
        answer
    })
}

#[test]
fn a_wrong_refund_without_an_expectation_runs_again_and_fails_the_gate() {
    let case = |id: &str| json!({"id": id, "input": {"user": "Refund order A-1: 12 of 50."}});
    let cases: Vec<_> = ["steady", "flaky", "wrong"].into_iter().map(case).collect();
    let sandbox = Sandbox::new().with_file("cases.json", &Value::from(cases).to_string());
    done(run(&sandbox, &refunding(|_, _| 12), "--side baseline --run-id good --repeat 5"));
    let new = refunding(|case, number| if case == "wrong" || (case == "flaky" && number == 1) { 50 } else { 12 });
    let finished = done(run(&sandbox, &new, "--side new --run-id n --confirm"));
    let said = "wrong  a high-risk action or argument that no run of the baseline shows";
    assert!(finished.stderr.contains(said), "{finished}");
    assert_eq!((requests(&new, "steady"), requests(&new, "flaky")), (1, 2), "{finished}");
    let compared = sandbox.run(["compare", "--cases", "cases.json"]);
    assert_eq!(compared.code, Some(1), "{compared}");
    let mut lines = compared.stdout.lines();
    let headline = "Gate failed: 1 case has a high-risk action or argument that baseline never shows";
    assert_eq!(lines.next(), Some(headline), "{compared}");
    assert!(lines.next().is_some_and(|line| line.contains("wrong  ") && line.contains("12 → 50")), "{compared}");
}
