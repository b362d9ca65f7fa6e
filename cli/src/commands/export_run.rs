//! `counterproof export-run`: records of commands in, a run folder out.

use camino::Utf8PathBuf;
use counterproof_artifact::{CaseId, Exit, RunId, Side, escape_invisible};
use counterproof_safe_run::{Destination, ExportError, RereadError, Source, Wrong, export};
use counterproof_store::CreateError;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Make a run of commands that safe-run has recorded, so that two recordings can be compared and read in the report.
///
/// Each record becomes a case: the command is the call of a tool, what it printed and its exit code are the result. The case's
/// id is made of the command, so the same command has the same id in every run. The record itself is kept among the assets, byte
/// for byte; secrets are masked when it is made, with `SAFE_REDACT`.
///
/// A record that is not whole is an error with its line: nothing is written then, and the record stays as it is.
///
/// Exit code 0: done. 2: a record is not whole, or the run is there already. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Logs with a ledger, or files that `safe-run --events` wrote
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<Utf8PathBuf>,

    /// The file that `safe-run --events` wrote beside the one LOG: it is held against it, and has the times
    #[arg(long, value_name = "FILE")]
    events: Option<Utf8PathBuf>,

    /// The side that the run stands for
    #[arg(long)]
    side: Side,

    /// The run's name, and that of its folder
    #[arg(long, value_name = "ID")]
    run_id: RunId,

    /// What the case of the one LOG is called; for commands that are written differently and are to be compared
    #[arg(long, value_name = "ID")]
    case_id: Option<CaseId>,

    /// The folder of all runs: the run is written to RUNS/SIDE/ID
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    out: Utf8PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    if args.logs.len() > 1 && (args.events.is_some() || args.case_id.is_some()) {
        return Err(CommandError::usage("`--events` and `--case-id` are for one LOG")
            .hint("a file of events is a LOG too, and says all that its log says"));
    }
    let source = |record: &Utf8PathBuf| Source {
        record: record.clone(),
        events: args.events.clone(),
        case_id: args.case_id.clone(),
    };
    let sources: Vec<Source> = args.logs.iter().map(source).collect();
    let writer = format!("counterproof {}", env!("CARGO_PKG_VERSION"));
    let destination = Destination { out: &args.out, side: args.side, run_id: &args.run_id, writer };
    let exported = export(&sources, &destination).map_err(command_error)?;
    for (id, command, exit_code) in &exported.cases {
        let command = escape_invisible(command);
        streams.note(format_args!("{id}: {command} (exit code {exit_code})"));
    }
    streams.say(format_args!("run folder: {}", exported.folder))?;
    Ok(Exit::Done)
}

fn command_error(error: ExportError) -> CommandError {
    match error {
        ExportError::Reread(RereadError::Broken { wrong: Wrong::NoLedger, .. }) => CommandError::usage(error)
            .hint("a log of the merged view has no ledger; `safe-run --events FILE` writes one for every command"),
        ExportError::Create(CreateError::Exists(_)) => CommandError::usage(error).hint("choose another --run-id"),
        ExportError::Reread(RereadError::Broken { .. })
        | ExportError::Differ { .. }
        | ExportError::Twice(_)
        | ExportError::Name(_) => CommandError::usage(error),
        ExportError::Reread(RereadError::Read { .. }) | ExportError::Create(_) | ExportError::Write(_) => {
            CommandError::io(error)
        }
    }
}
