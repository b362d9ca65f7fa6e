//! Where the agent is: the base URL as it is asked and as it is recorded, and names that stand for a given address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use reqwest::Url;
use reqwest::header::HeaderValue;

/// The base URL of an agent. What is recorded and shown of it has no credentials, no query and no fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    asked: Url,
    recorded: String,
}

/// Why a text is no base URL. The messages do not quote it: it may hold credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// Not a URL at all.
    #[error("the base URL cannot be read: {0}")]
    Syntax(String),
    /// A URL of another scheme.
    #[error("the base URL has the scheme `{0}`; an agent is reached over http or https")]
    Scheme(String),
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        let mut asked = Url::parse(text).map_err(|error| BaseUrlError::Syntax(error.to_string()))?;
        if !matches!(asked.scheme(), "http" | "https") {
            return Err(BaseUrlError::Scheme(asked.scheme().to_owned()));
        }
        asked.set_fragment(None);
        let recorded = without_secrets(&asked).trim_end_matches('/').to_owned();
        Ok(Self { asked, recorded })
    }
}

impl BaseUrl {
    /// What files and messages say.
    pub fn recorded(&self) -> &str {
        &self.recorded
    }

    /// The URL that a request to `path` below the base is recorded with.
    pub(crate) fn recorded_join(&self, path: &str) -> String {
        format!("{}/{path}", self.recorded)
    }

    /// The URL that a request to `path` below the base goes to, credentials and query included.
    pub(crate) fn asked_join(&self, path: &str) -> Url {
        let mut url = self.asked.clone();
        url.set_path(&format!("{}/{path}", self.asked.path().trim_end_matches('/')));
        url
    }

    /// True where the URL names this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host();
        let name = host.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// True where a request needs no TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.asked.scheme() == "http"
    }

    fn host(&self) -> &str {
        self.asked.host_str().unwrap_or_default()
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({})", self.recorded)
    }
}

/// A URL as text, with all that may hold a secret left out: user, password, query and fragment.
pub(crate) fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host, which cannot hold credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// A host name, and the address that requests to it go to instead of what its name resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveRule {
    host: String,
    address: SocketAddr,
}

/// A text that is no rule of name resolution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not HOST:ADDRESS:PORT, such as `agent.example:127.0.0.1:8787` or `agent.example:[::1]:8787`")]
pub struct ResolveRuleError(String);

impl FromStr for ResolveRule {
    type Err = ResolveRuleError;

    fn from_str(text: &str) -> Result<Self, ResolveRuleError> {
        let refuse = || ResolveRuleError(text.to_owned());
        let (host, address) = text.split_once(':').ok_or_else(refuse)?;
        if host.is_empty() {
            return Err(refuse());
        }
        Ok(Self::new(host, address.parse().map_err(|_| refuse())?))
    }
}

impl ResolveRule {
    /// Sends requests to `host` to `address`.
    pub fn new(host: &str, address: SocketAddr) -> Self {
        Self { host: host.to_ascii_lowercase(), address }
    }

    /// The address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// True where requests to the URL go to the rule's address.
    pub(crate) fn holds_for(&self, base: &BaseUrl) -> bool {
        base.host() == self.host
    }

    /// Prepares a URL for the rule: gives the `Host` header that belongs to it, and takes the port out of it.
    ///
    /// The HTTP client lets a port in the URL win over the port of the address, so the URL must not name one.
    pub(crate) fn take_port(url: &mut Url) -> Option<HeaderValue> {
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return None,
        };
        // This fails only for URLs without a host.
        let _ = url.set_port(None);
        HeaderValue::from_str(&host).ok()
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_recorded_holds_no_secret() {
        let url = base("https://user:pass@agent.example:8443/api/?key=s3cret#s3cret");
        assert_eq!(url.recorded(), "https://agent.example:8443/api");
        assert_eq!(url.recorded_join("run-case"), "https://agent.example:8443/api/run-case");
        assert_eq!(url.asked_join("run-case").as_str(), "https://user:pass@agent.example:8443/api/run-case?key=s3cret");
        assert!(!format!("{url:?}").contains("pass"));
    }

    #[test]
    fn texts_that_are_no_base_url_are_refused_without_being_quoted() {
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

    #[test]
    fn a_rule_names_a_host_and_an_address() {
        let rule: ResolveRule = "Agent.example:[::1]:8787".parse().unwrap();
        assert!(rule.holds_for(&base("http://agent.example:99/x")));
        assert!(!rule.holds_for(&base("http://other.example")));
        for text in ["agent.example", ":127.0.0.1:1", "agent.example:127.0.0.1", "agent.example:80:127.0.0.1"] {
            assert!(text.parse::<ResolveRule>().is_err(), "{text}");
        }
    }
}
