//! What can go wrong with an attempt: stable reasons, and faults with their details.

use counterproof_artifact::FailureClass;
use serde::Serialize;

/// Why an attempt failed. The name is the failure's `error_name` in artifacts, and its meaning never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No connection, TLS included, within the connect time-out.
    ConnectTimeout,
    /// The agent accepted the connection but sent no response in time.
    ResponseTimeout,
    /// The body paused for longer than the idle time-out.
    IdleTimeout,
    /// The body was not complete when the attempt's time-out expired.
    BodyTimeout,
    /// The host name does not resolve.
    Dns,
    /// The address refused the connection.
    ConnectionRefused,
    /// The peer reset the connection.
    ConnectionReset,
    /// The peer closed the connection before it sent a response.
    ConnectionClosed,
    /// The network or the host is unreachable.
    Unreachable,
    /// The proxy could not be reached, or did not connect to the agent.
    ProxyFailed,
    /// The TLS handshake failed, or the certificate is not trusted.
    Tls,
    /// The response is not HTTP.
    MalformedResponse,
    /// The response headers exceed the client's limit.
    HeadTooLarge,
    /// The body ended before the announced length.
    BodyIncomplete,
    /// Any other network failure.
    ConnectionFailed,
    /// The response is a redirect, which the runner does not follow.
    Redirect,
    /// Status 429.
    RateLimited,
    /// Any other status 4xx.
    ClientError,
    /// Status 5xx.
    ServerError,
    /// A status outside of 200 to 599.
    UnexpectedStatus,
    /// Status 2xx without a body.
    EmptyBody,
    /// A body that is not UTF-8.
    InvalidUtf8,
    /// A body that is not JSON.
    NotJson,
    /// JSON with a duplicate key in an object.
    DuplicateKey,
    /// JSON, but not an object.
    NotAnObject,
    /// The answer names another case.
    OtherCase,
    /// The answer names the other side.
    OtherSide,
    /// An object that violates the contract; the violations are listed.
    ContractViolated,
    /// An object that references a file; a response carries no files.
    AssetNotDelivered,
    /// JSON that does not match the protocol; the JSON Pointer is listed.
    ProtocolViolated,
    /// An answer that lacks what a mapping reads.
    MappingFailed,
    /// A successful status with an error object as the body.
    AgentError,
    /// The agent's program could not be started.
    AgentNotStarted,
    /// The agent's program exited with a code other than 0, or a worker of it ended before it answered.
    AgentExit,
    /// A signal terminated the agent's program.
    AgentSignal,
    /// A body over the limit.
    BodyTooLarge,
    /// A body that expands more than a hundredfold while it is decoded.
    DecompressionBomb,
    /// A body with a content encoding that the runner did not request and cannot decode.
    UnknownEncoding,
    /// A body that is not valid in its declared content encoding.
    UndecodableBody,
    /// The model called a tool that has no result.
    NoToolResult,
    /// The request could not be built.
    RequestFailed,
    /// The case was not run because the agent looked down.
    NotRun,
}

impl Reason {
    /// All reasons, in the order of their classes.
    pub const ALL: [Self; 42] = [
        Self::ConnectTimeout,
        Self::ResponseTimeout,
        Self::IdleTimeout,
        Self::BodyTimeout,
        Self::Dns,
        Self::ConnectionRefused,
        Self::ConnectionReset,
        Self::ConnectionClosed,
        Self::Unreachable,
        Self::ProxyFailed,
        Self::Tls,
        Self::MalformedResponse,
        Self::HeadTooLarge,
        Self::BodyIncomplete,
        Self::ConnectionFailed,
        Self::Redirect,
        Self::RateLimited,
        Self::ClientError,
        Self::ServerError,
        Self::UnexpectedStatus,
        Self::EmptyBody,
        Self::InvalidUtf8,
        Self::NotJson,
        Self::DuplicateKey,
        Self::NotAnObject,
        Self::OtherCase,
        Self::OtherSide,
        Self::ContractViolated,
        Self::AssetNotDelivered,
        Self::ProtocolViolated,
        Self::MappingFailed,
        Self::AgentError,
        Self::AgentNotStarted,
        Self::AgentExit,
        Self::AgentSignal,
        Self::BodyTooLarge,
        Self::DecompressionBomb,
        Self::UnknownEncoding,
        Self::UndecodableBody,
        Self::NoToolResult,
        Self::RequestFailed,
        Self::NotRun,
    ];

    /// Returns the contract's failure class and the stable name.
    pub const fn class_and_name(self) -> (FailureClass, &'static str) {
        use FailureClass::{HttpError, InvalidJson, NetworkError, Other, SchemaMismatch, Timeout};
        match self {
            Self::ConnectTimeout => (Timeout, "connect_timeout"),
            Self::ResponseTimeout => (Timeout, "response_timeout"),
            Self::IdleTimeout => (Timeout, "idle_timeout"),
            Self::BodyTimeout => (Timeout, "body_timeout"),
            Self::Dns => (NetworkError, "dns"),
            Self::ConnectionRefused => (NetworkError, "connection_refused"),
            Self::ConnectionReset => (NetworkError, "connection_reset"),
            Self::ConnectionClosed => (NetworkError, "connection_closed"),
            Self::Unreachable => (NetworkError, "unreachable"),
            Self::ProxyFailed => (NetworkError, "proxy_failed"),
            Self::Tls => (NetworkError, "tls"),
            Self::MalformedResponse => (NetworkError, "malformed_response"),
            Self::HeadTooLarge => (NetworkError, "head_too_large"),
            Self::BodyIncomplete => (NetworkError, "body_incomplete"),
            Self::ConnectionFailed => (NetworkError, "connection_failed"),
            Self::Redirect => (HttpError, "redirect"),
            Self::RateLimited => (HttpError, "rate_limited"),
            Self::ClientError => (HttpError, "client_error"),
            Self::ServerError => (HttpError, "server_error"),
            Self::UnexpectedStatus => (HttpError, "unexpected_status"),
            Self::EmptyBody => (InvalidJson, "empty_body"),
            Self::InvalidUtf8 => (InvalidJson, "invalid_utf8"),
            Self::NotJson => (InvalidJson, "not_json"),
            Self::DuplicateKey => (InvalidJson, "duplicate_key"),
            Self::NotAnObject => (SchemaMismatch, "not_an_object"),
            Self::OtherCase => (SchemaMismatch, "other_case"),
            Self::OtherSide => (SchemaMismatch, "other_side"),
            Self::ContractViolated => (SchemaMismatch, "contract_violated"),
            Self::AssetNotDelivered => (SchemaMismatch, "asset_not_delivered"),
            Self::ProtocolViolated => (SchemaMismatch, "protocol_violated"),
            Self::MappingFailed => (SchemaMismatch, "mapping_failed"),
            Self::AgentError => (Other, "agent_error"),
            Self::AgentNotStarted => (Other, "agent_not_started"),
            Self::AgentExit => (Other, "agent_exit"),
            Self::AgentSignal => (Other, "agent_signal"),
            Self::BodyTooLarge => (Other, "body_too_large"),
            Self::DecompressionBomb => (Other, "decompression_bomb"),
            Self::UnknownEncoding => (Other, "unknown_encoding"),
            Self::UndecodableBody => (Other, "undecodable_body"),
            Self::NoToolResult => (Other, "no_tool_result"),
            Self::RequestFailed => (Other, "request_failed"),
            Self::NotRun => (Other, "not_run"),
        }
    }

    /// Returns the contract's failure class.
    pub const fn class(self) -> FailureClass {
        self.class_and_name().0
    }

    /// Returns the stable name, the `error_name` of the failure.
    pub const fn name(self) -> &'static str {
        self.class_and_name().1
    }
}

/// A failed attempt's reason and its details.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) reason: Reason,
    /// The message is the same each time the fault occurs: it names no address and no port, and quotes nothing that the
    /// agent sent. Only `violations` may quote the agent, and the messages about a mapping, which show keys of the answer and
    /// the agent's error. Secrets in it are masked when it is recorded.
    pub(crate) message: String,
    pub(crate) violations: Vec<Violation>,
}

/// One contract violation in an answer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Violation {
    /// The violated rule: a code of `counterproof validate`, or the name of the reason.
    pub(crate) code: &'static str,
    pub(crate) pointer: String,
    pub(crate) message: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), violations: Vec::new() }
    }

    /// Rewords messages about a response for a program, which has standard output instead.
    #[must_use]
    pub(crate) fn in_program_output(self) -> Self {
        let message = match self.reason {
            Reason::EmptyBody => "the program printed nothing on standard output".to_owned(),
            Reason::NotJson => format!("{}; standard output must contain the answer only", self.message),
            _ => return self,
        };
        Self { message, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let names: HashSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
    }

    #[test]
    fn the_docs_list_every_reason_with_its_class() {
        let docs = include_str!("../../docs/runner.md");
        for reason in Reason::ALL {
            let row = format!("| `{}` | `{}` |", reason.class(), reason.name());
            assert!(docs.contains(&row), "docs/runner.md has no row {row}");
        }
    }
}
