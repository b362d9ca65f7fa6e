//! Locations outside of the report that the exports may refer to: the address of the published report, and the lines of cases.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::str::FromStr;

use counterproof_artifact::CaseId;

use crate::site::encode_path;

/// Locations outside of the report that the exports may refer to.
#[derive(Debug, Clone, Default)]
pub struct ReportContext {
    pub report_url: Option<ReportUrl>,
    /// The location of each case in the cases files.
    pub case_locations: HashMap<CaseId, CaseLocation>,
}

/// The location of a case in a cases file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLocation {
    /// The file, relative to the root of the repository, with forward slashes.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

const LONGEST: usize = 2048;

/// An `http` or `https` address. An address that ends with `/` is the report folder, so the exports link to its pages. Any other
/// address is a page that offers the report, such as a CI job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportUrl(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReportUrlError {
    #[error("expected an address that starts with `https://` or `http://`")]
    Scheme,
    /// A character that is invalid in an address, such as a space.
    #[error("invalid character `{0}` in an address")]
    Character(char),
    #[error("longer than {LONGEST} bytes")]
    TooLong,
}

impl FromStr for ReportUrl {
    type Err = ReportUrlError;

    fn from_str(text: &str) -> Result<Self, ReportUrlError> {
        // The length of the longer scheme. `get`, because the cut may be within a character.
        let scheme = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        let host = ["https://", "http://"].into_iter().find(|known| scheme.starts_with(known)).map(str::len);
        if host.is_none_or(|start| text.len() == start || text[start..].starts_with('/')) {
            return Err(ReportUrlError::Scheme);
        }
        if text.len() > LONGEST {
            return Err(ReportUrlError::TooLong);
        }
        // The characters of RFC 3986. All others have to be percent-encoded.
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
        match text.chars().find(|c| !is_known(*c)) {
            Some(c) => Err(ReportUrlError::Character(c)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl ReportUrl {
    /// Returns whether the address is the report folder.
    pub(crate) fn is_folder(&self) -> bool {
        // A path cannot be appended to a query or a fragment.
        self.0.ends_with('/') && !self.0.contains(['?', '#'])
    }

    /// The index page, or the address itself, as the target of a Markdown link.
    pub(crate) fn index_page(&self) -> String {
        if self.is_folder() { self.page("index.html") } else { target(&self.0) }
    }

    /// A page of the report, if the address is the report folder.
    pub(crate) fn page(&self, path: &str) -> String {
        target(&format!("{}{}", self.0, encode_path(path)))
    }
}

/// An address without characters that are special in Markdown.
fn target(address: &str) -> String {
    let mut safe = String::with_capacity(address.len());
    for c in address.chars() {
        match c {
            // `&` could start a character reference.
            '&' => safe.push_str("&amp;"),
            '(' | ')' | '[' | ']' | '*' | '\'' | '$' => {
                let _ = write!(safe, "%{:02X}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_addresses_are_valid() {
        for (text, error) in [
            ("javascript:alert(1)", ReportUrlError::Scheme),
            ("https://", ReportUrlError::Scheme),
            ("https:///x", ReportUrlError::Scheme),
            ("ci.example", ReportUrlError::Scheme),
            ("é", ReportUrlError::Scheme),
            ("https://ci.example/a b", ReportUrlError::Character(' ')),
            ("https://ci.example/|", ReportUrlError::Character('|')),
            ("https://ci.example/\n", ReportUrlError::Character('\n')),
            ("https://ci.example/<", ReportUrlError::Character('<')),
        ] {
            assert_eq!(text.parse::<ReportUrl>(), Err(error), "{text}");
        }
        assert!("HTTPS://ci.example/x/".parse::<ReportUrl>().is_ok());
    }

    #[test]
    fn only_the_address_of_a_folder_has_pages() {
        let job: ReportUrl = "https://ci.example/job/7?a=1&b=(2)".parse().unwrap();
        assert_eq!(
            (job.is_folder(), job.index_page()),
            (false, "https://ci.example/job/7?a=1&amp;b=%282%29".to_owned())
        );
        let folder: ReportUrl = "https://ci.example/report/".parse().unwrap();
        assert_eq!(folder.index_page(), "https://ci.example/report/index.html");
        assert_eq!(folder.page("cases/a[1].html"), "https://ci.example/report/cases/a%5B1%5D.html");
    }
}
