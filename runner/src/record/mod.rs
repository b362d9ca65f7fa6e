//! The evidence of a run: the artifact of each case, saved bodies and requests, and `run.json`.

mod attempt_recorder;
mod duplicate_keys;
mod failure_document;
mod program_failure;
mod run_document;
mod saved_body;
mod saved_request;
mod selection;
mod skipped_case;

pub(crate) use attempt_recorder::{AttemptRecorder, RecordedAttempt, artifact};
pub(crate) use failure_document::RecordedFailure;
pub(crate) use run_document::{NewRun, RunEnd, finished, resumed};
pub use saved_request::SavedRequest;
pub(crate) use selection::Selection;
pub(crate) use skipped_case::{SKIPPED, skipped_case};
