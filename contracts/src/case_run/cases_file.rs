//! The cases file of contracts: `compare` reads it to know that a contract that is not met is worse.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::NameError;
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability, WriteError};
use serde_json::{Value, json};

use crate::contract::Contract;

/// The name of the cases file, in the folder of all runs.
pub const CASES_FILE: &str = "contracts.cases.json";

/// The expectation of every contract, as a CEL expression over the artifact of its case.
const EXPECTATION: &str = "final_output.content.met";

/// Writes the cases of these contracts to the cases file in a folder, in the order of their ids. Cases of other contracts stay.
pub fn write_cases<'c>(
    folder: &Utf8Path,
    redactor: &Redactor,
    contracts: impl Iterator<Item = &'c Contract>,
) -> Result<(), CasesFileError> {
    write::create_folder(folder)?;
    let path = folder.join(CASES_FILE);
    let before: Value = match read_file::read(&path, read_file::MAX_LARGE_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| CasesFileError::Read { path: path.clone(), source: error.into() })?,
        Err(error) if error.kind() == ErrorKind::NotFound => Value::Null,
        Err(source) => return Err(CasesFileError::Read { path, source }),
    };
    let known = before.as_array().into_iter().flatten();
    let mut cases: BTreeMap<String, Value> =
        known.filter_map(|case| Some((case["id"].as_str()?.to_owned(), case.clone()))).collect();
    for contract in contracts {
        let id = contract.id.case_id()?;
        let mut case = json!({
            "id": id, "title": contract.summary(),
            "input": {"user": contract.summary(), "context": contract.input},
            "expected": {"expect": [{"name": "the contract is met", "expr": EXPECTATION}]},
        });
        redactor.json(&mut case, &mut Applied::default());
        cases.insert(id.to_string(), case);
    }
    let cases: Vec<Value> = cases.into_values().collect();
    Ok(write::write_json(&path, &cases, Durability::Cached)?)
}

/// A cases file that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CasesFileError {
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file exists and cannot be read. Its cases would be lost.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system or of the JSON parser.
        source: io::Error,
    },
    /// The id of a contract is no case id.
    #[error(transparent)]
    Name(#[from] NameError),
}
