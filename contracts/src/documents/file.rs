//! Parses and checks a contract file.

use std::sync::LazyLock;

use camino::Utf8Path;
use counterproof_validation::{Code, DocumentSchema, DocumentText, Finding, RuleFinding};
use serde_json::Value;

use super::rules::rules;
use crate::contract::{CONTRACT_SCHEMA_SOURCE, Contract};
use crate::record::Record;

/// The contracts of a file, and what is wrong with it.
#[derive(Debug, Default)]
pub struct CheckedFile {
    /// The valid contracts, in the order of the file.
    pub contracts: Vec<Contract>,
    /// The number of other records, which only the file of a store has.
    pub other_records: usize,
    /// All findings, in the order of the text. Empty if the file is valid.
    pub findings: Vec<Finding>,
}

static CONTRACT: LazyLock<DocumentSchema> = LazyLock::new(|| compile("contract.v1", CONTRACT_SCHEMA_SOURCE));

/// The schema of the other lines, which are checked by their types.
static RECORD: LazyLock<DocumentSchema> = LazyLock::new(|| compile("record", "true"));

#[expect(clippy::expect_used, reason = "the schemas are part of the program, and the tests compile them")]
fn compile(name: &str, source: &str) -> DocumentSchema {
    let source: Value = serde_json::from_str(source).expect("an embedded schema is JSON");
    DocumentSchema::compile(name, &source).expect("an embedded schema is valid")
}

/// Checks the content of a contract file. A file named `*.jsonl` or `*.ndjson` has one document per line; it may be the file of a store.
pub fn check_file(path: &Utf8Path, bytes: &[u8]) -> CheckedFile {
    let mut checked = CheckedFile::default();
    if !matches!(path.extension(), Some("jsonl" | "ndjson")) {
        check_document(DocumentText { file: path, bytes, first_line: 1 }, &mut checked);
        return checked;
    }
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            check_document(DocumentText { file: path, bytes: line, first_line: index + 1 }, &mut checked);
        }
    }
    checked
}

fn check_document(text: DocumentText<'_>, checked: &mut CheckedFile) {
    let is_record = serde_json::from_slice::<Value>(text.bytes).is_ok_and(|value| value.get("record").is_some());
    if is_record {
        match Record::parse(text.bytes) {
            Ok(_) => checked.other_records += 1,
            Err(error) => {
                let rule = |_: &Value| {
                    let expected = "a transition or a note, as the store writes it";
                    vec![RuleFinding::new(Code::WrongValue, "", error.to_string(), expected)]
                };
                checked.findings.extend(RECORD.check(text, rule).findings);
            }
        }
        return;
    }
    let document = CONTRACT.check(text, rules);
    let mut findings = document.findings;
    if findings.is_empty()
        && let Some(value) = document.value
    {
        match serde_json::from_value::<Contract>(value) {
            Ok(contract) => checked.contracts.push(contract),
            // The schema and the rules check everything that the types check; this is for what they could miss.
            Err(error) => {
                let rule = |_: &Value| vec![RuleFinding::new(Code::WrongValue, "", error.to_string(), "a contract")];
                findings = RECORD.check(text, rule).findings;
            }
        }
    }
    checked.findings.extend(findings);
}
