//! E-mail addresses, URLs and phone numbers in a text, and the groups of digits that phone and card numbers are written in.

use std::ops::Range;

/// Longest local part, in bytes (RFC 5321, 4.5.3.1.1).
const LONGEST_LOCAL: usize = 64;

/// Longest domain, in bytes (RFC 5321, 4.5.3.1.2).
const LONGEST_DOMAIN: usize = 255;

/// The addresses in a text, in their order.
pub(super) fn find_emails(text: &str) -> Vec<Range<usize>> {
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

/// True for `user:password@host` in a URL, which is not an address.
fn is_user_of_url(bytes: &[u8], start: usize) -> bool {
    // Bounded like the local part, so that the work stays linear in a text of many `@`.
    let before = &bytes[start.saturating_sub(LONGEST_LOCAL)..start];
    let is_password = before.ends_with(b":")
        && before.windows(3).any(|window| window == b"://")
        && !before.iter().any(u8::is_ascii_whitespace);
    before.ends_with(b"//") || is_password
}

/// Longest part of a URL between its scheme and its path that is read, in bytes.
const LONGEST_AUTHORITY: usize = 512;

const SCHEMES: [&str; 5] = ["https", "http", "ftp", "wss", "ws"];

/// The URLs in a text, in their order: the bytes up to the path, and the host in small letters.
pub(super) fn find_urls(text: &str) -> Vec<(Range<usize>, String)> {
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

/// The part before the path.
fn authority(rest: &str) -> &str {
    // A browser reads a backslash as a slash.
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

/// Numbers of digits of an international number (E.164 has at most 15).
const INTERNATIONAL: std::ops::RangeInclusive<usize> = 8..=15;

/// Digits by which two numbers are compared: the same number has different prefixes in different countries.
const COMPARED: usize = 10;

/// The phone numbers in a text, in their order, as their last digits.
pub(super) fn find_phones(text: &str, groups: &[Group]) -> Vec<(Range<usize>, String)> {
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    let mut first = 0;
    while first < groups.len() {
        let length = international(text, &groups[first..]).or_else(|| north_american(text, &groups[first..]));
        if let Some(length) = length {
            let parts = &groups[first..first + length];
            found.push((parts[0].range.start..parts[length - 1].range.end, key(&joined(text, parts)).to_owned()));
        }
        first += length.unwrap_or(1);
    }
    found
}

/// The digits by which a number is compared.
pub(super) fn key(digits: &str) -> &str {
    digits.get(digits.len().saturating_sub(COMPARED)..).unwrap_or(digits)
}

/// The number of groups of the international number that the groups start with.
fn international(text: &str, groups: &[Group]) -> Option<usize> {
    let before = text.get(..groups.first()?.range.start)?;
    let has_code = before.ends_with('+') && !before[..before.len() - 1].ends_with(|c: char| c.is_alphanumeric());
    if !has_code || text[groups[0].range.clone()].starts_with('0') {
        return None;
    }
    let (mut digits, mut length) = (0, 0);
    for (index, group) in groups.iter().enumerate() {
        let is_joined = index == 0 || separator(text, &groups[index - 1], group).is_some();
        if !is_joined || group.in_word || digits + group.range.len() > *INTERNATIONAL.end() {
            break;
        }
        digits += group.range.len();
        length = index + 1;
    }
    INTERNATIONAL.contains(&digits).then_some(length)
}

/// The number of groups of the North American number that the groups start with: 3, 3 and 4 digits.
fn north_american(text: &str, groups: &[Group]) -> Option<usize> {
    let parts = groups.get(..3)?;
    let lengths = [parts[0].range.len(), parts[1].range.len(), parts[2].range.len()];
    let first = separator(text, &parts[0], &parts[1])?;
    let second = separator(text, &parts[1], &parts[2])?;
    let is_bracketed = first.starts_with(')') && text[..parts[0].range.start].ends_with('(');
    // Spaces alone also separate the numbers of a list.
    let is_written = is_bracketed && matches!(second, "-" | "." | " ") || first == second && matches!(first, "-" | ".");
    // More digits next to the number belong to an id.
    let is_longer = groups.get(3).is_some_and(|next| separator(text, &parts[2], next) == Some("-"))
        || text[..parts[0].range.start].ends_with(['-', '.', '/', '#']);
    let is_area = !text[parts[0].range.clone()].starts_with(['0', '1']);
    let is_whole = parts.iter().all(|part| !part.in_word);
    (lengths == [3, 3, 4] && is_written && !is_longer && is_area && is_whole).then_some(3)
}

/// Most digits of a number that is looked at; card numbers have up to 19.
pub(super) const MOST_DIGITS: usize = 19;

/// Most bytes between two groups of one number: `) `.
const LONGEST_SEPARATOR: usize = 2;

#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The bytes of the digits.
    pub range: Range<usize>,
    /// True if a letter, a digit or an underscore touches the group, so that it is a part of a word.
    pub in_word: bool,
}

/// The groups of digits of a text, in their order.
pub(super) fn groups(text: &str) -> Vec<Group> {
    let bytes = text.as_bytes();
    let mut groups = Vec::new();
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + offset;
        let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = start + length;
        // Bytes beyond ASCII are parts of letters here; a number next to them is rarely a separate number.
        let touches = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let before = start.checked_sub(1).and_then(|before| bytes.get(before));
        groups.push(Group { range: start..end, in_word: touches(before) || touches(bytes.get(end)) });
        at = end;
    }
    groups
}

/// The text between two groups, if it may separate the parts of one number.
pub(super) fn separator<'a>(text: &'a str, left: &Group, right: &Group) -> Option<&'a str> {
    let between = text.get(left.range.end..right.range.start)?;
    let is_separator = between.len() <= LONGEST_SEPARATOR && between.bytes().all(|byte| b" .-/()".contains(&byte));
    is_separator.then_some(between)
}

/// Calls `take` with every sequence of adjacent groups that has at most [`MOST_DIGITS`] digits: at most that many for each
/// first group, so the work is linear.
pub(super) fn each_sequence(text: &str, groups: &[Group], mut take: impl FnMut(&[Group], usize)) {
    for first in 0..groups.len() {
        let mut digits = 0;
        for last in first..groups.len() {
            digits += groups[last].range.len();
            let is_joined = last == first || separator(text, &groups[last - 1], &groups[last]).is_some();
            if digits > MOST_DIGITS || !is_joined {
                break;
            }
            take(&groups[first..=last], digits);
        }
    }
}

/// The digits of some groups without their separators.
pub(super) fn joined(text: &str, groups: &[Group]) -> String {
    groups.iter().map(|group| &text[group.range.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find_emails(text).into_iter().map(|range| &text[range]).collect()
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

    fn hosts(text: &str) -> Vec<String> {
        find_urls(text).into_iter().map(|(_, host)| host).collect()
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

    #[test]
    fn groups_know_whether_they_are_part_of_a_word() {
        let groups = groups("id_12 34 a56b");
        let seen: Vec<_> = groups.iter().map(|group| (group.range.clone(), group.in_word)).collect();
        assert_eq!(seen, [(3..5, true), (6..8, false), (10..12, true)]);
    }

    proptest! {
        #[test]
        fn the_work_is_linear_in_the_number_of_groups(text in "[0-9 .()/a-]{0,400}") {
            let groups = groups(&text);
            let mut sequences = 0;
            each_sequence(&text, &groups, |_, _| sequences += 1);
            prop_assert!(sequences <= groups.len() * MOST_DIGITS);
        }
    }
}

#[cfg(test)]
mod phone_tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        find_phones(text, &groups(text)).into_iter().map(|(_, key)| key).collect()
    }

    #[test]
    fn phone_numbers_are_found_as_people_write_them() {
        assert_eq!(
            found("Call +49 (170) 1234567 or 555-123-2002 or (555) 010-0199."),
            ["1701234567", "5551232002", "5550100199"]
        );
    }

    #[test]
    fn one_number_has_one_key() {
        assert_eq!(found("+1 555 123 2002"), found("555.123.2002"));
    }

    #[test]
    fn other_numbers_are_not_phone_numbers() {
        for text in [
            "2024-05-27",
            "1754064996717",
            "100 200 3000",
            "a+4917012345678",
            "555-123-2002-17",
            "x555-123-2002",
            "+1234567",
            "155-123-2002",
            "2+2",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
