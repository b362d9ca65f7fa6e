//! `counterproof ledger export`: the events of a ledger as files.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_ledger::query::{EventFilter, events_after, events_of_run};
use counterproof_ledger::store::EventStore;
use counterproof_store::write::{AtomicFile, Durability};
use jiff::Timestamp;

use super::opened::{Place, failed};
use super::time_args::{Since, since};
use crate::command_error::CommandError;
use crate::json_text::safe_json;
use crate::streams::Streams;

/// Events that are read at once.
const PAGE: u32 = 1000;

/// Write the events as they were recorded, in the order of their arrival.
///
/// `--out` writes each line with the bytes that its producer wrote. On standard output, characters that steer a terminal are JSON
/// escapes, which have the same meaning.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,

    /// Only events of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Only events from this time on: a time, or a duration before now such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<Utf8PathBuf>,
}

/// What the events become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One event per line
    Jsonl,
}

/// Runs the command.
pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    match args.format {
        Format::Jsonl => lines(args, place, store.as_mut(), streams),
    }
}

fn lines(args: &Args, place: &Place, store: &mut dyn EventStore, streams: &mut Streams) -> Result<Exit, CommandError> {
    let since = args.since.map(|since| since.sortable(Timestamp::now()));
    let filter = EventFilter { run_id: args.run.clone(), since };
    let Some(path) = &args.out else {
        let mut has_reader = true;
        pages(store, &filter, |line| {
            has_reader = has_reader && streams.print_to_reader(&(safe_json(line) + "\n"))?;
            Ok(has_reader)
        })?;
        return Ok(Exit::Done);
    };
    let mut file = AtomicFile::create(path).map_err(CommandError::io)?;
    let mut count = 0_u64;
    pages(store, &filter, |line| {
        count += 1;
        file.write_all(line.as_bytes())
            .and_then(|()| file.write_all(b"\n"))
            .map_err(|error| failed_write(path, &error))?;
        Ok(true)
    })?;
    file.commit(Durability::Cached).map_err(CommandError::io)?;
    if place.is_json {
        let document = serde_json::json!({ "events": count, "out": path });
        streams.print_document(&crate::json_text::to_json(&document))?;
    } else {
        streams.print_line(format_args!("{count} events: {path}"))?;
    }
    Ok(Exit::Done)
}

/// Passes each line to `print`, until that returns false.
fn pages(
    store: &mut dyn EventStore,
    filter: &EventFilter,
    mut print: impl FnMut(&str) -> Result<bool, CommandError>,
) -> Result<(), CommandError> {
    let mut last = 0;
    let mut end = i64::MAX;
    if let Some(run) = &filter.run_id {
        let Some(range) = events_of_run(store, run).map_err(failed)? else { return Ok(()) };
        (last, end) = (range.0 - 1, range.1);
    }
    while last < end {
        let events = events_after(store, filter, last, PAGE).map_err(failed)?;
        let Some(newest) = events.last() else { break };
        last = newest.id;
        for event in &events {
            if !print(&event.line)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn failed_write(path: &Utf8Path, error: &std::io::Error) -> CommandError {
    CommandError::io(format!("failed to write `{path}`: {error}"))
}
