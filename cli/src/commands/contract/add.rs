//! `counterproof contract add`: adds contracts, or new versions of them.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_contracts::Contract;
use serde_json::json;

use super::failure::Failure;
use super::project::{Project, edit, now};
use super::validate::read_contracts;
use crate::findings::{self, Format};
use crate::streams::Streams;

/// Add contracts, or new versions of contracts, to the store.
///
/// All files are added, or none. A contract whose dependencies are all completed becomes ready. Adding the same version again
/// changes nothing.
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
    let rows =
        added.iter().map(|it| json!({"id": it.id, "version": it.version, "state": it.state, "added": it.is_new}));
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
