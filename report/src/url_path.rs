//! Percent-encoding of paths in links.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything except letters, digits, slashes and the other unreserved characters of RFC 3986, section 2.3.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns a relative path as it appears in a link.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_unreserved_characters_and_slashes_is_encoded() {
        assert_eq!(encode_path("cases/t[a,1]~@=+é #?%.html"), "cases/t%5Ba%2C1%5D~%40%3D%2B%C3%A9%20%23%3F%25.html");
    }
}
