//! The interface of a protocol: from a case to the body of a request, and from the body of a response to an artifact.

use counterproof_artifact::{Case, CaseId, RunId, Side};
use counterproof_cases::CaseSpec;
use jiff::Timestamp;

use crate::failure::Fault;

/// The inputs of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) case: &'a CaseSpec,
    pub(crate) side: Side,
    pub(crate) run_id: &'a RunId,
}

/// The inputs for parsing an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answering<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) side: Side,
    /// When the answer was complete.
    pub(crate) received: Timestamp,
}

/// One protocol: pure functions from a case to bytes, and from bytes to an artifact. Independent of the transport.
pub(crate) trait Dialect: Send + Sync {
    /// Returns the path below the base URL of a server.
    fn path(&self) -> &'static str;

    /// Returns the request body of a case.
    fn request(&self, asking: Asking<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// Parses the body of a successful response as the answer to a case.
    fn answer(&self, body: &[u8], answering: Answering<'_>) -> Result<Case, Fault>;
}
