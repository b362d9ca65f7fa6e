//! A relative path of any bytes, as text in a document where it is UTF-8.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path relative to the working directory, or the target of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Encoded", into = "Encoded")]
pub(super) struct RawPath(Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Encoded {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl RawPath {
    pub(super) fn new(path: &OsStr) -> Self {
        Self(path.as_bytes().to_vec())
    }

    /// Returns the path of an entry of this folder. The empty path is the working directory.
    pub(super) fn child(&self, name: &OsStr) -> Self {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name.as_bytes());
        Self(bytes)
    }

    /// Returns the folders above the path, outermost first, without the working directory.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self(self.0[..at].to_vec()))
    }

    /// True for the path itself and everything below it.
    pub(super) fn is_in(&self, folder: &Self) -> bool {
        let rest = self.0.strip_prefix(&*folder.0);
        rest.is_some_and(|rest| folder.0.is_empty() || rest.is_empty() || rest[0] == b'/')
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// Returns the absolute path.
    pub(super) fn below(&self, root: &Path) -> PathBuf {
        if self.is_root() { root.to_owned() } else { root.join(self.as_os_str()) }
    }
}

impl fmt::Display for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        for chunk in self.0.utf8_chunks() {
            f.write_str(&counterproof_artifact::escape_invisible(chunk.valid()))?;
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

impl From<Encoded> for RawPath {
    fn from(encoded: Encoded) -> Self {
        match encoded {
            Encoded::Text(text) => Self(text.into_bytes()),
            Encoded::Bytes { bytes } => Self(bytes),
        }
    }
}

impl From<RawPath> for Encoded {
    fn from(path: RawPath) -> Self {
        match OsString::from_vec(path.0).into_string() {
            Ok(text) => Encoded::Text(text),
            Err(bytes) => Encoded::Bytes { bytes: bytes.into_vec() },
        }
    }
}
