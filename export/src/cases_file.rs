//! The cases file of an export, in the folder of all runs: its cases have the expectations by which `compare` judges the run.

use camino::Utf8Path;
use counterproof_artifact::{CaseId, NameError};
use counterproof_store::write::{self, WriteError};
use counterproof_store::{CaseList, CaseListError};
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum CasesFileError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    List(#[from] CaseListError),
    /// The id of a contract is not a case id.
    #[error(transparent)]
    Name(#[from] NameError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays as it is, because people may have added expectations to it.
    Keep,
    Replace,
}

/// Writes cases to a cases file, in the order of their ids. Other cases of the file stay.
pub(crate) fn write(
    path: &Utf8Path,
    existing: Existing,
    cases: impl Iterator<Item = Result<(CaseId, Value), NameError>>,
) -> Result<(), CasesFileError> {
    write::create_folder(path.parent().unwrap_or(path))?;
    // Opened before the first case is made: the lock keeps another export from writing in between.
    let mut list = CaseList::open(path)?;
    for case in cases {
        let (id, case) = case?;
        if existing == Existing::Replace || !list.contains(&id) {
            list.set(&id, case);
        }
    }
    Ok(list.write()?)
}
