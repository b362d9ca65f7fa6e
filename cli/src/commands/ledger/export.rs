//! `counterproof ledger export`: the events of a ledger as a file, or its guarded runs as a page.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_ledger::location::{LedgerLocation, real_path};
use counterproof_ledger::query::{EventFilter, EventPages};
use counterproof_ledger::store::EventStore;
use counterproof_store::write::{AtomicFile, Durability};
use jiff::Timestamp;

use super::opened::{Place, Since, failed, since};
use super::page;
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::streams::safe_json;

/// Write the events as they were recorded, in the order of their arrival.
///
/// `--out` writes each line byte for byte, without a trailing carriage return. On standard output, characters that steer a terminal are
/// JSON escapes, which have the same meaning. `counterproof export-run --ledger` writes runs as artifacts that can be compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Format of the events
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Only events of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Only events from this time on: a time, or a duration before now such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<Utf8PathBuf>,

    /// Write a page of the guarded runs instead, refused calls first, as index.html in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "out"])]
    html: Option<Utf8PathBuf>,
}

/// What the events become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One event per line
    Jsonl,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    let store = store.as_mut();
    if let Some(run_id) = &args.run {
        // Otherwise an id with a typo would be an empty export.
        place.find_run(run_id, store)?;
    }
    let since = args.since.map(|since| since.sortable(Timestamp::now()));
    if let Some(folder) = &args.html {
        return page::write(folder, args.run.as_ref(), since.as_ref(), place, store, streams);
    }
    let filter = EventFilter { run_id: args.run.clone(), since };
    let Some(path) = &args.out else {
        let mut has_reader = true;
        pages(store, &filter, |line| {
            // A reader such as `head` closes the pipe. This ends the export without an error.
            has_reader = has_reader && streams.print_to_reader(&(safe_json(line) + "\n"))?;
            Ok(has_reader)
        })?;
        return Ok(Exit::Done);
    };
    reject_ledger(path, place)?;
    // Atomic, so that an export that fails leaves an earlier file as it was.
    let mut file = AtomicFile::create(path).map_err(CommandError::io)?;
    let mut count = 0_u64;
    pages(store, &filter, |line| {
        count += 1;
        file.write_all(line.as_bytes())
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| failed_write(path, &error))?;
        Ok(true)
    })?;
    // Not synced, because the ledger still has the events.
    file.commit(Durability::Cached).map_err(CommandError::io)?;
    if place.is_json {
        let document = serde_json::json!({ "events": count, "out": path });
        streams.print_document(&crate::streams::to_json(&document))?;
    } else {
        streams.print_line(format_args!("{count} events: {path}"))?;
    }
    Ok(Exit::Done)
}

/// Rejects a file of the ledger itself, which the events would replace.
fn reject_ledger(out: &Utf8Path, place: &Place) -> Result<(), CommandError> {
    // A link to the ledger names the same file.
    let out_file = real_path(out);
    let is_database = match &place.location {
        // SQLite has its log and the index of the log in files next to the database.
        LedgerLocation::SqliteFile(path) => ["", "-wal", "-shm"]
            .iter()
            .any(|suffix| real_path(&Utf8PathBuf::from(format!("{path}{suffix}"))) == out_file),
        LedgerLocation::PostgreSql(_) => false,
    };
    if is_database || out_file.starts_with(real_path(place.spool.path())) {
        return Err(
            CommandError::usage(format!("`{out}` is a file of the ledger")).hint("name another file with `--out`")
        );
    }
    Ok(())
}

/// Passes each line to `print`, until that returns false.
fn pages(
    store: &mut dyn EventStore,
    filter: &EventFilter,
    mut print: impl FnMut(&str) -> Result<bool, CommandError>,
) -> Result<(), CommandError> {
    let mut pages = EventPages::new(store, filter.clone()).map_err(failed)?;
    loop {
        let events = pages.next_page(store).map_err(failed)?;
        if events.is_empty() {
            return Ok(());
        }
        for event in &events {
            if !print(&event.line)? {
                return Ok(());
            }
        }
    }
}

fn failed_write(path: &Utf8Path, error: &std::io::Error) -> CommandError {
    CommandError::io(format!("failed to write `{path}`: {error}"))
}
