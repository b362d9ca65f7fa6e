//! What a vector expects, held against what a program did.

use camino::Utf8Path;
use regex::Regex;

use crate::trial::Contents;
use crate::trial::Outcome;
use crate::vectors::{Command, Expected};

/// What is not as expected; empty where all of it is.
pub(crate) fn judge(expected: &Expected, command: &Command, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    exit_code(expected, outcome, &mut wrong);
    for (name, wanted, found) in
        [("stdout", &expected.stdout_contains, &outcome.stdout), ("stderr", &expected.stderr_contains, &outcome.stderr)]
    {
        let found = String::from_utf8_lossy(found);
        for text in wanted.iter().filter(|text| !found.contains(text.as_str())) {
            wrong.push(format!("{name} does not contain {text:?}"));
        }
    }
    files(expected, command, outcome, &mut wrong);
    logs(expected, outcome, &mut wrong);
    wrong
}

fn exit_code(expected: &Expected, outcome: &Outcome, wrong: &mut Vec<String>) {
    let found = outcome.code.map_or_else(|| "none, for a signal ended it".to_owned(), |code| code.to_string());
    let is = |accepted: &dyn Fn(i32) -> bool| outcome.code.is_some_and(accepted);
    if let Some(code) = expected.exit_code
        && !is(&|found| found == code)
    {
        wrong.push(format!("exit code: expected {code}, found {found}"));
    }
    if let Some(codes) = &expected.exit_code_one_of
        && !is(&|found| codes.contains(&found))
    {
        wrong.push(format!("exit code: expected one of {codes:?}, found {found}"));
    }
    if let Some((from, to)) = expected.exit_code_range
        && !is(&|found| (from..=to).contains(&found))
    {
        wrong.push(format!("exit code: expected {from} to {to}, found {found}"));
    }
}

fn files(expected: &Expected, command: &Command, outcome: &Outcome, wrong: &mut Vec<String>) {
    let (before, after) = (&outcome.before, &outcome.after);
    for path in expected.file_exists.iter().filter(|path| !after.holds(path)) {
        wrong.push(format!("`{path}` is missing"));
    }
    for path in expected.file_not_exists.iter().filter(|path| after.holds(path)) {
        wrong.push(format!("`{path}` is there"));
    }
    let new: Vec<_> = after.files.keys().filter(|path| !before.files.contains_key(*path)).collect();
    match expected.artifacts_created {
        Some(true) if new.is_empty() => wrong.push("no artifact was created".to_owned()),
        Some(false) if !new.is_empty() => wrong.push(format!("artifacts were created: {new:?}")),
        _ => {}
    }
    if expected.file_count_unchanged == Some(true) && before.files.len() != after.files.len() {
        wrong.push(format!("files: {} before, {} after", before.files.len(), after.files.len()));
    }
    if let Some(path) = &expected.original_file_unchanged
        && (!before.files.contains_key(path) || before.files.get(path) != after.files.get(path))
    {
        wrong.push(format!("`{path}` was changed"));
    }
    if !expected.archive_contains.is_empty() {
        let path = command.args.as_ref().and_then(|args| args.last()).map(String::as_str).unwrap_or_default();
        let Some(Contents::Archive(entries)) = after.files.get(Utf8Path::new(path)) else {
            return wrong.push(format!("`{path}` is no archive"));
        };
        for name in expected.archive_contains.iter().filter(|name| !entries.contains(*name)) {
            wrong.push(format!("`{path}` does not contain `{name}`"));
        }
    }
}

fn logs(expected: &Expected, outcome: &Outcome, wrong: &mut Vec<String>) {
    if let Some(folder) = &expected.log_file_in_dir
        && new(outcome, folder).next().is_none()
    {
        wrong.push(format!("there is no log in `{folder}`"));
    }
    let logs: Vec<_> = new(outcome, &outcome.log_folder).collect();
    if let Some(pattern) = &expected.log_file_pattern {
        match Regex::new(pattern) {
            Err(_) => wrong.push(format!("`{pattern}` is no pattern")),
            Ok(_) if logs.is_empty() => wrong.push(format!("there is no log in `{}`", outcome.log_folder)),
            Ok(regex) => {
                for (name, _) in logs.iter().filter(|(name, _)| !regex.is_match(name)) {
                    wrong.push(format!("the log's name `{name}` does not match `{pattern}`"));
                }
            }
        }
    }
    let texts: Vec<_> = logs.iter().filter_map(|(_, contents)| text(contents)).collect();
    for marker in expected.log_content_markers.iter().filter(|marker| !texts.iter().any(|text| text.contains(*marker)))
    {
        wrong.push(format!("no log contains {marker:?}"));
    }
    if texts.is_empty() && !expected.log_content_absent.is_empty() {
        wrong.push(format!("there is no log in `{}` that could lack anything", outcome.log_folder));
    }
    for marker in expected.log_content_absent.iter().filter(|marker| texts.iter().any(|text| text.contains(*marker))) {
        wrong.push(format!("a log contains {marker:?}"));
    }
}

/// The files in a folder that were not there before.
fn new<'a>(outcome: &'a Outcome, folder: &'a Utf8Path) -> impl Iterator<Item = (&'a str, &'a Contents)> {
    outcome.after.in_folder(folder).filter(move |(name, _)| !outcome.before.files.contains_key(&folder.join(name)))
}

fn text(contents: &Contents) -> Option<String> {
    match contents {
        Contents::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Contents::Archive(_) | Contents::Link(_) | Contents::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Snapshot;

    /// What is wrong where these files were there before and after.
    fn wrong(expected: &Expected, before: &[&str], after: &[&str]) -> Vec<String> {
        let snapshot = |paths: &[&str]| {
            let files = paths.iter().map(|path| ((*path).into(), Contents::Bytes(b"text\n".to_vec())));
            Snapshot { files: files.collect(), folders: Vec::new() }
        };
        let (before, after) = (snapshot(before), snapshot(after));
        let (stdout, stderr) = (Vec::new(), Vec::new());
        let outcome = Outcome { code: Some(1), stdout, stderr, before, after, log_folder: "logs".into() };
        judge(expected, &Command::default(), &outcome)
    }

    #[test]
    fn a_file_that_was_there_before_is_no_log() {
        let expected = Expected { log_file_in_dir: Some("logs".into()), ..Expected::default() };
        assert_eq!(wrong(&expected, &["logs/old"], &["logs/old"]), ["there is no log in `logs`"]);
        assert_eq!(wrong(&expected, &["logs/old"], &["logs/old", "logs/new"]), Vec::<String>::new());
    }

    #[test]
    fn only_a_log_can_lack_something() {
        let expected = Expected { log_content_absent: vec!["META".to_owned()], ..Expected::default() };
        for before in [&[][..], &["logs/old"]] {
            assert_eq!(wrong(&expected, before, before), ["there is no log in `logs` that could lack anything"]);
        }
        assert_eq!(wrong(&expected, &[], &["logs/new"]), Vec::<String>::new());
        let present = Expected { log_content_absent: vec!["text".to_owned()], ..Expected::default() };
        assert_eq!(wrong(&present, &[], &["logs/new"]), ["a log contains \"text\""]);
    }
}
