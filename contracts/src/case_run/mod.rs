//! Writes executions as a run folder of `case.v1` artifacts, so that two nights of contracts can be compared.
//!
//! Each contract is a case. The agent command, each attempt of the verification and the rollback are tool calls. The final
//! output states whether the contract is met, and why not. The records of the commands are assets.

mod case;
mod cases_file;
mod run_folder;

pub use cases_file::{CASES_FILE, CasesFileError, write_cases};
pub use run_folder::{CaseRun, CaseRunError, RunIdentity};
