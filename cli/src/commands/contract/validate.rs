//! `counterproof contract validate`: checks contract files.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_contracts::documents::{CheckedFile, check_file};
use counterproof_store::read_file;
use counterproof_validation::Report;

use super::failure::Failure;
use super::project::{Project, is_standard_input};
use crate::findings::{self, Format};
use crate::streams::Streams;

/// Check contract files: fields and types, expressions, schemas, paths and resources.
///
/// All findings are listed, each with its line, column and remedy. Nothing is added to the store.
///
/// Exit code 0: all files are valid. 1: there are findings. 2: a file contains no contract. 3: a file cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract files: one contract as JSON, or one per line in a file named *.jsonl; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Utf8PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
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
    let source = if is_standard_input(file) { Utf8Path::new("/dev/stdin") } else { file };
    let bytes = read_file::read_argument(source, read_file::MAX_LARGE_BYTES).map_err(|error| {
        Failure::io(format!("cannot read `{file}`: {error}")).hint("check that the path exists and is readable")
    })?;
    Ok(check_file(file, &bytes))
}
