//! Links between the files of a folder that cannot leave the folder.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A relative link with forward slashes that stays below the folder it is resolved against.
///
/// It is a path, not a URL: percent signs are not decoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Href(String);

/// A text that is not a link within the folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HrefError {
    /// The text is empty.
    #[error("the href is empty")]
    Empty,
    /// Starts at the root of a file system or a drive.
    #[error("`{0}` is an absolute path")]
    Absolute(String),
    /// Starts with a URL scheme.
    #[error("`{0}` is a URL, not a path within the folder")]
    Scheme(String),
    /// Contains `..`.
    #[error("`{0}` leaves its folder")]
    Escapes(String),
    /// Contains a backslash, an empty or `.` segment, a colon or a control character.
    #[error("`{}` is not written portably: use plain segments separated by `/`", .0.escape_debug())]
    NotPortable(String),
}

fn check(text: &str) -> Result<(), HrefError> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Err(HrefError::Empty);
    }
    // `C:` is a drive on Windows only, but a run folder moves between systems. `c://` is a scheme, which has its own error.
    let drive = bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && !text[2..].starts_with("//");
    if matches!(bytes[0], b'/' | b'\\') || drive {
        return Err(HrefError::Absolute(text.to_owned()));
    }
    if text.contains("://") {
        return Err(HrefError::Scheme(text.to_owned()));
    }
    // A backslash separates segments on Windows, so that `a\..\..` leaves the folder there.
    if text.split(['/', '\\']).any(|segment| segment == "..") {
        return Err(HrefError::Escapes(text.to_owned()));
    }
    // Last, because the errors before it state more exactly what is wrong.
    let odd = |c: char| c == '\\' || c == ':' || c.is_control();
    if text.contains(odd) || text.split('/').any(|segment| segment.is_empty() || segment == ".") {
        return Err(HrefError::NotPortable(text.to_owned()));
    }
    Ok(())
}

impl Href {
    /// The link as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Href {
    type Err = HrefError;

    fn from_str(text: &str) -> Result<Self, HrefError> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Href {
    type Error = HrefError;

    fn try_from(text: String) -> Result<Self, HrefError> {
        check(&text)?;
        Ok(Self(text))
    }
}

impl From<Href> for String {
    fn from(href: Href) -> String {
        href.0
    }
}

impl fmt::Display for Href {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_the_folder_are_accepted() {
        for text in ["a", "assets/a.json", "assets/..a", "assets/a..b/c", "assets/%2e%2e"] {
            assert!(text.parse::<Href>().is_ok(), "{text}");
        }
    }

    #[test]
    fn links_that_leave_or_are_not_portable_are_rejected() {
        type Make = fn(String) -> HrefError;
        let refused: [(&str, Make); 14] = [
            ("/etc/passwd", HrefError::Absolute),
            ("\\\\server\\share", HrefError::Absolute),
            ("C:/x", HrefError::Absolute),
            ("C:x", HrefError::Absolute),
            ("file:///etc/passwd", HrefError::Scheme),
            ("http://host/x", HrefError::Scheme),
            ("..", HrefError::Escapes),
            ("assets/../../x", HrefError::Escapes),
            ("assets\\..\\..\\x", HrefError::Escapes),
            ("assets//x", HrefError::NotPortable),
            ("./assets/x", HrefError::NotPortable),
            ("assets/", HrefError::NotPortable),
            ("assets\\x", HrefError::NotPortable),
            ("assets/a\nb", HrefError::NotPortable),
        ];
        for (text, make) in refused {
            assert_eq!(text.parse::<Href>(), Err(make(text.to_owned())), "{text:?}");
        }
        assert_eq!("".parse::<Href>(), Err(HrefError::Empty));
    }
}
