//! The parts of the task and their options: expressions against the conformance tests of CEL and another implementation, and the
//! ledger against a PostgreSQL server, which the tests start in temporary folders. Larger parts have files of their own.

use std::process::{Command, Stdio};
use std::time::Duration;

use camino::Utf8PathBuf;

use super::install::{self, succeeds};
use super::{agents, facts, formats, litellm, mcp, sessions};
use crate::programs;
use crate::step::{Failure, Step, progress, root};

/// Options of `cargo xtask interop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of random expressions
    #[arg(long, default_value_t = 20_000)]
    expressions: u32,
    /// Number that the random expressions follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Parts to run [default: all parts]
    #[arg(value_enum)]
    parts: Vec<Part>,
}

/// A part of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Both OpenAI protocols against litellm's mock server.
    Litellm,
    /// The conformance tests of CEL.
    Conformance,
    /// Random expressions, compared with Google's implementation of CEL.
    Differential,
    /// Clients and servers of the Model Context Protocol, with the guard between them and without it.
    Mcp,
    /// The conformance suite of the Model Context Protocol, with the proxy of the guard and without it.
    McpConformance,
    /// The official clients of OpenAI and Anthropic, with the recording proxy between them and without it.
    Sessions,
    /// The exports of a report and the files of `init --ci`, with published schemas and linters.
    Formats,
    /// The queries of docs/scale.md on facts.
    Facts,
    /// The agents of `examples/` with their real packages.
    Agents,
    /// The ledger in a PostgreSQL database.
    Postgres,
}

impl Default for Options {
    fn default() -> Self {
        Self { expressions: 20_000, seed: 1, parts: Vec::new() }
    }
}

/// Installs everything in advance. The downloads mostly wait, so CI starts them next to the compiler.
pub(crate) fn prepare() -> Result<(), Failure> {
    cel_specification()?;
    cel_implementation()?;
    litellm::install()?;
    mcp::install()?;
    sessions::install()?;
    formats::install()?;
    facts::install()?;
    agents::install()?;
    postgres_programs();
    Ok(())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let wanted = |part| options.parts.is_empty() || options.parts.contains(&part);
    if wanted(Part::Conformance) {
        cel_conformance()?;
    }
    if wanted(Part::Differential) {
        differential(options.expressions, options.seed)?;
    }
    if wanted(Part::Litellm) {
        litellm::run()?;
    }
    if wanted(Part::Mcp) {
        mcp::run()?;
    }
    if wanted(Part::McpConformance) {
        mcp::conformance()?;
    }
    if wanted(Part::Sessions) {
        sessions::run()?;
    }
    if wanted(Part::Formats) {
        formats::run()?;
    }
    if wanted(Part::Facts) {
        facts::run()?;
    }
    if wanted(Part::Agents) {
        agents::run()?;
    }
    if wanted(Part::Postgres) {
        postgres()?;
    }
    Ok(())
}

/// The tested versions of CEL. An update is a separate commit.
const SPECIFICATION: &str = "@bufbuild/cel-spec@0.6.1";
const IMPLEMENTATION: &str = "cel-expr-python==0.1.3";

fn cel_specification() -> Result<Option<Utf8PathBuf>, Failure> {
    install::npm(&install::cached("cel-spec"), &[SPECIFICATION])
}

fn cel_implementation() -> Result<Option<Utf8PathBuf>, Failure> {
    install::python(&install::cached("cel-expr-python"), &[IMPLEMENTATION])
}

/// Runs the conformance tests. The differences from CEL must be the ones of a list.
fn cel_conformance() -> Result<(), Failure> {
    let Some(modules) = cel_specification()? else { return Ok(()) };
    let programs = root().join("expression/examples/conformance");
    let script = programs.join("convert.mjs");
    let line = format!("node {script} {modules}");
    progress(&format!("==> {line}"));
    let mut node = Command::new("node");
    node.arg(&script).arg(&modules).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = node.output().map_err(|source| Failure::Start { line: line.clone(), source })?;
    if !output.status.success() {
        return Err(Failure::Step(line));
    }
    let folder = root().join("target/interop");
    install::create(&folder)?;
    let cases = folder.join("cases.jsonl");
    install::write(&cases, output.stdout)?;
    let differences = programs.join("expected_differences.txt");
    programs::build()?;
    programs::example("conformance", &[cases.into_string(), differences.into_string()])
}

/// Compares the results of random expressions.
fn differential(expressions: u32, seed: u64) -> Result<(), Failure> {
    let Some(programs) = cel_implementation()? else { return Ok(()) };
    let python = programs.join("python").into_string();
    programs::build()?;
    programs::example("differential", &[python, expressions.to_string(), seed.to_string()])
}

/// The package of Debian 12. Installing it starts no server there if the system has no service manager.
const PACKAGE: &str = "postgresql-15";

/// Where Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

const INSTALL_WITHIN: Duration = Duration::from_mins(5);

fn postgres() -> Result<(), Failure> {
    let Some(programs) = postgres_programs() else {
        install::skip(&format!("initdb is missing, and apt could not install {PACKAGE}"));
        return Ok(());
    };
    progress(&format!("    PostgreSQL in {programs}"));
    // All packages, because a single one has other features of the shared dependencies. Only the ledger has such tests.
    let tests =
        ["test", "--workspace", "--exclude", "xtask", "--locked", "--test", "it", "postgres::", "--", "--ignored"];
    Step::cargo(tests).env("COUNTERPROOF_POSTGRES_BIN", programs.as_str()).run()
}

/// Returns the folder of the programs, and installs them if necessary. Returns `None` if the machine cannot install them.
fn postgres_programs() -> Option<Utf8PathBuf> {
    if let Some(programs) = newest() {
        return Some(programs);
    }
    let install = || {
        progress(&format!("==> apt-get install {PACKAGE}"));
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends", PACKAGE]);
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        succeeds(apt, INSTALL_WITHIN)
    };
    let update = || {
        let mut apt = Command::new("apt-get");
        apt.args(["update", "--quiet"]);
        succeeds(apt, INSTALL_WITHIN)
    };
    // A fresh system has no lists of packages.
    let is_installed = install() || (update() && install());
    is_installed.then(newest).flatten()
}

/// Returns the folder of the newest version that is installed.
fn newest() -> Option<Utf8PathBuf> {
    let versions = Utf8PathBuf::from(VERSIONS).read_dir_utf8().ok()?;
    let version = |path: &Utf8PathBuf| path.file_name().and_then(|name| name.parse::<u32>().ok());
    let folders = versions.filter_map(|entry| Some(entry.ok()?.into_path()));
    let newest = folders.filter(|path| path.join("bin/initdb").is_file()).max_by_key(version)?;
    Some(newest.join("bin"))
}
