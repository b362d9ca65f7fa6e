//! The evidence of a run: the artifact of each case, saved bodies and requests, and `run.json`.

mod attempt_recorder;
mod failure_document;
mod run_document;
mod saved_body;

pub(crate) use attempt_recorder::{AttemptRecorder, ReceivedAnswer, RecordedAttempt, artifact, reached_agent};
pub(crate) use attempt_recorder::{SKIPPED, skipped_case};
pub(crate) use failure_document::RecordedFailure;
pub(crate) use run_document::Selection;
pub(crate) use run_document::{NewRun, RunEnd, finished, resumed};
pub use saved_body::SavedRequest;
