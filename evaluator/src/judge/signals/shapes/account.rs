//! Account numbers: IBANs with the checksum of ISO 13616 (ISO/IEC 7064, MOD 97-10), and payment card numbers with the one of ISO/IEC 7812.

use std::ops::Range;

use super::address::{self, Group};

/// The countries of the registry of SWIFT, each with the length of its numbers.
const LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 \
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 \
    LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 \
    RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20";

/// A number of the shape of an IBAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Iban {
    /// The bytes of the number.
    pub range: Range<usize>,
    /// The number without separators, in capital letters.
    pub number: String,
    /// Whether the checksum is right.
    pub is_valid: bool,
}

/// The numbers of the shape of an IBAN in a text, in their order.
pub(super) fn find_ibans(text: &str) -> Vec<Iban> {
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
pub(super) fn find_cards(text: &str, groups: &[Group]) -> Vec<(Range<usize>, String)> {
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    address::each_sequence(text, groups, |parts, count| {
        let range = parts[0].range.start..parts[parts.len() - 1].range.end;
        let overlaps = found.last().is_some_and(|(last, _)| last.end > range.start);
        if count < SHORTEST || overlaps || parts.iter().any(|part| part.in_word) || !is_written_as_card(text, parts) {
            return;
        }
        let number = address::joined(text, parts);
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
    let mut separators = parts.windows(2).map(|two| address::separator(text, &two[0], &two[1]));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<String> {
        find_cards(text, &address::groups(text)).into_iter().map(|(_, number)| number).collect()
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
