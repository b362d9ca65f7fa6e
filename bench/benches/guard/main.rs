//! The cost of the guard for each call, and its behaviour next to another program between client and server.
//!
//! `guard [NAME=COMMAND…]` measures the guard with and without a policy, a relay that does nothing else, and each given command, which
//! relays standard input and output between a client and the server that follows it. An example is another gateway:
//!
//! ```sh
//! python3 -m venv target/gateway && target/gateway/bin/pip install mcp-egress-guard==1.0.1
//! ```
//!
//! A command that ends in `--configured` names the server in a configuration of its own. `guard echo` is the server, and
//! `guard relay COMMAND…` the relay. The client and the server are ours, so that their noise does not hide the cost.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark prints its figures and may panic"
)]

mod behaviour;
mod echo;
mod latency;
mod peer;
mod relay;
mod volume;

use counterproof_bench::{Outcome, arguments, machine, release_program, target_folder};
use peer::Subject;

/// A policy with a rule of each kind that costs work in each call.
const POLICY: &str = r#"{
  "policy_id": "bench", "version": "1.0.0", "mode": "guardrails",
  "rules": [
    {"rule_id": "paths", "kind": "deny", "match": {"tool_name": {"glob": ["delete_*"]}}, "effect": {"action": "BLOCK"}},
    {"rule_id": "tag", "kind": "tag", "match": {"tool_name": {"regex": ["^write_"]}}, "effect": {"tag": {"add_risk_class": ["write_like"]}}},
    {"rule_id": "budget", "kind": "budget", "match": {"tool_name": {"glob": ["*"]}}, "effect": {"budget": {"limit_calls": 100000000}}}
  ]
}
"#;

fn main() -> Outcome {
    let arguments = arguments();
    match arguments.first().map(String::as_str) {
        Some("echo") => echo::serve(),
        Some("relay") => relay::run(&arguments[1..]),
        _ => measure(&arguments)?,
    }
    Ok(())
}

fn measure(others: &[String]) -> Outcome {
    println!("machine: {}", machine());
    let (program, bench) = (release_program("counterproof", "counterproof")?, std::env::current_exe()?);
    let scratch = tempfile::tempdir_in(target_folder())?;
    let (folder, bench) = (scratch.path().display(), bench.display());
    let policy = scratch.path().join("policy.json");
    #[expect(clippy::disallowed_methods, reason = "a temporary file of this measurement need not survive a crash")]
    std::fs::write(&policy, POLICY)?;
    let shim = format!("{program} guard shim --server-name bench --ledger {folder}/ledger.db");
    let mut subjects = vec![
        "direct=".to_owned(),
        format!("relay={bench} relay"),
        format!("guard={shim} --"),
        format!("guard with a policy={shim} --policy {folder}/policy.json --"),
    ];
    subjects.extend_from_slice(others);
    let parse = |subjects: &[String]| subjects.iter().map(|subject| Subject::parse(subject)).collect::<Vec<_>>();
    latency::measure(&parse(&subjects));
    volume::measure(&parse(&subjects));
    // The relay and the policy add nothing to the behaviour.
    subjects.retain(|subject| !subject.starts_with("relay") && !subject.contains("policy="));
    behaviour::compare(&parse(&subjects));
    Ok(())
}
