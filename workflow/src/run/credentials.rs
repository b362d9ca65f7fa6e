//! URLs without their credentials. Checkpoints have these, and a run has the whole URL in memory only.

use counterproof_guard::http::UpstreamUrl;
use counterproof_workspace::without_password;
use percent_encoding::percent_decode_str;

use super::begin::Secrets;
use super::state::ModelSettings;

/// A parameter of a URL that is a version and not a key.
const VERSION: &str = "api-version";

/// A URL that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorableUrl {
    pub url: String,
    /// What was removed from it, as it was written and decoded.
    pub removed: Vec<String>,
    pub had_credentials: bool,
}

impl StorableUrl {
    /// Removes the user, the password and the query of an HTTP URL, and the password of another URL. A path, and a URL without
    /// credentials, are not changed.
    pub fn new(text: &str) -> Self {
        let (url, secrets) = if let Ok(url) = text.parse::<UpstreamUrl>() {
            (url.recorded(), secrets_of(&url))
        } else {
            let url = without_password(text);
            let removed = if url == text { None } else { password_of(text).map(str::to_owned) };
            (url, removed.into_iter().collect())
        };
        if secrets.is_empty() {
            return Self { url: text.to_owned(), removed: Vec::new(), had_credentials: false };
        }
        let mut removed = Vec::new();
        for secret in secrets {
            let decoded = percent_decode_str(&secret).decode_utf8_lossy().into_owned();
            removed.extend((decoded != secret).then_some(decoded));
            removed.push(secret);
        }
        Self { url, removed, had_credentials: true }
    }
}

fn secrets_of(url: &UpstreamUrl) -> Vec<String> {
    // The user of a password is no secret, such as `x-access-token`.
    let user = Some(url.username()).filter(|user| !user.is_empty());
    let credentials = url.password().or(user);
    let pairs = url.query().into_iter().flat_map(|query| query.split('&'));
    let values = pairs.map(|pair| pair.split_once('=').unwrap_or(("", pair)));
    let values = values.filter(|(name, value)| *name != VERSION && !value.is_empty()).map(|(_, value)| value);
    credentials.into_iter().chain(values).map(str::to_owned).collect()
}

fn password_of(text: &str) -> Option<&str> {
    let authority = text.split_once("://")?.1.split('/').next()?;
    Some(authority.rsplit_once('@')?.0.split_once(':')?.1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model URL of the session had credentials, which are not stored: pass `--model-url` again")]
pub struct ModelUrlRequired;

impl Secrets {
    /// Returns the URL of the model with its credentials.
    pub(super) fn model_url<'a>(&'a self, model: &'a ModelSettings) -> Result<&'a str, ModelUrlRequired> {
        match &self.model_url {
            Some(url) => Ok(url),
            None if model.had_credentials => Err(ModelUrlRequired),
            None => Ok(&model.url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_and_reported() {
        for (text, url, removed) in [
            ("https://ghp_1@github.com/a/b.git", "https://github.com/a/b.git", &["ghp_1"][..]),
            ("https://x-access-token:a%2Fb@host/v1", "https://host/v1", &["a/b", "a%2Fb"]),
            ("https://host/v1?api_key=k1&api-version=2&x", "https://host/v1", &["k1", "x"]),
            ("https://u:p@host:8443/v1?key=k#f", "https://host:8443/v1", &["p", "k"]),
            ("ssh://git:word@host/a.git", "ssh://git@host/a.git", &["word"]),
        ] {
            let found = StorableUrl::new(text);
            assert_eq!((found.url.as_str(), found.had_credentials), (url, true), "{text}");
            assert_eq!(found.removed, removed, "{text}");
        }
    }

    #[test]
    fn other_urls_and_paths_are_not_changed() {
        for text in [
            "https://host",
            "http://localhost:8000/v1/",
            "https://host/v1?api-version=2024-02-01",
            "git@github.com:a/b.git",
            "ssh://git@host/a",
            "../a@b:c",
            "/a b",
            "",
        ] {
            let expected = StorableUrl { url: text.to_owned(), removed: Vec::new(), had_credentials: false };
            assert_eq!(StorableUrl::new(text), expected);
        }
    }
}
