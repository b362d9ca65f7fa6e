//! `counterproof batch`: the printed files are complete, and the shell script runs with a program in place of Slurm's.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer, program};
use serde_json::{Value, json};

/// Runs each task of an array one after the other, as `sbatch` would on one slot, and prints a number for the job.
const SBATCH: &str = r#"#!/bin/bash
set -eu
for option in "$@"; do case $option in --array=0-*) last=${option#--array=0-} ;; esac; done
cat > "job-$$.sh"
if [[ -n ${last-} ]]; then
  for ((task = 0; task <= last; task++)); do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=$last SLURM_ARRAY_TASK_STEP=1 \
      SLURM_ARRAY_TASK_COUNT=$((last + 1)) bash "job-$$.sh" >> tasks.log 2>&1
  done
else
  bash "job-$$.sh" > last.log 2>&1
fi
echo $$
"#;

fn printed(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let finished = sandbox.run(["batch"].iter().chain(arguments));
    assert_eq!(finished.code, Some(0), "{finished}");
    finished.stdout
}

#[test]
fn the_script_for_slurm_runs_all_shards_then_merges_and_compares_them() {
    let agent = Agent::start(|_| Reply::json(&minimal_answer()));
    let cases: Vec<_> = (0..9).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    let sandbox =
        Sandbox::new().with_file("my cases.json", &Value::from(cases).to_string()).with_file("bin/sbatch", SBATCH);
    std::fs::set_permissions(sandbox.path("bin/sbatch"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let url = agent.base_url();
    let baseline = ["run", "--cases", "my cases.json", "--side", "baseline", "--base-url", &url, "--out", "all runs"];
    assert_eq!(sandbox.run(baseline).code, Some(0));
    let line = ["slurm", "--shards", "3", "--cases", "my cases.json", "--out", "all runs", "--", "--base-url", &url];
    let script = printed(&sandbox, &line);
    let counterproof = program().parent().unwrap().display();
    let path = format!("{}:{counterproof}:{}", sandbox.path("bin"), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script, "batch.sh", "night-1"]).current_dir(sandbox.root()).env("PATH", path);
    let done = bash.output().unwrap();
    assert!(done.status.success(), "{}{script}", String::from_utf8_lossy(&done.stderr));
    let said = std::fs::read_to_string(sandbox.path("last.log")).unwrap();
    assert!(said.contains("9 cases: 9 unchanged") && said.contains("new night-1 compared"), "{said}");
    assert_eq!(sandbox.json("all runs/new/night-1/run.json")["selected_case_ids"].as_array().unwrap().len(), 9);
}

#[test]
fn manifests_and_scripts_quote_what_is_given() {
    let sandbox = Sandbox::new();
    let hostile = "http://a\"b\\c {{RUN}} $(touch x)";
    let line = ["kubernetes", "--shards", "2", "--run-id", "n1", "--image", "a\nb: c", "--", "--base-url", hostile];
    let kubernetes = printed(&sandbox, &line);
    let commands: Vec<Vec<String>> = kubernetes
        .lines()
        .filter_map(|line| serde_json::from_str(line.trim().strip_prefix("command: ")?).ok())
        .collect();
    assert_eq!(commands.len(), 3, "{kubernetes}");
    assert!(commands[0].contains(&hostile.replace('$', "$$")), "{kubernetes}");
    assert!(commands[0].ends_with(&["--shard", "auto/2", "--take-over"].map(str::to_owned)), "{kubernetes}");
    assert!(kubernetes.lines().all(|line| line.trim() != "b: c"), "{kubernetes}");

    let dask = printed(&sandbox, &["dask", "--shards", "2", "--cases", "a\"\"\".json", "--", "--base-url", hostile]);
    let run = dask.lines().find_map(|line| line.strip_prefix("RUN = ")).unwrap();
    assert_eq!(serde_json::from_str::<Vec<String>>(run).unwrap().last().unwrap(), hostile);
    assert!(
        dask.lines()
            .next()
            .unwrap()
            .ends_with("a___.json in 2 shards on a Dask cluster, then merges them and compares the run.")
    );
    let slurm = printed(&sandbox, &["slurm", "--shards", "2", "--", "--base-url", hostile]);
    assert!(slurm.contains("--base-url 'http://a\"b\\c {{RUN}} $(touch x)' --run-id"), "{slurm}");
    // Another night is another run.
    assert!(slurm.contains("RUN_ID=\"${1:-night-$(date +%Y-%m-%d)}\""), "{slurm}");
}

#[test]
fn options_that_the_file_sets_are_refused() {
    let sandbox = Sandbox::new();
    for (arguments, said) in [
        (&["slurm", "--shards", "2", "--", "--shard=1/2"][..], "`--shard=1/2` cannot be among"),
        (&["dask", "--shards", "2", "--", "--confirm"], "`--confirm` cannot be among"),
        (&["kubernetes", "--shards", "2", "--run-id", "Night_1"], "`Night_1` is not a name of a Job"),
        (&["kubernetes", "--shards", "2"], "--run-id <ID>"),
        (&["slurm", "--shards", "2", "--out", "s3://u:p@agents/runs"], "credentials come from the environment"),
        (&["slurm", "--shards", "0"], "expected a number of at least 1"),
    ] {
        let refused = sandbox.run(["batch"].iter().chain(arguments));
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
}
