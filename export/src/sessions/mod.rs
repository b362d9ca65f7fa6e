//! Exports sessions of coding agents as a run folder of `case.v1` artifacts. Each session becomes a case, so that two versions of
//! an agent can be compared.
//!
//! Tool calls and commands are the steps. The proposed actions are what the session changed: files, by what is left of all their
//! changes at the end, and commands with effects. The final output is how the session and its last test run ended, and the last
//! text of the model. What differs between any two sessions, such as ids and times, is masked.

mod actions;
mod command_risk;
mod masked;
mod run_folder;
mod steps;

pub use run_folder::{
    CaseKey, ExportedSession, SessionExport, SessionExportError, case_id, check_cases, check_distinct, run_id,
    write_cases,
};
