//! Takes the secrets that the runner sends back out of what comes in, before any of it is kept.
//!
//! It knows the values of the configured headers and the password of the base URL, as they are and as JSON escapes them.
//! It does not look for secrets that it was not told of.

use crate::secret::Secret;

/// What stands where a secret stood.
const MASK: &[u8] = b"[redacted]";

/// Shorter values are no secrets, and to mask them would tear holes into every text.
const SHORTEST: usize = 8;

/// The texts to look for.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that no part of one is left by another.
    needles: Vec<Vec<u8>>,
}

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut needles = Vec::new();
        for secret in secrets {
            // An agent that checks `Bearer …` may well echo the part behind the scheme alone.
            let whole = secret.expose();
            let credential = whole.split_once(' ').map(|(_scheme, credential)| credential);
            for text in [Some(whole), credential].into_iter().flatten().filter(|text| text.len() >= SHORTEST) {
                needles.push(text.as_bytes().to_vec());
                let escaped = serde_json::Value::from(text).to_string();
                needles.push(escaped.trim_matches('"').as_bytes().to_vec());
            }
        }
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.len()));
        needles.dedup();
        Self { needles }
    }

    /// Masks every secret; says whether there was one.
    pub(crate) fn mask(&self, bytes: &mut Vec<u8>) -> bool {
        let mut found = false;
        for needle in &self.needles {
            let Some(mut at) = find(bytes, needle) else { continue };
            found = true;
            let mut masked = Vec::with_capacity(bytes.len());
            let mut rest = bytes.as_slice();
            loop {
                masked.extend_from_slice(&rest[..at]);
                masked.extend_from_slice(MASK);
                rest = &rest[at + needle.len()..];
                match find(rest, needle) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            masked.extend_from_slice(rest);
            *bytes = masked;
        }
        found
    }

    /// Masks every secret in a text.
    pub(crate) fn mask_text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.mask(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(secret: &str, text: &str) -> String {
        Redactor::new([&Secret::from(secret.to_owned())]).mask_text(text)
    }

    #[test]
    fn values_are_masked_wherever_they_stand() {
        assert_eq!(mask("sk-12345678", "a sk-12345678 b sk-12345678"), "a [redacted] b [redacted]");
        assert_eq!(mask("Bearer sk-12345678", "{\"token\":\"sk-12345678\"}"), "{\"token\":\"[redacted]\"}");
        assert_eq!(mask("pass\"word12", r#"{"p":"pass\"word12"}"#), r#"{"p":"[redacted]"}"#);
    }

    #[test]
    fn short_values_are_left_alone() {
        assert_eq!(mask("team-a", "team-a"), "team-a");
    }
}
