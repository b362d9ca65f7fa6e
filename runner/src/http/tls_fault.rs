//! TLS errors in plain words. The messages quote nothing of the agent's certificate.

use rustls::{CertificateError, Error};

use crate::failure::{Fault, Reason};

/// Returns the fault of a failed TLS handshake.
pub(super) fn tls_fault(error: &Error) -> Fault {
    Fault::new(
        Reason::Tls,
        match error {
            Error::InvalidCertificate(error) => certificate_message(error).to_owned(),
            Error::NoCertificatesPresented => "the agent presented no certificate".to_owned(),
            Error::InvalidMessage(_) => "the agent does not speak TLS at this address".to_owned(),
            Error::PeerIncompatible(_) => "the agent supports no TLS version or cipher of this program".to_owned(),
            Error::AlertReceived(alert) => format!("the agent refused the TLS handshake with the alert {alert:?}"),
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
        let fault = tls_fault(&Error::InvalidCertificate(error));
        assert_eq!(fault.message, "the agent's certificate is for another host name");
    }
}
