//! Numbers of payment cards: a known issuer range, its length, and the check digit of Luhn (ISO/IEC 7812-1).

use std::ops::Range;

use super::digits::{self, Group};

/// Shortest card number, in digits.
const SHORTEST: usize = 13;

/// The card numbers in a text, in their order, as their digits.
pub(super) fn find(text: &str, groups: &[Group]) -> Vec<(Range<usize>, String)> {
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    digits::each_sequence(text, groups, |parts, count| {
        let range = parts[0].range.start..parts[parts.len() - 1].range.end;
        let overlaps = found.last().is_some_and(|(last, _)| last.end > range.start);
        if count < SHORTEST || overlaps || parts.iter().any(|part| part.in_word) || !is_written_as_card(text, parts) {
            return;
        }
        let number = digits::joined(text, parts);
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
    let mut separators = parts.windows(2).map(|two| digits::separator(text, &two[0], &two[1]));
    let first = separators.next();
    let is_uniform = separators.all(|separator| Some(separator) == first);
    let is_plain = first.is_none_or(|separator| matches!(separator, Some(" " | "-")));
    // A fraction (`0.4111111111111111`) or a long decimal is no card number.
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
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<String> {
        find(text, &digits::groups(text)).into_iter().map(|(_, number)| number).collect()
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
