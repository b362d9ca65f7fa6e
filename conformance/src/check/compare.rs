//! Compares two outcomes: a program with its golden output, or a wrapper with the tool. Each difference is named by the kind of
//! drift that the contract prohibits.

use similar::{ChangeTag, TextDiff};

use super::golden::{self, LedgerEvent};
use super::golden::{Golden, GoldenFile, GoldenText};

/// The most changed lines to include in a message.
const MAX_LINES: usize = 12;

pub(crate) fn compare(expected: &Golden, found: &Golden) -> Vec<String> {
    let mut differences = Vec::new();
    if expected.exit_code != found.exit_code {
        let (expected, found) = (exit_code(expected), exit_code(found));
        differences.push(format!("exit code: expected {expected}, found {found}"));
    }
    for (name, expected, found) in
        [("stdout", &expected.stdout, &found.stdout), ("stderr", &expected.stderr, &found.stderr)]
    {
        if expected != found {
            differences.push(format!("data content of {name} differs\n{}", changed_lines(expected, found)));
        }
    }
    for path in expected.files.keys().filter(|path| !found.files.contains_key(*path)) {
        differences.push(format!("artifact `{path}` is missing"));
    }
    for path in found.files.keys().filter(|path| !expected.files.contains_key(*path)) {
        differences.push(format!("artifact `{path}` is unexpected"));
    }
    for (path, expected) in &expected.files {
        if let Some(found) = found.files.get(path).filter(|found| *found != expected) {
            differences.extend(compare_files(path, expected, found));
        }
    }
    differences
}

fn exit_code(golden: &Golden) -> String {
    golden.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

fn compare_files(path: &str, expected: &GoldenFile, found: &GoldenFile) -> Vec<String> {
    let (GoldenFile::Contents(expected), GoldenFile::Contents(found)) = (expected, found) else {
        return vec![format!("artifact `{path}`: expected {expected:?}, found {found:?}")];
    };
    // By event, so that the kind of drift is named, and not only that lines differ.
    let ledger = |text: &GoldenText| text.text().as_deref().and_then(golden::parse);
    let mut differences = match (ledger(expected), ledger(found)) {
        (Some(Ok(expected)), Some(Ok(found))) => compare_events(&expected, &found),
        (Some(_), Some(Err(error))) => vec![format!("malformed: {error}")],
        (Some(_), None) => vec!["malformed: the ledger is missing".to_owned()],
        (None, _) | (Some(Err(_)), Some(Ok(_))) => Vec::new(),
    };
    // The ledgers are equal or absent, so the difference is elsewhere in the file.
    if differences.is_empty() {
        differences.push("data content differs".to_owned());
    }
    let mut differences: Vec<String> =
        differences.iter().map(|difference| format!("artifact `{path}`: {difference}")).collect();
    // Once for the file, after all differences, to keep the message short.
    if let Some(last) = differences.last_mut() {
        last.push('\n');
        last.push_str(&changed_lines(expected, found));
    }
    differences
}

fn compare_events(expected: &[LedgerEvent], found: &[LedgerEvent]) -> Vec<String> {
    let mut differences = Vec::new();
    // The events are compared anyway: the first one that differs shows where one is missing.
    if expected.len() != found.len() {
        differences.push(format!("events: expected {}, found {}", expected.len(), found.len()));
    }
    for (expected, found) in expected.iter().zip(found) {
        let seq = expected.seq;
        if seq != found.seq {
            differences.push(format!("sequence number: expected {seq}, found {}", found.seq));
        }
        if expected.stream != found.stream {
            let (expected, found) = (&expected.stream, &found.stream);
            differences.push(format!("event type of event {seq}: expected {expected}, found {found}"));
        }
        if expected.text != found.text {
            differences.push(format!("data content of event {seq} differs"));
        }
    }
    differences
}

fn changed_lines(expected: &GoldenText, found: &GoldenText) -> String {
    let as_text = |text: &GoldenText| match text {
        GoldenText::Lines(lines) => lines.concat(),
        GoldenText::Base64 { base64 } => format!("base64:{base64}"),
    };
    let (expected, found) = (as_text(expected), as_text(found));
    let diff = TextDiff::from_lines(&expected, &found);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    let line = |change: similar::Change<&str>| {
        let sign = if change.tag() == ChangeTag::Delete { '-' } else { '+' };
        // Quoted, so that blanks and line ends at the end of a line are visible.
        format!("{sign} {:?}", change.value())
    };
    changed.take(MAX_LINES).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const LEDGER: &str = "=== STDOUT ===\nout\n\n=== STDERR ===\n\n--- BEGIN EVENTS ---\n\
        [SEQ=1][META] safe-run start: cmd=\"x\"\n[SEQ=2][STDOUT] out\n[SEQ=3][META] safe-run exit: code=1\n\
        --- END EVENTS ---\n";

    fn golden(stdout: &str, files: &[(&str, &str)]) -> Golden {
        let text = |text: &str| GoldenText::from_bytes(text.as_bytes());
        let files = files.iter().map(|(path, contents)| ((*path).to_owned(), GoldenFile::Contents(text(contents))));
        let files: BTreeMap<_, _> = files.collect();
        Golden { exit_code: Some(1), stdout: text(stdout), stderr: text(""), files }
    }

    #[test]
    fn equal_outcomes_have_no_differences() {
        let golden = golden("out\n", &[("log", LEDGER)]);
        assert_eq!(compare(&golden, &golden.clone()), Vec::<String>::new());
    }

    #[test]
    fn exit_codes_and_streams_are_compared() {
        let expected = golden("one\ntwo\n", &[]);
        let found = Golden { exit_code: None, stderr: GoldenText::from_bytes(b"\xff"), ..golden("one\n2\n", &[]) };
        assert_eq!(
            compare(&expected, &found),
            [
                "exit code: expected 1, found none",
                "data content of stdout differs\n- \"two\\n\"\n+ \"2\\n\"",
                "data content of stderr differs\n+ \"base64:/w==\"",
            ]
        );
    }

    #[test]
    fn missing_and_unexpected_files_are_reported() {
        let (expected, found) = (golden("", &[("a", ""), ("b", "")]), golden("", &[("b", ""), ("c", "")]));
        assert_eq!(compare(&expected, &found), ["artifact `a` is missing", "artifact `c` is unexpected"]);
    }

    #[test]
    fn differences_between_ledgers_are_named_by_their_kind() {
        for (from, to, difference) in [
            ("SEQ=2", "SEQ=5", "sequence number: expected 2, found 5"),
            ("[STDOUT] out", "[STDERR] out", "event type of event 2: expected STDOUT, found STDERR"),
            ("[STDOUT] out", "[STDOUT] other", "data content of event 2 differs"),
            ("[SEQ=2][STDOUT] out\n", "", "events: expected 3, found 2"),
            ("--- END EVENTS ---\n", "", "malformed: the ledger has no end"),
            ("--- BEGIN EVENTS ---\n", "", "malformed: the ledger is missing"),
            ("STDOUT ===\nout", "STDOUT ===\nother", "data content differs"),
        ] {
            let found = LEDGER.replacen(from, to, 1);
            assert_ne!(found, LEDGER);
            let differences = compare(&golden("", &[("log", LEDGER)]), &golden("", &[("log", &found)]));
            let expected = format!("artifact `log`: {difference}");
            assert!(differences.iter().any(|text| text.lines().next() == Some(&*expected)), "{to}: {differences:#?}");
        }
    }

    #[test]
    fn a_file_that_became_a_link_is_a_difference() {
        let expected = golden("", &[("log", "text\n")]);
        let mut found = expected.clone();
        found.files.insert("log".to_owned(), GoldenFile::Link { link: "elsewhere".to_owned() });
        let differences = compare(&expected, &found);
        assert!(differences.len() == 1 && differences[0].contains("found Link"), "{differences:?}");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let many = "line\n".repeat(100);
        let differences = compare(&golden("", &[]), &golden(&many, &[]));
        assert_eq!(differences[0].lines().count(), 1 + MAX_LINES);
    }
}
