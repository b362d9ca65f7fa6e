//! The table of codes in docs/validate.md matches the codes.

use counterproof_validation::Code;

#[test]
fn every_rule_is_in_the_manual_with_its_meaning_and_remedy_and_no_other_is() {
    let manual = include_str!("../../../docs/validate.md");
    let rows: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> =
        Code::ALL.iter().map(|code| format!("| `{code}` | {} | {} |", code.meaning(), code.remedy())).collect();
    assert_eq!(rows, expected, "the table of codes in docs/validate.md should read:\n{}", expected.join("\n"));
}
