//! Settings of a model.

use std::time::Duration;

use super::api_key::ApiKey;
use super::price::Price;

/// Where a model is, and how it is asked.
#[derive(Debug, Clone)]
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
