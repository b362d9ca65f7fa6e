//! Compares `docs/contract-tests.md` with the tests that it names.

use std::collections::BTreeSet;
use std::path::Path;

/// The groups of the checklist, with the number of requirements in each.
const GROUPS: [(&str, u32); 11] = [
    ("EVT", 9),
    ("HASH", 2),
    ("BUF", 4),
    ("POL", 7),
    ("ERR", 4),
    ("SEC", 2),
    ("PROC", 3),
    ("ID", 2),
    ("LED", 2),
    ("IMP", 2),
    ("ADAPT", 3),
];

#[test]
fn every_requirement_has_a_test_of_its_name() {
    let page = include_str!("../../../docs/contract-tests.md");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (id, test, file) = (cells[0], cells[2].trim_matches('`'), cells[3].trim_matches('`'));
        assert!(test.starts_with(&format!("{}_", id.to_lowercase().replace('-', "_"))), "{row}");
        let source = std::fs::read_to_string(workspace.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let at = source.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} has no {test}"));
        let before = source[..at].trim_end();
        // A macro makes tests of the functions that it names in a list.
        let is_test = before.lines().rev().take(4).any(|line| line.contains("#[test]"))
            || source.contains(&format!("    {test},\n"));
        assert!(is_test, "{test} is no test");
        assert!(!before.ends_with("#[ignore]"), "{test} is ignored");
        found.insert(id.to_owned());
    }
    let wanted: BTreeSet<String> = GROUPS
        .iter()
        .flat_map(|(group, count)| (1..=*count).map(move |number| format!("{group}-{number:03}")))
        .collect();
    assert_eq!(found, wanted);
}
