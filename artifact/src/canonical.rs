//! SHA-256 digests, and the canonical text of a JSON value for them: RFC 8785 (JSON Canonicalization Scheme).
//!
//! RFC 8785 requires numbers that a double holds exactly. Integers beyond 2^53 are outside of it: as doubles, two different ids
//! would have the same hash. Integers within 64 bits are therefore written with all their digits.

use std::fmt::{self, Write as _};
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// A SHA-256 digest, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Computes the digest of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Computes the digest and the number of all bytes that a reader returns.
    pub fn from_reader(mut reader: impl Read) -> io::Result<(Self, u64)> {
        let mut hasher = Sha256Hasher::default();
        // In pieces: an asset can be larger than the memory.
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(read) => hasher.update(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The first eight bytes as a big-endian number.
    pub fn leading(&self) -> u64 {
        self.0.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// The first 16 digits: the short hash of the contract for quick comparison.
    pub fn short(&self) -> String {
        self.to_string()[..16].to_owned()
    }
}

/// Computes a digest incrementally, and counts the bytes.
#[derive(Debug, Default, Clone)]
pub struct Sha256Hasher {
    hasher: Sha256,
    bytes: u64,
}

impl Sha256Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Returns the digest and the number of bytes.
    pub fn finish(self) -> (Sha256Digest, u64) {
        (Sha256Digest(self.hasher.finalize().into()), self.bytes)
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Digest({self})")
    }
}

/// A text that is not a SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a SHA-256 digest: expected 64 hexadecimal digits")]
pub struct DigestError(String);

impl FromStr for Sha256Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refuse = || DigestError(text.to_owned());
        // Checked before slicing: the length is then one of characters, too.
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        let mut digest = [0; 32];
        for (index, byte) in digest.iter_mut().enumerate() {
            // Capital letters are accepted. `Display` writes small ones, so that equal digests have one text.
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| refuse())?;
        }
        Ok(Self(digest))
    }
}

impl TryFrom<String> for Sha256Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> String {
        digest.to_string()
    }
}

/// Returns the canonical text of a value.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

/// Computes SHA-256 over the canonical text of a value.
pub fn canonical_hash(value: &Value) -> Sha256Digest {
    Sha256Digest::from_bytes(canonical_json(value).as_bytes())
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            // By UTF-16 code units, as RFC 8785 requires. UTF-8 sorts differently beyond U+FFFF.
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

fn write_number(number: &Number, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => write!(out, "{number}"),
        (None, Some(number)) => write!(out, "{number}"),
        // The shortest digits, as in ECMAScript. A JSON number is finite, so this cannot fail.
        (None, None) => write!(out, "{}", serde_json_canonicalizer::to_string(number).unwrap_or_default()),
    };
}

/// Escapes as RFC 8785 does, which is how `serde_json` escapes.
fn write_string(text: &str, out: &mut String) {
    // Serialising a string cannot fail.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn digest_of_the_empty_text_is_the_published_one() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256Digest::from_bytes(b"").to_string(), expected);
        assert_eq!(Sha256Digest::from_reader(&b""[..]).unwrap().0, expected.parse().unwrap());
        assert_eq!(expected.to_uppercase().parse::<Sha256Digest>().unwrap().to_string(), expected);
    }

    #[test]
    fn texts_that_are_not_digests_are_rejected() {
        for text in ["", "e3b0", &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<Sha256Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_published_hashes_are_computed() {
        for (value, hash) in [
            (json!({"b": 2, "a": 1}), "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"),
            (
                json!({"command": "git push", "force": false, "branch": "main"}),
                "e13c608f6d08e999ce8c39b52fa274a731ccab0e6b3b3e62cd23511b93d7527e",
            ),
        ] {
            assert_eq!(canonical_hash(&value).to_string(), hash);
        }
    }

    #[test]
    fn the_example_of_the_rfc_is_canonical() {
        let input = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
            \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(canonical_json(&serde_json::from_str(input).unwrap()), expected);
    }

    #[test]
    fn keys_are_sorted_by_utf_16_code_units() {
        let value = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        let sorted: Vec<u32> = canonical_json(&value).chars().filter_map(|it| it.to_digit(10)).collect::<Vec<_>>();
        // The key "1" is a digit as well.
        assert_eq!(sorted, [2, 1, 4, 6, 7, 1, 5, 3]);
    }

    #[test]
    fn different_integers_have_different_texts_and_equal_numbers_the_same() {
        let text = |json: &str| canonical_json(&serde_json::from_str(json).unwrap());
        assert_ne!(text("9007199254740993"), text("9007199254740992"));
        assert_eq!(text("-9223372036854775808"), "-9223372036854775808");
        assert_eq!(text("18446744073709551615"), "18446744073709551615");
        for (a, b) in [("1.0", "1"), ("1e0", "1"), ("-0.0", "0"), ("100000000000000000000", "1e20")] {
            assert_eq!(text(a), text(b), "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn the_text_agrees_with_the_library_where_doubles_are_exact(number: f64, integer in -(1_i64 << 53)..1 << 53, key: String) {
            let value = json!({key: [number, integer]});
            prop_assert_eq!(canonical_json(&value), serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }
}
