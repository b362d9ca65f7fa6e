//! What is written about the rules, held against the rules.

use counterproof_artifact::check::Code;
use counterproof_artifact::schema::Kind;

#[test]
fn every_rule_is_in_the_manual_with_its_meaning_and_remedy_and_no_other_is() {
    let manual = include_str!("../../../docs/validate.md");
    let rows: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> =
        Code::ALL.iter().map(|code| format!("| `{code}` | {} | {} |", code.meaning(), code.remedy())).collect();
    assert_eq!(rows, expected, "the table of codes in docs/validate.md should read:\n{}", expected.join("\n"));
}

#[test]
fn every_document_is_in_the_chapter_on_formats() {
    let formats = include_str!("../../../docs/formats.md");
    for kind in Kind::ALL {
        assert!(formats.contains(&format!("`{kind}`")), "{kind}");
    }
}
