//! A contact or an account in a text, with a key by which it is compared whatever its notation.

use std::ops::Range;

use super::{account, address};

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
    for range in address::find_emails(text) {
        add(ContactKind::Email, text[range.clone()].to_ascii_lowercase(), range);
    }
    for (range, host) in address::find_urls(text) {
        add(ContactKind::Url, host, range);
    }
    // Most texts have too few digits for the other kinds.
    if text.bytes().filter(u8::is_ascii_digit).take(SHORTEST_PHONE).count() < SHORTEST_PHONE {
        return found;
    }
    for iban in account::find_ibans(text).into_iter().filter(|iban| iban.is_valid) {
        add(ContactKind::Iban, iban.number, iban.range);
    }
    let groups = address::groups(text);
    for (range, number) in account::find_cards(text, &groups) {
        add(ContactKind::Card, number, range);
    }
    for (range, key) in address::find_phones(text, &groups) {
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
    if let [iban] = account::find_ibans(text).as_slice()
        && iban.range == range
    {
        return Some(Contact { kind: ContactKind::Iban, key: iban.number.clone(), range });
    }
    let field = field.to_ascii_lowercase();
    let names_phone = field.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| PHONE_FIELDS.contains(&word));
    let groups = address::groups(text);
    let number = address::joined(text, &groups);
    let is_number = !text.contains(|c: char| c.is_alphabetic()) && (SHORTEST_PHONE..=15).contains(&number.len());
    (names_phone && is_number).then(|| Contact {
        kind: ContactKind::Phone,
        key: address::key(&number).to_owned(),
        range,
    })
}

/// Calls `take` with the key of each number in a text that could be a phone or a card number in some notation.
pub(in crate::judge::signals) fn digit_keys(text: &str, mut take: impl FnMut(&str)) {
    let groups = address::groups(text);
    // One buffer for all sequences: a long text of numbers has many.
    let mut number = String::new();
    address::each_sequence(text, &groups, |parts, count| {
        if parts.len() == 1 {
            number.clear();
        }
        number.push_str(&text[parts[parts.len() - 1].range.clone()]);
        if count >= SHORTEST_PHONE {
            take(&number);
            let key = address::key(&number);
            if key.len() < number.len() {
                take(key);
            }
        }
    });
}

/// The keys of all numbers of the shape of an IBAN, also with a wrong checksum.
pub(in crate::judge::signals) fn iban_like_keys(text: &str) -> impl Iterator<Item = String> {
    account::find_ibans(text).into_iter().map(|iban| iban.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
