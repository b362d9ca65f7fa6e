//! The proxy between this program and an agent, as the environment or the system names it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use crate::settings::{BaseUrl, Secret};

/// The proxy of an agent.
#[derive(Debug)]
pub(super) struct Proxy {
    credentials: Vec<Secret>,
}

impl Proxy {
    /// Returns the proxy that the HTTP client takes for the agent, if there is one.
    pub(super) fn of_system(base: &BaseUrl) -> Option<Self> {
        let url: Uri = base.request_url("").as_str().parse().ok()?;
        let proxy = Matcher::from_system().intercept(&url)?;
        let basic = proxy.basic_auth().and_then(|header| header.to_str().ok());
        Some(Self { credentials: basic.map(credentials).unwrap_or_default() })
    }

    /// Returns every text that could reveal the credentials. A proxy may echo them in an error page.
    pub(super) fn credentials(&self) -> &[Secret] {
        &self.credentials
    }
}

/// Returns the secrets in the value of a `Proxy-Authorization` header: `Basic` and `user:password` in base64.
fn credentials(header: &str) -> Vec<Secret> {
    let encoded = header.trim_start_matches("Basic ").trim();
    let plain = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let password = plain.split_once(':').map_or("", |(_user, password)| password);
    // The user name is no secret, and without a password it may be a common word.
    let secrets = [encoded, &plain, password].map(str::to_owned);
    let is_long_enough = |text: &String| text.len() >= counterproof_redaction::SHORTEST;
    secrets.into_iter().filter(is_long_enough).map(Secret::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_secret_in_each_of_its_forms() {
        let secrets = credentials("Basic dXNlcjpwNHNzd29yZA==");
        let texts: Vec<_> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(texts, ["dXNlcjpwNHNzd29yZA==", "user:p4ssword", "p4ssword"]);
        assert!(credentials("Basic !").is_empty());
    }
}
