//! Lists and objects that are written as text, such as `"['1', '2']"` for `["1", "2"]`: JSON, or a literal as Python prints
//! it. Reading is linear in the text, and texts over [`LONGEST`] bytes are not read.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::same;

/// Longer texts are not read. Arguments of tools are far shorter.
const LONGEST: usize = 64 * 1024;

/// Deeper values are not read.
const DEEPEST: usize = 32;

/// Reads a text that is a list or an object; `None` for any other text.
pub(crate) fn read_written(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.len() > LONGEST || !text.starts_with(['[', '{', '(']) || !text.ends_with([']', '}', ')']) {
        return None;
    }
    let json = || serde_json::from_str(text).ok();
    let literal = || {
        let mut reader = Reader { rest: text };
        let value = reader.value(0)?;
        reader.rest.trim().is_empty().then_some(value)
    };
    json().or_else(literal)
}

/// Returns the value with every list or object that is written as text replaced by what it says.
pub(crate) fn unwritten(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) => read_written(text).map_or(Cow::Borrowed(value), Cow::Owned),
        Value::Array(items) => {
            let read: Vec<_> = items.iter().map(unwritten).collect();
            let changed = read.iter().any(|item| matches!(item, Cow::Owned(_)));
            if changed { Cow::Owned(read.into_iter().map(Cow::into_owned).collect()) } else { Cow::Borrowed(value) }
        }
        Value::Object(fields) => {
            let read: Vec<_> = fields.iter().map(|(key, value)| (key, unwritten(value))).collect();
            let changed = read.iter().any(|(_, field)| matches!(field, Cow::Owned(_)));
            let own = |(key, field): (&String, Cow<'_, Value>)| (key.clone(), field.into_owned());
            if changed { Cow::Owned(read.into_iter().map(own).collect()) } else { Cow::Borrowed(value) }
        }
        _ => Cow::Borrowed(value),
    }
}

/// True for two unequal values of the same content: a list, an object, a number or a flag in one, and the same written as text
/// in the other.
pub(crate) fn differ_in_form_only(a: &Value, b: &Value) -> bool {
    !same(a, b) && is_same_content(a, b)
}

fn is_same_content(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(text), other) | (other, Value::String(text)) if !other.is_string() => match other {
            Value::Array(_) | Value::Object(_) => read_written(text).is_some_and(|read| is_same_content(&read, other)),
            Value::Number(number) => text
                .trim()
                .parse::<Number>()
                .is_ok_and(|read| same(&Value::Number(read), &Value::Number(number.clone()))),
            Value::Bool(flag) => text.trim().eq_ignore_ascii_case(if *flag { "true" } else { "false" }),
            Value::Null | Value::String(_) => false,
        },
        (Value::String(a), Value::String(b)) => {
            let read = || read_written(a).zip(read_written(b));
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

/// Reads a Python literal from the front of a text.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            _ if depth > DEEPEST => None,
            '[' => self.items(']', depth).map(Value::Array),
            '(' => self.items(')', depth).map(Value::Array),
            '{' => self.fields(depth),
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
            // A comma may follow the last item.
            if !self.take(',') {
                return self.take(end).then_some(items);
            }
        }
        Some(items)
    }

    fn fields(&mut self, depth: usize) -> Option<Value> {
        let mut fields = Map::new();
        self.rest = &self.rest[1..];
        while !self.take('}') {
            let Value::String(key) = self.value(depth + 1)? else { return None };
            if !self.take(':') {
                return None;
            }
            fields.insert(key, self.value(depth + 1)?);
            if !self.take(',') {
                return self.take('}').then_some(Value::Object(fields));
            }
        }
        Some(Value::Object(fields))
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
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
        let end = self.rest.find([',', ']', '}', ')', ':']).unwrap_or(self.rest.len());
        let (word, rest): (&'t str, &'t str) = self.rest.split_at(end);
        self.rest = rest;
        match word.trim() {
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
    fn lists_and_objects_are_read_from_json_and_from_python() {
        assert_eq!(read_written("['1', \"2\"]"), Some(json!(["1", "2"])));
        assert_eq!(read_written("[\"1\", 2]"), Some(json!(["1", 2])));
        assert_eq!(read_written("('a', 1.5, None, True,)"), Some(json!(["a", 1.5, null, true])));
        assert_eq!(read_written("{'a': [1, {'b': 'it\\'s'}]}"), Some(json!({"a": [1, {"b": "it's"}]})));
        assert_eq!(read_written(" [] "), Some(json!([])));
        for other in ["1", "[1", "[1] and [2]", "(see below)", "[a]", "{'a'}", ""] {
            assert_eq!(read_written(other), None, "{other}");
        }
    }

    #[test]
    fn deep_texts_are_not_read() {
        let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(read_written(&deep), None);
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
    fn texts_are_replaced_at_any_depth() {
        assert_eq!(*unwritten(&json!({"a": ["[1]", 2], "b": "c"})), json!({"a": [[1], 2], "b": "c"}));
        assert!(matches!(unwritten(&json!({"a": [1, "x"]})), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "[\\[\\]{}()'\",:\\\\ a0-9éTrue]{0,40}") {
            let _ = read_written(&text);
        }
    }
}
