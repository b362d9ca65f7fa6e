//! Reads lists and objects that were written as text: `"['1', '2']"`, `"{\"amount\": 50}"`. JSON and Python notation are read.

use serde_json::Value;

/// Longer texts are searched as texts only.
const READ_UP_TO_BYTES: usize = 64 * 1024;

/// Returns the scalar values of a list or an object that a text consists of, in order, without the keys. `None` for every
/// other text, such as `(555) 123-4567` or `[see above]`.
pub(crate) fn written_values(text: &str) -> Option<Vec<Value>> {
    let text = text.trim();
    let is_enclosed = [('[', ']'), ('{', '}'), ('(', ')')]
        .iter()
        .any(|(open, close)| text.starts_with(*open) && text.ends_with(*close));
    if !is_enclosed || text.len() > READ_UP_TO_BYTES {
        return None;
    }
    let mut reader = ContainerReader { rest: text, values: Vec::new(), open: Vec::new() };
    reader.read().map(|()| reader.values)
}

struct ContainerReader<'t> {
    rest: &'t str,
    values: Vec<Value>,
    /// The closing brackets that are still expected, innermost last. A stack, so that no nesting exhausts the call stack.
    open: Vec<char>,
}

impl ContainerReader<'_> {
    fn read(&mut self) -> Option<()> {
        while let Some(first) = self.rest.chars().next() {
            match first {
                '[' => self.open(']'),
                '{' => self.open('}'),
                '(' => self.open(')'),
                ']' | '}' | ')' => {
                    if self.open.pop() != Some(first) {
                        return None;
                    }
                    self.skip(1);
                }
                ',' => self.skip(1),
                // The value before a colon is a key.
                ':' => {
                    self.values.pop()?;
                    self.skip(1);
                }
                '"' | '\'' => self.quoted(first)?,
                _ if first.is_whitespace() => self.skip(first.len_utf8()),
                _ => self.bare()?,
            }
            if self.open.is_empty() {
                break;
            }
        }
        (self.open.is_empty() && self.rest.is_empty()).then_some(())
    }

    fn open(&mut self, close: char) {
        self.open.push(close);
        self.skip(1);
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn quoted(&mut self, quote: char) -> Option<()> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => match characters.next()?.1 {
                    'n' | 'r' | 't' => text.push(' '),
                    'u' => {
                        let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                        text.push(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or(' '));
                    }
                    escaped => text.push(escaped),
                },
                c if c == quote => {
                    self.values.push(Value::from(text));
                    self.skip(at + 1);
                    return Some(());
                }
                c => text.push(c),
            }
        }
        None
    }

    /// Reads a number or one of the words of both notations. Any other bare word shows that the text is no container.
    fn bare(&mut self) -> Option<()> {
        let end = self.rest.find(|c: char| c.is_whitespace() || ",:]})".contains(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let value = match word {
            "true" | "True" => Value::from(true),
            "false" | "False" => Value::from(false),
            "null" | "None" => Value::Null,
            number => serde_json::from_str::<serde_json::Number>(number).ok()?.into(),
        };
        self.values.push(value);
        self.skip(end);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_objects_in_json_and_python_are_read() {
        for (text, values) in [
            ("['1', '2']", vec![json!("1"), json!("2")]),
            (r#"["a, b", 2.50, null]"#, vec![json!("a, b"), json!(2.5), Value::Null]),
            (r#"{"id": "W1", "lines": [{"n": 3}]}"#, vec![json!("W1"), json!(3)]),
            ("{'name': 'O\\'Neil', 'ok': True}", vec![json!("O'Neil"), json!(true)]),
            ("('1', 2,)", vec![json!("1"), json!(2)]),
            (r#"["Z\u00fcrich"]"#, vec![json!("Zürich")]),
            ("[]", vec![]),
        ] {
            assert_eq!(written_values(text), Some(values), "{text}");
        }
    }

    #[test]
    fn other_texts_in_brackets_are_no_containers() {
        for text in ["", "(555) 123-4567", "[see above]", "{name}", "['1', '2'", "['1'] or ['2']", "[1)", "{:}", "['a"]
        {
            assert_eq!(written_values(text), None, "{text}");
        }
        assert_eq!(written_values(&"[".repeat(60_000)), None);
    }
}
