//! The cases file of contracts: `compare` reads it to know that a contract that is not met is worse.

use camino::Utf8Path;
use counterproof_artifact::NameError;
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::write::{self, WriteError};
use counterproof_store::{CaseList, CaseListError};
use serde_json::json;

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
    let mut cases = CaseList::open(&folder.join(CASES_FILE))?;
    for contract in contracts {
        let id = contract.id.case_id()?;
        let mut case = json!({
            "id": id, "title": contract.summary(),
            "input": {"user": contract.summary(), "context": contract.input},
            "expected": {"expect": [{"name": "the contract is met", "expr": EXPECTATION}]},
        });
        redactor.json(&mut case, &mut Applied::default());
        cases.set(&id, case);
    }
    Ok(cases.write()?)
}

/// A cases file that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CasesFileError {
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file cannot be read or locked.
    #[error(transparent)]
    Read(#[from] CaseListError),
    /// The id of a contract is no case id.
    #[error(transparent)]
    Name(#[from] NameError),
}
