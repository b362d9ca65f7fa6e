//! `counterproof history`: the evaluations of many nights in, one page out.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_evaluator::report;
use counterproof_evaluator::report::history::{self, History, HistoryError, LeftOut, Place};
use counterproof_evaluator::values::text;
use counterproof_store::{ReadError, read_evaluation};

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Show many nights on one page: the verdicts over time, the cases that flip, and since when a case is wrong.
///
/// Reads the evaluation.json in each folder, or else those in the folders right below it, one at a time. What has none, or one
/// that cannot be read, is left out with a warning, and the page says so. The same comparison counts once.
///
/// Exit code 0: written. 2: there is no evaluation in any of the folders. 3: a file could not be written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Reports or run folders with an evaluation.json, or folders of such folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<Utf8PathBuf>,

    /// Where the page goes; its links lead from there to the nights' folders
    #[arg(long, value_name = "DIR", default_value = "history")]
    out: Utf8PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let (files, mut left_out) = history::find(&args.folders);
    if files.is_empty() {
        warn(&left_out, streams);
        return Err(CommandError::usage("there is no evaluation.json in any of the folders, nor right below them")
            .hint("`counterproof compare` writes one into its report and into the run folders"));
    }
    history::prepare(&args.out).map_err(history_error)?;
    let mut history = History::default();
    for file in &files {
        let added = read_evaluation(file).map_err(|error| why(&error)).and_then(|(evaluation, _)| {
            let folder = file.parent().unwrap_or(file);
            let place = Place { folder: folder.to_string(), href: href(&args.out, folder) };
            history.add(&evaluation, place).map_err(|known| format!("the same comparison as in `{}`", known.folder))
        });
        left_out.extend(added.err().map(|why| LeftOut { path: file.clone(), why }));
    }
    warn(&left_out, streams);
    if history.is_empty() {
        return Err(CommandError::io("no evaluation could be read"));
    }
    let page = history::write(&args.out, &history, &left_out).map_err(history_error)?;
    streams.say(format_args!("history of {}: {page}", text::count(history.len(), "night", "nights")))?;
    Ok(Exit::Done)
}

fn warn(left_out: &[LeftOut], streams: &mut Streams) {
    for left in left_out {
        streams.note(format_args!("warning: {left}"));
    }
}

/// Why an evaluation cannot be read, on one line. Which it is stands before it.
fn why(error: &ReadError) -> String {
    match error {
        ReadError::Io { source, .. } => format!("it cannot be read: {source}"),
        ReadError::Document { source, .. } => format!("it is not a valid document: {source}"),
        ReadError::NoRun { .. } | ReadError::OnlyShards { .. } => error.to_string(),
    }
}

fn history_error(error: HistoryError) -> CommandError {
    match error {
        HistoryError::NotAHistory(_) => CommandError::usage(error).hint("choose another folder with `--out`"),
        HistoryError::Read { .. } | HistoryError::Write(_) | HistoryError::Render(_) => CommandError::io(error),
    }
}

/// The page of a night's folder, or its evaluation where there is no page, as the history links to it.
fn href(out: &Utf8Path, folder: &Utf8Path) -> Option<String> {
    let (from, to) = (out.canonicalize_utf8().ok()?, folder.canonicalize_utf8().ok()?);
    let name = ["index.html", "evaluation.json"].into_iter().find(|name| folder.join(name).is_file())?;
    Some(report::encode_path(&format!("{}{name}", way(&from, &to)?)))
}

/// The way from one folder to another; `None` where there is none, as between two disks of Windows.
fn way(from: &Utf8Path, to: &Utf8Path) -> Option<String> {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let is_plain = |part: &&Utf8Component<'_>| matches!(part, Utf8Component::Normal(_));
    if !from[shared..].iter().chain(&to[shared..]).all(|part| is_plain(&part)) {
        return None;
    }
    let up = from[shared..].iter().map(|_| "../");
    let down = to[shared..].iter().map(Utf8Component::as_str);
    Some(up.map(str::to_owned).chain(down.map(|part| format!("{part}/"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_leads_up_and_down() {
        for (from, to, expected) in [
            ("/a/history", "/a/nights/1", "../nights/1/"),
            ("/a/nights/history", "/a/nights/1", "../1/"),
            ("/a", "/a/b", "b/"),
            ("/a/b", "/a", "../"),
            ("/a", "/a", ""),
        ] {
            assert_eq!(way(Utf8Path::new(from), Utf8Path::new(to)).as_deref(), Some(expected), "{from} {to}");
        }
    }
}
