//! `counterproof session import`: adds the sessions of other programs.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use counterproof_artifact::Exit;
use counterproof_sessions::import::{
    Format, ImportError, ImportOptions, ImportProgress, ImportReport, SourceError, import,
};
use counterproof_sessions::session::Origin;
use counterproof_sessions::store::{SessionStore, redactor};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use serde_json::json;

use super::opened::recover_sessions;
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, Since, failed, since};
use crate::streams::{Streams, to_json};

/// Import sessions of Claude Code, Codex, OpenTelemetry, `OpenInference` or ATIF from files.
///
/// Importing a file again adds nothing, and a file that has grown adds what is new. Secrets are masked on the way in. The result
/// states how many lines, spans or steps of each type were read, mapped and left out; docs/session-import.md has the reasons.
/// Those of unknown types become opaque records.
///
/// Exit code 0: done. 1: a smaller share than `--min-coverage` was mapped or left out on purpose; the sessions are imported all
/// the same. 2: invalid arguments, or no file in a known format. 3: a file or the ledger could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, and folders whose files are imported
    #[arg(required = true, value_name = "FILE|FOLDER")]
    paths: Vec<Utf8PathBuf>,

    /// Format of all files [default: recognized by their content]
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,

    /// Only sessions that ended after this time: a time, or a duration before now such as 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// Smallest share of what was read that must be mapped or left out on purpose, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
    min_coverage: f64,
}

fn format_parser() -> impl clap::builder::TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(name))
        .try_map(|text| Format::ALL.into_iter().find(|format| name(*format) == text).ok_or("unknown format"))
}

const fn name(format: Format) -> &'static str {
    format.origin().word()
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    if let Some(path) = args.paths.iter().find(|path| !path.exists()) {
        return Err(CommandError::io(format!("`{path}` does not exist")));
    }
    let ledger = counterproof_ledger::open_or_create(&place.location).map_err(failed)?;
    let mut store = SessionStore::new(ledger).map_err(failed)?;
    recover_sessions(&mut store, place, streams);
    let masking = redactor(Origin::Record, &BTreeSet::new()).map_err(CommandError::usage)?;
    let since = args.since.map(|since| since.time(Timestamp::now()));
    let options = ImportOptions { format: args.format, since, redactor: &masking };
    let bar = progress_bar();
    let (mut added, mut others) = (0, Vec::new());
    let report = import(
        &args.paths,
        &options,
        &mut |session| {
            // The lines were masked before they were understood. Once more, for texts that are joined from several lines.
            let known = store.find(&session.head.session_id)?;
            if let Some(known) = known.filter(|known| known.origin != session.head.origin.word()) {
                // The same calls have other ids in another format, and would be counted twice.
                others.push((session.head.session_id, known.origin));
                return Ok(());
            }
            added += store.import(&session.head, session.events(), masking.clone())?;
            Ok(())
        },
        &mut |ImportProgress { files_read, files, sessions }| {
            bar.set_length(files as u64);
            bar.set_position(files_read as u64);
            bar.set_message(format!("{sessions} sessions"));
        },
    );
    bar.finish_and_clear();
    let report = report.map_err(|error| match error {
        ImportError::Source(error @ SourceError::UnknownFormat { .. }) => {
            CommandError::usage(error).hint("name the format with `--format`")
        }
        error => CommandError::io(error),
    })?;
    store.close().map_err(failed)?;
    for problem in &report.problems {
        streams.warn(format_args!("{}: {}", problem.path, problem.message));
    }
    for (id, origin) in &others {
        streams.warn(format_args!(
            "the session `{id}` is not imported, because the ledger has it from `{origin}`; name another ledger with `--ledger`"
        ));
    }
    if report.files == 0 && args.since.is_none() {
        return Err(
            CommandError::usage("none of the files is in a known format").hint("name the format with `--format`")
        );
    }
    let coverage = report.coverage();
    if place.is_json {
        let document = json!({
            "files": report.files, "sessions": report.sessions, "events_added": added, "read": report.read,
            "mapped": report.mapped, "left_out": report.left_out, "opaque": report.opaque, "coverage": coverage,
            "secrets": report.secrets,
        });
        streams.print_document(&to_json(&document))?;
    } else {
        print(&report, added, coverage, streams)?;
    }
    if coverage < args.min_coverage {
        streams.log(format_args!(
            "coverage {:.2} % is below {:.2} %: unknown lines became opaque records",
            coverage * 100.0,
            args.min_coverage * 100.0
        ));
        return Ok(Exit::Findings);
    }
    Ok(Exit::Done)
}

fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("importing {bar:30} {pos}/{len} files, {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Files without a known format that are named.
const LISTED: usize = 5;

fn print(report: &ImportReport, added: u64, coverage: f64, streams: &mut Streams) -> Result<(), CommandError> {
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    let list = |counts: &BTreeMap<String, u64>| {
        let types: Vec<_> = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        if types.is_empty() { "-".to_owned() } else { types.join(", ") }
    };
    streams.print_line(format_args!(
        "files: {}, sessions: {}, records added: {added}",
        report.files,
        report.sessions.len()
    ))?;
    streams.print_line(format_args!("read:     {:>7}", sum(&report.read)))?;
    for (name, counts) in [("mapped", &report.mapped), ("left out", &report.left_out), ("opaque", &report.opaque)] {
        streams.print_line(format_args!("{:9} {:>7}  {}", format!("{name}:"), sum(counts), list(counts)))?;
    }
    streams.print_line(format_args!("coverage: {:.2} %", coverage * 100.0))?;
    if report.secrets.found > 0 {
        let (found, sessions) = (report.secrets.found, report.secrets.sessions);
        streams.print_line(format_args!("masked: {found} secrets in {sessions} sessions"))?;
    }
    if !report.unrecognized.is_empty() {
        let names: Vec<_> = report.unrecognized.iter().take(LISTED).map(|path| format!("`{path}`")).collect();
        let more = report.unrecognized.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        streams.log(format_args!("files in no known format: {}{more}", names.join(", ")));
    }
    Ok(())
}
