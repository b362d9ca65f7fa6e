//! Groups of digits in a text, as phone numbers and card numbers are written: `+1 (555) 010-0199`, `4111 1111 1111 1111`.

use std::ops::Range;

/// Most digits of a number that is looked at; card numbers have up to 19.
pub(super) const MOST_DIGITS: usize = 19;

/// Most bytes between two groups of one number: `) `.
const LONGEST_SEPARATOR: usize = 2;

/// A maximal sequence of digits.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The bytes of the digits.
    pub range: Range<usize>,
    /// True where a letter, a digit or an underscore touches the group, so that it is a part of a word.
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
        // Bytes beyond ASCII are parts of letters here; a number next to them is rarely one of its own.
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
    use super::*;
    use proptest::prelude::*;

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
