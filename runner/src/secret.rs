//! Secrets and request headers: configured text that must not appear in any output. `counterproof-redaction` finds it in other text.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;

use reqwest::header::{HeaderName, HeaderValue};

/// Text that no output shows: `Debug` is masked, and neither `Display` nor serialisation exists.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text itself. Only code that sends or masks it may call this.
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

/// A request header. No file and no message contains its value.
#[derive(Debug, Clone)]
pub struct Header {
    name: HeaderName,
    value: Secret,
}

/// An invalid header. The messages never contain the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The text has no colon.
    #[error("invalid header: missing colon; use NAME:VALUE")]
    NoColon,
    /// The name contains characters that are not allowed in a header name.
    #[error("invalid header name `{0}`")]
    Name(String),
    /// The value contains characters that are not allowed in a header value.
    #[error("the value of header `{0}` contains characters that are not allowed")]
    Value(HeaderName),
    /// The environment variable is not set.
    #[error("header `{header}` reads the environment variable `{variable}`, which is not set")]
    Unset {
        /// The header.
        header: HeaderName,
        /// The variable.
        variable: String,
    },
    /// The value of the environment variable is not text.
    #[error("header `{header}` reads the environment variable `{variable}`, whose value is not valid UTF-8")]
    NotUtf8 {
        /// The header.
        header: HeaderName,
        /// The variable.
        variable: String,
    },
    /// The runner sets this header itself.
    #[error("header `{0}` is set by the runner and cannot be configured")]
    Reserved(HeaderName),
}

/// Headers that describe the framing of the message. Another value would change the request that is sent.
const RESERVED: [&str; 6] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"];

impl Header {
    /// Parses `NAME:VALUE`. A value `env:VARIABLE` is looked up with `environment`.
    pub fn parse(text: &Secret, environment: impl Fn(&str) -> Result<String, VarError>) -> Result<Self, HeaderError> {
        let (name, value) = text.expose().split_once(':').ok_or(HeaderError::NoColon)?;
        let name: HeaderName = name.trim().parse().map_err(|_| HeaderError::Name(name.trim().to_owned()))?;
        if RESERVED.contains(&name.as_str()) {
            return Err(HeaderError::Reserved(name));
        }
        let value = match value.trim().strip_prefix("env:") {
            None => value.trim().to_owned(),
            Some(variable) => environment(variable).map_err(|error| {
                let (header, variable) = (name.clone(), variable.to_owned());
                match error {
                    VarError::NotPresent => HeaderError::Unset { header, variable },
                    VarError::NotUnicode(_) => HeaderError::NotUtf8 { header, variable },
                }
            })?,
        };
        // Validated here, so that the client can rely on it.
        match HeaderValue::from_str(&value) {
            Ok(_) => Ok(Self { name, value: Secret::from(value) }),
            Err(_) => Err(HeaderError::Value(name)),
        }
    }

    /// Returns the text of a header as [`Header::parse`] reads it.
    pub fn text(name: &str, value: &Secret) -> Secret {
        Secret::from(format!("{name}:{}", value.expose()))
    }

    /// Returns the name in lower case.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Returns the value, which is masked in `Debug`.
    pub fn value(&self) -> &Secret {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, HeaderError> {
        Header::parse(&text.parse().unwrap(), |name| match name {
            "TOKEN" => Ok("s3cret".to_owned()),
            _ => Err(VarError::NotPresent),
        })
    }

    #[test]
    fn a_value_comes_from_the_argument_or_from_the_environment() {
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
