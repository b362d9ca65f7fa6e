//! The facts about a call that a policy can use.

use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::Transport;
use serde_json::Value;

#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    pub server_name: &'a str,
    pub tool_name: &'a str,
    pub args: Args<'a>,
    pub args_hash: &'a Sha256Digest,
    pub bytes_in: u64,
    pub transport: Transport,
}

#[derive(Debug, Clone, Copy)]
pub enum Args<'a> {
    /// The arguments; a call without arguments has an empty object.
    Inspected(&'a Value),
    /// The arguments are too large to be inspected. Conditions on them cannot be decided.
    TooLarge,
}

/// How a forwarded call ended, for breakers that count errors.
#[derive(Debug, Clone, Copy)]
pub struct CallOutcome<'a> {
    pub server_name: &'a str,
    pub tool_name: &'a str,
    /// True if the call ended with an error, a time-out, or not at all.
    pub is_error: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct SampleCall<'a> {
    pub tool_name: &'a str,
    pub args: &'a str,
    /// Treats the arguments as too large to be inspected.
    pub is_too_large: bool,
}

#[derive(Debug, Clone)]
pub struct RequestFacts {
    /// The arguments; `None` if they are too large to be inspected.
    pub args: Option<Value>,
    pub args_hash: Sha256Digest,
    pub bytes_in: u64,
}

/// Reads the request of a sample call as an adapter does. Fails with the reason for which the adapter would refuse the call.
pub type ReadSample<'r> = dyn Fn(&SampleCall<'_>) -> Result<RequestFacts, String> + 'r;

impl RequestFacts {
    pub fn args(&self) -> Args<'_> {
        self.args.as_ref().map_or(Args::TooLarge, Args::Inspected)
    }
}
