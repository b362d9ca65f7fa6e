//! Programs that answer many requests: one line in, one line out.

use std::time::Duration;

use counterproof_runner::{AgentCommand, Concurrency, Lifetime, Settings};
use counterproof_validation::validate_path;
use serde_json::json;

use crate::kit::{Finished, cases, run_with};

/// Answers each line with the number of lines so far.
const COUNTING: &str = r#"n=0
while read -r line; do
  n=$((n+1))
  echo "read $n" >&2
  REACTION
  printf '{"proposed_actions": [], "events": [], "final_output": {"content_type": "json", "content": {"n": %s}}}\n' "$n"
done"#;

fn ask<const N: usize>(ids: [&str; N], reaction: &str, change: impl FnOnce(&mut Settings)) -> Finished {
    let script = COUNTING.replace("REACTION", reaction);
    let run = run_with("http://unused.example", &cases(ids), |settings| {
        let command: AgentCommand = shell_words::join(["sh", "-c", &script]).parse().unwrap();
        settings.target = command.with_lifetime(Lifetime::Run).into();
        settings.retry.retries = 0;
        settings.concurrency = Concurrency::Fixed(1.try_into().unwrap());
        change(settings);
    });
    let report = validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    run
}

fn counter(run: &Finished, id: &str) -> u64 {
    let case = run.json(&format!("{id}.json"));
    case["final_output"]["content"]["n"].as_u64().unwrap_or_else(|| panic!("{case:#}"))
}

#[test]
fn one_worker_answers_all_cases() {
    let run = ask(["c1", "c2", "c3"], ":", |_| ());
    assert_eq!(["c1", "c2", "c3"].map(|id| counter(&run, id)), [1, 2, 3]);
    assert_eq!(run.json("run.json")["base_url"], "cmd:sh");
}

#[test]
fn as_many_workers_run_as_cases_are_in_flight() {
    // Each worker waits until a second one has started.
    let folder = tempfile::tempdir().unwrap();
    let reaction =
        format!("cd {}; touch $$; until [ $(ls | wc -l) -ge 2 ]; do sleep 0.02; done", folder.path().display());
    let run = ask(["c1", "c2"], &reaction, |settings| {
        settings.concurrency = Concurrency::Fixed(2.try_into().unwrap());
    });
    assert_eq!(["c1", "c2"].map(|id| counter(&run, id)), [1, 1]);
}

#[test]
fn a_worker_that_dies_fails_its_case_and_the_next_case_gets_another_one() {
    let run = ask(["c1", "c2", "c3"], r#"case "$line" in *'"c2"'*) exit 0;; esac"#, |_| ());
    assert_eq!((counter(&run, "c1"), counter(&run, "c3")), (1, 1));
    let failure = &run.json("c2.json")["runner_failure"];
    assert_eq!((&failure["error_name"], &failure["exit_code"]), (&json!("agent_exit"), &json!(0)));
    assert_eq!(failure["error_message"], "the agent exited with code 0 before it answered");
    let stderr = run.bytes(failure["stderr_saved_to"].as_str().unwrap());
    assert!(stderr.ends_with(b"read 2\n"), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn a_case_whose_worker_died_is_retried_with_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let reaction = format!("mkdir {}/once 2>/dev/null && kill -KILL $$", folder.path().display());
    let run = ask(["c1"], &reaction, |settings| settings.retry.retries = 1);
    assert_eq!(counter(&run, "c1"), 1);
    assert_eq!(run.case()["attempts"][0]["error_name"], "agent_exit");
}

#[test]
fn a_worker_that_does_not_answer_in_time_is_replaced() {
    let run = ask(["c1", "c2"], r#"case "$line" in *'"c1"'*) sleep 4741;; esac"#, |settings| {
        settings.timeout = Duration::from_millis(400);
    });
    run.failure("timeout", "response_timeout");
    assert_eq!(counter(&run, "c2"), 1);
}

#[test]
fn an_answer_never_belongs_to_another_case() {
    // The second line of the first answer comes before the request of the second case.
    let run = ask(["c1", "c2"], r#"case "$line" in *'"c1"'*) echo '[]';; esac"#, |_| ());
    run.failure("schema_mismatch", "not_an_object");
    assert_eq!(counter(&run, "c2"), 1);
}

#[test]
fn the_last_line_of_a_worker_may_be_large() {
    let run = ask(["c1"], "head -c 3000000 /dev/zero | tr '\\0' x", |settings| settings.limits.body = 1_000_000);
    run.failure("other", "body_too_large");
}
