//! What can go wrong with an attempt: every reason with its stable name and the class of the contract that it falls in.
//!
//! `docs/runner.md` lists the same names, and a test holds it to that. Whether a reason is worth another attempt is decided
//! in [`crate::policy::retry`].

use std::error::Error;
use std::io;

use counterproof_artifact::FailureClass;
use serde::Serialize;

/// Why an attempt gave no valid answer. Its name is the `error_name` of the failure, and never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No connection in time, TLS included.
    ConnectTimeout,
    /// A connection, but no response in time.
    ResponseTimeout,
    /// A response whose body fell silent.
    IdleTimeout,
    /// A response whose body did not end in time.
    BodyTimeout,
    /// The host's name does not resolve.
    Dns,
    /// Nobody listens at the address.
    ConnectionRefused,
    /// The other end reset the connection.
    ConnectionReset,
    /// The other end closed the connection before a response.
    ConnectionClosed,
    /// No way to the network or the host.
    Unreachable,
    /// No TLS session could be agreed on, or the certificate is not trusted.
    Tls,
    /// The response is not HTTP.
    MalformedResponse,
    /// More headers than any answer needs.
    HeadTooLarge,
    /// The body ends before the length that the response announced.
    BodyIncomplete,
    /// Another failure of the network.
    ConnectionFailed,
    /// The response leads elsewhere; the runner does not follow.
    Redirect,
    /// Status 429.
    RateLimited,
    /// Another status 4xx.
    ClientError,
    /// A status 5xx.
    ServerError,
    /// A status outside of 200 to 599.
    UnexpectedStatus,
    /// Status 2xx without a body.
    EmptyBody,
    /// A body that is not UTF-8.
    InvalidUtf8,
    /// A body that is not JSON.
    NotJson,
    /// JSON in which an object has a key twice.
    DuplicateKey,
    /// JSON, but not an object.
    NotAnObject,
    /// The answer to another case.
    OtherCase,
    /// The answer of the other side.
    OtherSide,
    /// An object that breaks the contract; the violations are listed.
    ContractViolated,
    /// An object that links to a file, which a response cannot carry.
    AssetNotDelivered,
    /// JSON that is not of the protocol's shape; the place is listed.
    ProtocolViolated,
    /// The agent says that it failed, with a status of success.
    AgentError,
    /// The agent's program could not be started.
    AgentNotStarted,
    /// The agent's program ended with an exit code other than 0.
    AgentExit,
    /// A signal ended the agent's program.
    AgentSignal,
    /// A body over the limit.
    BodyTooLarge,
    /// A body that grows out of all proportion while it is decoded.
    DecompressionBomb,
    /// A body in an encoding that the runner cannot read and did not ask for.
    UnknownEncoding,
    /// A body that is not in the encoding which it claims.
    UndecodableBody,
    /// The request could not be made at all.
    RequestFailed,
    /// The case was not asked: the run had given the agent up.
    NotRun,
}

impl Reason {
    /// All reasons, in the order of their classes.
    pub const ALL: [Reason; 39] = [
        Reason::ConnectTimeout,
        Reason::ResponseTimeout,
        Reason::IdleTimeout,
        Reason::BodyTimeout,
        Reason::Dns,
        Reason::ConnectionRefused,
        Reason::ConnectionReset,
        Reason::ConnectionClosed,
        Reason::Unreachable,
        Reason::Tls,
        Reason::MalformedResponse,
        Reason::HeadTooLarge,
        Reason::BodyIncomplete,
        Reason::ConnectionFailed,
        Reason::Redirect,
        Reason::RateLimited,
        Reason::ClientError,
        Reason::ServerError,
        Reason::UnexpectedStatus,
        Reason::EmptyBody,
        Reason::InvalidUtf8,
        Reason::NotJson,
        Reason::DuplicateKey,
        Reason::NotAnObject,
        Reason::OtherCase,
        Reason::OtherSide,
        Reason::ContractViolated,
        Reason::AssetNotDelivered,
        Reason::ProtocolViolated,
        Reason::AgentError,
        Reason::AgentNotStarted,
        Reason::AgentExit,
        Reason::AgentSignal,
        Reason::BodyTooLarge,
        Reason::DecompressionBomb,
        Reason::UnknownEncoding,
        Reason::UndecodableBody,
        Reason::RequestFailed,
        Reason::NotRun,
    ];

    /// The contract's class and the stable name.
    pub const fn class_and_name(self) -> (FailureClass, &'static str) {
        use FailureClass::{HttpError, InvalidJson, NetworkError, Other, SchemaMismatch, Timeout};
        match self {
            Reason::ConnectTimeout => (Timeout, "connect_timeout"),
            Reason::ResponseTimeout => (Timeout, "response_timeout"),
            Reason::IdleTimeout => (Timeout, "idle_timeout"),
            Reason::BodyTimeout => (Timeout, "body_timeout"),
            Reason::Dns => (NetworkError, "dns"),
            Reason::ConnectionRefused => (NetworkError, "connection_refused"),
            Reason::ConnectionReset => (NetworkError, "connection_reset"),
            Reason::ConnectionClosed => (NetworkError, "connection_closed"),
            Reason::Unreachable => (NetworkError, "unreachable"),
            Reason::Tls => (NetworkError, "tls"),
            Reason::MalformedResponse => (NetworkError, "malformed_response"),
            Reason::HeadTooLarge => (NetworkError, "head_too_large"),
            Reason::BodyIncomplete => (NetworkError, "body_incomplete"),
            Reason::ConnectionFailed => (NetworkError, "connection_failed"),
            Reason::Redirect => (HttpError, "redirect"),
            Reason::RateLimited => (HttpError, "rate_limited"),
            Reason::ClientError => (HttpError, "client_error"),
            Reason::ServerError => (HttpError, "server_error"),
            Reason::UnexpectedStatus => (HttpError, "unexpected_status"),
            Reason::EmptyBody => (InvalidJson, "empty_body"),
            Reason::InvalidUtf8 => (InvalidJson, "invalid_utf8"),
            Reason::NotJson => (InvalidJson, "not_json"),
            Reason::DuplicateKey => (InvalidJson, "duplicate_key"),
            Reason::NotAnObject => (SchemaMismatch, "not_an_object"),
            Reason::OtherCase => (SchemaMismatch, "other_case"),
            Reason::OtherSide => (SchemaMismatch, "other_side"),
            Reason::ContractViolated => (SchemaMismatch, "contract_violated"),
            Reason::AssetNotDelivered => (SchemaMismatch, "asset_not_delivered"),
            Reason::ProtocolViolated => (SchemaMismatch, "protocol_violated"),
            Reason::AgentError => (Other, "agent_error"),
            Reason::AgentNotStarted => (Other, "agent_not_started"),
            Reason::AgentExit => (Other, "agent_exit"),
            Reason::AgentSignal => (Other, "agent_signal"),
            Reason::BodyTooLarge => (Other, "body_too_large"),
            Reason::DecompressionBomb => (Other, "decompression_bomb"),
            Reason::UnknownEncoding => (Other, "unknown_encoding"),
            Reason::UndecodableBody => (Other, "undecodable_body"),
            Reason::RequestFailed => (Other, "request_failed"),
            Reason::NotRun => (Other, "not_run"),
        }
    }

    /// The contract's class.
    pub const fn class(self) -> FailureClass {
        self.class_and_name().0
    }

    /// The stable name.
    pub const fn name(self) -> &'static str {
        self.class_and_name().1
    }
}

/// A reason with what is known of the one time it struck.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) reason: Reason,
    /// In words that are the same each time: no address, no port, nothing of the agent's but what `violations` holds.
    pub(crate) message: String,
    pub(crate) violations: Vec<Violation>,
}

/// One place where an answer breaks the contract.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Violation {
    /// The rule that is broken: a code of `counterproof validate`, or the name of the reason.
    pub(crate) code: &'static str,
    pub(crate) pointer: String,
    pub(crate) message: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), violations: Vec::new() }
    }

    /// The same of a program, which has an output and no response.
    #[must_use]
    pub(crate) fn in_output(self) -> Self {
        let message = match self.reason {
            Reason::EmptyBody => "the program printed nothing on standard output".to_owned(),
            Reason::NotJson => format!("{}; standard output has to hold the answer alone", self.message),
            _ => return self,
        };
        Self { message, ..self }
    }

    /// What the HTTP client says, for a request without a response.
    pub(crate) fn of_request(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            let reason = if error.is_connect() { Reason::ConnectTimeout } else { Reason::ResponseTimeout };
            return Self::new(reason, "the agent took no connection in time");
        }
        if error.is_builder() {
            return Self::new(Reason::RequestFailed, "the request could not be made");
        }
        Self::of_causes(error).unwrap_or_else(|| Self::new(Reason::ConnectionFailed, "the connection failed"))
    }

    /// What the HTTP client says, for a response whose body broke off.
    pub(crate) fn of_body(error: &reqwest::Error) -> Self {
        match Self::of_causes(error) {
            Some(fault) if fault.reason == Reason::ConnectionReset => {
                Self::new(Reason::ConnectionReset, "the connection was reset within the body")
            }
            Some(fault) if fault.reason == Reason::MalformedResponse => fault,
            _ => Self::new(Reason::BodyIncomplete, "the body ended before its announced end"),
        }
    }

    /// The first cause that says what happened. Messages of the client are not passed on: they hold URLs and addresses.
    fn of_causes(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = error.source();
        let mut fallback = None;
        while let Some(error) = cause {
            // The connector's own error type is private; its text is what there is to go by.
            if error.to_string() == "dns error" {
                return Some(Self::new(Reason::Dns, "the host name could not be resolved"));
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                if let Some(fault) = Self::of_io(error) {
                    return Some(fault);
                }
            } else if error.is::<rustls::Error>() {
                return Some(Self::new(Reason::Tls, format!("TLS failed: {error}")));
            } else if let Some(error) = error.downcast_ref::<hyper::Error>() {
                // The client tells this apart by type only for servers.
                if error.is_parse() && error.to_string() == "message head is too large" {
                    fallback = Some(Self::new(Reason::HeadTooLarge, "the response has too many headers"));
                } else if error.is_parse() {
                    fallback = Some(Self::new(Reason::MalformedResponse, "the response is not HTTP"));
                } else if error.is_incomplete_message() {
                    let message = "the agent closed the connection before it had answered";
                    fallback = Some(Self::new(Reason::ConnectionClosed, message));
                }
            }
            cause = error.source();
        }
        fallback
    }

    fn of_io(error: &io::Error) -> Option<Self> {
        // What an I/O error wraps is not among its sources; the TLS connector wraps twice.
        if let Some(inner) = error.get_ref() {
            if let Some(error) = inner.downcast_ref::<rustls::Error>() {
                return Some(Self::new(Reason::Tls, format!("TLS failed: {error}")));
            }
            if let Some(fault) = inner.downcast_ref::<io::Error>().and_then(Self::of_io) {
                return Some(fault);
            }
        }
        let (reason, message) = match error.kind() {
            io::ErrorKind::ConnectionRefused => (Reason::ConnectionRefused, "nothing listens at the agent's address"),
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                (Reason::ConnectionReset, "the connection was reset")
            }
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkDown => {
                (Reason::Unreachable, "there is no way to the agent's address")
            }
            _ => return None,
        };
        Some(Self::new(reason, message))
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
        let docs = include_str!("../../../docs/runner.md");
        for reason in Reason::ALL {
            let row = format!("| `{}` | `{}` |", reason.class(), reason.name());
            assert!(docs.contains(&row), "docs/runner.md has no row {row}");
        }
    }
}
