//! The interface that every protocol implements: case to request body, and response body to artifact.

use counterproof_artifact::{Case, CaseId, RunId, Side};
use counterproof_cases::CaseSpec;
use jiff::Timestamp;

use crate::failure::Fault;

#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInput<'a> {
    pub(crate) case: &'a CaseSpec,
    pub(crate) side: Side,
    pub(crate) run_id: &'a RunId,
}

/// The inputs for parsing an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerContext<'a> {
    pub(crate) case_id: &'a CaseId,
    pub(crate) side: Side,
    /// When the answer was complete.
    pub(crate) received: Timestamp,
}

/// The conversions of one protocol: pure functions from a case to bytes, and from bytes to an artifact. Independent of the transport.
pub(crate) trait ProtocolAdapter: Send + Sync {
    /// Returns the path below the base URL of a server.
    fn path(&self) -> &'static str;

    /// Returns the request body of a case.
    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// Parses the body of a successful response as the answer to a case.
    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault>;
}
