//! `counterproof guard restore`: removes the guard from the servers of a client.

use counterproof_artifact::Exit;
use counterproof_guard::importer::{ImportError, Mode, RestoreOptions, RestoreOutcome, RestoreReport, restore};
use serde_json::json;

use super::import::{ClientConfig, print_servers};
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::streams::to_json;

/// Remove the guard from the MCP servers that a client has configured.
///
/// If the configuration is as the import left it, it gets the bytes of the original. If it was edited in the meantime, only the commands
/// of its servers are restored, and the edits stay. `--force` also restores a configuration that was deleted.
///
/// Exit code 0: done, also if there was nothing to restore. 2: invalid arguments or configuration, or no backup. 3: a file could not be
/// read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: ClientConfig,

    /// Return to the original, and discard all edits since the import
    #[arg(long)]
    force: bool,

    /// Print the changes as a unified diff without secrets, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let path = args.target.path()?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let options = RestoreOptions { client: args.target.client, config: &path, discards_edits: args.force, mode };
    let report = restore(&options).map_err(|error| {
        // With `--force`, a configuration need be neither valid nor there.
        let is_unusable = matches!(error, ImportError::Invalid { .. } | ImportError::Missing { .. }) && !args.force;
        let error = args.target.error(error);
        if is_unusable { error.hint("`--force` returns to the original, and discards all edits") } else { error }
    })?;
    if args.json {
        let document = json!({"client": args.target.client.name(), "dry_run": args.dry_run, "restore": report});
        streams.print_document(&to_json(&document))?;
    } else {
        print(&report, streams)?;
    }
    Ok(Exit::Done)
}

fn print(report: &RestoreReport, streams: &mut Streams) -> Result<(), CommandError> {
    let config = &report.config;
    // The original is restored as a whole, without a change to single servers.
    if report.restored == RestoreOutcome::Unwrapped {
        print_servers(&report.servers, streams)?;
    }
    if let Some(diff) = &report.diff {
        streams.print_line(format_args!("\n{}", diff.trim_end()))?;
        streams.print_line("\nnothing was written")?;
        return Ok(());
    }
    match report.restored {
        RestoreOutcome::Original => {
            streams.print_line(format_args!("restored {config}: it has the bytes of the original"))?;
        }
        RestoreOutcome::Unwrapped => {
            streams
                .print_line(format_args!("\nrestored the commands in {config}, and kept the edits since the import"))?;
        }
        RestoreOutcome::Nothing => {
            streams.print_line(format_args!("nothing to restore: no server in {config} starts through the guard"))?;
        }
    }
    if let Some(backup) = &report.backup {
        streams.print_line(format_args!("the original is still in {backup}"))?;
    }
    Ok(())
}
