//! SHA-256 digests of bytes and of streams.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
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
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        let mut digest = [0; 32];
        for (index, byte) in digest.iter_mut().enumerate() {
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

#[cfg(test)]
mod tests {
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
}
