//! The evidence of a run: the artifact of each case, saved bodies and requests, and `run.json`.

pub(crate) mod attempt_recorder;
pub(crate) mod failed_body;
pub(crate) mod large_payload;
pub(crate) mod process_failure;
pub(crate) mod run_document;
pub(crate) mod saved_request;
pub(crate) mod selection;
pub(crate) mod skipped_case;
