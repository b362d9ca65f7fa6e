//! `counterproof contract add` and `validate`: check contracts, and add them or new versions of them.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_contracts::Contract;
use counterproof_contracts::documents::{CheckedFile, check_file};
use counterproof_store::read_file;
use counterproof_validation::Report;
use serde_json::json;

use super::project::{Project, edit, is_standard_input, now};
use super::run_reporter::Failure;
use crate::findings::{self, Format};
use crate::streams::Streams;

/// Add contracts, or new versions of contracts, to the store.
///
/// All files are added, or none. A contract whose dependencies are all completed becomes ready. A dependency may be added later.
/// Adding the same version again changes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract files: one contract as JSON, or one per line in a file named *.jsonl; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Utf8PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let mut contracts: Vec<Contract> = Vec::new();
    let mut findings = counterproof_validation::Report::default();
    for file in &args.files {
        let checked = read_contracts(file)?;
        if checked.other_records > 0 {
            let message = format!("`{file}` is the file of a store: it has transitions as well as contracts");
            return Err(Failure::refused("usage", message).hint("pass `--store` to use it, or add only its contracts"));
        }
        findings.files += 1;
        findings.findings.extend(checked.findings);
        contracts.extend(checked.contracts);
    }
    // Before the store is opened: all files are added, or none.
    if !findings.findings.is_empty() {
        let format = if project.is_json { Format::Json } else { Format::Human };
        streams.print_document(&findings::render(&findings, format))?;
        return Ok(Exit::Findings);
    }
    if contracts.is_empty() {
        return Err(Failure::refused("usage", "the files contain no contract"));
    }
    // Versions follow each other, in whatever order their files are named.
    contracts.sort_by(|a, b| (&a.id, a.version).cmp(&(&b.id, b.version)));
    let store = project.open_for_changes()?;
    let added = edit(&store, streams)?.add(&contracts, now())?;
    for item in &added {
        for dependency in &item.missing {
            streams.warn(format_args!(
                "`{}` depends on `{dependency}`, which is not in the store; it stays pending until that contract is \
                 added and completed",
                item.id
            ));
        }
    }
    let rows = added.iter().map(|it| {
        let (id, version, state) = (&it.id, it.version, it.state);
        json!({"id": id, "version": version, "state": state, "added": it.is_new, "missing_dependencies": it.missing})
    });
    let document = json!({ "contracts": rows.collect::<Vec<_>>() });
    project.print(streams, &document, || {
        added.iter().fold(String::new(), |mut text, it| {
            let word = if it.is_new { "added" } else { "unchanged" };
            let _ = writeln!(text, "{word} {}@{} ({})", it.id, it.version, it.state);
            text
        })
    })?;
    Ok(Exit::Done)
}

/// Check contract files: fields and types, expressions, schemas, paths and resources.
///
/// All findings are listed, each with its line, column and remedy. Nothing is added to the store.
///
/// Exit code 0: all files are valid. 1: there are findings. 2: a file contains no contract. 3: a file cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArgs {
    /// Contract files: one contract as JSON, or one per line in a file named *.jsonl; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Utf8PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Runs the command.
pub(super) fn run_validate(args: &ValidateArgs, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let mut report = Report::default();
    for file in &args.files {
        let checked = read_contracts(file)?;
        if checked.findings.is_empty() && checked.contracts.is_empty() {
            // A check of nothing must not look like a check that passed.
            return Err(Failure::refused("usage", format!("`{file}` contains no contract")));
        }
        report.files += 1;
        report.findings.extend(checked.findings);
    }
    let format = if project.is_json { Format::Json } else { args.format };
    streams.print_document(&findings::render(&report, format))?;
    Ok(if report.findings.is_empty() { Exit::Done } else { Exit::Findings })
}

/// Reads and checks a contract file, or standard input.
pub(super) fn read_contracts(file: &Utf8Path) -> Result<CheckedFile, Failure> {
    // By its path, so that standard input has the same limit as a file.
    let source = if is_standard_input(file) { Utf8Path::new("/dev/stdin") } else { file };
    let bytes = read_file::read_argument(source, read_file::MAX_LARGE_BYTES).map_err(|error| {
        Failure::io(format!("cannot read `{file}`: {error}")).hint("check that the path exists and is readable")
    })?;
    Ok(check_file(file, &bytes))
}
