//! Finds fields in expressions that no call and no run has.
//!
//! The text is read word by word, without the contents of strings and comments. A variable of a macro with the name `call` or `run` is
//! taken for the variable of the policy.

use crate::policy::model::{CALL_FIELDS, RUN_FIELDS, WORKLOAD_FIELDS};

/// A field that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownField {
    /// The object, such as `call`.
    pub(super) object: &'static str,
    /// The field.
    pub(super) name: String,
    /// The fields of the object.
    pub(super) known: &'static [&'static str],
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// Returns the fields of `call`, `run` and `run.workload` in an expression that do not exist.
pub(super) fn unknown_fields(expression: &str) -> Vec<UnknownField> {
    let tokens = tokens(expression);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_member = at > 0 && tokens[at - 1] == Token::Sign('.');
        let Token::Word(word) = token else { continue };
        if is_member {
            continue;
        }
        match word.as_str() {
            "call" => {
                check("call", &CALL_FIELDS, &tokens[at + 1..], &mut found);
            }
            "run" => {
                let after = check("run", &RUN_FIELDS, &tokens[at + 1..], &mut found);
                if let Some(("workload", rest)) = after {
                    check("run.workload", &WORKLOAD_FIELDS, rest, &mut found);
                }
            }
            _ => {}
        }
    }
    found
}

/// Checks the field that the tokens after an object select. Returns its name and the tokens after it.
fn check<'t>(
    object: &'static str,
    known: &'static [&'static str],
    tokens: &'t [Token],
    found: &mut Vec<UnknownField>,
) -> Option<(&'t str, &'t [Token])> {
    let (name, rest) = match tokens {
        // A method of the map, such as `call.exists(…)`.
        [Token::Sign('.'), Token::Word(_), Token::Sign('('), ..] => return None,
        [Token::Sign('.'), Token::Word(name), rest @ ..]
        | [Token::Sign('.'), Token::Sign('?'), Token::Word(name), rest @ ..]
        | [Token::Sign('['), Token::Text(name), Token::Sign(']'), rest @ ..] => (name, rest),
        _ => return None,
    };
    if !known.contains(&name.as_str()) {
        found.push(UnknownField { object, name: name.clone(), known });
    }
    Some((name, rest))
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            // A prefix of a string, such as `r'…'`, is not a word.
            if !rest[end..].starts_with(['"', '\'']) {
                tokens.push(Token::Word(rest[..end].to_owned()));
            }
            end
        } else if matches!(first, '"' | '\'' | '`') {
            let (text, length) = quoted(rest, first);
            tokens.push(if first == '`' { Token::Word(text) } else { Token::Text(text) });
            length
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns the content of a string at the start of a text, and the length of the string.
fn quoted(text: &str, quote: char) -> (String, usize) {
    let triple = quote.to_string().repeat(3);
    let (delimiter, start) = if text.starts_with(&triple) { (triple.as_str(), 3) } else { (&triple[..1], 1) };
    let mut is_escaped = false;
    for (at, character) in text[start..].char_indices() {
        let at = start + at;
        if !is_escaped && text[at..].starts_with(delimiter) {
            return (text[start..at].to_owned(), at + delimiter.len());
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    (text[start..].to_owned(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(expression: &str) -> Vec<String> {
        unknown_fields(expression).iter().map(|field| format!("{}.{}", field.object, field.name)).collect()
    }

    #[test]
    fn fields_that_do_not_exist_are_found() {
        assert_eq!(unknown("call.serverr == 'git'"), ["call.serverr"]);
        assert_eq!(unknown("has(call.arg.x) || run . nope == 1"), ["call.arg", "run.nope"]);
        assert_eq!(unknown("run.workload.branches == 'main'"), ["run.workload.branches"]);
        assert_eq!(unknown("call['tool'] == 'a' && run[\"env\"] == 'ci'"), ["call.tool"]);
        assert_eq!(unknown("call.?tags.orValue([]) == []"), ["call.tags"]);
    }

    #[test]
    fn fields_that_exist_and_other_texts_are_not() {
        for expression in [
            "call.server_name == 'git' && call.args.anything.run.nope == 1",
            "call.args['serverr'] == call.bytes_in",
            "run.workload.labels.anything == 'x' && run.workload['repo'] == 'y'",
            "call.exists(key, key == 'x')",
            "call.tool_name == 'call.serverr' // run.nope",
            r#"call.tool_name == "a \" run.nope" && call.tool_name != r'call.x'"#,
            "'''it's call.nope''' == call.transport",
            "call[call.args.key] == 1 && recall.x == 2",
            "",
            "'unclosed \\",
        ] {
            assert_eq!(unknown(expression), [""; 0], "{expression}");
        }
    }
}
