//! The agents of `examples/` with their real packages: `check`, `accept`, and `check` of a version with a fault.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::install;
use crate::folders;
use crate::programs;
use crate::step::{Failure, progress, root};

const EXAMPLES: [&str; 4] = ["fastapi", "langgraph", "openai-agents", "pydantic-ai"];

/// The variable that makes the agents refund ten times too much.
const FAULT: (&str, &str) = ("SHOP_FAULT", "refund");

/// Installs the packages of all examples, and returns the folder of their programs.
pub(super) fn install() -> Result<Option<Utf8PathBuf>, Failure> {
    let mut packages = Vec::new();
    for example in EXAMPLES {
        let requirements = folders::read(&root().join("examples").join(example).join("requirements.txt"))?;
        packages.extend(String::from_utf8_lossy(&requirements).lines().map(str::to_owned));
    }
    let packages: Vec<_> = packages.iter().map(String::as_str).collect();
    install::python(&install::cached("agents"), &packages)
}

pub(super) fn run() -> Result<(), Failure> {
    let Some(programs) = install()? else { return Ok(()) };
    programs::build()?;
    for example in EXAMPLES {
        check_example(example, &programs)?;
    }
    Ok(())
}

fn check_example(name: &str, programs: &Utf8Path) -> Result<(), Failure> {
    let temporary =
        tempfile::tempdir().map_err(|source| Failure::File { path: "a temporary folder".into(), source })?;
    let folder = Utf8Path::from_path(temporary.path()).unwrap_or(root());
    // A copy, so that the runs and the baseline are not left in the repository.
    for file in folders::files(&root().join("examples").join(name))? {
        folders::copy(&file, &folder.join(file.file_name().unwrap_or_default()))?;
    }
    let example = Example { name, programs, folder };
    example.counterproof(&["check", "--format", "json"], None, 0)?;
    example.counterproof(&["accept", "--reason", "first baseline"], None, 0)?;
    example.counterproof(&["check", "--format", "json"], None, 0)?;
    let found = example.counterproof(&["check", "--format", "json"], Some(FAULT), 1)?;
    let found: Value = serde_json::from_slice(&found).unwrap_or_default();
    let verdict = |case: &str| {
        let cases = found["cases"].as_array().into_iter().flatten();
        cases.into_iter().find(|found| found["case_id"] == case).and_then(|found| found["verdict"].as_str())
    };
    if verdict("order_status") != Some("unchanged") || verdict("refund_damaged") != Some("regressed") {
        return Err(Failure::Interop(format!("{name}: the fault is not found in the refund alone: {found:#}")));
    }
    let left = processes_in(folder);
    if !left.is_empty() {
        return Err(Failure::Interop(format!("{name}: these processes of the agent are left: {}", left.join(", "))));
    }
    progress(&format!("    {name}: the fault is found, and no process is left"));
    Ok(())
}

/// A copy of an example.
struct Example<'a> {
    name: &'a str,
    programs: &'a Utf8Path,
    folder: &'a Utf8Path,
}

impl Example<'_> {
    /// Runs counterproof as a user who has activated the environment of the packages. Returns what it prints.
    fn counterproof(
        &self,
        arguments: &[&str],
        variable: Option<(&str, &str)>,
        expected: i32,
    ) -> Result<Vec<u8>, Failure> {
        let line = format!("counterproof {} in examples/{}", arguments.join(" "), self.name);
        progress(&format!("==> {line}"));
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(programs::counterproof());
        command.args(arguments).current_dir(self.folder).stdin(Stdio::null());
        command.env("PATH", format!("{}:{path}", self.programs)).env_remove(FAULT.0).envs(variable);
        let output = command.output().map_err(|source| Failure::Start { line: line.clone(), source })?;
        if output.status.code() == Some(expected) {
            return Ok(output.stdout);
        }
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Err(Failure::Interop(format!("`{line}`: {}, not exit code {expected}:\n{out}{err}", output.status)))
    }
}

/// Returns the processes that run in a folder. Empty on a system without `/proc`.
fn processes_in(folder: &Utf8Path) -> Vec<String> {
    let processes = Utf8Path::new("/proc").read_dir_utf8().into_iter().flatten().flatten();
    let runs_there = |process: &Utf8Path| process.join("cwd").read_link_utf8().is_ok_and(|cwd| cwd.starts_with(folder));
    let found = processes.filter(|process| runs_there(process.path()));
    found.map(|process| process.file_name().to_owned()).collect()
}
