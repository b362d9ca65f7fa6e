//! Lists and objects that a text holds, such as `"['1', '2']"` for `["1", "2"]`: JSON, or a literal as Python prints it. Agents
//! pass either form to the same tool. Parsing is linear in the text, and texts over [`LONGEST`] bytes are not parsed.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::same;

/// Longer texts are not parsed. Arguments of tools are far shorter.
const LONGEST: usize = 64 * 1024;

const DEEPEST: usize = 32;

/// Parses a text that is a list or an object as a whole; `None` for any other text, such as `(555) 123-4567` or `[see above]`.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    // Checked first, because nearly every text is decided by its first byte.
    if text.len() > LONGEST || !text.starts_with(['[', '{', '(']) || !text.ends_with([']', '}', ')']) {
        return None;
    }
    let literal = || {
        let mut parser = LiteralParser { rest: text };
        let value = parser.value(0)?;
        parser.rest.trim().is_empty().then_some(value)
    };
    // JSON first: its parser is faster and decodes surrogate pairs, which no literal has.
    serde_json::from_str(text).ok().or_else(literal)
}

/// Returns the scalar values of a list or an object that a text holds, in order and without keys; `None` for any other text.
pub(crate) fn scalars(text: &str) -> Option<Vec<Value>> {
    fn collect(value: Value, scalars: &mut Vec<Value>) {
        match value {
            Value::Array(items) => items.into_iter().for_each(|item| collect(item, scalars)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, field)| collect(field, scalars)),
            scalar => scalars.push(scalar),
        }
    }
    let mut found = Vec::new();
    collect(parse(text)?, &mut found);
    Some(found)
}

/// Returns the value with every text that holds a list or an object replaced by that list or object.
pub(crate) fn with_texts_parsed(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) => parse(text).map_or(Cow::Borrowed(value), Cow::Owned),
        Value::Array(items) => {
            let parsed: Vec<_> = items.iter().map(with_texts_parsed).collect();
            let changed = parsed.iter().any(|item| matches!(item, Cow::Owned(_)));
            if changed { Cow::Owned(parsed.into_iter().map(Cow::into_owned).collect()) } else { Cow::Borrowed(value) }
        }
        Value::Object(fields) => {
            let parsed: Vec<_> = fields.iter().map(|(key, value)| (key, with_texts_parsed(value))).collect();
            let changed = parsed.iter().any(|(_, field)| matches!(field, Cow::Owned(_)));
            let own = |(key, field): (&String, Cow<'_, Value>)| (key.clone(), field.into_owned());
            if changed { Cow::Owned(parsed.into_iter().map(own).collect()) } else { Cow::Borrowed(value) }
        }
        _ => Cow::Borrowed(value),
    }
}

/// True for two unequal values of the same content: a list, an object, a number or a flag in one, and the same as
/// text in the other.
pub(crate) fn differ_in_form_only(a: &Value, b: &Value) -> bool {
    // Equal values have no difference to excuse.
    !same(a, b) && is_same_content(a, b)
}

fn is_same_content(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(text), other) | (other, Value::String(text)) if !other.is_string() => match other {
            Value::Array(_) | Value::Object(_) => parse(text).is_some_and(|read| is_same_content(&read, other)),
            Value::Number(number) => text
                .trim()
                .parse::<Number>()
                .is_ok_and(|read| same(&Value::Number(read), &Value::Number(number.clone()))),
            Value::Bool(flag) => text.trim().eq_ignore_ascii_case(if *flag { "true" } else { "false" }),
            Value::Null | Value::String(_) => false,
        },
        (Value::String(a), Value::String(b)) => {
            let read = || parse(a).zip(parse(b));
            a == b || read().is_some_and(|(a, b)| is_same_content(&a, &b))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_content(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| is_same_content(value, other)))
        }
        _ => same(a, b),
    }
}

/// Parses a Python literal from the front of a text.
struct LiteralParser<'t> {
    rest: &'t str,
}

impl LiteralParser<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            // The parser calls itself, so that a bound on the depth bounds the stack.
            _ if depth > DEEPEST => None,
            '[' => self.items(']', depth).map(Value::Array),
            '(' => self.items(')', depth).map(Value::Array),
            '{' => self.fields_or_set(depth),
            quote @ ('\'' | '"') => self.quoted(quote).map(Value::String),
            _ => self.word(),
        }
    }

    /// Consumes one character if it comes next after white space.
    fn take(&mut self, expected: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(expected);
        rest.map(|rest| self.rest = rest).is_some()
    }

    fn items(&mut self, end: char, depth: usize) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        self.rest = &self.rest[1..];
        while !self.take(end) {
            items.push(self.value(depth + 1)?);
            // Optional: a comma may follow the last item, and arrays of NumPy are printed without commas.
            self.take(',');
        }
        Some(items)
    }

    /// A dictionary, or a set, which becomes a list.
    fn fields_or_set(&mut self, depth: usize) -> Option<Value> {
        let (mut fields, mut items) = (Map::new(), Vec::new());
        self.rest = &self.rest[1..];
        while !self.take('}') {
            let value = self.value(depth + 1)?;
            if self.take(':') {
                // JSON has no other keys, so that a dictionary with numbers as keys has no equal there.
                let Value::String(key) = value else { return None };
                fields.insert(key, self.value(depth + 1)?);
            } else {
                items.push(value);
            }
            self.take(',');
        }
        match (fields.is_empty(), items.is_empty()) {
            (_, true) => Some(Value::Object(fields)),
            (true, false) => Some(Value::Array(items)),
            (false, false) => None,
        }
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next()?.1 {
                    'n' => text.push('\n'),
                    'r' => text.push('\r'),
                    't' => text.push('\t'),
                    'u' => {
                        let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        text.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    other => text.push(other),
                },
                _ if character == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                other => text.push(other),
            }
        }
        None
    }

    /// A number, a flag or nothing, in the words of Python or JSON.
    fn word(&mut self) -> Option<Value> {
        // Any other bare word shows that the text is prose.
        let end = self.rest.find(|c: char| c.is_whitespace() || ",:]})".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            "None" | "null" => Some(Value::Null),
            number => number.parse::<Number>().ok().map(Value::Number),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_objects_are_parsed_from_json_and_from_python() {
        assert_eq!(parse("['1', \"2\"]"), Some(json!(["1", "2"])));
        assert_eq!(parse("[\"1\", 2]"), Some(json!(["1", 2])));
        assert_eq!(parse("('a', 1.5, None, True,)"), Some(json!(["a", 1.5, null, true])));
        assert_eq!(parse("{'a': [1, {'b': 'it\\'s'}]}"), Some(json!({"a": [1, {"b": "it's"}]})));
        assert_eq!(parse(" [] "), Some(json!([])));
        assert_eq!(parse("{'a', 'b'}"), Some(json!(["a", "b"])), "a set");
        assert_eq!(parse("[1 2]"), Some(json!([1, 2])), "an array of NumPy");
        for other in ["1", "[1", "[1] and [2]", "(see below)", "[a]", "{'a': 1, 'b'}", "{:}", "[1)", "['a", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn deep_texts_are_not_parsed() {
        let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(parse(&deep), None);
    }

    #[test]
    fn the_same_content_in_another_form_is_recognised() {
        assert!(differ_in_form_only(&json!(["1", "2"]), &json!("['1', '2']")));
        assert!(differ_in_form_only(&json!("50"), &json!(50.0)));
        assert!(differ_in_form_only(&json!(true), &json!("True")));
        assert!(differ_in_form_only(&json!({"a": [1]}), &json!("{\"a\": [1]}")));
        assert!(!differ_in_form_only(&json!(["1", "2"]), &json!("['1', '3']")));
        assert!(!differ_in_form_only(&json!(["1"]), &json!(["1"])), "equal");
        assert!(differ_in_form_only(&json!("['1']"), &json!("[\"1\"]")), "two notations");
        assert!(!differ_in_form_only(&json!("one"), &json!("One")));
        assert!(!differ_in_form_only(&json!(null), &json!("null")));
    }

    #[test]
    fn scalars_are_listed_in_order_without_keys() {
        for (text, values) in [
            (r#"["a, b", 2.50, null]"#, vec![json!("a, b"), json!(2.5), Value::Null]),
            (r#"{"id": "W1", "lines": [{"n": 3}]}"#, vec![json!("W1"), json!(3)]),
            ("{'name': 'O\\'Neil', 'ok': True}", vec![json!("O'Neil"), json!(true)]),
            (r#"["Z\u00fcrich"]"#, vec![json!("Zürich")]),
            (r"['Z\u00fcrich']", vec![json!("Zürich")]),
            ("[]", vec![]),
        ] {
            assert_eq!(scalars(text), Some(values), "{text}");
        }
        assert_eq!(scalars("(555) 123-4567"), None);
        assert_eq!(scalars(&"[".repeat(60_000)), None);
    }

    #[test]
    fn texts_are_replaced_at_any_depth() {
        assert_eq!(*with_texts_parsed(&json!({"a": ["[1]", 2], "b": "c"})), json!({"a": [[1], 2], "b": "c"}));
        assert!(matches!(with_texts_parsed(&json!({"a": [1, "x"]})), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn any_text_can_be_parsed(text in "[\\[\\]{}()'\",:\\\\ a0-9éTrue]{0,40}") {
            let _ = parse(&text);
        }
    }
}
