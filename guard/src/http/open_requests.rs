//! The requests whose calls wait for a response.

use crate::mcp::{PendingCalls, RequestId};

/// Within what an id names one request. Clients of one proxy may use the same ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// A session of the protocol, named by `Mcp-Session-Id`. Its responses may come on any of its streams.
    Session(String),
    /// One request and its response.
    Exchange(u64),
    /// Requests whose responses come on a stream without a session, as in the revision of 2024-11-05.
    Unnamed,
}

/// The calls that wait for a response.
pub(super) type OpenRequests = PendingCalls<(Scope, RequestId)>;
