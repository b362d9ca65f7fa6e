//! Sets of characters that one place of a name can hold.

/// The characters of names: all but `/` and NUL. Surrogates are no characters.
const NAME_CHARACTERS: [(u32, u32); 3] = [(1, 0x2e), (0x30, 0xd7ff), (0xe000, 0x0010_ffff)];

/// A set of characters, as inclusive ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Characters(Vec<(u32, u32)>);

impl Characters {
    /// All characters of names.
    pub(super) fn any() -> Self {
        Self(NAME_CHARACTERS.to_vec())
    }

    pub(super) fn one(char: char) -> Self {
        Self::ranges(&[(char, char)])
    }

    /// The characters of names in inclusive ranges.
    pub(super) fn ranges(ranges: &[(char, char)]) -> Self {
        Self(ranges.iter().map(|&(from, to)| (u32::from(from), u32::from(to))).collect()).and(&Self::any())
    }

    /// The characters of names that are not in the set.
    pub(super) fn complement(&self) -> Self {
        let mut gaps = vec![(0, u32::MAX)];
        for &(from, to) in &self.0 {
            let without = |&(start, end): &(u32, u32)| {
                let before = (from > start).then(|| (start, end.min(from.saturating_sub(1))));
                let after = (to < end).then(|| (start.max(to + 1), end));
                before.into_iter().chain(after).filter(|(start, end)| start <= end)
            };
            gaps = gaps.iter().flat_map(without).collect();
        }
        Self(gaps).and(&Self::any())
    }

    fn and(&self, other: &Self) -> Self {
        let overlap = |a: &(u32, u32), b: &(u32, u32)| (a.0.max(b.0), a.1.min(b.1));
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| overlap(a, b)));
        Self(pairs.filter(|(from, to)| from <= to).collect())
    }

    /// True if no character is in the set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a character is in both sets.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        !self.and(other).is_empty()
    }

    #[cfg(test)]
    pub(super) fn contains(&self, char: char) -> bool {
        self.0.iter().any(|&(from, to)| (from..=to).contains(&u32::from(char)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_complement_has_exactly_the_other_characters(ranges: Vec<(char, char)>, char: char, extra in "[./0-Z]") {
            let set = Characters::ranges(&ranges);
            for char in extra.chars().chain([char]) {
                let is_in = ranges.iter().any(|&(from, to)| (from..=to).contains(&char));
                let is_name = char != '/' && char != '\0';
                prop_assert_eq!(set.contains(char), is_in && is_name);
                prop_assert_eq!(set.complement().contains(char), !is_in && is_name);
                prop_assert_eq!(set.overlaps(&Characters::one(char)), is_in && is_name);
            }
            prop_assert!(!set.overlaps(&set.complement()));
        }
    }
}
