//! Certificates of authorities that are trusted in addition to those of the system.

use std::fmt;

use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Certificates of authorities, read from PEM.
#[derive(Clone, Default)]
pub struct TrustedCertificates(Vec<Certificate>);

/// A text without usable certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The text has no certificate.
    #[error("no `BEGIN CERTIFICATE` in it")]
    Missing,
    /// The text is not PEM.
    #[error("not PEM: {0}")]
    Pem(rustls::pki_types::pem::Error),
    /// A certificate cannot be that of an authority.
    #[error("certificate {number}: {source}")]
    Invalid {
        /// The number of the certificate in the text, counted from 1.
        number: usize,
        /// What is wrong with it.
        source: rustls::Error,
    },
}

impl TrustedCertificates {
    /// Reads the certificates in a PEM text and checks each of them.
    pub fn from_pem(text: &[u8]) -> Result<Self, CertificateError> {
        let mut store = RootCertStore::empty();
        let mut certificates = Vec::new();
        for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(text)) {
            let certificate = certificate.map_err(CertificateError::Pem)?;
            // The HTTP client parses certificates when it is built, where an error could no longer name the file.
            let parsed = Certificate::from_der(&certificate);
            store.add(certificate).map_err(|source| CertificateError::Invalid { number, source })?;
            certificates.extend(parsed);
        }
        if certificates.is_empty() { Err(CertificateError::Missing) } else { Ok(Self(certificates)) }
    }

    pub(crate) fn to_vec(&self) -> Vec<Certificate> {
        self.0.clone()
    }
}

impl fmt::Debug for TrustedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrustedCertificates({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_usable_certificates_is_an_error() {
        let error = |text: &str| TrustedCertificates::from_pem(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error("subject=CN = authority"), "no `BEGIN CERTIFICATE` in it");
        assert!(error("-----BEGIN CERTIFICATE-----\nAA").starts_with("not PEM: "));
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error(empty).starts_with("certificate 1: "), "{}", error(empty));
    }
}
