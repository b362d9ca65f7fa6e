//! The text of JSON, below serde: tokens of a stream, positions of values, and duplicate keys.
//!
//! - [`Tokenizer`] reads a text that arrives in pieces and is never held as a whole; [`check`] applies it to a whole text.
//! - [`spans`], [`positions`] and [`duplicate_keys`] locate what a message about a parsed document names.
//! - [`parse`] builds a [`serde_json::Value`] and reports whether an object has a key twice; [`parse_strict`] rejects it.
//!
//! # JSON that `serde_json` cannot represent
//!
//! Two texts of RFC 8259 are JSON, and yet no [`serde_json::Value`]: a number beyond the range of a 64-bit float (`1.5e3111`), and
//! a string with half of a surrogate pair (`"\ud83d"`). [`Tokenizer`] and [`check`] follow the grammar and accept both; [`parse`]
//! and [`parse_strict`] reject them, as `serde_json` does. So `check(text).is_ok() && parse(text).is_err()` means: other programs
//! may read this text, and this one cannot inspect it. A program that forwards a text asks [`check`] whether it is JSON;
//! a program that decides on its values asks [`parse`]. All of them allow [`MAX_DEPTH`] levels of nesting.
//!
//! ```
//! use counterproof_json_text::{check, parse, spans};
//! let text = r#"{"a": [1, {"b": 2}]}"#;
//! assert_eq!(spans(text, &["/a/1/b"]), [Some(16..17)]);
//! assert!(check(b"1.5e3111").is_ok() && parse("1.5e3111").is_err());
//! ```

mod locate;
mod parse;
mod strings;
mod tokenizer;

#[cfg(test)]
mod tests;

pub use locate::{DuplicateKey, DuplicateKeys, Position, duplicate_keys, offset, positions, spans};
pub use parse::{Parsed, StrictError, parse, parse_strict};
pub use strings::{EscapeCursor, decode, escape, within};
pub use tokenizer::{Kind, MAX_DEPTH, SyntaxError, Token, Tokenizer, check};
