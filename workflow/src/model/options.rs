//! Settings of a model.

use std::fmt;
use std::time::Duration;

use counterproof_guard::http::UpstreamUrl;

use super::api_key::ApiKey;
use super::price::Price;

/// Where a model is, and how it is asked.
#[derive(Clone)]
pub struct ModelOptions {
    /// The base URL, such as `https://api.openai.com/v1`. Requests go to `…/chat/completions`.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<ApiKey>,
    pub stream: bool,
    /// The most tokens of one answer.
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    /// How much a token costs. Without it, records have no cost.
    pub price: Option<Price>,
    /// The longest time of one attempt, from the request to the end of its answer.
    pub request_timeout: Duration,
    /// The longest time without a byte of the server.
    pub idle_timeout: Duration,
    /// The most attempts of one request.
    pub attempts: u32,
    /// The wait before the second attempt. It doubles with each further one.
    pub backoff: Duration,
}

impl ModelOptions {
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            stream: true,
            max_tokens: None,
            temperature: None,
            price: None,
            request_timeout: Duration::from_mins(15),
            // A model that thinks sends nothing for minutes, also over a stream.
            idle_timeout: Duration::from_mins(5),
            attempts: 6,
            backoff: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for ModelOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        let url = self.base_url.parse::<UpstreamUrl>().map(|url| url.recorded()).unwrap_or_default();
        f.debug_struct("ModelOptions").field("base_url", &url).field("model", &self.model).finish_non_exhaustive()
    }
}
