//! `counterproof ledger ingest`: adds events of any producer to a ledger.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_ledger::line::EventLine;
use counterproof_ledger::spool::replay;
use counterproof_ledger::store::{AppendResult, EventStore};
use counterproof_store::{line_log, read_file};
use serde_json::json;

use super::opened::{Place, failed, failed_spool, report};
use crate::command_error::CommandError;
use crate::streams::Streams;

const BATCH_LINES: usize = 1000;

/// Size of a batch in bytes after which no line is added.
const BATCH_BYTES: usize = 4 << 20;

/// Invalid lines that are reported one by one.
const REPORTED: u64 = 20;

/// Add events to the ledger: JSON Lines, one event per line.
///
/// An event has the fields `type`, `ts` and `run_id`. Events that the ledger has are skipped, so a file can be added again. Invalid lines
/// are reported with their numbers, and the valid ones are added.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File of events; `-` for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: Utf8PathBuf,
}

#[derive(Debug, Default)]
struct Ingested {
    appended: AppendResult,
    /// Events of which only the line is stored.
    lines_only: u64,
    invalid: u64,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let failed_read = |error: io::Error| CommandError::io(format!("failed to read `{}`: {error}", args.file));
    let mut input: Box<dyn BufRead> = if args.file == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let file: File = read_file::open_argument(&args.file).map_err(failed_read)?;
        Box::new(BufReader::with_capacity(256 * 1024, file))
    };
    // After the input: a file that cannot be read must not leave an empty ledger.
    let mut store = place.open_or_create()?;
    report(&replay(&place.spool, store.as_mut()).map_err(failed_spool)?, place, streams);
    let mut ingested = Ingested::default();
    let mut number = 0;
    let mut is_over = false;
    while !is_over {
        let mut batch = Vec::new();
        let mut bytes = 0;
        // Other writers wait for a batch, so its size is limited.
        while batch.len() < BATCH_LINES && bytes < BATCH_BYTES {
            let Some(line) = next_line(input.as_mut()).map_err(failed_read)? else {
                is_over = true;
                break;
            };
            number += 1;
            bytes += line.as_ref().map_or(0, Vec::len);
            batch.push((number, line));
        }
        ingested.add(&batch, &args.file, store.as_mut(), streams)?;
    }
    // Before the counts are printed, since closing can fail.
    store.close().map_err(failed)?;
    ingested.print(place, streams)
}

impl Ingested {
    fn add(
        &mut self,
        lines: &[(u64, Result<Vec<u8>, TooLong>)],
        file: &Utf8Path,
        store: &mut dyn EventStore,
        streams: &mut Streams,
    ) -> Result<(), CommandError> {
        let mut events = Vec::new();
        for (number, line) in lines {
            let reason = match line {
                Ok(line) if line.trim_ascii().is_empty() => continue,
                Ok(line) => match EventLine::parse(line) {
                    Ok(event) => {
                        self.lines_only += u64::from(!event.has_all_rows());
                        events.push(event);
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                Err(TooLong) => format!("more than {} bytes", line_log::MAX_LINE_BYTES),
            };
            self.invalid += 1;
            if self.invalid <= REPORTED {
                streams.log(format_args!("{file}:{number}: {reason}"));
            }
        }
        if events.is_empty() {
            return Ok(());
        }
        let appended = store.append(&events).map_err(failed)?;
        self.appended.added += appended.added;
        self.appended.repeated += appended.repeated;
        Ok(())
    }

    fn print(&self, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
        let Self { appended: AppendResult { added, repeated }, lines_only, invalid } = self;
        if *invalid > REPORTED {
            streams.log(format_args!("… and {} more invalid lines", invalid - REPORTED));
        }
        if place.is_json {
            let document = json!({
                "added": added, "already_stored": repeated, "without_rows": lines_only, "invalid_lines": invalid,
            });
            streams.print_document(&crate::streams::to_json(&document))?;
        } else {
            streams.print_line(format_args!("{}: {added} events added, {repeated} skipped", place.location))?;
            if *lines_only > 0 {
                streams.warn(format_args!(
                    "events with fields of an unexpected type: {lines_only}; they can be exported, but not queried"
                ));
            }
        }
        if *invalid == 0 {
            return Ok(Exit::Done);
        }
        Err(CommandError::findings(format!("invalid lines: {invalid}"))
            .hint("correct them and add the file again; events that are in the ledger are skipped"))
    }
}

/// A line beyond the limit, which was skipped.
#[derive(Debug)]
struct TooLong;

/// Reads the next line without its newline.
fn next_line(input: &mut dyn BufRead) -> io::Result<Option<Result<Vec<u8>, TooLong>>> {
    let mut line = Vec::new();
    // One byte more than the limit, for the newline of a line of maximum length.
    (&mut *input).take(line_log::MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > line_log::MAX_LINE_BYTES {
        // Without holding the rest of the line in memory.
        input.skip_until(b'\n')?;
        return Ok(Some(Err(TooLong)));
    }
    Ok(Some(Ok(line)))
}
