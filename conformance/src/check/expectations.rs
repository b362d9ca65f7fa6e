//! Checks the expectations of a vector.

use camino::Utf8Path;
use regex::Regex;

use crate::trial::{FileContents, TrialOutcome};
use crate::vectors::{Expected, VectorCommand};

/// Returns a problem for each expectation that the outcome does not meet.
pub(crate) fn check_expectations(expected: &Expected, command: &VectorCommand, outcome: &TrialOutcome) -> Vec<String> {
    let mut problems = check_exit_code(expected, outcome);
    for (name, texts, stream) in
        [("stdout", &expected.stdout_contains, &outcome.stdout), ("stderr", &expected.stderr_contains, &outcome.stderr)]
    {
        let stream = String::from_utf8_lossy(stream);
        let missing = texts.iter().filter(|text| !stream.contains(text.as_str()));
        problems.extend(missing.map(|text| format!("{name} does not contain {text:?}")));
    }
    problems.extend(check_files(expected, outcome));
    problems.extend(check_archive(expected, command, outcome));
    problems.extend(check_logs(expected, outcome));
    problems.extend(check_log_contents(expected, outcome));
    problems
}

fn check_exit_code(expected: &Expected, outcome: &TrialOutcome) -> Vec<String> {
    let found = outcome.exit_code.map_or_else(|| "none (killed by a signal)".to_owned(), |code| code.to_string());
    let mut problems = Vec::new();
    let mut expect = |is_met: &dyn Fn(i32) -> bool, expected: String| {
        // A signal has no exit code and meets no expectation of one.
        if !outcome.exit_code.is_some_and(is_met) {
            problems.push(format!("exit code: expected {expected}, found {found}"));
        }
    };
    if let Some(code) = expected.exit_code {
        expect(&|found| found == code, code.to_string());
    }
    if let Some(codes) = &expected.exit_code_one_of {
        expect(&|found| codes.contains(&found), format!("one of {codes:?}"));
    }
    if let Some((from, to)) = expected.exit_code_range {
        expect(&|found| (from..=to).contains(&found), format!("{from} to {to}"));
    }
    problems
}

fn check_files(expected: &Expected, outcome: &TrialOutcome) -> Vec<String> {
    let (before, after) = (&outcome.before, &outcome.after);
    let missing = expected.file_exists.iter().filter(|path| !after.contains(path));
    let unexpected = expected.file_not_exists.iter().filter(|path| after.contains(path));
    let mut problems: Vec<String> = missing.map(|path| format!("`{path}` is missing")).collect();
    problems.extend(unexpected.map(|path| format!("`{path}` exists")));
    let new: Vec<_> = after.files.keys().filter(|path| !before.files.contains_key(*path)).collect();
    match expected.artifacts_created {
        Some(true) if new.is_empty() => problems.push("no artifact was created".to_owned()),
        Some(false) if !new.is_empty() => problems.push(format!("artifacts were created: {new:?}")),
        _ => {}
    }
    if expected.file_count_unchanged == Some(true) && before.files.len() != after.files.len() {
        problems.push(format!("files: {} before, {} after", before.files.len(), after.files.len()));
    }
    if let Some(path) = &expected.original_file_unchanged
        // A file that did not exist before proves nothing.
        && (!before.files.contains_key(path) || before.files.get(path) != after.files.get(path))
    {
        problems.push(format!("`{path}` was changed"));
    }
    problems
}

fn check_archive(expected: &Expected, command: &VectorCommand, outcome: &TrialOutcome) -> Vec<String> {
    // Other commands have a last argument too, which is not an archive.
    if expected.archive_contains.is_empty() {
        return Vec::new();
    }
    // The path of the archive is the last argument.
    let path = command.args.as_ref().and_then(|args| args.last()).map(String::as_str).unwrap_or_default();
    let Some(FileContents::Archive(entries)) = outcome.after.files.get(Utf8Path::new(path)) else {
        return vec![format!("`{path}` is not an archive")];
    };
    let missing = expected.archive_contains.iter().filter(|name| !entries.contains(*name));
    missing.map(|name| format!("`{path}` does not contain `{name}`")).collect()
}

fn check_logs(expected: &Expected, outcome: &TrialOutcome) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(folder) = &expected.log_file_in_dir
        && new_files(outcome, folder).next().is_none()
    {
        problems.push(format!("there is no log in `{folder}`"));
    }
    let Some(pattern) = &expected.log_file_pattern else { return problems };
    let names: Vec<_> = new_files(outcome, &outcome.log_folder).map(|(name, _)| name).collect();
    match Regex::new(pattern) {
        Err(_) => problems.push(format!("`{pattern}` is not a valid pattern")),
        // A pattern without a log to match would be met by doing nothing.
        Ok(_) if names.is_empty() => problems.push(format!("there is no log in `{}`", outcome.log_folder)),
        Ok(regex) => {
            let others = names.into_iter().filter(|name| !regex.is_match(name));
            problems.extend(others.map(|name| format!("the log name `{name}` does not match `{pattern}`")));
        }
    }
    problems
}

fn check_log_contents(expected: &Expected, outcome: &TrialOutcome) -> Vec<String> {
    let logs: Vec<_> = new_files(outcome, &outcome.log_folder).filter_map(|(_, contents)| text(contents)).collect();
    let is_in_a_log = |marker: &&String| logs.iter().any(|log| log.contains(*marker));
    let missing = expected.log_content_markers.iter().filter(|marker| !is_in_a_log(marker));
    let mut problems: Vec<String> = missing.map(|marker| format!("no log contains {marker:?}")).collect();
    // Without a log, the absence of a text would be trivial.
    if logs.is_empty() && !expected.log_content_absent.is_empty() {
        problems.push(format!("there is no log in `{}` to check for absent text", outcome.log_folder));
    }
    let present = expected.log_content_absent.iter().filter(is_in_a_log);
    problems.extend(present.map(|marker| format!("a log contains {marker:?}")));
    problems
}

fn new_files<'a>(outcome: &'a TrialOutcome, folder: &'a Utf8Path) -> impl Iterator<Item = (&'a str, &'a FileContents)> {
    outcome.after.in_folder(folder).filter(move |(name, _)| !outcome.before.files.contains_key(&folder.join(name)))
}

fn text(contents: &FileContents) -> Option<String> {
    match contents {
        FileContents::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        FileContents::Archive(_) | FileContents::Link(_) | FileContents::Special(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Snapshot;

    const NO_PROBLEMS: [&str; 0] = [];

    fn snapshot(paths: &[&str]) -> Snapshot {
        let files = paths.iter().map(|path| ((*path).into(), FileContents::Bytes(b"text\n".to_vec())));
        Snapshot { files: files.collect(), folders: Vec::new() }
    }

    fn outcome(before: &[&str], after: &[&str]) -> TrialOutcome {
        TrialOutcome {
            exit_code: Some(1),
            stdout: b"out".to_vec(),
            stderr: b"err".to_vec(),
            before: snapshot(before),
            after: snapshot(after),
            log_folder: "logs".into(),
        }
    }

    /// Returns the problems for files before and after the trial.
    fn problems(expected: &Expected, before: &[&str], after: &[&str]) -> Vec<String> {
        check_expectations(expected, &VectorCommand::default(), &outcome(before, after))
    }

    #[test]
    fn exit_codes_are_checked() {
        let expected = |code, one_of, range| Expected {
            exit_code: code,
            exit_code_one_of: one_of,
            exit_code_range: range,
            ..Expected::default()
        };
        assert_eq!(problems(&expected(Some(1), Some(vec![1, 2]), Some((0, 1))), &[], &[]), NO_PROBLEMS);
        assert_eq!(
            problems(&expected(Some(2), Some(vec![3, 4]), Some((5, 9))), &[], &[]),
            [
                "exit code: expected 2, found 1",
                "exit code: expected one of [3, 4], found 1",
                "exit code: expected 5 to 9, found 1"
            ]
        );
        let killed = TrialOutcome { exit_code: None, ..outcome(&[], &[]) };
        let found = check_expectations(&expected(Some(1), None, None), &VectorCommand::default(), &killed);
        assert_eq!(found, ["exit code: expected 1, found none (killed by a signal)"]);
    }

    #[test]
    fn streams_are_checked() {
        let expected = |out: &str, err: &str| Expected {
            stdout_contains: vec![out.to_owned()],
            stderr_contains: vec![err.to_owned()],
            ..Expected::default()
        };
        assert_eq!(problems(&expected("ou", "rr"), &[], &[]), NO_PROBLEMS);
        let expected = expected("err", "out");
        assert_eq!(
            problems(&expected, &[], &[]),
            ["stdout does not contain \"err\"", "stderr does not contain \"out\""]
        );
    }

    #[test]
    fn files_are_checked() {
        let exists = Expected { file_exists: vec!["a".into()], ..Expected::default() };
        assert_eq!(problems(&exists, &[], &[]), ["`a` is missing"]);
        let absent = Expected { file_not_exists: vec!["a".into()], ..Expected::default() };
        assert_eq!(problems(&absent, &[], &["a"]), ["`a` exists"]);
        let created = |created| Expected { artifacts_created: Some(created), ..Expected::default() };
        assert_eq!(problems(&created(true), &["a"], &["a"]), ["no artifact was created"]);
        assert_eq!(problems(&created(false), &["a"], &["a", "b"]), ["artifacts were created: [\"b\"]"]);
        let unchanged = Expected { file_count_unchanged: Some(true), ..Expected::default() };
        assert_eq!(problems(&unchanged, &[], &["a"]), ["files: 0 before, 1 after"]);
        let original = Expected { original_file_unchanged: Some("a".into()), ..Expected::default() };
        assert_eq!(problems(&original, &["a"], &["a"]), NO_PROBLEMS);
        assert_eq!(problems(&original, &["a"], &[]), ["`a` was changed"]);
        assert_eq!(problems(&original, &[], &["a"]), ["`a` was changed"]);
    }

    #[test]
    fn entries_of_an_archive_are_checked() {
        let expected = Expected { archive_contains: vec!["a".to_owned(), "b".to_owned()], ..Expected::default() };
        let args = Some(vec!["folder".to_owned(), "out.zip".to_owned()]);
        let command = VectorCommand { args, ..VectorCommand::default() };
        let mut outcome = outcome(&[], &["out.zip"]);
        assert_eq!(check_expectations(&expected, &command, &outcome), ["`out.zip` is not an archive"]);
        outcome.after.files.insert("out.zip".into(), FileContents::Archive(vec!["a".to_owned()]));
        assert_eq!(check_expectations(&expected, &command, &outcome), ["`out.zip` does not contain `b`"]);
    }

    #[test]
    fn log_names_are_checked() {
        let expected = |pattern: &str| Expected { log_file_pattern: Some(pattern.to_owned()), ..Expected::default() };
        assert_eq!(problems(&expected("^a$"), &[], &["logs/a"]), NO_PROBLEMS);
        assert_eq!(problems(&expected("^a$"), &[], &["logs/b"]), ["the log name `b` does not match `^a$`"]);
        assert_eq!(problems(&expected("^a$"), &[], &["a"]), ["there is no log in `logs`"]);
        assert_eq!(problems(&expected("("), &[], &["logs/a"]), ["`(` is not a valid pattern"]);
    }

    #[test]
    fn log_contents_are_checked() {
        let expected = |marker: &str| Expected { log_content_markers: vec![marker.to_owned()], ..Expected::default() };
        assert_eq!(problems(&expected("text"), &[], &["logs/a"]), NO_PROBLEMS);
        assert_eq!(problems(&expected("other"), &[], &["logs/a"]), ["no log contains \"other\""]);
    }

    #[test]
    fn a_file_that_existed_before_is_not_a_log() {
        let expected = Expected { log_file_in_dir: Some("logs".into()), ..Expected::default() };
        assert_eq!(problems(&expected, &["logs/old"], &["logs/old"]), ["there is no log in `logs`"]);
        assert_eq!(problems(&expected, &["logs/old"], &["logs/old", "logs/new"]), NO_PROBLEMS);
    }

    #[test]
    fn an_absent_text_requires_a_log() {
        let expected = Expected { log_content_absent: vec!["META".to_owned()], ..Expected::default() };
        for before in [&[][..], &["logs/old"]] {
            assert_eq!(problems(&expected, before, before), ["there is no log in `logs` to check for absent text"]);
        }
        assert_eq!(problems(&expected, &[], &["logs/new"]), NO_PROBLEMS);
        let present = Expected { log_content_absent: vec!["text".to_owned()], ..Expected::default() };
        assert_eq!(problems(&present, &[], &["logs/new"]), ["a log contains \"text\""]);
    }
}
