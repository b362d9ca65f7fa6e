//! The texts that stand for one value: without outer white space, with other line ends, and line by line.

use std::collections::BTreeSet;

use crate::needle::LONGEST_COMPOSED;
use crate::redactor::SHORTEST;

/// Minimum length of a single line of a multi-line value that is redacted, in bytes. Shorter lines occur in unrelated text.
pub const SHORTEST_LINE: usize = 8;

/// Longest value whose lines are redacted one by one, in bytes.
const LONGEST_IN_LINES: usize = LONGEST_COMPOSED;

/// The texts to search for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Variants<'a> {
    /// The values themselves, and their variants with all lines.
    pub(crate) whole: BTreeSet<std::borrow::Cow<'a, str>>,
    pub(crate) lines: BTreeSet<&'a str>,
}

impl<'a> Variants<'a> {
    /// Returns the variants of values. Texts shorter than [`SHORTEST`] are left out.
    pub(crate) fn new(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut variants = Self::default();
        values.into_iter().for_each(|value| variants.add(value));
        variants.whole.retain(|text| text.len() >= SHORTEST);
        let whole = &variants.whole;
        variants.lines.retain(|line| !whole.contains(*line));
        variants
    }

    fn add(&mut self, value: &'a str) {
        // Programs trim what they read, so a final line end is rarely echoed.
        let trimmed = value.trim();
        self.whole.extend([value.into(), trimmed.into()]);
        if !trimmed.contains(['\n', '\r']) {
            return;
        }
        let with_lf = trimmed.replace("\r\n", "\n").replace('\r', "\n");
        self.whole.extend([with_lf.replace('\n', "\r\n").into(), with_lf.into()]);
        if value.len() <= LONGEST_IN_LINES {
            let lines = trimmed.split(['\n', '\r']).map(str::trim);
            self.lines.extend(lines.filter(|line| line.len() >= SHORTEST_LINE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_variants_for_white_space_line_ends_and_lines() {
        let variants = Variants::new([" one-two-three\r\nfour\nfive-six-seven\n\n", "plain", "abc\n"]);
        let whole: Vec<&str> = variants.whole.iter().map(AsRef::as_ref).collect();
        assert_eq!(
            whole,
            [
                " one-two-three\r\nfour\nfive-six-seven\n\n",
                "abc\n",
                "one-two-three\nfour\nfive-six-seven",
                "one-two-three\r\nfour\nfive-six-seven",
                "one-two-three\r\nfour\r\nfive-six-seven",
                "plain",
            ]
        );
        assert_eq!(variants.lines.into_iter().collect::<Vec<_>>(), ["five-six-seven", "one-two-three"]);
    }
}
