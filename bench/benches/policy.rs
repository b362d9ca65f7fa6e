//! One decision of a policy with 100 rules of all kinds, by the number of different tools that are called.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_guard::identity::RunIdentity;
use counterproof_guard::policy::{Args, CallFacts, Engine, Policy};
use counterproof_ledger::event::{AgentClient, Transport, WorkingEnvironment};
use divan::Bencher;
use serde_json::{Value, json};

const RULES: usize = 100;

fn main() {
    divan::main();
}

/// Rules of all kinds; one in ten concerns every call.
fn rule(index: usize) -> Value {
    let id = format!("rule-{index}");
    let tool = format!("tool_{}_*", index % 50);
    let names = json!({"tool_name": {"glob": [tool], "regex": [format!("^other_{index}[0-9]+$")]}});
    let (kind, conditions, effect) = match index % 10 {
        0 => ("breaker", json!({}), json!({"breaker": {"repeat_threshold": 1000, "repeat_window_ms": 1000}})),
        1 => ("budget", names, json!({"budget": {"scope": "tool", "limit_calls": 1_000_000_000}})),
        2 => ("tag", names, json!({"tag": {"add_risk_class": ["write_like"]}})),
        3 => (
            "deny",
            json!({"risk_class": ["write_like"], "args": {"numeric_range": {"amount": {"min": 1000}}}}),
            json!({}),
        ),
        4 => ("dedupe", names, json!({"dedupe": {"window_ms": 1}})),
        _ => ("deny", json!({"tool_name": names["tool_name"], "args": {"key_equals": {"force": true}}}), json!({})),
    };
    json!({"rule_id": id, "kind": kind, "match": conditions, "effect": effect})
}

#[divan::bench(args = [1, 40, 5000])]
fn decide(bencher: Bencher<'_, '_>, tools: usize) {
    let rules: Vec<Value> = (0..RULES).map(rule).collect();
    let document = json!({"policy_id": "bench", "version": "1", "mode": "guardrails", "rules": rules});
    let policy = Arc::new(Policy::parse(Utf8Path::new("bench"), document.to_string().as_bytes()).unwrap());
    let identity = RunIdentity {
        run_id: "r".to_owned(),
        agent_id: "a".to_owned(),
        client: AgentClient::Custom,
        env: WorkingEnvironment::Dev,
        principal: None,
        workload: None,
    };
    let args = json!({"amount": 5, "path": "src/main.rs", "text": "x".repeat(500)});
    let hashes: Vec<_> = (0..64).map(|number| canonical_hash(&json!({"n": number}))).collect();
    let names: Vec<String> = (0..tools).map(|index| format!("tool_{}_{index}", index % 50)).collect();
    let mut engine = Engine::new(policy, &identity);
    let mut number = 0;
    bencher.bench_local(|| {
        let call = CallFacts {
            server_name: "server",
            tool_name: &names[number % names.len()],
            args: Args::Inspected(&args),
            args_hash: &hashes[number % hashes.len()],
            bytes_in: 600,
            transport: Transport::McpStdio,
        };
        number += 1;
        // Time passes, so that budgets and windows keep their usual size.
        engine.decide(&call, Duration::from_micros(number as u64 * 2000))
    });
}
