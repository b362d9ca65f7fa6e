//! Phone numbers that are written as such: with a country code (`+49 170 1234567`), or in the North American form
//! (`555-010-0199`). Bare digits are no phone number unless the name of the field says so.

use std::ops::Range;

use super::digits::{self, Group};

/// Numbers of digits of an international number (E.164 has at most 15).
const INTERNATIONAL: std::ops::RangeInclusive<usize> = 8..=15;

/// Digits by which two numbers are compared: the same number has different prefixes in different countries.
const COMPARED: usize = 10;

/// The phone numbers in a text, in their order, as their last digits.
pub(super) fn find(text: &str, groups: &[Group]) -> Vec<(Range<usize>, String)> {
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    let mut first = 0;
    while first < groups.len() {
        let length = international(text, &groups[first..]).or_else(|| north_american(text, &groups[first..]));
        if let Some(length) = length {
            let parts = &groups[first..first + length];
            found.push((
                parts[0].range.start..parts[length - 1].range.end,
                key(&digits::joined(text, parts)).to_owned(),
            ));
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
        let is_joined = index == 0 || digits::separator(text, &groups[index - 1], group).is_some();
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
    let first = digits::separator(text, &parts[0], &parts[1])?;
    let second = digits::separator(text, &parts[1], &parts[2])?;
    let is_bracketed = first.starts_with(')') && text[..parts[0].range.start].ends_with('(');
    // Spaces alone also separate the numbers of a list.
    let is_written = is_bracketed && matches!(second, "-" | "." | " ") || first == second && matches!(first, "-" | ".");
    // More digits next to the number belong to an id.
    let is_longer = groups.get(3).is_some_and(|next| digits::separator(text, &parts[2], next) == Some("-"))
        || text[..parts[0].range.start].ends_with(['-', '.', '/', '#']);
    let is_area = !text[parts[0].range.clone()].starts_with(['0', '1']);
    let is_whole = parts.iter().all(|part| !part.in_word);
    (lengths == [3, 3, 4] && is_written && !is_longer && is_area && is_whole).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        find(text, &digits::groups(text)).into_iter().map(|(_, key)| key).collect()
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
