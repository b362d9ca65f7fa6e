//! `counterproof export-run`: converts records of safe-run, or runs of a ledger, to a run folder.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Exit, NameError, RunId, Side, escape_invisible};
use counterproof_export::commands::{self, Source};
use counterproof_export::ledger::{
    self, CASES_FILE, ExportedCase, ExportedRuns, SelectedRun, case_id, check_cases, export_runs, write_cases,
};
use counterproof_export::{CasesFileError, Destination};
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::{RunFilter, RunRecord, SourceKind, runs, source_kinds};
use counterproof_ledger::store::EventStore;
use counterproof_safe_run::{LineError, ReadError};
use counterproof_store::CreateError;
use serde_json::json;

use super::ledger::{Place, failed};
use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::streams::WRITER;
use crate::value_parsers::{LedgerParser, new_case_id, new_run_id};
use crate::working_copies::reject_bucket;

/// Number of the latest runs among which one with calls or an agent is searched.
const SEARCHED: u32 = 100;

const LEDGER_VARIABLE: &str = "COUNTERPROOF_LEDGER";

/// Convert commands recorded by safe-run, or runs of a ledger, to a run folder, which can be compared and reported.
///
/// Each record LOG becomes a case with one tool call: the command is the call, its output and exit code are the result. The case ID is
/// derived from the command, thus the same command has the same ID in every run. The record is copied to the assets unchanged;
/// safe-run redacts secrets when it records, with `SAFE_REDACT`.
///
/// With `--ledger`, each recorded run becomes a case. Its tool calls are the steps, and its status is the final output. The cases are
/// added to RUNS/ledger.cases.json, with the expectations that the run succeeds and that no call is refused.
///
/// The run folder RUNS/SIDE/ID is complete or not there at all. An incomplete record is an error, and nothing is written.
///
/// Exit code 0: done. 2: a record is incomplete, or the run exists. 3: a file or the ledger could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Records: logs with a ledger, or event files written by `safe-run --events`
    #[arg(required_unless_present = "ledger", value_name = "LOG")]
    logs: Vec<Utf8PathBuf>,

    /// Event file of a single LOG, written by `safe-run --events`: provides the times, and must match the log
    #[arg(long, value_name = "FILE")]
    events: Option<Utf8PathBuf>,

    /// Export runs of a ledger: a SQLite file, or a `postgres://` URL [default: `COUNTERPROOF_LEDGER`, or
    /// `$XDG_STATE_HOME/counterproof/ledger.db`]
    #[arg(long, value_name = "LEDGER", num_args = 0..=1, value_parser = LedgerParser)]
    #[expect(clippy::option_option, reason = "clap's type for an option whose value is optional")]
    ledger: Option<Option<LedgerLocation>>,

    /// Run of the ledger to export; may be repeated [default: the latest run with calls or an agent]
    #[arg(long, value_name = "ID")]
    run: Vec<String>,

    /// Side of the comparison that this run belongs to
    #[arg(long)]
    side: Side,

    /// ID of the run and name of its folder [default with `--ledger`: ID of the recorded run]
    #[arg(long, value_name = "ID", value_parser = new_run_id, required_unless_present = "ledger")]
    run_id: Option<RunId>,

    /// Case ID of a single LOG or run; set it to compare commands that are written differently [default with `--ledger`: the label
    /// `case_id` of the workload, the agent, or `session`]
    #[arg(long, value_name = "ID", value_parser = new_case_id)]
    case_id: Option<CaseId>,

    /// Folder of all runs; the run is written to RUNS/SIDE/ID
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    out: Utf8PathBuf,

    /// Print the result of `--ledger` as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    reject_bucket(&args.out, "`--out` of `export-run`")?;
    let Some(location) = &args.ledger else {
        reject_without_ledger(args)?;
        return export_records(args, streams);
    };
    reject_with_ledger(args)?;
    let location = location.clone().map_or_else(ledger_of_environment, |location| Ok(Some(location)))?;
    let place = Place { is_json: args.json, ..Place::new(location.as_ref())? };
    export_ledger(args, &place, streams)
}

fn reject_without_ledger(args: &Args) -> Result<(), CommandError> {
    let options = [("--run", !args.run.is_empty()), ("--json", args.json)];
    if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
        return Err(CommandError::usage(format!("`{option}` requires `--ledger`"))
            .hint("pass `--ledger` to export runs of the ledger"));
    }
    // One event file, or one id, cannot belong to several records.
    if args.logs.len() > 1 && (args.events.is_some() || args.case_id.is_some()) {
        return Err(CommandError::usage("`--events` and `--case-id` require a single LOG")
            .hint("pass the event files themselves as LOG: each contains the complete record"));
    }
    Ok(())
}

fn reject_with_ledger(args: &Args) -> Result<(), CommandError> {
    if !args.logs.is_empty() || args.events.is_some() {
        let argument = if args.events.is_some() { "--events" } else { "LOG" };
        return Err(CommandError::usage(format!("`{argument}` and `--ledger` exclude each other"))
            .hint("export records and runs of a ledger separately, each with its own `--run-id`"));
    }
    if let Some((index, run)) = args.run.iter().enumerate().find(|(index, run)| args.run[..*index].contains(run)) {
        return Err(
            CommandError::usage(format!("`--run {run}` is given twice")).hint(format!("remove number {}", index + 1))
        );
    }
    if args.run.len() > 1 && args.case_id.is_some() {
        return Err(CommandError::usage("`--case-id` requires a single `--run`").hint(
            "record each run with `counterproof guard run --case ID`, or export each run with its own `--run-id`",
        ));
    }
    // The id of one of the runs would hide the others.
    if args.run.len() > 1 && args.run_id.is_none() {
        let side = args.side;
        return Err(CommandError::usage("several `--run` require `--run-id`")
            .hint(format!("choose a name for the folder below {side}, such as `--run-id nightly-1`")));
    }
    Ok(())
}

/// Returns the ledger that the variable names.
fn ledger_of_environment() -> Result<Option<LedgerLocation>, CommandError> {
    // Not read by clap: `--ledger` would count as given if the variable is set.
    let Some(value) = std::env::var_os(LEDGER_VARIABLE) else { return Ok(None) };
    let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
    // The message does not state the value, which may be a URL with a password.
    let location = text.and_then(|text| text.parse::<LedgerLocation>().map_err(|error| error.to_string()));
    location.map(Some).map_err(|problem| CommandError::usage(format!("invalid ledger ({LEDGER_VARIABLE}): {problem}")))
}

fn export_records(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let source = |record: &Utf8PathBuf| Source {
        record: record.clone(),
        events: args.events.clone(),
        case_id: args.case_id.clone(),
    };
    let sources: Vec<Source> = args.logs.iter().map(source).collect();
    let run_id = args.run_id.as_ref().ok_or_else(|| CommandError::usage("`--run-id` is required"))?;
    let exported = commands::export(&sources, &destination(args, run_id)).map_err(records_failed)?;
    for (id, command, exit_code) in &exported.cases {
        let command = escape_invisible(command);
        streams.log(format_args!("{id}: {command} (exit code {exit_code})"));
    }
    streams.print_line(format_args!("run folder: {}", exported.folder))?;
    Ok(Exit::Done)
}

fn destination<'a>(args: &'a Args, run_id: &'a RunId) -> Destination<'a> {
    Destination { out: &args.out, side: args.side, run_id, writer: WRITER.to_owned(), is_deterministic: false }
}

fn records_failed(error: commands::ExportError) -> CommandError {
    use commands::ExportError;

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

fn export_ledger(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    let selected = selected(args, place, store.as_mut(), streams)?;
    let run_id = match &args.run_id {
        Some(id) => id.clone(),
        None => default_run_id(&selected)?,
    };
    // Before the export: a run folder whose cases cannot be listed would have to be exported again, under another name.
    check_cases(&args.out)
        .map_err(|error| CommandError::io(error).hint("nothing was exported; correct this file, or rename it"))?;
    let cases_path = format!("../../{CASES_FILE}");
    let exported = export_runs(store.as_mut(), &selected, &destination(args, &run_id), cases_path);
    let exported = exported.map_err(export_failed)?;
    // Last, so that no case is listed without its run folder.
    write_cases(&args.out, &selected).map_err(cases_failed)?;
    for case in &exported.cases {
        warn_without_evidence(case, streams);
    }
    print(&exported, &args.out.join(CASES_FILE), place, streams)
}

/// Returns the runs that the arguments name, or the latest one, with their case ids.
fn selected(
    args: &Args,
    place: &Place,
    store: &mut dyn EventStore,
    streams: &mut Streams,
) -> Result<Vec<SelectedRun>, CommandError> {
    let chosen = if args.run.is_empty() {
        vec![latest(place, store, streams)?]
    } else {
        args.run.iter().map(|id| place.find_run(id, store)).collect::<Result<Vec<_>, _>>()?
    };
    let select = |run: RunRecord| {
        let case_id = args.case_id.clone().map_or_else(|| case_id(&run), Ok).map_err(CommandError::usage)?;
        Ok(SelectedRun { run, case_id })
    };
    chosen.into_iter().map(select).collect()
}

/// Returns the latest run with calls or an agent.
fn latest(place: &Place, store: &mut dyn EventStore, streams: &mut Streams) -> Result<RunRecord, CommandError> {
    let filter = RunFilter { limit: SEARCHED, ..RunFilter::default() };
    let found = runs(store, &filter).map_err(failed)?;
    if found.is_empty() {
        return Err(CommandError::usage(format!("the ledger `{}` has no runs", place.location))
            .hint("record one with `counterproof guard run`"));
    }
    for (skipped, run) in found.into_iter().enumerate() {
        // Clients start servers without a call, for example to list their tools. Such runs are not worth an export.
        let kinds = source_kinds(store, &run.run_id).map_err(failed)?;
        if run.calls > 0 || kinds.contains(&SourceKind::Agent) {
            let id = &run.run_id;
            match skipped {
                0 => streams.log(format_args!("the latest run: {id}")),
                _ => streams
                    .log(format_args!("the latest run with calls or an agent: {id}; newer runs without: {skipped}")),
            }
            return Ok(run);
        }
    }
    Err(CommandError::usage(format!(
        "none of the latest {SEARCHED} runs of the ledger `{}` has calls or an agent",
        place.location
    ))
    .hint("record one with `counterproof guard run`, or name a run of `counterproof ledger runs` with `--run`"))
}

fn default_run_id(selected: &[SelectedRun]) -> Result<RunId, CommandError> {
    let id: Option<Result<RunId, NameError>> = selected.first().map(|selected| ledger::run_id(&selected.run));
    id.transpose()
        .map_err(CommandError::usage)?
        .ok_or_else(|| CommandError::usage("no run is selected").hint("name a run with `--run`"))
}

fn print(
    exported: &ExportedRuns,
    cases_file: &Utf8Path,
    place: &Place,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    if place.is_json {
        let cases = exported.cases.iter().map(|case| {
            json!({
                "case_id": case.case_id, "run_id": case.run_id, "status": case.status, "calls": case.calls,
                "refused": case.refused,
            })
        });
        let cases: Vec<_> = cases.collect();
        let document = json!({"folder": exported.folder, "cases_file": cases_file, "cases": cases});
        streams.print_document(&crate::streams::to_json(&document))?;
        return Ok(Exit::Done);
    }
    for case in &exported.cases {
        let ExportedCase { case_id, run_id, status, calls, refused, .. } = case;
        streams.log(format_args!("{case_id}: run {run_id}, {status}, calls: {calls}, refused: {refused}"));
    }
    streams.log(format_args!("cases: {cases_file}"));
    streams.print_line(format_args!("run folder: {}", exported.folder))?;
    Ok(Exit::Done)
}

/// Warns about a run whose artifact cannot show what the agent did, or what a policy refused.
fn warn_without_evidence(case: &ExportedCase, streams: &mut Streams) {
    let run = &case.run_id;
    let wrap =
        "put the guard in front of the servers with `counterproof guard import CLIENT`, and record the run again";
    let (warning, hint) = match (case.calls, case.has_guard) {
        (0, false) => ("has no tool calls: no server was behind a guard", wrap),
        (0, true) => (
            "has no tool calls: the agent called no tool of the servers behind the guard",
            "check that the agent has these tools, or export another run of `counterproof ledger runs`",
        ),
        (_, false) => ("names no guard among its sources: it is unknown whether calls were refused", wrap),
        (_, true) => return,
    };
    streams.warn(format_args!("the run `{run}` {warning}"));
    streams.log(format_args!("hint: {hint}"));
}

fn export_failed(error: ledger::ExportError) -> CommandError {
    use ledger::ExportError;

    match error {
        ExportError::Store(error) => failed(error),
        ExportError::DuplicateCaseId { .. } => CommandError::usage(error).hint(
            "export them separately, each with its own `--run-id`, and pass all folders to `compare`; or record each case with \
             `counterproof guard run --case ID`",
        ),
        ExportError::Create(CreateError::Exists(_)) => {
            CommandError::usage(error).hint("choose another ID with `--run-id`")
        }
        error => CommandError::io(error),
    }
}

fn cases_failed(error: CasesFileError) -> CommandError {
    CommandError::io(error)
        .hint("the run folder is complete, but its cases are not in this file; export again with another `--run-id`")
}
