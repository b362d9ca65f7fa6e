//! What the demos share: the folder, the comparison, and the check of the expected verdicts.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_artifact::evaluation::Evaluation;
use counterproof_demo::Planted;
use counterproof_report::PageSelection;
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability};

use crate::command_error::CommandError;
use crate::commands::compare::{CompareOptions, WriteBack, compare};
use crate::comparison_summary;
use crate::config::Config;
use crate::named_runs::RunSelection;
use crate::streams::Streams;

/// Creates the folder with the cases file. Rejects a folder that is neither empty nor from an earlier demo with these cases.
pub(crate) fn prepare(out: &Utf8Path, cases_path: &Utf8Path, cases: &str) -> Result<(), CommandError> {
    reject_foreign_folder(out, cases_path, cases)?;
    write::create_folder(out).map_err(CommandError::io)?;
    write::remove_leftovers_next_to(cases_path);
    write::write(cases_path, cases.as_bytes(), Durability::Cached).map_err(CommandError::io)
}

fn reject_foreign_folder(out: &Utf8Path, cases_path: &Utf8Path, cases: &str) -> Result<(), CommandError> {
    let empty = match out.read_dir_utf8() {
        // An interrupted demo can leave an unfinished file.
        Ok(mut entries) => {
            entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().starts_with(write::TEMPORARY_PREFIX)))
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if empty || read_file::read(cases_path, read_file::MAX_SMALL_BYTES).is_ok_and(|bytes| bytes == cases.as_bytes()) {
        return Ok(());
    }
    let message = format!("`{out}` exists and is not a folder of this demo");
    Err(CommandError::usage(message).hint("choose another folder with `--out`"))
}

/// Compares two runs, writes the report, and prints the summary.
pub(crate) fn compare_runs(
    out: &Utf8Path,
    cases_path: Utf8PathBuf,
    [baseline, new]: [Utf8PathBuf; 2],
    streams: &mut Streams,
) -> Result<Evaluation, CommandError> {
    let config = Config::default();
    let options = CompareOptions {
        baseline: RunSelection::Folders(vec![baseline]),
        new: RunSelection::Folders(vec![new]),
        cases: Some(cases_path),
        limits: config.gate,
        rules: config.rules,
        thresholds: config.statistics,
        is_deterministic: true,
        signals: config.signals,
        out: out.join("report"),
        pages: PageSelection::All,
        report_url: None,
        write_back: WriteBack::Enabled,
    };
    let evaluation = compare(&options, streams)?.evaluation;
    streams.print_line(comparison_summary::render(&evaluation))?;
    Ok(evaluation)
}

/// Checks that every case got the expected verdict, and prints where the report is.
pub(crate) fn check_verdicts(
    out: &Utf8Path,
    evaluation: &Evaluation,
    planted: &[Planted],
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let index = out.join("report/index.html");
    let unexpected = unexpected_verdicts(evaluation, planted, streams);
    if unexpected > 0 {
        let total = planted.len();
        streams.print_line(format_args!("{unexpected} of {total} cases got an unexpected verdict; report: {index}"))?;
        return Ok(Exit::Findings);
    }
    streams.print_line(
        "Demo complete: every case got the expected verdict. The gate fails because of the planted faults.",
    )?;
    streams.print_line(format_args!("Open the report: {index}"))?;
    Ok(Exit::Done)
}

/// Warns about each case that did not get the expected verdict. Returns their number.
fn unexpected_verdicts(evaluation: &Evaluation, planted: &[Planted], streams: &mut Streams) -> usize {
    let mut unexpected = 0;
    for planted in planted {
        let case = evaluation.cases.iter().find(|case| case.case_id.as_str() == planted.case_id);
        let verdict = case.map_or("missing", |case| case.verdict.as_str());
        if verdict != planted.verdict {
            unexpected += 1;
            let (id, expected, story) = (planted.case_id, planted.verdict, planted.story);
            streams.warn(format_args!("the verdict of `{id}` is {verdict}, expected {expected}: {story}"));
        }
    }
    unexpected
}
