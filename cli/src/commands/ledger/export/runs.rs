//! The runs of a ledger as artifacts.

use camino::Utf8Path;
use counterproof_artifact::{Exit, NameError, RunId, Side};
use counterproof_ledger::export::{
    CASES_FILE, CasesFileError, Destination, ExportError, ExportedCase, ExportedRuns, SelectedRun, check_cases,
    export_runs, run_id, write_cases,
};
use counterproof_store::CreateError;
use serde_json::json;

use super::args::Args;
use super::selection::selected;
use crate::command_error::CommandError;
use crate::commands::ledger::opened::{Place, failed};
use crate::streams::Streams;
use crate::writer::WRITER;

/// The folder of all runs if none is named.
const RUNS: &str = "runs";

/// Exports the named runs, or the latest one, to a folder of all runs.
pub(super) fn export(args: &Args, side: Side, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let out = args.out.as_deref().unwrap_or(Utf8Path::new(RUNS));
    let mut store = place.open(streams)?;
    let selected = selected(args, place, store.as_mut(), streams)?;
    let run_id = match &args.run_id {
        Some(id) => id.clone(),
        None => default_run_id(&selected)?,
    };
    check_cases(out)
        .map_err(|error| CommandError::io(error).hint("nothing was exported; correct this file, or rename it"))?;
    let destination = Destination {
        out,
        side,
        run_id: &run_id,
        writer: WRITER.to_owned(),
        cases_path: format!("../../{CASES_FILE}"),
    };
    let exported = export_runs(store.as_mut(), &selected, &destination).map_err(export_failed)?;
    write_cases(out, &selected).map_err(cases_failed)?;
    for case in &exported.cases {
        warn_without_evidence(case, streams);
    }
    print(&exported, &out.join(CASES_FILE), place, streams)
}

fn default_run_id(selected: &[SelectedRun]) -> Result<RunId, CommandError> {
    let id: Option<Result<RunId, NameError>> = selected.first().map(|selected| run_id(&selected.run));
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
        streams.print_document(&crate::json_text::to_json(&document))?;
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

fn export_failed(error: ExportError) -> CommandError {
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
