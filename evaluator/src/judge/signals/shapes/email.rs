//! E-mail addresses in the common ASCII form.

use std::ops::Range;

/// Longest local part, in bytes (RFC 5321, 4.5.3.1.1).
const LONGEST_LOCAL: usize = 64;

/// Longest domain, in bytes (RFC 5321, 4.5.3.1.2).
const LONGEST_DOMAIN: usize = 255;

/// The addresses in a text, in their order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // Every byte is near at most one `@` on each side, since both parts end at the next `@`.
    for (at, _) in text.match_indices('@') {
        let is_local = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte);
        let local = bytes[..at].iter().rev().take(LONGEST_LOCAL + 1).take_while(|byte| is_local(byte)).count();
        let start = at - local;
        let dots = bytes[start..at].iter().take_while(|byte| **byte == b'.').count();
        let Some(domain) = domain_length(&bytes[at + 1..]) else { continue };
        if (1..=LONGEST_LOCAL).contains(&local) && dots < local && !is_user_of_url(bytes, start) {
            found.push(start + dots..at + 1 + domain);
        }
    }
    found
}

/// The length of the domain at the start of some bytes: labels with dots between them, the last one of letters.
fn domain_length(bytes: &[u8]) -> Option<usize> {
    let is_domain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    let run = bytes.iter().take(LONGEST_DOMAIN + 1).take_while(|byte| is_domain(byte)).count();
    // A full stop after an address ends the sentence.
    let length = bytes[..run].iter().rposition(u8::is_ascii_alphanumeric)? + 1;
    let dot = bytes[..length].iter().rposition(|byte| *byte == b'.')?;
    let (rest, top) = (&bytes[..dot], &bytes[dot + 1..length]);
    let labels = rest.split(|byte| *byte == b'.').all(|label| !label.is_empty());
    let is_top = top.len() >= 2 && top.iter().all(u8::is_ascii_alphabetic);
    (run <= LONGEST_DOMAIN && labels && is_top).then_some(length)
}

/// True for `user:password@host` in a URL, which is no address.
fn is_user_of_url(bytes: &[u8], start: usize) -> bool {
    let before = &bytes[start.saturating_sub(LONGEST_LOCAL)..start];
    let is_password = before.ends_with(b":")
        && before.windows(3).any(|window| window == b"://")
        && !before.iter().any(u8::is_ascii_whitespace);
    before.ends_with(b"//") || is_password
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn addresses_are_found_in_running_text() {
        assert_eq!(
            found("Write to jane.doe+x@shop.example.com. Or <a_b@c.de>, mailto:q@r.st?x"),
            ["jane.doe+x@shop.example.com", "a_b@c.de", "q@r.st"]
        );
    }

    #[test]
    fn near_addresses_are_not_found() {
        for text in ["@home", "a@b", "a@b.1", "a@.com", "a@b..com", "...@x.com", "a @ b.com", "https://u:p@host.com/"] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn an_overlong_part_is_not_cut_to_an_address() {
        assert_eq!(found(&format!("{}@b.com", "a".repeat(65))), [""; 0]);
        assert_eq!(found(&format!("a@{}.com", "b".repeat(300))), [""; 0]);
    }
}
