//! Classifies the errors of the HTTP client: from an error's chain of causes to a [`Fault`].
//!
//! The client's own messages are not passed on, because they contain URLs and addresses.

use std::error::Error;
use std::io;

use rustls::CertificateError;

use crate::failure::{Fault, Reason};

/// Classifies the error of a request that got no response. `has_proxy` states whether it went through a proxy.
pub(super) fn request_fault(error: &reqwest::Error, has_proxy: bool) -> Fault {
    if has_proxy
        && error.is_connect()
        && let Some(fault) = proxy_fault(error)
    {
        return fault;
    }
    if error.is_timeout() {
        let reason = if error.is_connect() { Reason::ConnectTimeout } else { Reason::ResponseTimeout };
        return Fault::new(reason, "the agent accepted no connection in time");
    }
    if error.is_builder() {
        return Fault::new(Reason::RequestFailed, "the request could not be built");
    }
    fault_of_causes(error).unwrap_or_else(|| Fault::new(Reason::ConnectionFailed, "the connection failed"))
}

/// Classifies the error of a connection to a proxy, or of the tunnel that the proxy should open. Returns `None` for an error of the
/// agent behind the proxy.
fn proxy_fault(error: &reqwest::Error) -> Option<Fault> {
    if error.is_timeout() {
        // The error does not show whether the proxy or the agent is slow.
        return Some(Fault::new(Reason::ConnectTimeout, "no connection through the proxy was made in time"));
    }
    let message = match tunnel_error(error).as_deref() {
        Some("proxy authorization required") => "the proxy requires credentials".to_owned(),
        Some("unsuccessful") => "the proxy refused to connect to the agent".to_owned(),
        Some("unexpected end of file" | "io error establishing tunnel" | "proxy response headers too long") => {
            "the proxy did not open a connection to the agent".to_owned()
        }
        _ => match fault_of_causes(error) {
            Some(Fault { reason: Reason::Tls, .. }) => return None,
            Some(Fault { reason: Reason::Dns, .. }) => "the host name of the proxy could not be resolved".to_owned(),
            Some(Fault { reason: Reason::ConnectionRefused, .. }) => {
                "nothing listens at the proxy's address".to_owned()
            }
            Some(Fault { reason: Reason::Unreachable, .. }) => "the proxy's address is unreachable".to_owned(),
            _ => "the connection to the proxy failed".to_owned(),
        },
    };
    Some(Fault::new(Reason::ProxyFailed, message))
}

/// Returns the text of the client's tunnel error without its prefix.
fn tunnel_error(error: &reqwest::Error) -> Option<String> {
    // By its text, because the type of the error is private.
    let mut causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.find_map(|cause| cause.to_string().strip_prefix("tunnel error: ").map(str::to_owned))
}

/// Classifies the error of a response whose body broke off.
pub(super) fn body_fault(error: &reqwest::Error) -> Fault {
    match fault_of_causes(error) {
        Some(fault) if fault.reason == Reason::ConnectionReset => {
            Fault::new(Reason::ConnectionReset, "the connection was reset within the body")
        }
        Some(fault) if fault.reason == Reason::MalformedResponse => fault,
        _ => Fault::new(Reason::BodyIncomplete, "the body ended before its announced length"),
    }
}

/// Returns the first specific cause in the chain, or else the last unspecific one.
fn fault_of_causes(error: &(dyn Error + 'static)) -> Option<Fault> {
    let mut cause = error.source();
    let mut fallback = None;
    while let Some(error) = cause {
        // The connector's error type is private; its text is the only way to recognise it.
        if error.to_string() == "dns error" {
            return Some(Fault::new(Reason::Dns, "the host name could not be resolved"));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if let Some(fault) = io_fault(error) {
                return Some(fault);
            }
        } else if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(tls_fault(error));
        } else if let Some(error) = error.downcast_ref::<hyper::Error>() {
            // A reset connection surfaces as a hyper error whose source is an I/O error: keep looking for that.
            fallback = protocol_fault(error).or(fallback);
        }
        cause = error.source();
    }
    fallback
}

fn protocol_fault(error: &hyper::Error) -> Option<Fault> {
    // hyper exposes this kind of parse error by type on the server side only.
    if error.is_parse() && error.to_string() == "message head is too large" {
        Some(Fault::new(Reason::HeadTooLarge, "the response has too many headers"))
    } else if error.is_parse() {
        Some(Fault::new(Reason::MalformedResponse, "the response is not HTTP"))
    } else if error.is_incomplete_message() {
        Some(Fault::new(Reason::ConnectionClosed, "the agent closed the connection before it had answered"))
    } else {
        None
    }
}

fn io_fault(error: &io::Error) -> Option<Fault> {
    // `source()` skips the error that an I/O error wraps, and the TLS connector wraps twice.
    if let Some(inner) = error.get_ref() {
        if let Some(error) = inner.downcast_ref::<rustls::Error>() {
            return Some(tls_fault(error));
        }
        if let Some(fault) = inner.downcast_ref::<io::Error>().and_then(io_fault) {
            return Some(fault);
        }
    }
    let (reason, message) = match error.kind() {
        io::ErrorKind::ConnectionRefused => (Reason::ConnectionRefused, "nothing listens at the agent's address"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            (Reason::ConnectionReset, "the connection was reset")
        }
        // A TLS connection that ends without the message that announces it.
        io::ErrorKind::UnexpectedEof => {
            (Reason::ConnectionClosed, "the agent closed the connection before it had answered")
        }
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkDown => {
            (Reason::Unreachable, "the agent's address is unreachable")
        }
        _ => return None,
    };
    Some(Fault::new(reason, message))
}

/// Returns the fault of a failed TLS handshake.
pub(super) fn tls_fault(error: &rustls::Error) -> Fault {
    Fault::new(
        Reason::Tls,
        match error {
            rustls::Error::InvalidCertificate(error) => certificate_message(error).to_owned(),
            rustls::Error::NoCertificatesPresented => "the agent presented no certificate".to_owned(),
            rustls::Error::InvalidMessage(_) => "the agent does not speak TLS at this address".to_owned(),
            rustls::Error::PeerIncompatible(_) => {
                "the agent supports no TLS version or cipher of this program".to_owned()
            }
            rustls::Error::AlertReceived(alert) => {
                format!("the agent refused the TLS handshake with the alert {alert:?}")
            }
            _ => "the TLS handshake failed".to_owned(),
        },
    )
}

fn certificate_message(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer => "the agent's certificate is signed by an unknown authority",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the agent's certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the agent's certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the agent's certificate is for another host name"
        }
        // The type of this error is private to the verifier.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the agent's certificate is self-signed: it is that of an authority, not of a server"
        }
        CertificateError::Revoked => "the agent's certificate has been revoked",
        _ => "the agent's certificate is not valid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_quote_nothing_of_the_certificate() {
        let name = rustls::pki_types::ServerName::try_from("agent.example").unwrap();
        let error = CertificateError::NotValidForNameContext { expected: name, presented: vec!["evil".to_owned()] };
        let fault = tls_fault(&rustls::Error::InvalidCertificate(error));
        assert_eq!(fault.message, "the agent's certificate is for another host name");
    }
}
