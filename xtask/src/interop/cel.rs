//! Expressions against the conformance tests of CEL, and against another implementation.

use std::process::{Command, Stdio};

use super::install;
use crate::step::{Failure, Step, progress, root};

/// The tested versions. An update is a commit of its own.
const SPECIFICATION: &str = "@bufbuild/cel-spec@0.6.1";
const IMPLEMENTATION: &str = "cel-expr-python==0.1.3";

const PROGRAMS: &str = "expression/examples";

/// Runs the conformance tests. The differences from CEL must be the ones of a list.
pub(super) fn conformance() -> Result<(), Failure> {
    let folder = root().join("target/interop/cel-spec");
    let Some(modules) = install::npm(&folder, &[SPECIFICATION])? else { return Ok(()) };
    let programs = root().join(PROGRAMS).join("conformance");
    let script = programs.join("convert.mjs");
    let line = format!("node {script} {modules}");
    progress(&format!("==> {line}"));
    let mut node = Command::new("node");
    node.arg(&script).arg(&modules).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = node.output().map_err(|source| Failure::Start { line: line.clone(), source })?;
    if !output.status.success() {
        return Err(Failure::Step(line));
    }
    let cases = folder.join("cases.jsonl");
    install::write(&cases, output.stdout)?;
    let differences = programs.join("expected_differences.txt");
    example("conformance", &[cases.into_string(), differences.into_string()])
}

/// Compares the results of random expressions.
pub(super) fn differential(expressions: u32, seed: u64) -> Result<(), Failure> {
    let folder = root().join("target/interop/cel-expr-python");
    let Some(programs) = install::python(&folder, &[IMPLEMENTATION])? else { return Ok(()) };
    let python = programs.join("python").into_string();
    example("differential", &[python, expressions.to_string(), seed.to_string()])
}

/// Runs an example of the crate of expressions.
fn example(name: &str, arguments: &[String]) -> Result<(), Failure> {
    let run = ["run", "--quiet", "--package", "counterproof-expression", "--locked", "--example", name, "--"];
    Step::cargo(run).with(arguments).run()
}
