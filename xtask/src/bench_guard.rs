//! Measures the guard between a client and a server, next to a relay that only copies and to another gateway, and the ledger next to
//! bare SQLite.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::interop;
use crate::machine;
use crate::step::{Failure, Step, root};

/// The other gateway. An update is a commit of its own.
const GATEWAY: &str = "mcp-egress-guard==1.0.1";

const INIT_WITHIN: Duration = Duration::from_mins(1);

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

/// Builds the programs and runs all parts.
pub(crate) fn run() -> Result<(), Failure> {
    let _ = writeln!(io::stdout(), "machine: {}", machine::notes());
    Step::cargo(["build", "--release", "--quiet", "--package", "counterproof", "--bin", "counterproof"]).run()?;
    Step::cargo(["build", "--release", "--quiet", "--package", "counterproof-guard", "--example", "bench_guard"])
        .run()?;
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), Utf8PathBuf::from);
    let (program, bench) = (target.join("release/counterproof"), target.join("release/examples/bench_guard"));
    let folder = target.join("bench-guard");
    std::fs::create_dir_all(&folder).map_err(|source| Failure::File { path: folder.clone(), source })?;
    interop::write(&folder.join("policy.json"), POLICY)?;
    let shim = format!("{program} guard shim --server-name bench --ledger {folder}/ledger.db");
    let mut subjects = vec![
        "direct=".to_owned(),
        format!("relay={bench} relay"),
        format!("guard={shim} --"),
        format!("guard with a policy={shim} --policy {folder}/policy.json --"),
    ];
    subjects.extend(gateway(&folder, &bench)?);
    example("measure", &subjects)?;
    // The relay and the policy add nothing to the behaviour.
    subjects.retain(|subject| !subject.starts_with("relay") && !subject.contains("policy="));
    example("behave", &subjects)?;
    let ledger = ["run", "--release", "--quiet", "--package", "counterproof-ledger", "--example", "bench_ledger", "--"];
    Step::cargo(ledger).with(&[folder.into_string()]).run()
}

fn example(mode: &str, subjects: &[String]) -> Result<(), Failure> {
    let run = ["run", "--release", "--quiet", "--package", "counterproof-guard", "--example", "bench_guard", "--"];
    Step::cargo(run).with(&[mode.to_owned()]).with(subjects).run()
}

/// Installs and configures the other gateway. Returns the command that starts it, or none if it cannot be installed.
fn gateway(folder: &Utf8Path, bench: &Utf8Path) -> Result<Option<String>, Failure> {
    let Some(programs) = interop::python(&folder.join("gateway"), &[GATEWAY])? else { return Ok(None) };
    let program = programs.join("mcp-egress-guard");
    let mut init = Command::new(&program);
    init.args(["init", "--output-dir", folder.as_str()]).stdout(Stdio::null());
    if !interop::succeeds(init, INIT_WITHIN) {
        return Err(Failure::Step(format!("{program} init")));
    }
    let config = folder.join("gateway.yaml");
    let text = std::fs::read_to_string(&config).map_err(|source| Failure::File { path: config.clone(), source })?;
    let command = format!("downstream_command: [{bench}, echo]");
    interop::write(&config, text.replace("downstream_command: []", &command))?;
    // The gateway reads its configuration from the current folder.
    let start = folder.join("gateway.sh");
    interop::write(&start, format!("cd {folder} && exec {program} run\n"))?;
    Ok(Some(format!("mcp-egress-guard=sh {start} --configured")))
}
