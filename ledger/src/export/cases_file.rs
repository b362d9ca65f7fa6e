//! The cases file of recorded runs. With it, `compare` reports a run as worse if it does not succeed, or if a policy refuses one of
//! its calls.

use camino::Utf8Path;
use counterproof_store::write::{self, WriteError};
use counterproof_store::{CaseList, CaseListError};
use serde_json::json;

use super::case::title;
use super::run_folder::SelectedRun;
use super::run_status::SUCCEEDED;

/// The name of the cases file, in the folder of all runs.
pub const CASES_FILE: &str = "ledger.cases.json";

/// Checks, before anything is exported, that cases can be added to the cases file in a folder.
pub fn check_cases(folder: &Utf8Path) -> Result<(), CaseListError> {
    CaseList::check(&folder.join(CASES_FILE))
}

/// Adds the cases of these runs to the cases file in a folder. Cases that the file has stay as they are, so people can add
/// expectations to them.
pub fn write_cases(folder: &Utf8Path, selected: &[SelectedRun]) -> Result<(), CasesFileError> {
    write::create_folder(folder)?;
    let mut cases = CaseList::open(&folder.join(CASES_FILE))?;
    for SelectedRun { run, case_id } in selected {
        if cases.contains(case_id) {
            continue;
        }
        // A message about this expression shows the whole final output, and thus how the agent or a server ended.
        let expectation = format!("final_output.content == {{'status': '{SUCCEEDED}'}}");
        let case = json!({
            "id": case_id, "title": title(run), "input": {"user": title(run)},
            "expected": {"no_refused_calls": true, "expect": [{"name": "the run succeeds", "expr": expectation}]},
        });
        cases.set(case_id, case);
    }
    Ok(cases.write()?)
}

/// A cases file that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CasesFileError {
    /// The file cannot be read or locked.
    #[error(transparent)]
    List(#[from] CaseListError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
