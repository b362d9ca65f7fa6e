//! `counterproof session export`: sessions as a run folder that can be compared, or in the formats of other programs.

use camino::Utf8PathBuf;
use clap::ValueEnum;
use counterproof_artifact::{CaseId, Exit, RunId, Side};
use counterproof_export::Destination;
use counterproof_export::sessions::{
    CaseKey, SessionExport, SessionExportError, case_id, check_cases, check_distinct, run_id, write_cases,
};
use counterproof_report::session::{SessionSource, write_session_page};
use counterproof_sessions::format::{OtlpContent, atif, otlp};
use counterproof_sessions::session::SessionHead;
use counterproof_sessions::store::SessionStore;
use counterproof_store::write::{self, Durability};
use counterproof_store::{CreateError, relative_path};
use serde_json::json;

use super::opened::{find, open};
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, failed};
use crate::streams::{Streams, WRITER, to_json};
use crate::value_parsers::new_run_id;

/// The cases file next to the runs, unless another one is named.
const CASES_FILE: &str = "sessions.cases.json";

/// Export sessions: as a run folder that `compare` reads, as OpenTelemetry or ATIF, or as a page.
///
/// With `--side`, each session becomes a case of the run folder RUNS/SIDE/ID. Two versions of an agent can thus be compared. Their
/// cases are added to a cases file, with the expectations that the session succeeds and that its last test run passes.
/// docs/session-export.md describes what becomes of each record.
///
/// Exit code 0: done. 2: unknown session, two sessions with the same case ID, or the run exists. 3: the ledger could not be read,
/// or a file not written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,

    /// Side of the comparison; required unless another format is chosen
    #[arg(long, required_unless_present_any = ["otlp", "atif", "html"])]
    side: Option<Side>,

    /// Folder of all runs; the run is written to RUNS/SIDE/ID
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    out: Utf8PathBuf,

    /// ID of the run and name of its folder [default: ID of the first session]
    #[arg(long, value_name = "ID", value_parser = new_run_id)]
    run_id: Option<RunId>,

    /// Cases file to create or extend [default: RUNS/sessions.cases.json]
    #[arg(long, value_name = "FILE")]
    cases: Option<Utf8PathBuf>,

    /// Where the case ID comes from: the title, or the key of the task in it, `[key] …` or `key: …`
    #[arg(long, value_name = "KEY", value_enum, default_value_t = By::Title)]
    by: By,

    /// Write one session as OTLP JSON
    #[arg(long, value_name = "FILE")]
    otlp: Option<Utf8PathBuf>,

    /// Include the texts of messages and tools in `--otlp`
    #[arg(long, requires = "otlp")]
    content: bool,

    /// Write one session as an ATIF trajectory
    #[arg(long, value_name = "FILE")]
    atif: Option<Utf8PathBuf>,

    /// Write one session as a page that opens from disk without scripts
    #[arg(long, value_name = "FILE")]
    html: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Title,
    Task,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    let mut heads = Vec::new();
    for id in &args.ids {
        let summary = find(&mut store, id, place)?;
        let head = summary.head().ok_or_else(|| {
            CommandError::io(format!("the session `{id}` has an origin or a status of a later version"))
                .hint("use the newer version of this program")
        })?;
        heads.push(head);
    }
    export_one(args, &heads, &mut store, place, streams)?;
    match args.side {
        Some(side) => export_run(args, side, &heads, &mut store, place, streams),
        None => Ok(Exit::Done),
    }
}

/// Writes one session in the other formats.
fn export_one(
    args: &Args,
    heads: &[SessionHead],
    store: &mut SessionStore,
    place: &Place,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    if args.otlp.is_none() && args.atif.is_none() && args.html.is_none() {
        return Ok(());
    }
    let [head] = heads else {
        return Err(CommandError::usage("`--otlp`, `--atif` and `--html` take one session")
            .hint("export each session to a file of its own"));
    };
    let events = store.events(&head.session_id).map_err(failed)?;
    let content = if args.content { OtlpContent::Included } else { OtlpContent::Excluded };
    let documents = [
        args.otlp.as_ref().map(|path| (path, otlp(head, &events, content))),
        args.atif.as_ref().map(|path| (path, atif(head, &events))),
    ];
    for (path, document) in documents.into_iter().flatten() {
        write::write_json(path, &document, Durability::Synced).map_err(CommandError::io)?;
        streams.log(format_args!("wrote {path}"));
    }
    if let Some(path) = &args.html {
        let forks = store.forks(&head.session_id).map_err(failed)?;
        let ledger = place.absolute();
        let source = SessionSource { head, events: &events, forks: &forks, ledger: Some(&ledger) };
        write_session_page(&source, path).map_err(CommandError::io)?;
        streams.log(format_args!("wrote {path}"));
    }
    Ok(())
}

fn export_run(
    args: &Args,
    side: Side,
    heads: &[SessionHead],
    store: &mut SessionStore,
    place: &Place,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let key = if args.by == By::Task { CaseKey::Task } else { CaseKey::Title };
    let ids: Vec<CaseId> =
        heads.iter().map(|head| case_id(head, key)).collect::<Result<_, _>>().map_err(CommandError::usage)?;
    check_distinct(ids.iter().zip(heads).map(|(id, head)| (id, head.session_id.as_str()))).map_err(export_failed)?;
    let run_id = match (&args.run_id, heads.first()) {
        (Some(id), _) => id.clone(),
        (None, Some(head)) => run_id(head).map_err(CommandError::usage)?,
        (None, None) => return Err(CommandError::usage("no session is selected")),
    };
    let cases = args.cases.clone().unwrap_or_else(|| args.out.join(CASES_FILE));
    // Before the export: a run folder whose cases cannot be listed would have to be exported again, under another name.
    check_cases(&cases)
        .map_err(|error| CommandError::io(error).hint("nothing was exported; correct this file, or rename it"))?;
    let destination =
        Destination { out: &args.out, side, run_id: &run_id, writer: WRITER.to_owned(), is_deterministic: false };
    let mut export = SessionExport::new(&destination).map_err(export_failed)?;
    for (head, id) in heads.iter().zip(ids) {
        let events = store.events(&head.session_id).map_err(failed)?;
        export.add(head, &events, id).map_err(export_failed)?;
    }
    let folder = args.out.join(side.to_string()).join(run_id.to_string());
    let cases_path = relative_path(&folder, &cases).unwrap_or_else(|| cases.clone()).into_string();
    let (folder, sessions) = export.finish(cases_path).map_err(export_failed)?;
    // Last, so that no case is listed without its run folder.
    write_cases(&cases, &sessions).map_err(|error| {
        CommandError::io(error).hint("the run folder is complete, but its cases are not in this file")
    })?;
    if place.is_json {
        let listed = sessions.iter().map(|it| {
            json!({"case_id": it.case_id, "session_id": it.session_id, "status": it.status, "calls": it.calls,
                "actions": it.actions})
        });
        let document = json!({"folder": folder, "cases_file": cases, "cases": listed.collect::<Vec<_>>()});
        streams.print_document(&to_json(&document))?;
        return Ok(Exit::Done);
    }
    for it in &sessions {
        streams.log(format_args!(
            "{}: session {}, {}, calls: {}, actions: {}",
            it.case_id, it.session_id, it.status, it.calls, it.actions
        ));
    }
    streams.log(format_args!("cases: {cases}"));
    streams.print_line(format_args!("run folder: {folder}"))?;
    Ok(Exit::Done)
}

fn export_failed(error: SessionExportError) -> CommandError {
    match error {
        SessionExportError::DuplicateCaseId { .. } => CommandError::usage(error).hint(
            "repeats of a task are runs of their own: export each with its own `--run-id`, and pass all folders to `compare`",
        ),
        SessionExportError::Create(CreateError::Exists(_)) => {
            CommandError::usage(error).hint("choose another ID with `--run-id`")
        }
        error => CommandError::io(error),
    }
}
