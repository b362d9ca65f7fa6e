//! Drafted expectations: their form in a cases file, and the parts of expressions that state facts about an answer.

use std::ops::Range;

use counterproof_artifact::CaseId;
use serde::Serialize;
use serde_json::Value;

/// The drafts of a case, in the form of a cases file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseDraft {
    /// The case.
    pub id: CaseId,
    /// The expectations.
    pub expected: DraftExpected,
}

/// The drafted expectations of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DraftExpected {
    /// The expressions.
    pub expect: Vec<DraftExpect>,
}

/// A drafted expression.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DraftExpect {
    /// What it states, for people.
    pub name: String,
    /// The condition, over the variables of `expected.expect`.
    pub expr: String,
    /// Whether it is a hard expectation.
    #[serde(skip_serializing_if = "is_false")]
    pub must: bool,
    /// Whether it is not evaluated until a person removes this mark.
    #[serde(skip_serializing_if = "is_false")]
    pub draft: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(mark: &bool) -> bool {
    !*mark
}

/// Returns a text as a literal of an expression.
pub fn quoted(text: &str) -> String {
    let is_plain = text.chars().all(|char| !char.is_control() && char != '\'' && char != '\\');
    // A JSON string is a literal of CEL too, with the same escapes.
    if is_plain { format!("'{text}'") } else { Value::from(text).to_string() }
}

/// Returns the part of an expression that selects a field of an object, such as `.amount` or `['content-type']`.
pub fn field(key: &str) -> String {
    // CEL selects a field with a dot only if the name is an identifier.
    let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && key.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if is_name { format!(".{key}") } else { format!("[{}]", quoted(key)) }
}

/// Returns a condition on the text of the answer: it states a number.
pub fn states_number(number: &str) -> String {
    // Neither a digit, a letter nor a hyphen is next to the number: `50` is not part of `1,500`, `50.5` or `A-50`.
    let pattern = number.replace('.', "[.]");
    let pattern = format!("(^|[^0-9A-Za-z.,-]){pattern}($|[^0-9A-Za-z.,-]|[.,-]($|[^0-9A-Za-z]))");
    format!("final_output.content.matches({})", quoted(&pattern))
}

/// Returns where the numbers of a text are, without those that are part of an id such as `A-1001`.
pub fn numbers(text: &str) -> Vec<Range<usize>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || !byte.is_ascii();
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        if !is_word(&bytes[at]) {
            at += 1;
            continue;
        }
        // A word with the separators inside of it, such as `1,500.00` or `A-1001`.
        let end = at + bytes[at..].iter().take_while(|byte| is_word(byte) || is_part(byte)).count();
        // Punctuation at the end belongs to the sentence.
        let word = text.get(at..end).unwrap_or_default().trim_end_matches(['.', ',', '-']);
        if word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(|byte| is_part(&byte)) {
            found.push(at..at + word.len());
        }
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_ids_are_not_found() {
        let text = "A-1001 costs 1,500.00 EUR, 50% off, v2 since 2025-01-02. 7. Größe3 x";
        let found: Vec<_> = numbers(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["1,500.00", "50", "7"]);
    }

    #[test]
    fn a_field_is_selected_by_its_name_or_by_its_text() {
        assert_eq!([field("amount"), field("content-type"), field("1st")], [".amount", "['content-type']", "['1st']"]);
    }
}
