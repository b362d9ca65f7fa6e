//! `counterproof history`: renders the evaluations of many comparisons as one page.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_evaluator::text;
use counterproof_report::history::{self, History, HistoryFolder, SkippedPath};
use counterproof_store::{ReadError, read_evaluation};

use crate::command_error::CommandError;
use crate::report_output::report_error;
use crate::streams::Streams;

/// Render the history of many comparisons: verdicts over time, flaky cases, and when each case started to fail.
///
/// Reads evaluation.json in each folder, or else in the folders directly below it. Folders without a readable evaluation are
/// skipped with a warning and listed on the page. Copies of the same comparison count once.
///
/// Exit code 0: the page is written. 2: no folder contains an evaluation. 3: a file could not be written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folders with an evaluation.json, such as reports and run folders, or folders of such folders; also in a bucket
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<Utf8PathBuf>,

    /// Folder of the page, which links to the folders of the comparisons
    #[arg(long, value_name = "DIR", default_value = "history")]
    out: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let folders =
        args.folders.iter().map(|folder| streams.copies.evaluations(folder)).collect::<Result<Vec<_>, _>>()?;
    let (files, mut left_out) = history::find(&folders);
    if files.is_empty() {
        warn(&left_out, streams);
        return Err(CommandError::usage("no evaluation.json in any of the folders or directly below them")
            .hint("pass reports or run folders: `counterproof compare` writes an evaluation.json into each"));
    }
    // Before the evaluations are read, so that a folder with other content is rejected at once.
    let target = streams.copies.report(&args.out)?;
    let out = HistoryFolder::begin(&target).map_err(report_error)?;
    let mut history = History::default();
    for file in &files {
        // One at a time, because only the status of each case is kept of a large evaluation.
        let added = read_evaluation(file).map_err(|error| reason(&error)).and_then(|(evaluation, _)| {
            let folder = file.parent().unwrap_or(file);
            // A page cannot link to a bucket.
            let link = if streams.copies.is_of_bucket(folder) { None } else { href(out.target(), folder) };
            let named = Utf8PathBuf::from(streams.copies.original(folder.to_string()));
            history
                .add(&evaluation, history::source(&named, link))
                .map_err(|known| format!("same comparison as in `{}`", known.folder))
        });
        left_out.extend(added.err().map(|reason| SkippedPath { path: file.clone(), reason }));
    }
    warn(&left_out, streams);
    if history.is_empty() {
        return Err(CommandError::io("no evaluation could be read"));
    }
    let page = out.write(&history, &left_out).map_err(report_error)?;
    if target != args.out {
        streams.copies.publish(&target, &args.out)?;
    }
    streams
        .print_line(format_args!("history of {}: {page}", text::count(history.len(), "evaluation", "evaluations")))?;
    Ok(Exit::Done)
}

fn warn(left_out: &[SkippedPath], streams: &mut Streams) {
    for left in left_out {
        streams.warn(left);
    }
}

/// Formats a read error on one line. The caller adds the path.
fn reason(error: &ReadError) -> String {
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
