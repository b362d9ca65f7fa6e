//! The load that a run puts on an agent: retry budget, limits, rate, and the circuit breaker.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use counterproof_runner::RetryBudget;
use counterproof_runner::{Concurrency, EventKind};
use counterproof_validation::validate_path;
use serde_json::json;

use crate::kit::{Agent, Finished, Reaction, answer, cases, ok, response, run_with};

fn unavailable() -> Reaction {
    Reaction::Send(response("503 Busy", "", b""))
}

fn fine() -> Reaction {
    Reaction::Send(ok(&answer()))
}

#[track_caller]
fn assert_valid(run: &Finished) {
    let report = validate_path(&run.summary.folder).unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

#[test]
fn the_retry_budget_is_shared_by_all_cases() {
    let agent = Agent::new([unavailable()]);
    let run = run_with(&agent.url(), &cases(["c1", "c2", "c3"]), |settings| {
        settings.retry.budget = RetryBudget::Retries(3);
    });
    let attempts = ["c1", "c2", "c3"].map(|id| run.json(&format!("{id}.json"))["attempts"].as_array().unwrap().len());
    assert_eq!(attempts, [3, 2, 1], "first come, first served");
    assert_eq!((run.summary.counts.attempts, run.summary.counts.over_budget), (6, 2));
    let document = run.json("run.json");
    assert_eq!(document["retry_policy"]["budget"], "3");
    assert_eq!(document["stats"]["cases_over_retry_budget"], 2);
    assert_valid(&run);
}

#[test]
fn retries_of_rate_limited_attempts_can_be_disabled() {
    let agent = Agent::sending(response("429 Slow down", "retry-after: 1\r\n", b""));
    let run = run_with(&agent.url(), &cases(["c1"]), |settings| settings.retry.rate_limited = false);
    assert_eq!(agent.requests().len(), 1);
    run.failure("http_error", "rate_limited");
    assert_eq!(run.json("run.json")["retry_policy"]["classes"].as_array().unwrap().len(), 4);
}

#[test]
fn cases_after_the_agent_looks_down_are_written_as_not_run() {
    let agent = Agent::new([fine(), unavailable(), fine(), unavailable(), unavailable(), fine()]);
    let run = run_with(&agent.url(), &cases(["c1", "c2", "c3", "c4", "c5", "c6", "c7"]), |settings| {
        settings.retry.retries = 0;
        settings.fail_fast = NonZeroU32::new(2);
    });
    assert_eq!(agent.requests().len(), 5);
    for id in ["c6", "c7"] {
        let case = run.json(&format!("{id}.json"));
        assert_eq!((&case["status"], &case["attempts"]), (&json!("runner_error"), &json!([])));
        let failure = &case["runner_failure"];
        assert_eq!((&failure["class"], &failure["error_name"]), (&json!("other"), &json!("not_run")));
        let message = "the case was not run: the agent looks down after 2 consecutive failures";
        assert_eq!(failure["error_message"], message);
    }
    let counts = run.summary.counts;
    assert_eq!((counts.answered, counts.failed, counts.skipped, counts.not_run()), (2, 5, 2, 0));
    let document = run.json("run.json");
    assert_eq!((&document["fail_fast"], &document["stats"]["cases_not_run"]), (&json!(2), &json!(2)));
    assert_eq!(document["stats"]["cases_failed"], 5);
    assert!(run.events.contains(&EventKind::AgentDown { consecutive_failures: 2, skipped: 2 }), "{:?}", run.events);
    assert_valid(&run);
}

#[test]
fn a_case_that_waits_for_a_retry_ends_when_the_agent_looks_down() {
    // The first case waits 15 minutes for its retry; the other one makes the agent look down.
    let agent = Agent::new([Reaction::Send(response("429 Slow down", "retry-after: 900\r\n", b"")), unavailable()]);
    let run = run_with(&agent.url(), &cases(["c1", "c2", "c3"]), |settings| {
        settings.retry.retries = 1;
        settings.retry.retry_after_cap = Duration::from_hours(1);
        settings.concurrency = Concurrency::Fixed(NonZeroUsize::new(2).unwrap());
        settings.fail_fast = NonZeroU32::new(1);
    });
    assert_eq!(agent.requests().len(), 3);
    let ended = ["c1", "c2"].map(|id| run.json(&format!("{id}.json")));
    let limited = ended.iter().find(|case| case["runner_failure"]["error_name"] == "rate_limited").unwrap();
    let attempts = limited["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), attempts[0].get("retry_delay_ms")), (1, None), "{limited:#}");
    assert_eq!(run.json("c3.json")["runner_failure"]["error_name"], "not_run");
    assert_valid(&run);
}

#[test]
fn a_case_that_waits_for_its_turn_is_skipped_once_the_agent_looks_down() {
    let agent = Agent::new([unavailable()]);
    let run = run_with(&agent.url(), &cases(["c1", "c2", "c3"]), |settings| {
        settings.retry.retries = 0;
        settings.rate = Some("1/m".parse().unwrap());
        settings.concurrency = Concurrency::Fixed(NonZeroUsize::new(3).unwrap());
        settings.fail_fast = NonZeroU32::new(1);
    });
    assert_eq!(agent.requests().len(), 1);
    let names = ["c1", "c2", "c3"].map(|id| run.json(&format!("{id}.json"))["runner_failure"]["error_name"].clone());
    assert_eq!(names.iter().filter(|name| *name == "not_run").count(), 2, "{names:?}");
    assert_eq!(run.summary.counts.skipped, 2);
    assert_valid(&run);
}

#[test]
fn invalid_answers_do_not_make_the_agent_look_down() {
    let agent = Agent::sending(response("500 Oops", "", b""));
    let run = run_with(&agent.url(), &cases(["c1", "c2", "c3"]), |settings| {
        settings.retry.retries = 0;
        settings.fail_fast = NonZeroU32::new(1);
    });
    assert_eq!((agent.requests().len(), run.summary.counts.skipped), (3, 0));
}

#[test]
fn an_adaptive_limit_decreases_and_reports_it() {
    let agent = Agent::new([unavailable(), fine()]);
    let run = run_with(&agent.url(), &cases(["c1", "c2", "c3", "c4", "c5", "c6"]), |settings| {
        settings.concurrency = "auto:8".parse().unwrap();
    });
    assert_eq!(run.summary.counts.answered, 6);
    assert!(run.events.contains(&EventKind::ConcurrencyChanged { limit: 2 }), "{:?}", run.events);
    let document = run.json("run.json");
    assert_eq!((&document["concurrency"], &document["concurrency_auto"]), (&json!(8), &json!(true)));
}

#[test]
fn a_rate_spaces_requests_and_retries() {
    let agent = Agent::new([unavailable(), fine()]);
    let run = run_with(&agent.url(), &cases(["c1", "c2"]), |settings| {
        settings.concurrency = "2".parse().unwrap();
        settings.rate = Some("100/s".parse().unwrap());
    });
    assert_eq!((run.summary.counts.answered, run.summary.counts.attempts), (2, 3));
    assert_eq!(run.json("run.json")["rate"], "100/s");
}
