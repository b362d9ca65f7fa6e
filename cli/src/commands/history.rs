//! `counterproof history`: renders the evaluations of many comparisons as one page.

use std::panic;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_evaluator::text;
use counterproof_report::facts::{self, FactsFile, FactsReadError};
use counterproof_report::history::{self, History, HistoryFolder, SkippedPath};
use counterproof_store::{ReadError, read_evaluation};

use crate::command_error::CommandError;
use crate::report_output::report_error;
use crate::streams::Streams;
use crate::working_copies::reject_bucket;

/// Render the history of many comparisons: verdicts over time, flaky cases, and when each case started to fail.
///
/// Reads evaluation.json in each folder, or else in the folders directly below it. Folders without a readable evaluation are
/// skipped with a warning and listed on the page. Copies of the same comparison count once.
///
/// With `--facts`, reads the files of `counterproof export facts` instead. The page is the same; it links the reports that are still
/// where they were exported from.
///
/// Exit code 0: the page is written. 2: no folder contains an evaluation, or the folder of facts has none. 3: a file could not be written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folders with an evaluation.json, such as reports and run folders, or folders of such folders; also in a bucket
    #[arg(required_unless_present = "facts", value_name = "DIR")]
    folders: Vec<Utf8PathBuf>,

    /// Folder of facts, written by `counterproof export facts`, to read instead of evaluations
    #[arg(long, value_name = "DIR", conflicts_with = "folders")]
    facts: Option<Utf8PathBuf>,

    /// Folder of the page, which links to the folders of the comparisons
    #[arg(long, value_name = "DIR", default_value = "history")]
    out: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let (files, mut left_out) = match &args.facts {
        Some(folder) => found_facts(folder)?,
        None => found_evaluations(&args.folders, streams)?,
    };
    // Before the evaluations are read, so that a folder with other content is rejected at once.
    let target = streams.copies.report(&args.out)?;
    let out = HistoryFolder::begin(&target).map_err(report_error)?;
    let mut history = History::default();
    let mut hints = Vec::new();
    for file in files {
        // One at a time, because only the status of each case is kept of a large evaluation.
        let added = match &args.facts {
            Some(_) => add_facts(&mut history, &file, out.target()).map_err(|error| {
                hints.extend(hint(&error));
                error.to_string()
            }),
            None => add_evaluation(&mut history, &file, out.target(), streams),
        };
        left_out.extend(added.err().map(|reason| SkippedPath { path: file, reason }));
    }
    for skipped in &mut left_out {
        // The page is published, and must not name the working copies.
        skipped.path = streams.copies.original(skipped.path.to_string()).into();
        skipped.reason = streams.copies.original(std::mem::take(&mut skipped.reason));
    }
    warn(&left_out, streams);
    hints.sort_unstable();
    hints.dedup();
    for hint in hints {
        streams.log(format_args!("hint: {hint}"));
    }
    if history.is_empty() {
        return Err(CommandError::io(match args.facts {
            Some(_) => "no file of facts could be read",
            None => "no evaluation could be read",
        }));
    }
    let page = out.write(&history, &left_out).map_err(report_error)?;
    if target != args.out {
        streams.copies.publish(&target, &args.out)?;
    }
    streams
        .print_line(format_args!("history of {}: {page}", text::count(history.len(), "evaluation", "evaluations")))?;
    Ok(Exit::Done)
}

fn found_facts(folder: &Utf8Path) -> Result<(Vec<Utf8PathBuf>, Vec<SkippedPath>), CommandError> {
    reject_bucket(folder, "`--facts`")?;
    let files = facts::find(folder)
        .map_err(|skipped| CommandError::usage(format!("cannot read the folder `{folder}`: {}", skipped.reason)))?;
    if files.is_empty() {
        return Err(CommandError::usage(format!("no Parquet file in `{folder}`"))
            .hint(format!("write facts of your reports with `counterproof export facts DIR --out {folder}`")));
    }
    Ok((files, Vec::new()))
}

/// Returns the evaluations in or directly below the folders, and the folders without one.
pub(super) fn found_evaluations(
    folders: &[Utf8PathBuf],
    streams: &mut Streams,
) -> Result<(Vec<Utf8PathBuf>, Vec<SkippedPath>), CommandError> {
    let folders = folders.iter().map(|folder| streams.copies.evaluations(folder)).collect::<Result<Vec<_>, _>>()?;
    let (files, left_out) = history::find(&folders);
    if files.is_empty() {
        warn(&left_out, streams);
        return Err(CommandError::usage("no evaluation.json in any of the folders or directly below them")
            .hint("pass reports or run folders: `counterproof compare` writes an evaluation.json into each"));
    }
    Ok((files, left_out))
}

fn add_evaluation(history: &mut History, file: &Utf8Path, out: &Utf8Path, streams: &Streams) -> Result<(), String> {
    let (evaluation, _) = read_evaluation(file).map_err(|error| reason(&error))?;
    let folder = file.parent().unwrap_or(file);
    // A page cannot link to a bucket.
    let link = if streams.copies.is_of_bucket(folder) { None } else { href(out, folder) };
    let named = Utf8PathBuf::from(streams.copies.original(folder.to_string()));
    let added = history.add(&evaluation, history::source(&named, link));
    added.map_err(|known| format!("same comparison as in `{}`", known.folder))
}

fn add_facts(history: &mut History, file: &Utf8Path, out: &Utf8Path) -> Result<(), FactsReadError> {
    // A damaged file is reported as such: what the decoder prints when it panics is for its authors.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let read = FactsFile::read(file);
    panic::set_hook(hook);
    let facts = read?;
    let source = facts.evaluation().map(|folder| history::source(&folder, href(out, &folder)));
    facts.add_to(history, source)
}

/// What to do about a file of facts that was skipped.
const fn hint(error: &FactsReadError) -> Option<&'static str> {
    match error {
        FactsReadError::Version(_) => {
            Some("read these facts with the version of counterproof that wrote them, or newer")
        }
        FactsReadError::Io(_) | FactsReadError::Known(_) => None,
        _ => Some("write the facts of these nights again with `counterproof export facts`"),
    }
}

pub(super) fn warn(left_out: &[SkippedPath], streams: &mut Streams) {
    for left in left_out {
        streams.warn(left);
    }
}

/// Formats a read error on one line. The caller adds the path.
pub(super) fn reason(error: &ReadError) -> String {
    match error {
        ReadError::Io { source, .. } => format!("cannot be read: {source}"),
        ReadError::Document { source, .. } => format!("not a valid document: {source}"),
        ReadError::NoRun { .. } | ReadError::OnlyShards { .. } | ReadError::OnlyFailed { .. } => error.to_string(),
    }
}

/// Returns the link from the history to a folder's index page, or to its evaluation if it has no page.
fn href(out: &Utf8Path, folder: &Utf8Path) -> Option<String> {
    let to = folder.canonicalize_utf8().ok()?;
    // A run folder has an evaluation, but no page.
    let name = ["index.html", "evaluation.json"].into_iter().find(|name| folder.join(name).is_file())?;
    Some(counterproof_report::encode_path(&format!("{}{name}", relative_path(out, &to)?)))
}

/// Returns the relative path from one folder to another, with a slash at its end unless it is empty.
fn relative_path(from: &Utf8Path, to: &Utf8Path) -> Option<String> {
    let path = counterproof_store::relative_path(from, to)?;
    Some(path.components().flat_map(|part| [part.as_str(), "/"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_lead_up_and_down() {
        for (from, to, expected) in [
            ("/a/history", "/a/nights/1", "../nights/1/"),
            ("/a/nights/history", "/a/nights/1", "../1/"),
            ("/a", "/a/b", "b/"),
            ("/a/b", "/a", "../"),
            ("/a", "/a", ""),
        ] {
            assert_eq!(relative_path(Utf8Path::new(from), Utf8Path::new(to)).as_deref(), Some(expected), "{from} {to}");
        }
    }
}
