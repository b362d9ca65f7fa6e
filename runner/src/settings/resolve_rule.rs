//! Resolve rules: hosts that are reached at a given address, like curl's `--resolve`.

use std::net::SocketAddr;
use std::str::FromStr;

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::base_url::BaseUrl;

/// A host name and the address to use for it instead of name resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveRule {
    host: String,
    address: SocketAddr,
}

/// An invalid resolve rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid resolve rule `{0}`: use HOST:ADDRESS:PORT, such as `agent.example:127.0.0.1:8787` or `agent.example:[::1]:8787`"
)]
pub struct ResolveRuleError(String);

impl FromStr for ResolveRule {
    type Err = ResolveRuleError;

    fn from_str(text: &str) -> Result<Self, ResolveRuleError> {
        let invalid = || ResolveRuleError(text.to_owned());
        let (host, address) = text.split_once(':').ok_or_else(invalid)?;
        if host.is_empty() {
            return Err(invalid());
        }
        Ok(Self::new(host, address.parse().map_err(|_| invalid())?))
    }
}

impl ResolveRule {
    /// Creates a rule that sends requests for `host` to `address`.
    pub fn new(host: &str, address: SocketAddr) -> Self {
        Self { host: host.to_ascii_lowercase(), address }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reports whether the rule applies to the base URL.
    pub(crate) fn applies_to(&self, base: &BaseUrl) -> bool {
        base.host() == self.host
    }

    /// Removes the port from the URL and returns the original `Host` header.
    ///
    /// The HTTP client prefers the port of the URL over the port of the address, so the URL must not contain one.
    pub(crate) fn take_port(url: &mut Url) -> Option<HeaderValue> {
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return None,
        };
        // `set_port` fails only for URLs without a host.
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
    fn a_rule_has_a_host_and_an_address() {
        let rule: ResolveRule = "Agent.example:[::1]:8787".parse().unwrap();
        assert!(rule.applies_to(&base("http://agent.example:99/x")));
        assert!(!rule.applies_to(&base("http://other.example")));
        for text in ["agent.example", ":127.0.0.1:1", "agent.example:127.0.0.1", "agent.example:80:127.0.0.1"] {
            assert!(text.parse::<ResolveRule>().is_err(), "{text}");
        }
    }
}
