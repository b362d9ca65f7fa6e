//! Where what was found is not what it should be: golden output against a program, or the tool against a wrapper. Drift that
//! the contract prohibits is named as such.

use similar::{ChangeTag, TextDiff};

use super::golden::{File, Golden, Text};
use super::ledger;

/// The most lines of a difference that are told.
const TOLD: usize = 12;

/// All differences; empty where there are none.
pub(crate) fn drift(expected: &Golden, found: &Golden) -> Vec<String> {
    let mut wrong = Vec::new();
    if expected.exit_code != found.exit_code {
        wrong.push(format!("exit code: expected {}, found {}", code(expected), code(found)));
    }
    if expected.stdout != found.stdout {
        wrong.push(format!("data content of stdout differs\n{}", difference(&expected.stdout, &found.stdout)));
    }
    if expected.stderr != found.stderr {
        wrong.push(format!("data content of stderr differs\n{}", difference(&expected.stderr, &found.stderr)));
    }
    for path in expected.files.keys().filter(|path| !found.files.contains_key(*path)) {
        wrong.push(format!("artifact `{path}` is missing"));
    }
    for path in found.files.keys().filter(|path| !expected.files.contains_key(*path)) {
        wrong.push(format!("artifact `{path}` should not be there"));
    }
    for (path, should) in &expected.files {
        if let Some(is) = found.files.get(path).filter(|is| *is != should) {
            wrong.extend(file(path, should, is));
        }
    }
    wrong
}

fn code(golden: &Golden) -> String {
    golden.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

fn file(path: &str, expected: &File, found: &File) -> Vec<String> {
    let (File::Contents(expected), File::Contents(found)) = (expected, found) else {
        return vec![format!("artifact `{path}`: expected {expected:?}, found {found:?}")];
    };
    let ledgers = |text: &Text| text.text().as_deref().and_then(ledger::read);
    let mut wrong = match (ledgers(expected), ledgers(found)) {
        (Some(Ok(expected)), Some(Ok(found))) => events(&expected, &found),
        (Some(_), Some(Err(error))) => vec![format!("malformed: {error}")],
        (Some(_), None) => vec!["malformed: the ledger is missing".to_owned()],
        (None, _) | (Some(Err(_)), Some(Ok(_))) => Vec::new(),
    };
    if wrong.is_empty() {
        wrong.push("data content differs".to_owned());
    }
    let mut wrong: Vec<String> = wrong.iter().map(|text| format!("artifact `{path}`: {text}")).collect();
    if let Some(last) = wrong.last_mut() {
        last.push('\n');
        last.push_str(&difference(expected, found));
    }
    wrong
}

/// What differs between two ledgers, by the kind of drift.
fn events(expected: &[ledger::Event], found: &[ledger::Event]) -> Vec<String> {
    let mut wrong = Vec::new();
    if expected.len() != found.len() {
        wrong.push(format!("events: expected {}, found {}", expected.len(), found.len()));
    }
    for (should, is) in expected.iter().zip(found) {
        if should.seq != is.seq {
            wrong.push(format!("sequence number: expected {}, found {}", should.seq, is.seq));
        }
        if should.stream != is.stream {
            wrong.push(format!("event type of event {}: expected {}, found {}", should.seq, should.stream, is.stream));
        }
        if should.text != is.text {
            wrong.push(format!("data content of event {} differs", should.seq));
        }
    }
    wrong
}

fn difference(expected: &Text, found: &Text) -> String {
    let shown = |text: &Text| match text {
        Text::Lines(lines) => lines.concat(),
        Text::Base64 { base64 } => format!("base64:{base64}"),
    };
    let (expected, found) = (shown(expected), shown(found));
    let diff = TextDiff::from_lines(&expected, &found);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    let line = |change: similar::Change<&str>| {
        let sign = if change.tag() == ChangeTag::Delete { '-' } else { '+' };
        format!("{sign} {:?}", change.value())
    };
    changed.take(TOLD).map(line).collect::<Vec<_>>().join("\n")
}
