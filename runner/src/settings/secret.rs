//! Texts that must not be seen, and the request headers that carry them. Finding secrets in other texts is done elsewhere.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use crate::settings::run_settings::Settings;
use crate::settings::target::Target;

/// A text that no output shows: its `Debug` is masked, and it has neither `Display` nor a serialised form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// A header that goes out with every request. Its value is kept in no file and shown in no message.
#[derive(Debug, Clone)]
pub struct Header {
    name: HeaderName,
    value: Secret,
}

/// Why a text is no header. The messages never hold the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// There is no colon.
    #[error("a header is written NAME:VALUE, and this one has no colon")]
    NoColon,
    /// The name holds what no header name may.
    #[error("`{0}` is not a header name")]
    Name(String),
    /// The value holds what no header value may.
    #[error("the value of header `{0}` holds characters that no header may hold")]
    Value(HeaderName),
    /// The environment has no such variable.
    #[error("the value of header `{header}` is to come from the environment variable `{variable}`, which is not set")]
    Unset {
        /// The header.
        header: HeaderName,
        /// The variable.
        variable: String,
    },
    /// The runner sets this header itself.
    #[error("header `{0}` belongs to the runner")]
    Reserved(HeaderName),
}

/// Headers that describe the message's frame: another value would send a request that is not what was asked.
const RESERVED: [&str; 6] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"];

impl Header {
    /// Reads `NAME:VALUE`; a value `env:VARIABLE` is looked up with `environment`.
    pub fn parse(text: &Secret, environment: impl Fn(&str) -> Option<String>) -> Result<Self, HeaderError> {
        let (name, value) = text.expose().split_once(':').ok_or(HeaderError::NoColon)?;
        let name: HeaderName = name.trim().parse().map_err(|_| HeaderError::Name(name.trim().to_owned()))?;
        if RESERVED.contains(&name.as_str()) {
            return Err(HeaderError::Reserved(name));
        }
        let value = match value.trim().strip_prefix("env:") {
            None => value.trim().to_owned(),
            Some(variable) => environment(variable)
                .ok_or_else(|| HeaderError::Unset { header: name.clone(), variable: variable.to_owned() })?,
        };
        match HeaderValue::from_str(&value) {
            Ok(_) => Ok(Self { name, value: Secret(value) }),
            Err(_) => Err(HeaderError::Value(name)),
        }
    }

    /// The name.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The value.
    pub fn value(&self) -> &Secret {
        &self.value
    }
}

/// Shorter values are no secrets unless somebody says so, and to mask them would tear holes into every text.
const SHORTEST: usize = 8;

/// All texts of a run that must not be kept: those that were named, the values of all headers, and what the URL holds
/// besides the place.
pub(crate) fn all(settings: &Settings) -> Vec<Secret> {
    let mut implied: Vec<String> = Vec::new();
    for header in &settings.headers {
        let value = header.value().expose();
        // An agent that checks `Bearer …` may well echo the part behind the scheme alone.
        implied.extend(value.split_once(' ').map(|(_scheme, credential)| credential.trim().to_owned()));
        implied.push(value.to_owned());
    }
    if let Target::Http(base) = &settings.target {
        implied.extend(of_url(&base.asked_join("")));
    }
    implied.retain(|text| text.len() >= SHORTEST);
    settings.secrets.iter().cloned().chain(implied.into_iter().map(Secret::from)).collect()
}

fn of_url(url: &Url) -> Vec<String> {
    let (user, password) = (percent_decoded(url.username()), url.password().map(percent_decoded));
    let mut implied = Vec::new();
    // This is what the `Authorization` header carries, in base64.
    implied.extend(password.as_ref().map(|password| format!("{user}:{password}")));
    implied.extend(password);
    implied.push(user);
    implied.extend(url.query_pairs().map(|(_name, value)| value.into_owned()));
    implied
}

fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let decoded = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = decoded.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, HeaderError> {
        Header::parse(&text.parse().unwrap(), |name| (name == "TOKEN").then(|| "s3cret".to_owned()))
    }

    #[test]
    fn values_come_from_the_argument_or_from_the_environment() {
        assert_eq!(parse("X-Team: a:b ").unwrap().value().expose(), "a:b");
        let header = parse("Authorization:env:TOKEN").unwrap();
        assert_eq!((header.name().as_str(), header.value().expose()), ("authorization", "s3cret"));
    }

    #[test]
    fn no_output_shows_a_value() {
        let header = parse("authorization:env:TOKEN").unwrap();
        assert!(!format!("{header:?}").contains("s3cret"));
        for text in ["s3cret", "x:s3cret\u{7}", "content-length:s3cret", "x:env:s3cret?"] {
            let error = parse(text).unwrap_err();
            assert!(text == "x:env:s3cret?" || !format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
