//! Contacts and accounts in a text: e-mail addresses, phone numbers, IBANs, payment cards and URLs, each with a key by which it is compared
//! whatever its notation.
//!
//! Each finder reads a text once and looks at a bounded number of bytes around each candidate, so its work is linear in the
//! length of the text, whatever the text contains.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::judge::signals) enum ContactKind {
    Email,
    Phone,
    Iban,
    Card,
    Url,
}

impl ContactKind {
    /// The kind with its article, for messages.
    pub(in crate::judge::signals) const fn name(self) -> &'static str {
        match self {
            ContactKind::Email => "an e-mail address",
            ContactKind::Phone => "a phone number",
            ContactKind::Iban => "an IBAN",
            ContactKind::Card => "a payment card number",
            ContactKind::Url => "a URL",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::judge::signals) struct Contact {
    pub kind: ContactKind,
    /// Equal for the same contact in another notation.
    pub key: String,
    /// The bytes of the contact.
    pub range: Range<usize>,
}

/// Fewest digits of a phone number that is written as bare digits.
const SHORTEST_PHONE: usize = 7;

/// The contacts in a text, by kind.
pub(in crate::judge::signals) fn contacts(text: &str) -> Vec<Contact> {
    let mut found = Vec::new();
    let mut add = |kind, key, range| found.push(Contact { kind, key, range });
    for range in find_emails(text) {
        add(ContactKind::Email, text[range.clone()].to_ascii_lowercase(), range);
    }
    for (range, host) in find_urls(text) {
        add(ContactKind::Url, host, range);
    }
    // Most texts have too few digits for the other kinds.
    if text.bytes().filter(u8::is_ascii_digit).take(SHORTEST_PHONE).count() < SHORTEST_PHONE {
        return found;
    }
    for iban in find_ibans(text).into_iter().filter(|iban| iban.is_valid) {
        add(ContactKind::Iban, iban.number, iban.range);
    }
    let groups = groups(text);
    for (range, number) in find_cards(text, &groups) {
        add(ContactKind::Card, number, range);
    }
    for (range, key) in find_phones(text, &groups) {
        add(ContactKind::Phone, key, range);
    }
    found
}

/// The contact that a complete value is, judged by the name of its field: an account number with a wrong checksum, and a phone
/// number written as bare digits.
pub(in crate::judge::signals) fn whole_value(field: &str, text: &str) -> Option<Contact> {
    const PHONE_FIELDS: [&str; 8] = ["phone", "mobile", "msisdn", "sms", "whatsapp", "telephone", "tel", "fax"];
    let text = text.trim();
    let range = 0..text.len();
    if let [iban] = find_ibans(text).as_slice()
        && iban.range == range
    {
        return Some(Contact { kind: ContactKind::Iban, key: iban.number.clone(), range });
    }
    let field = field.to_ascii_lowercase();
    let names_phone = field.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| PHONE_FIELDS.contains(&word));
    let groups = groups(text);
    let number = joined(text, &groups);
    let is_number = !text.contains(|c: char| c.is_alphabetic()) && (SHORTEST_PHONE..=15).contains(&number.len());
    (names_phone && is_number).then(|| Contact { kind: ContactKind::Phone, key: key(&number).to_owned(), range })
}

/// Calls `take` with the key of each number in a text that could be a phone or a card number in some notation.
pub(in crate::judge::signals) fn digit_keys(text: &str, mut take: impl FnMut(&str)) {
    let groups = groups(text);
    // One buffer for all sequences: a long text of numbers has many.
    let mut number = String::new();
    each_sequence(text, &groups, |parts, count| {
        if parts.len() == 1 {
            number.clear();
        }
        number.push_str(&text[parts[parts.len() - 1].range.clone()]);
        if count >= SHORTEST_PHONE {
            take(&number);
            let key = key(&number);
            if key.len() < number.len() {
                take(key);
            }
        }
    });
}

/// The keys of all numbers of the shape of an IBAN, also with a wrong checksum.
pub(in crate::judge::signals) fn iban_like_keys(text: &str) -> impl Iterator<Item = String> {
    find_ibans(text).into_iter().map(|iban| iban.number)
}

/// The countries of the registry of SWIFT, each with the length of its numbers.
const LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 \
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 \
    LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 \
    RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20";

/// A number of the shape of an IBAN.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Iban {
    /// The bytes of the number.
    pub range: Range<usize>,
    /// The number without separators, in capital letters.
    pub number: String,
    pub is_valid: bool,
}

/// The numbers of the shape of an IBAN in a text, in their order.
fn find_ibans(text: &str) -> Vec<Iban> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    // At every start at most the 33 characters of the longest number and the separators between them are read.
    while at + 4 <= bytes.len() {
        let is_start = bytes[at].is_ascii_alphabetic()
            && bytes[at + 2].is_ascii_digit()
            && bytes[at + 3].is_ascii_digit()
            && !at.checked_sub(1).is_some_and(|before| bytes[before].is_ascii_alphanumeric());
        match is_start.then(|| number_at(text, at)).flatten() {
            Some(iban) => {
                at = iban.range.end;
                found.push(iban);
            }
            None => at += 1,
        }
    }
    found
}

fn number_at(text: &str, start: usize) -> Option<Iban> {
    let bytes = text.as_bytes();
    let country = text.get(start..start + 2)?.to_ascii_uppercase();
    let length = LENGTHS
        .split(' ')
        .find_map(|entry| entry.strip_prefix(country.as_str()))
        .and_then(|length| length.parse().ok())?;
    let (mut number, mut end, mut separated, mut small) = (String::with_capacity(length), start, false, false);
    while number.len() < length {
        match bytes.get(end)? {
            byte if byte.is_ascii_alphanumeric() => {
                small |= byte.is_ascii_lowercase();
                number.push(char::from(byte.to_ascii_uppercase()));
            }
            b' ' | b'-' if bytes.get(end + 1)?.is_ascii_alphanumeric() => separated = true,
            _ => return None,
        }
        end += 1;
    }
    // Small letters with separators are words.
    if separated && small || bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let is_valid = mod_97(&number) == 1;
    Some(Iban { range: start..end, number, is_valid })
}

/// The remainder of the number by 97, with its first four characters moved to the end and letters read as 10 to 35.
fn mod_97(number: &str) -> u32 {
    let (head, tail) = number.split_at(number.len().min(4));
    tail.bytes().chain(head.bytes()).fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + 10 + u32::from(byte.to_ascii_uppercase() - b'A')) % 97,
    })
}

/// Shortest card number, in digits.
const SHORTEST: usize = 13;

/// The card numbers in a text, in their order, as their digits.
fn find_cards(text: &str, groups: &[Group]) -> Vec<(Range<usize>, String)> {
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    each_sequence(text, groups, |parts, count| {
        let range = parts[0].range.start..parts[parts.len() - 1].range.end;
        let overlaps = found.last().is_some_and(|(last, _)| last.end > range.start);
        if count < SHORTEST || overlaps || parts.iter().any(|part| part.in_word) || !is_written_as_card(text, parts) {
            return;
        }
        let number = joined(text, parts);
        if is_issued(&number) && luhn(&number) {
            found.push((range, number));
        }
    });
    found
}

/// One group, groups of four, or 4-6-5, with the same separator between all of them.
fn is_written_as_card(text: &str, parts: &[Group]) -> bool {
    let lengths: Vec<_> = parts.iter().map(|part| part.range.len()).collect();
    let (last, full) = lengths.split_last().unwrap_or((&0, &[]));
    let is_grouped = full.is_empty() || full.iter().all(|length| *length == 4) && *last <= 4 || lengths == [4, 6, 5];
    let mut separators = parts.windows(2).map(|two| separator(text, &two[0], &two[1]));
    let first = separators.next();
    let is_uniform = separators.all(|separator| Some(separator) == first);
    let is_plain = first.is_none_or(|separator| matches!(separator, Some(" " | "-")));
    // A fraction (`0.4111111111111111`) or a long decimal is not a card number.
    let before = text[..parts[0].range.start].bytes().next_back();
    is_grouped && is_uniform && is_plain && !matches!(before, Some(b'.' | b','))
}

/// True if an issuer has numbers that start so and have this length.
fn is_issued(number: &str) -> bool {
    let start = |digits: usize| number.get(..digits).and_then(|start| start.parse::<u32>().ok()).unwrap_or_default();
    match (start(1), start(2), start(3), start(4)) {
        (4, ..) => matches!(number.len(), 13 | 16 | 19),
        (_, 51..=55, ..) | (.., 2221..=2720) => number.len() == 16,
        (_, 34 | 37, ..) => number.len() == 15,
        (_, 36 | 38 | 39, ..) | (_, _, 300..=305, _) => number.len() == 14,
        (_, 62 | 65, ..) | (_, _, 644..=649, _) | (.., 6011 | 3528..=3589) => number.len() >= 16,
        _ => false,
    }
}

/// True if the last digit is the check digit of the others.
fn luhn(number: &str) -> bool {
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let digits = number.bytes().rev().map(|byte| u32::from(byte - b'0'));
    let sum: u32 = digits.enumerate().map(|(place, digit)| if place % 2 == 1 { doubled(digit) } else { digit }).sum();
    sum.is_multiple_of(10)
}

/// Longest local part, in bytes (RFC 5321, 4.5.3.1.1).
const LONGEST_LOCAL: usize = 64;

/// Longest domain, in bytes (RFC 5321, 4.5.3.1.2).
const LONGEST_DOMAIN: usize = 255;

fn find_emails(text: &str) -> Vec<Range<usize>> {
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
fn find_urls(text: &str) -> Vec<(Range<usize>, String)> {
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
fn find_phones(text: &str, groups: &[Group]) -> Vec<(Range<usize>, String)> {
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
fn key(digits: &str) -> &str {
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
const MOST_DIGITS: usize = 19;

/// Most bytes between two groups of one number: `) `.
const LONGEST_SEPARATOR: usize = 2;

#[derive(Debug, Clone)]
struct Group {
    pub range: Range<usize>,
    /// True if a letter, a digit or an underscore touches the group, so that it is a part of a word.
    pub in_word: bool,
}

/// The groups of digits of a text, in their order.
fn groups(text: &str) -> Vec<Group> {
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
fn separator<'a>(text: &'a str, left: &Group, right: &Group) -> Option<&'a str> {
    let between = text.get(left.range.end..right.range.start)?;
    let is_separator = between.len() <= LONGEST_SEPARATOR && between.bytes().all(|byte| b" .-/()".contains(&byte));
    is_separator.then_some(between)
}

/// Calls `take` with every sequence of adjacent groups that has at most [`MOST_DIGITS`] digits: at most that many for each
/// first group, so the work is linear.
fn each_sequence(text: &str, groups: &[Group], mut take: impl FnMut(&[Group], usize)) {
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

fn joined(text: &str, groups: &[Group]) -> String {
    groups.iter().map(|group| &text[group.range.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_has_contacts_of_every_kind() {
        let text = "a@b.com https://c.de/x DE89 3704 0044 0532 0130 00 4111 1111 1111 1111 +49 170 1234567";
        let kinds: Vec<_> = contacts(text).into_iter().map(|contact| (contact.kind, contact.key)).collect();
        let expected = [
            (ContactKind::Email, "a@b.com"),
            (ContactKind::Url, "c.de"),
            (ContactKind::Iban, "DE89370400440532013000"),
            (ContactKind::Card, "4111111111111111"),
            (ContactKind::Phone, "1701234567"),
        ];
        assert_eq!(kinds, expected.map(|(kind, key)| (kind, key.to_owned())));
    }

    #[test]
    fn the_name_of_the_field_makes_bare_digits_a_phone_number() {
        assert_eq!(whole_value("phone_number", "5551232002").unwrap().key, "5551232002");
        assert_eq!(whole_value("order", "5551232002"), None);
        assert_eq!(whole_value("target", "DE00370400440532013000").unwrap().kind, ContactKind::Iban);
    }

    #[test]
    fn numbers_are_known_in_every_notation() {
        let mut keys = Vec::new();
        digit_keys("tel 0170 1234567", |key| keys.push(key.to_owned()));
        assert!(keys.contains(&"1701234567".to_owned()), "{keys:?}");
    }

    proptest! {
        #[test]
        fn any_text_has_contacts_within_its_bounds(text in "(?s).{0,300}") {
            for contact in contacts(&text) {
                prop_assert!(text.get(contact.range.clone()).is_some_and(|found| !found.is_empty()));
            }
        }
    }

    /// Near-matches that a backtracking search would read again from each start. The sizes are generous, and the test ends
    /// in a blink where the work is linear.
    #[test]
    fn hostile_texts_are_read_once() {
        let long = |piece: &str| piece.repeat((1 << 16) / piece.len());
        for piece in [
            "a", "@", "a@", "a.", "a@b.", "1", "1 ", "+1", "1-", "DE89", "DE89 ", "://", "http://", "www.", "4111 ",
            ".@.", "(1)",
        ] {
            contacts(&long(piece));
            digit_keys(&long(piece), |_| {});
        }
    }

    fn found(text: &str) -> Vec<(String, bool)> {
        find_ibans(text).into_iter().map(|iban| (iban.number, iban.is_valid)).collect()
    }

    #[test]
    fn numbers_are_found_with_and_without_spaces() {
        let text = "Pay DE89 3704 0044 0532 0130 00 or gb29nwbk60161331926819, not DE00370400440532013000.";
        assert_eq!(
            found(text),
            [
                ("DE89370400440532013000".to_owned(), true),
                ("GB29NWBK60161331926819".to_owned(), true),
                ("DE00370400440532013000".to_owned(), false)
            ]
        );
    }

    #[test]
    fn other_words_are_not_numbers() {
        for text in [
            "DE89",
            "XX89370400440532013000",
            "DE8937040044053201300",
            "ADE89370400440532013000",
            "de12 or this text and",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    /// The number of an account with its check digits.
    fn with_checksum(country: &str, account: &str) -> String {
        let check = 98 - mod_97(&format!("{country}00{account}"));
        format!("{country}{check:02}{account}")
    }

    proptest! {
        #[test]
        fn computed_check_digits_are_valid(account in "[0-9A-Z]{18}") {
            let number = with_checksum("GB", &account);
            prop_assert_eq!(found(&number), [(number, true)]);
        }

        #[test]
        fn a_changed_digit_breaks_the_checksum(account in "[0-9]{18}", place in 4_usize..22, by in 1_u8..10) {
            let mut bytes = with_checksum("DE", &account).into_bytes();
            bytes[place] = b'0' + (bytes[place] - b'0' + by) % 10;
            prop_assert!(mod_97(std::str::from_utf8(&bytes).unwrap()) != 1);
        }
    }
}

#[cfg(test)]
mod card_tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        find_cards(text, &groups(text)).into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn cards_are_found_as_people_write_them() {
        assert_eq!(
            found("Visa 4111 1111 1111 1111, Amex 3782-822463-10005; 5555555555554444."),
            ["4111111111111111", "378282246310005", "5555555555554444"]
        );
    }

    #[test]
    fn other_long_numbers_are_not_cards() {
        let texts = [
            "4111 1111 1111 1112",
            "id_4111111111111111",
            "1754064996717",
            "0.4111111111111111",
            "4111 1111-1111 1111",
            "41111111 11111111",
            "4111111111111111111111",
        ];
        for text in texts {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    proptest! {
        #[test]
        fn exactly_one_check_digit_is_right(number in "[0-9]{12,18}") {
            let right = (0..10).filter(|digit| luhn(&format!("{number}{digit}"))).count();
            prop_assert_eq!(right, 1);
        }

        #[test]
        fn a_changed_digit_breaks_the_checksum(digits in "[0-9]{12,18}", place in 0_usize..12, by in 1_u8..10) {
            let number = (0..10).map(|digit| format!("{digits}{digit}")).find(|number| luhn(number)).unwrap();
            let mut bytes = number.into_bytes();
            bytes[place] = b'0' + (bytes[place] - b'0' + by) % 10;
            prop_assert!(!luhn(std::str::from_utf8(&bytes).unwrap()));
        }
    }
}

#[cfg(test)]
mod address_tests {
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
