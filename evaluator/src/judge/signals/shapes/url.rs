//! URLs, by their hosts. A host is read as a browser reads it: what is before the last `@` is no part of it.

use std::ops::Range;

/// Longest part of a URL between its scheme and its path that is read, in bytes.
const LONGEST_AUTHORITY: usize = 512;

/// Schemes whose URLs are opened or fetched.
const SCHEMES: [&str; 5] = ["https", "http", "ftp", "wss", "ws"];

/// The URLs in a text, in their order: the bytes up to the path, and the host in small letters.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    // Most texts are short and have neither, so preparing two searches would cost more than this.
    if !text.bytes().any(|byte| matches!(byte, b':' | b'.')) {
        return found;
    }
    for (at, _) in text.match_indices("://") {
        // The scheme and the authority both end at the `/` of the next URL, so each byte is read at most twice.
        let Some(start) = scheme_start(&text[..at]) else { continue };
        let authority = authority(&text[at + 3..]);
        if let Some(host) = host(authority) {
            found.push((start..at + 3 + authority.len(), host));
        }
    }
    for (start, _) in text.match_indices("www.") {
        if text[..start].ends_with(|c: char| c.is_alphanumeric() || "/.@-_:".contains(c)) {
            continue;
        }
        let authority = authority(&text[start..]);
        if let Some(host) = host(authority).filter(|host| host.len() > "www.".len()) {
            found.push((start..start + authority.len(), host));
        }
    }
    found
}

fn scheme_start(before: &str) -> Option<usize> {
    let scheme = SCHEMES.iter().find(|scheme| {
        let start = before.len().checked_sub(scheme.len());
        start.and_then(|start| before.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(scheme))
    })?;
    let start = before.len() - scheme.len();
    (!before[..start].ends_with(|c: char| c.is_ascii_alphanumeric())).then_some(start)
}

/// The part before the path. A browser reads a backslash as a slash.
fn authority(rest: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "/\\?#<>\"`|".contains(c);
    let end = rest.char_indices().take_while(|(at, c)| *at < LONGEST_AUTHORITY && !is_end(*c)).last();
    end.map_or("", |(at, c)| &rest[..at + c.len_utf8()])
}

/// The host of an authority, without user, password, port and a final dot.
fn host(authority: &str) -> Option<String> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end = if host.starts_with('[') {
        host.find(']').map_or(host.len(), |end| end + 1)
    } else {
        let is_host = |c: char| c.is_alphanumeric() || ".-_%".contains(c);
        host.find(|c: char| !is_host(c)).unwrap_or(host.len())
    };
    let host = host[..end].trim_end_matches(['.', '-', '_', '%']).to_lowercase();
    (!host.is_empty()).then_some(host)
}

/// True for the domain itself and for the hosts below it.
pub(in crate::judge::signals) fn is_within_domain(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        find(text).into_iter().map(|(_, host)| host).collect()
    }

    #[test]
    fn the_host_is_the_one_that_a_browser_opens() {
        for (text, host) in [
            ("see https://Shop.Example.com/a?b.", "shop.example.com"),
            ("[pay](http://pay.example:8080)", "pay.example"),
            ("https://trusted.com@evil.example/x", "evil.example"),
            ("https://trusted.com:x@evil.example", "evil.example"),
            (r"https://evil.example\@trusted.com", "evil.example"),
            ("HTTPS://evil.example.", "evil.example"),
            ("![](https://evil.example?q=1)", "evil.example"),
            ("ftp://[2001:db8::1]:21/x", "[2001:db8::1]"),
            ("go to www.evil.example, now", "www.evil.example"),
            ("https://bücher.example/", "bücher.example"),
        ] {
            assert_eq!(hosts(text), [host], "{text}");
        }
    }

    #[test]
    fn other_texts_have_no_host() {
        for text in ["://", "https://", "https:///x", "x://y", "shttps://a.b", "www.", "foo.www.a.b", "a//b.c"] {
            assert_eq!(hosts(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_domain_contains_its_hosts_and_no_others() {
        let within = |host| is_within_domain(host, "shop.com");
        assert!(within("shop.com") && within("a.b.shop.com"));
        assert!(!within("evilshop.com") && !within("shop.com.evil.org") && !within("com"));
    }
}
