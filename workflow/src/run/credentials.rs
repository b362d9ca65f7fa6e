//! URLs without their credentials. Checkpoints have these, and a run has the whole URL in memory only.

use counterproof_guard::http::UpstreamUrl;
use counterproof_sessions::proxy::{ANTHROPIC_DEFAULT, OPENAI_DEFAULT};
use counterproof_workspace::without_password;
use percent_encoding::percent_decode_str;

use super::begin::{BeginError, Secrets};
use super::state::ModelSettings;
use crate::model::ModelError;

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
    pub(super) fn model_url<'a>(&'a self, model: &'a ModelSettings) -> Result<Option<&'a str>, ModelUrlRequired> {
        match &self.model_url {
            Some(url) => Ok(Some(url)),
            None if model.had_credentials => Err(ModelUrlRequired),
            None => Ok(model.url.as_deref()),
        }
    }

    /// Returns the URL and the name of the model of the built-in agent.
    pub(super) fn model<'a>(&'a self, model: &'a ModelSettings) -> Result<(&'a str, &'a str), BeginError> {
        let url = self.model_url(model)?.ok_or(BeginError::NoModel("--model-url"))?;
        Ok((url, model.name.as_deref().ok_or(BeginError::NoModel("--model"))?))
    }

    /// Returns the servers of OpenAI and Anthropic requests of an agent command.
    pub(super) fn upstreams(&self, model: &ModelSettings) -> Result<[UpstreamUrl; 2], BeginError> {
        let [openai, anthropic] = &self.upstreams;
        let urls = match self.model_url(model)? {
            Some(url) => [url, url],
            None => [openai.as_deref().unwrap_or(OPENAI_DEFAULT), anthropic.as_deref().unwrap_or(ANTHROPIC_DEFAULT)],
        };
        let [openai, anthropic] = urls.map(|url| url.parse().map_err(ModelError::from));
        Ok([openai?, anthropic?])
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
    fn an_agent_command_uses_the_servers_of_the_environment_or_the_public_ones_without_a_model_url() {
        let mut model =
            ModelSettings { url: None, had_credentials: false, name: None, is_streaming: true, price: None };
        let mut secrets = Secrets::default();
        let of = |secrets: &Secrets, model: &ModelSettings| secrets.upstreams(model).unwrap().map(|it| it.recorded());
        assert_eq!(of(&secrets, &model), ["https://api.openai.com/v1", "https://api.anthropic.com/"]);
        secrets.upstreams[1] = Some("http://localhost:1".to_owned());
        assert_eq!(of(&secrets, &model), ["https://api.openai.com/v1", "http://localhost:1/"]);
        assert!(matches!(secrets.model(&model), Err(BeginError::NoModel("--model-url"))));
        model.url = Some("http://localhost:2/v1".to_owned());
        assert_eq!(of(&secrets, &model), ["http://localhost:2/v1"; 2]);
        assert!(matches!(secrets.model(&model), Err(BeginError::NoModel("--model"))));
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
