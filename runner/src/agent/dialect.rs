//! The interface of a protocol: from a case to the body of a request, and from the body of a response to an artifact.

use counterproof_artifact::{Case, CaseId, RunId, Side};
use counterproof_cases::CaseSpec;
use jiff::Timestamp;

use crate::failure::Fault;

/// What a protocol needs to know of the run to ask a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) case: &'a CaseSpec,
    pub(crate) side: Side,
    pub(crate) run_id: &'a RunId,
}

/// What a protocol needs to know of a request to read the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answering<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) side: Side,
    /// When the whole answer was there.
    pub(crate) received: Timestamp,
}

/// One protocol: pure functions from a case to bytes, and from bytes to an artifact. It knows no transport.
pub(crate) trait Dialect: Send + Sync {
    /// The path below the base URL, where the agent is a server.
    fn path(&self) -> &'static str;

    /// The body of the request for a case.
    fn request(&self, asking: Asking<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// Reads the body of a response that went well as the answer to a case.
    fn answer(&self, body: &[u8], answering: Answering<'_>) -> Result<Case, Fault>;
}
