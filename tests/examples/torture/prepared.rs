//! What most attacks start from: runs, a report and records, made once by the programs themselves and then copied.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use counterproof_tests::{Agent, Reply, Sandbox, safe_run};
use serde_json::{Value, json};

use crate::attempt::Fault;
use crate::process::finish;
use crate::snapshot::copy;

/// The cases of the smaller cases file.
pub(crate) const CASES: usize = 12;

/// The cases of the larger one.
const MORE_CASES: usize = 20;

/// The agent of all attempts. Its answers depend on the length of the case's id only.
pub(crate) fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| Agent::start(|case_id| Reply::of_every_kind(case_id.len())))
}

/// Fills a sandbox with `cases.json`, `more.json`, the runs `baseline/b1`, `new/n1`, `new/n2` and the shards of `new/whole`, the
/// evaluation of a report, and the record of a command.
pub(crate) fn prepare(sandbox: &Sandbox) -> Result<(), Fault> {
    static TEMPLATE: OnceLock<Result<Sandbox, String>> = OnceLock::new();
    let template = TEMPLATE.get_or_init(|| build().map_err(|fault| fault.to_string()));
    let template = template.as_ref().map_err(|why| Fault::new(format!("the preparation failed: {why}")))?;
    copy(template.root().as_std_path(), sandbox.root().as_std_path())?;
    Ok(())
}

fn build() -> Result<Sandbox, Fault> {
    let sandbox = Sandbox::new()
        .with_file("cases.json", &cases(CASES).to_string())
        .with_file("more.json", &cases(MORE_CASES).to_string());
    for (side, run_id, file) in
        [("baseline", "b1", "cases.json"), ("new", "n1", "cases.json"), ("new", "n2", "more.json")]
    {
        run(&sandbox, &["--cases", file, "--side", side, "--run-id", run_id])?;
    }
    for shard in ["1", "2"] {
        let part = format!("{shard}/2");
        run(&sandbox, &["--cases", "cases.json", "--side", "new", "--run-id", "part", "--shard", &part])?;
    }
    finish(sandbox.command(["compare", "runs/baseline/b1", "runs/new/n1", "--out", "evaluated"]))?.ended_properly()?;
    finish(safe_run_in(&sandbox, &["sh", "-c", "seq 200; echo no >&2; exit 3"]))?.has_code(3)?;
    Ok(sandbox)
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Result<(), Fault> {
    let url = agent().base_url();
    let line = ["run", "--base-url", &url].into_iter().chain(arguments.iter().copied());
    finish(sandbox.command(line))?.has_code(0)
}

/// safe-run with these arguments, in the folder of a sandbox.
pub(crate) fn safe_run_in(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(safe_run());
    command.args(arguments).current_dir(sandbox.root()).env_remove("SAFE_LOG_DIR");
    command
}

/// Cases whose ids have several lengths, so that the agent answers in each of its ways.
pub(crate) fn cases(count: usize) -> Value {
    let id = |index: usize| format!("{}{index:02}", "c".repeat(index % 5 + 1));
    (0..count).map(|index| json!({"id": id(index), "input": {"user": "go"}})).collect()
}

/// The log of the recorded command in a prepared folder.
pub(crate) fn record(folder: &Path) -> Result<String, Fault> {
    let logs = folder.join(".agent/FAIL-LOGS");
    let first = std::fs::read_dir(&logs)?.next().ok_or_else(|| Fault::new("there is no record"))??;
    Ok(first.path().to_string_lossy().into_owned())
}
