//! Settings of a model: where it is, how it is asked, its key, and its price.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use counterproof_guard::http::UpstreamUrl;
use counterproof_sessions::event::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a model is, and how it is asked.
#[derive(Clone)]
pub struct ModelOptions {
    /// The base URL, such as `https://api.openai.com/v1`. Requests go to `…/chat/completions`.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<ApiKey>,
    pub stream: bool,
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

/// What replaces a key in a text of the server.
const MASK: &str = "[REDACTED]";

/// A shorter key is part of ordinary words, and replacing it would only damage texts.
const MIN_MASKED_BYTES: usize = 4;

/// A key whose `Debug` is masked; neither `Display` nor serialisation exists.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Returns `None` for a blank text. White space around the key, such as the line feed of a file, is removed.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the key itself. Only code that sends or masks it may call this.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key in a text.
    pub(super) fn mask_text(&self, text: &mut String) {
        if self.0.len() >= MIN_MASKED_BYTES && text.contains(&self.0) {
            *text = text.replace(&self.0, MASK);
        }
    }

    /// Replaces the key in all texts and names of a value.
    pub(super) fn mask(&self, value: &mut Value) {
        // The depth is that of parsed JSON, which the parser limits.
        match value {
            Value::String(text) => self.mask_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| name.contains(&self.0)) {
                    let masked = std::mem::take(fields).into_iter().map(|(mut name, value)| {
                        self.mask_text(&mut name);
                        (name, value)
                    });
                    *fields = masked.collect();
                }
                fields.values_mut().for_each(|value| self.mask(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

/// The price of a million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid price `{0}`: write the prices of a million prompt and completion tokens, such as `2.50,10`")]
pub struct InvalidPrice(String);

impl FromStr for Price {
    type Err = InvalidPrice;

    fn from_str(text: &str) -> Result<Self, InvalidPrice> {
        let number = |text: &str| text.trim().parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
        let (input, output) = text.split_once(',').ok_or_else(|| InvalidPrice(text.to_owned()))?;
        match (number(input), number(output)) {
            (Some(input), Some(output)) => Ok(Self { input, output }),
            _ => Err(InvalidPrice(text.to_owned())),
        }
    }
}

impl Price {
    /// Returns the cost of a call. A count that the server did not state costs nothing.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let tokens = |count: Option<u64>| count.unwrap_or(0) as f64 / 1e6;
        tokens(usage.prompt_tokens) * self.input + tokens(usage.completion_tokens) * self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_two_numbers() {
        let price: Price = " 2.5 ,10".parse().unwrap();
        assert_eq!(price, Price { input: 2.5, output: 10.0 });
        for text in ["", "1", "1,", "1,2,3", "-1,2", "nan,1", "1,inf", "a,b"] {
            assert_eq!(text.parse::<Price>(), Err(InvalidPrice(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_cost_is_that_of_the_known_counts() {
        let price = Price { input: 2.0, output: 8.0 };
        let cost = |prompt, completion| price.cost(&Usage::new(prompt, completion, None));
        assert!((cost(Some(500_000), Some(250_000)) - 3.0).abs() < 1e-9);
        assert!((cost(None, Some(1_000_000)) - 8.0).abs() < 1e-9);
        assert!(cost(None, None) < 1e-9);
    }
}
