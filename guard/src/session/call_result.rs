//! The end of a tool call, as an adapter passes it to the session.

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{CallError, CallStatus};

/// How a forwarded call ended.
#[derive(Debug)]
pub struct CallResult<'a> {
    pub status: CallStatus,
    /// The error, unless the status is `OK`. Its message is redacted and cut by the session.
    pub error: Option<CallError>,
    /// Size of the response in bytes.
    pub bytes_out: u64,
    pub result: ResultBytes<'a>,
}

impl CallResult<'_> {
    /// The end of a call that the client has cancelled.
    pub const fn cancelled() -> Self {
        Self { status: CallStatus::Cancelled, error: None, bytes_out: 0, result: ResultBytes::None }
    }

    /// The end of a call that asks for no response. Whether the tool succeeds is not known.
    pub const fn without_response() -> Self {
        Self { status: CallStatus::Ok, error: None, bytes_out: 0, result: ResultBytes::None }
    }
}

#[derive(Debug)]
pub enum ResultBytes<'a> {
    /// The response has no result.
    None,
    /// Its JSON text.
    Inspected(&'a [u8]),
    /// It is too large to be inspected.
    TooLarge { hash: Sha256Digest },
}
