//! `counterproof export-run`: converts records of safe-run to a run folder.

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Exit, RunId, Side, escape_invisible};
use counterproof_safe_run::{Destination, ExportError, LineError, ReadError, Source, export};
use counterproof_store::CreateError;

use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::value_parsers::{new_case_id, new_run_id};
use crate::writer::WRITER;

/// Convert commands recorded by safe-run to a run folder, which can be compared and reported.
///
/// Each record becomes a case with one tool call: the command is the call, its output and exit code are the result. The case ID is
/// derived from the command, thus the same command has the same ID in every run. The record is copied to the assets unchanged;
/// safe-run redacts secrets when it records, with `SAFE_REDACT`.
///
/// An incomplete record is an error, and nothing is written.
///
/// Exit code 0: done. 2: a record is incomplete, or the run exists. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Records: logs with a ledger, or event files written by `safe-run --events`
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<Utf8PathBuf>,

    /// Event file of a single LOG, written by `safe-run --events`: provides the times, and must match the log
    #[arg(long, value_name = "FILE")]
    events: Option<Utf8PathBuf>,

    /// Side of the comparison that this run belongs to
    #[arg(long)]
    side: Side,

    /// ID of the run and name of its folder
    #[arg(long, value_name = "ID", value_parser = new_run_id)]
    run_id: RunId,

    /// Case ID of a single LOG; set it to compare commands that are written differently
    #[arg(long, value_name = "ID", value_parser = new_case_id)]
    case_id: Option<CaseId>,

    /// Folder of all runs; the run is written to RUNS/SIDE/ID
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    out: Utf8PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    if args.logs.len() > 1 && (args.events.is_some() || args.case_id.is_some()) {
        return Err(CommandError::usage("`--events` and `--case-id` require a single LOG")
            .hint("pass the event files themselves as LOG: each contains the complete record"));
    }
    let source = |record: &Utf8PathBuf| Source {
        record: record.clone(),
        events: args.events.clone(),
        case_id: args.case_id.clone(),
    };
    let sources: Vec<Source> = args.logs.iter().map(source).collect();
    let writer = WRITER.to_owned();
    let destination = Destination { out: &args.out, side: args.side, run_id: &args.run_id, writer };
    let exported = export(&sources, &destination).map_err(command_error)?;
    for (id, command, exit_code) in &exported.cases {
        let command = escape_invisible(command);
        streams.log(format_args!("{id}: {command} (exit code {exit_code})"));
    }
    streams.print_line(format_args!("run folder: {}", exported.folder))?;
    Ok(Exit::Done)
}

fn command_error(error: ExportError) -> CommandError {
    match error {
        ExportError::Read(ReadError::Invalid { error: LineError::NoLedger, .. }) => CommandError::usage(error)
            .hint("logs of the merged view have no ledger; record with `safe-run --events FILE` instead"),
        ExportError::Create(CreateError::Exists(_)) => {
            CommandError::usage(error).hint("choose another ID with `--run-id`")
        }
        ExportError::Read(ReadError::Invalid { .. })
        | ExportError::Mismatch { .. }
        | ExportError::DuplicateCaseId(_)
        | ExportError::Name(_) => CommandError::usage(error),
        ExportError::Read(ReadError::Read { .. }) | ExportError::Create(_) | ExportError::Write(_) => {
            CommandError::io(error)
        }
    }
}
