//! Exports recorded runs as a run folder of `case.v1` artifacts. Each run becomes a case, so that two runs of an agent can be
//! compared and read in the report.
//!
//! Each tool call is a step with its arguments, its result and, if it was refused, the decision. The final output is the status of
//! the run. What differs between any two runs, such as ids, is not in the part that is compared. Events of any producer give a
//! valid artifact, whatever their fields are.

mod case;
mod case_id;
mod cases_file;
mod destination;
mod error;
mod preview;
mod recorded_call;
mod recorded_run;
mod recorded_source;
mod run_folder;
mod run_status;
mod tool_call;
mod tool_result;

pub use case_id::{CASE_LABEL, case_id, run_id};
pub use cases_file::{CASES_FILE, CasesFileError, check_cases, write_cases};
pub use destination::Destination;
pub use error::ExportError;
pub use run_folder::{ExportedCase, ExportedRuns, SelectedRun, export_runs};
