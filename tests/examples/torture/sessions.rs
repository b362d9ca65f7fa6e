//! SIGKILL of a recorder at a random moment: nothing that the agent saw is missing, and the store can be read and used again.

use std::thread;
use std::time::Duration;

use counterproof_tests::{ModelAnswer, ModelServer, Step, coding_agent};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::process::Running;

/// Turns of the agent, unless it is killed before.
const TURNS: usize = 8;

/// The file in which the agent notes each answer that it has read to its end.
const SEEN: &str = "seen.log";

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    let server = ModelServer::start(|number, _| answer(number));
    let record = ["session", "record", "--ledger", "ledger.db", "--session-id", "s", "--"];
    let agent = coding_agent().to_string_lossy().into_owned();
    let mut command = attempt.sandbox.command(record.into_iter().chain([agent.as_str(), "task"]));
    command.env("OPENAI_BASE_URL", format!("{}/v1", server.origin())).env("AGENT_SEEN", SEEN).env("AGENT_STREAM", "1");
    let recorder = Running::start(command)?;
    thread::sleep(Duration::from_millis(attempt.random.u64(0..1500)));
    recorder.send(Signal::KILL);
    recorder.wait()?;
    let seen = std::fs::read_to_string(attempt.sandbox.path(SEEN)).unwrap_or_default().lines().count();
    check(attempt, seen, server.requests().len())
}

/// An answer with a command, in small pieces; the last one has only a text.
fn answer(number: usize) -> ModelAnswer {
    let call = json!([{"index": 0, "id": format!("call_{number}"), "type": "function",
        "function": {"name": "shell", "arguments": json!({"command": format!("echo {number}")}).to_string()}}]);
    let delta = if number < TURNS { json!({"tool_calls": call}) } else { json!({"content": "done"}) };
    let chunk = json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
    let text = format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes();
    ModelAnswer::new(200, "text/event-stream", "").chunked(text.chunks(11).map(|piece| Step::Send(piece.to_vec())))
}

fn check(attempt: &mut Attempt, seen: usize, requests: usize) -> Outcome {
    let json = |arguments: &[&str]| -> Result<Option<Value>, Fault> {
        let command =
            attempt.sandbox.command(["session"].iter().chain(arguments).chain(&["--ledger", "ledger.db", "--json"]));
        let ended = Running::start(command)?.wait()?;
        // Killed before the session was stored.
        if ended.code != Some(0) && seen == 0 {
            return Ok(None);
        }
        ended.has_code(0)?;
        serde_json::from_str(&ended.stdout).map(Some).map_err(|error| Fault::new(format!("{}: {error}", ended.line)))
    };
    let Some(overview) = json(&["overview", "s"])? else { return Ok(()) };
    let status = overview["status"].as_str().unwrap_or_default();
    ensure!(["interrupted", "completed", "failed"].contains(&status), "a killed session is {status}");
    let Some(page) = json(&["timeline", "s", "--limit", "1000"])? else { return Ok(()) };
    let events = page["events"].as_array().cloned().unwrap_or_default();
    let gap = events.iter().zip(1..).find(|(event, number)| event["seq"] != *number);
    ensure!(gap.is_none(), "a number is missing: {gap:?}");
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    ensure!(count("llm_call") >= seen, "the agent has seen {seen} answers, and {} are recorded", count("llm_call"));
    // A request that left has the results of all calls before it.
    let sent = requests.saturating_sub(1).min(TURNS);
    ensure!(count("tool_call") >= sent, "results of {sent} calls were sent, and {} are recorded", count("tool_call"));
    let command =
        attempt.sandbox.command(["session", "record", "--ledger", "ledger.db", "--session-id", "next", "--", "true"]);
    Running::start(command)?.wait()?.has_code(0)
}
