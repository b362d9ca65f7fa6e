//! Masks secrets in text, JSON values and byte streams before they are stored.
//!
//! Two kinds of rules: values that the user configured as secrets, in every form that one or two common encoders give them
//! (also without outer white space, with other line ends, and the long lines of a value by themselves), and the shapes of widely used
//! keys (`patterns`). A value in a deliberately obfuscated form, or inside compressed data, is not found.
//!
//! In JSON, only the content of strings is masked, by whole escapes (`json_stream`). A text with escapes of JSON is also searched
//! with these decoded (`search`), since an escape can stand for a digit of base64.
//!
//! One regular expression finds every place where a form of a value may start (`encodings`). From there, the form is
//! followed character by character (`value_search`) through the escapes that encoders write (`matcher`). So the time to
//! compile a search does not depend on the length of the values, and nearly all text is read once.
//!
//! ```
//! use counterproof_redaction::{Applied, Redactor};
//! let redactor = Redactor::new(["hunter2-hunter2"])?;
//! let mut applied = Applied::default();
//! assert_eq!(redactor.text("password=hunter2-hunter2", &mut applied), "password=[redacted]");
//! assert_eq!(applied.names(), ["configured_secret"]);
//! # Ok::<(), counterproof_redaction::RedactError>(())
//! ```

mod argument_secrets;
mod encodings;
mod json_stream;
mod matcher;
mod patterns;
mod redactor;
mod search;
mod stream;
mod value_search;

#[cfg(test)]
mod tests;

pub use argument_secrets::argument_secrets;
pub use argument_secrets::url_secrets;
pub use encodings::SHORTEST_LINE;
pub use json_stream::{JsonRedactingStream, JsonUse, redact_json};
pub use patterns::is_secret_name;
pub use patterns::{BROAD_PATTERNS, KEY_PATTERNS, KeyPattern};
pub use patterns::{KeyFinder, KeyMatch};
pub use redactor::{Applied, CONFIGURED, MASK, RedactError, Redactor, SHORTEST, has_mark};
pub use stream::RedactingStream;
