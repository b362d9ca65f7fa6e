//! The table `[signals]` of `counterproof.toml`.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::shapes::is_within_domain;

/// The settings of the signals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignalSettings {
    /// The domains that the agent may link to and send data to. Without a list, hosts are compared with the baseline's.
    pub trusted_domains: Option<Vec<Domain>>,
}

/// A domain, which contains all hosts below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain(String);

impl SignalSettings {
    /// True if a host is in the list of trusted domains.
    pub(super) fn trusts(&self, host: &str) -> bool {
        self.trusted_domains.iter().flatten().any(|domain| is_within_domain(host, &domain.0))
    }
}

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let domain = text.strip_prefix("*.").unwrap_or(&text).trim_end_matches('.').to_lowercase();
        let is_host = |c: char| c.is_alphanumeric() || "-_.[]:".contains(c);
        // A scheme, a port or a path would never match, which would distrust the domain without a message.
        let is_address = domain.starts_with('[') || !domain.contains([':', '[', ']']);
        if domain.is_empty() || domain.starts_with('.') || !domain.chars().all(is_host) || !is_address {
            return Err(D::Error::custom("expected a domain such as \"example.com\", without scheme, port or path"));
        }
        Ok(Self(domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(domain: &str) -> Result<SignalSettings, String> {
        toml::from_str(&format!("trusted_domains = [\"{domain}\"]")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_trusted_domain_contains_its_hosts() {
        for domain in ["Shop.example", "*.shop.example", "shop.example."] {
            let settings = read(domain).unwrap();
            assert!(settings.trusts("www.shop.example") && !settings.trusts("shop.example.evil.org"), "{domain}");
        }
    }

    #[test]
    fn an_entry_that_would_never_match_is_refused() {
        for domain in ["", "*.", "https://shop.example", "shop.example/x", "shop.example:80", "a b"] {
            let error = read(domain).unwrap_err();
            assert!(error.contains("expected a domain such as"), "{domain}: {error}");
        }
    }
}
