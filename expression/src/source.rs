//! The text of an expression, and the byte ranges of its parts.
//!
//! The parser reports one token for each node, such as the operator of `a + b`. The range of the whole part is made of the
//! tokens of its nodes, extended to complete brackets.

use std::ops::Range;

use cel::common::ast::SourceInfo;

/// The text of an expression.
pub(crate) struct Source<'s> {
    text: &'s str,
    tokens: SourceInfo,
    /// The positions of matching brackets.
    brackets: Vec<(usize, usize)>,
}

impl<'s> Source<'s> {
    pub(crate) fn new(text: &'s str, tokens: SourceInfo) -> Self {
        Self { text, tokens, brackets: matching_brackets(text) }
    }

    /// Returns the byte range of the token of a node, or of the whole text if the parser does not report it.
    pub(crate) fn token(&self, id: u64) -> Range<usize> {
        let token = self.tokens.offset_for(id).and_then(|(start, last)| {
            let (start, last) = (usize::try_from(start).ok()?, usize::try_from(last).ok()?);
            let end = (last + 1..=self.text.len()).find(|end| self.text.is_char_boundary(*end))?;
            (start < end && self.text.is_char_boundary(start)).then_some(start..end)
        });
        token.unwrap_or(0..self.text.len())
    }

    /// Returns the byte range of a function's name, which is before the token of its call.
    pub(crate) fn function_name(&self, id: u64, name: &str) -> Range<usize> {
        let token = self.token(id);
        let end = self.text[..token.start].trim_end().len();
        match end.checked_sub(name.len()) {
            Some(start) if self.text.get(start..end) == Some(name) => start..end,
            _ => token,
        }
    }

    /// Returns the byte range of a field, whose token is the point before its name.
    pub(crate) fn field(&self, id: u64) -> Range<usize> {
        let token = self.token(id);
        let rest = &self.text[token.end..];
        let name = rest.trim_start_matches(|c: char| c == '?' || c.is_whitespace());
        let length = match name.strip_prefix('`') {
            Some(quoted) => quoted.find('`').map_or(name.len(), |end| end + 2),
            None => name.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(name.len()),
        };
        token.start..self.text.len() - name.len() + length
    }

    /// Extends a range until every bracket in it has its counterpart in it.
    pub(crate) fn balanced(&self, mut range: Range<usize>) -> Range<usize> {
        // Inner brackets come first, so an extension can only affect later pairs.
        for &(open, close) in &self.brackets {
            if range.contains(&open) && close >= range.end {
                range.end = close + 1;
            } else if range.contains(&close) && open < range.start {
                range.start = open;
            }
        }
        range
    }
}

/// Returns the smallest range that has both.
pub(crate) fn joined(first: Option<&Range<usize>>, second: &Range<usize>) -> Range<usize> {
    first.map_or(second.clone(), |first| first.start.min(second.start)..first.end.max(second.end))
}

/// Returns the positions of matching brackets outside of strings and comments, inner pairs first.
fn matching_brackets(text: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => open.push(at),
            b')' | b']' | b'}' => pairs.extend(open.pop().map(|open| (open, at))),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            b'`' => at += bytes[at + 1..].iter().position(|byte| *byte == b'`').map_or(0, |length| length + 1),
            b'\'' | b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    pairs
}

/// Returns the position after the string literal that starts at this quote.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = [quote; 3];
    let delimiter: &[u8] = if bytes[start..].starts_with(&triple) { &triple } else { &triple[..1] };
    // The prefixes are `r`, `b` and both in any order.
    let prefix = bytes[..start].iter().rev().take(2).take_while(|byte| byte.is_ascii_alphabetic());
    let raw = prefix.into_iter().any(|byte| byte.eq_ignore_ascii_case(&b'r'));
    let mut at = start + delimiter.len();
    while at < bytes.len() {
        if bytes[at..].starts_with(delimiter) {
            return at + delimiter.len();
        }
        at += if bytes[at] == b'\\' && !raw { 2 } else { 1 };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        assert_eq!(matching_brackets("f(')', \"(\\\")\", r'\\', '''a')''') // ("), [(1, 30)]);
        assert_eq!(matching_brackets("[a.`b)`, {1: (2)}]"), [(13, 15), (9, 16), (0, 17)]);
        assert_eq!(matching_brackets(")( '"), []);
    }
}
