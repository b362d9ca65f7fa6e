//! Masks secrets in text, JSON values and byte streams before they are stored.
//!
//! Two kinds of rules: values that the user configured as secrets, found in every form that a common encoder gives them
//! (`forms`), and the shapes of widely used keys (`patterns`). A value in a deliberately obfuscated form, or inside
//! compressed data, is not found.
//!
//! ```
//! use counterproof_redaction::{Applied, Redactor};
//! let redactor = Redactor::new(["hunter2-hunter2"])?;
//! let mut applied = Applied::default();
//! assert_eq!(redactor.text("password=hunter2-hunter2", &mut applied), "password=[redacted]");
//! assert_eq!(applied.names(), ["configured_secret"]);
//! # Ok::<(), counterproof_redaction::RedactError>(())
//! ```

mod forms;
mod key_finder;
mod partial_secret;
mod patterns;
mod redactor;
mod stream;

#[cfg(test)]
mod tests;

pub use key_finder::{KeyFinder, KeyMatch};
pub use patterns::{KEY_PATTERNS, KeyPattern};
pub use redactor::{Applied, CONFIGURED, MASK, RedactError, Redactor, SHORTEST};
pub use stream::RedactingStream;
