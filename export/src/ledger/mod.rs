//! Exports recorded runs as a run folder of `case.v1` artifacts. Each run becomes a case, so that two runs of an agent can be
//! compared and read in the report.
//!
//! Each tool call is a step with its arguments, its result and, if it was refused, the decision. The final output is the status of
//! the run. What differs between any two runs, such as ids, is not in the part that is compared. Events of any producer give a
//! valid artifact, whatever their fields are.

mod recorded_run;
mod run_folder;
mod steps;

pub use run_folder::{
    CASE_LABEL, CASES_FILE, ExportError, ExportedCase, ExportedRuns, SelectedRun, case_id, check_cases, export_runs,
    run_id, write_cases,
};
pub(crate) use steps::{decision_facts, is_refusal};
