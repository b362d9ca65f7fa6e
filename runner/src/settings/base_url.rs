//! The base URL of an agent: the full URL for requests, and the URL without secrets for files and messages.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// The base URL of an agent. Its recorded form has no credentials, no query and no fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    full: Url,
    recorded: String,
}

/// An invalid base URL. The messages do not quote it, because it may contain credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The text is not a URL.
    #[error("invalid base URL: {0}")]
    Syntax(<Url as FromStr>::Err),
    /// The scheme is not http or https.
    #[error("unsupported scheme `{0}` in the base URL; use http or https")]
    Scheme(String),
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        let mut full = Url::parse(text).map_err(BaseUrlError::Syntax)?;
        if !matches!(full.scheme(), "http" | "https") {
            return Err(BaseUrlError::Scheme(full.scheme().to_owned()));
        }
        full.set_fragment(None);
        let recorded = strip_secrets(&full).trim_end_matches('/').to_owned();
        Ok(Self { full, recorded })
    }
}

impl BaseUrl {
    /// Returns the URL as files and messages show it.
    pub fn recorded(&self) -> &str {
        &self.recorded
    }

    /// Returns the recorded URL of a request to `path` below the base.
    pub(crate) fn recorded_request_url(&self, path: &str) -> String {
        format!("{}/{path}", self.recorded)
    }

    /// Returns the URL of a request to `path` below the base, with credentials and query.
    pub(crate) fn request_url(&self, path: &str) -> Url {
        let mut url = self.full.clone();
        url.set_path(&format!("{}/{path}", self.full.path().trim_end_matches('/')));
        url
    }

    /// Reports whether the URL names this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host();
        let name = host.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Reports whether requests are sent without TLS.
    pub fn is_plain(&self) -> bool {
        self.full.scheme() == "http"
    }

    pub(super) fn host(&self) -> &str {
        self.full.host_str().unwrap_or_default()
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({})", self.recorded)
    }
}

/// Formats a URL without the parts that may contain a secret: user, password, query and fragment.
pub(crate) fn strip_secrets(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host, which cannot contain credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn the_recorded_url_contains_no_secret() {
        let url = base("https://user:pass@agent.example:8443/api/?key=s3cret#s3cret");
        assert_eq!(url.recorded(), "https://agent.example:8443/api");
        assert_eq!(url.recorded_request_url("run-case"), "https://agent.example:8443/api/run-case");
        assert_eq!(
            url.request_url("run-case").as_str(),
            "https://user:pass@agent.example:8443/api/run-case?key=s3cret"
        );
        assert!(!format!("{url:?}").contains("pass"));
    }

    #[test]
    fn an_invalid_base_url_is_rejected_without_being_quoted() {
        for text in ["localhost:8787", "ftp://user:s3cret@h/", "http://", "s3cret"] {
            let error = text.parse::<BaseUrl>().unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn this_machine_is_recognised_by_all_its_names() {
        for text in ["http://localhost:1", "http://127.0.0.2", "http://[::1]:1", "http://agent.localhost"] {
            assert!(base(text).is_loopback(), "{text}");
        }
        assert!(!base("http://localhost.example").is_loopback());
    }
}
