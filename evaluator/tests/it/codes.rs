//! The tables of codes in `docs/verdicts.md` list exactly the codes of the enums, in their order and with their meanings.

use counterproof_evaluator::{CauseCode, ReasonCode, SeverityPart};

const DOCS: &str = include_str!("../../../docs/verdicts.md");

/// The rows of the first table below a heading whose first cell is a code: the code, and the last cell.
fn rows(heading: &str) -> Vec<(&'static str, &'static str)> {
    let section = DOCS.split(heading).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
    let section = section.split("\n## ").next().unwrap_or(section);
    let row = |line: &'static str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let code = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((code, cells.next_back()?))
    };
    section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .filter_map(row)
        .collect()
}

fn assert_documented(heading: &str, codes: &[(&str, &str)]) {
    let rows = rows(heading);
    let documented: Vec<_> = rows.iter().map(|(code, _)| *code).collect();
    assert_eq!(documented, codes.iter().map(|(code, _)| *code).collect::<Vec<_>>(), "{heading}");
    for ((code, meaning), (_, text)) in codes.iter().zip(&rows) {
        assert!(text.starts_with(meaning), "`{code}` in {heading}: {text:?} does not start with {meaning:?}");
    }
}

#[test]
fn the_docs_list_every_reason_code_with_its_meaning() {
    let codes: Vec<_> = ReasonCode::ALL.iter().map(|code| (code.as_str(), code.meaning())).collect();
    assert_documented("## Reason codes", &codes);
}

#[test]
fn the_docs_list_every_cause_with_its_meaning() {
    let codes: Vec<_> = CauseCode::ALL.iter().map(|code| (code.as_str(), code.meaning())).collect();
    assert_documented("## Causes", &codes);
}

#[test]
fn the_docs_list_every_part_of_the_severity_with_its_meaning() {
    let codes: Vec<_> = SeverityPart::ALL.iter().map(|part| (part.as_str(), part.meaning())).collect();
    assert_documented("## Severity", &codes);
}

#[test]
fn a_code_of_a_newer_version_is_not_parsed() {
    assert_eq!(ReasonCode::parse("tool-error"), Some(ReasonCode::ToolError));
    assert_eq!(ReasonCode::parse("of-a-newer-version"), None);
}
