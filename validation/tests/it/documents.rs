//! The table of codes in docs/validate.md matches the codes.

use counterproof_validation::Code;

#[test]
fn the_manual_lists_every_code_with_its_meaning_and_remedy() {
    let manual = include_str!("../../../docs/validate.md");
    let rows: Vec<&str> =
        manual.lines().filter(|line| line.starts_with("| `") && line.split(" | ").count() == 3).collect();
    let expected: Vec<String> =
        Code::ALL.iter().map(|code| format!("| `{code}` | {} | {} |", code.meaning(), code.remedy())).collect();
    assert_eq!(rows, expected, "the table of codes in docs/validate.md should read:\n{}", expected.join("\n"));
}
