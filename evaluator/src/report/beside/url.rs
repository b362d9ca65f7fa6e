//! The address at which a report will be found, as it is safe in any document.

use std::fmt::Write as _;
use std::str::FromStr;

use crate::report::names;

/// Longer addresses are not addresses of reports.
const LONGEST: usize = 2048;

/// An `http` or `https` address. One that ends with `/` is that of the report's folder, so that pages within it can be linked
/// to; any other is that of something that has the report, such as a CI job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportUrl(String);

/// A text that is no address of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("not an address that starts with `https://` or `http://`")]
    Scheme,
    /// A character that no address has, such as a space.
    #[error("`{0}` cannot stand in an address")]
    Character(char),
    /// Too long.
    #[error("longer than {LONGEST} bytes")]
    TooLong,
}

impl FromStr for ReportUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let scheme = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        let host = ["https://", "http://"].into_iter().find(|known| scheme.starts_with(known)).map(str::len);
        if host.is_none_or(|start| text.len() == start || text[start..].starts_with('/')) {
            return Err(UrlError::Scheme);
        }
        if text.len() > LONGEST {
            return Err(UrlError::TooLong);
        }
        // RFC 3986, and no more: what else there is, is percent-encoded.
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
        match text.chars().find(|c| !is_known(*c)) {
            Some(c) => Err(UrlError::Character(c)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl ReportUrl {
    /// True where it is the report's own folder.
    pub(super) fn is_folder(&self) -> bool {
        self.0.ends_with('/') && !self.0.contains(['?', '#'])
    }

    /// The first page, or what else stands at the address; ready to be the target of a Markdown link.
    pub(super) fn first_page(&self) -> String {
        if self.is_folder() { self.page("index.html") } else { target(&self.0) }
    }

    /// A page of the report, where the address is that of its folder.
    pub(super) fn page(&self, path: &str) -> String {
        target(&format!("{}{}", self.0, names::encode_path(path)))
    }
}

/// An address with nothing in it that Markdown reads.
fn target(address: &str) -> String {
    let mut safe = String::with_capacity(address.len());
    for c in address.chars() {
        match c {
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
    fn only_addresses_that_a_browser_asks_are_taken() {
        for (text, error) in [
            ("javascript:alert(1)", UrlError::Scheme),
            ("https://", UrlError::Scheme),
            ("https:///x", UrlError::Scheme),
            ("ci.example", UrlError::Scheme),
            ("é", UrlError::Scheme),
            ("https://ci.example/a b", UrlError::Character(' ')),
            ("https://ci.example/|", UrlError::Character('|')),
            ("https://ci.example/\n", UrlError::Character('\n')),
            ("https://ci.example/<", UrlError::Character('<')),
        ] {
            assert_eq!(text.parse::<ReportUrl>(), Err(error), "{text}");
        }
        assert!("HTTPS://ci.example/x/".parse::<ReportUrl>().is_ok());
    }

    #[test]
    fn only_the_address_of_a_folder_has_pages() {
        let job: ReportUrl = "https://ci.example/job/7?a=1&b=(2)".parse().unwrap();
        assert_eq!(
            (job.is_folder(), job.first_page()),
            (false, "https://ci.example/job/7?a=1&amp;b=%282%29".to_owned())
        );
        let folder: ReportUrl = "https://ci.example/report/".parse().unwrap();
        assert_eq!(folder.first_page(), "https://ci.example/report/index.html");
        assert_eq!(folder.page("cases/a[1].html"), "https://ci.example/report/cases/a%5B1%5D.html");
    }
}
