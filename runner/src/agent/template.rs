//! The body of a request as a JSON text with placeholders, such as `{"message": "{{input.user}}"}`.
//!
//! The text is parsed once. A placeholder is then replaced in the parsed value, so that no text of a case can break the JSON.

use counterproof_cases::CaseSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::RequestInput;

/// The names that a placeholder can have.
const KNOWN: &str =
    "`input.user`, `input.context.NAME`, `case.id`, `run.id`, `turn.index`, `messages` or `conversation`";

/// A body with placeholders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BodyTemplate {
    source: String,
    root: Node,
}

/// A part of the body.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Literal(Value),
    /// A string that is one placeholder, and gets the type of its value.
    Whole(Placeholder),
    Text(Vec<Piece>),
    List(Vec<Node>),
    Object(Vec<(Vec<Piece>, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Placeholder(Placeholder),
}

#[derive(Debug, Clone, PartialEq)]
struct Placeholder {
    name: String,
    /// The line in the text of the body, counted from 1.
    line: usize,
    source: Source,
}

#[derive(Debug, Clone, PartialEq)]
enum Source {
    /// The keys and indexes below `input`.
    Input(Vec<String>),
    CaseId,
    RunId,
    /// The number of the turn, counted from 0.
    TurnIndex,
    /// The messages before this one.
    Messages,
    /// The messages up to and including this one.
    Conversation,
}

/// A body that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not JSON.
    #[error("line {line} of the body: not JSON: {message}")]
    NotJson {
        /// The line, counted from 1.
        line: usize,
        /// The error of the parser.
        message: String,
    },
    /// A placeholder has an unknown name.
    #[error("line {line} of the body: unknown placeholder `{{{{{name}}}}}`; expected {KNOWN}")]
    Unknown {
        /// The line, counted from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A placeholder is not closed.
    #[error("line {line} of the body: `{{{{` without `}}}}`")]
    Unclosed {
        /// The line, counted from 1.
        line: usize,
    },
}

impl TryFrom<String> for BodyTemplate {
    type Error = TemplateError;

    fn try_from(source: String) -> Result<Self, TemplateError> {
        let quoted = quote_bare_placeholders(&source);
        let value: Value = serde_json::from_str(&quoted)
            .map_err(|error| TemplateError::NotJson { line: error.line(), message: error.to_string() })?;
        let root = Node::parse(value, &source)?;
        Ok(Self { source, root })
    }
}

impl From<BodyTemplate> for String {
    fn from(template: BodyTemplate) -> Self {
        template.source
    }
}

impl BodyTemplate {
    /// Returns the body for a request.
    pub(super) fn render(&self, request: RequestInput<'_>) -> Result<Value, String> {
        self.root.render(request)
    }

    /// Checks that the case has a value for every placeholder.
    pub(super) fn check(&self, case: &CaseSpec) -> Result<(), String> {
        self.root.check(case)
    }
}

impl Node {
    fn parse(value: Value, source: &str) -> Result<Self, TemplateError> {
        Ok(match value {
            Value::String(text) => {
                let mut pieces = pieces(&text, source)?;
                match pieces.as_mut_slice() {
                    [Piece::Placeholder(_)] => match pieces.remove(0) {
                        Piece::Placeholder(placeholder) => Self::Whole(placeholder),
                        Piece::Literal(text) => Self::Literal(text.into()),
                    },
                    [] | [Piece::Literal(_)] => Self::Literal(text.into()),
                    _ => Self::Text(pieces),
                }
            }
            Value::Array(items) => {
                Self::List(items.into_iter().map(|item| Self::parse(item, source)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let field = |(key, value): (String, Value)| Ok((pieces(&key, source)?, Self::parse(value, source)?));
                Self::Object(fields.into_iter().map(field).collect::<Result<_, _>>()?)
            }
            other => Self::Literal(other),
        })
    }

    fn render(&self, request: RequestInput<'_>) -> Result<Value, String> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Whole(placeholder) => placeholder.value(request)?,
            Self::Text(pieces) => text(pieces, request)?.into(),
            Self::List(items) => items.iter().map(|item| item.render(request)).collect::<Result<_, _>>()?,
            Self::Object(fields) => {
                let field = |(key, value): &(Vec<Piece>, Node)| Ok((text(key, request)?, value.render(request)?));
                Value::Object(fields.iter().map(field).collect::<Result<Map<_, _>, String>>()?)
            }
        })
    }

    fn check(&self, case: &CaseSpec) -> Result<(), String> {
        let check_pieces = |pieces: &[Piece]| {
            pieces.iter().try_for_each(|piece| match piece {
                Piece::Literal(_) => Ok(()),
                Piece::Placeholder(placeholder) => placeholder.check(case),
            })
        };
        match self {
            Self::Literal(_) => Ok(()),
            Self::Whole(placeholder) => placeholder.check(case),
            Self::Text(pieces) => check_pieces(pieces),
            Self::List(items) => items.iter().try_for_each(|item| item.check(case)),
            Self::Object(fields) => {
                fields.iter().try_for_each(|(key, value)| check_pieces(key).and_then(|()| value.check(case)))
            }
        }
    }
}

impl Placeholder {
    fn value(&self, request: RequestInput<'_>) -> Result<Value, String> {
        Ok(match &self.source {
            Source::Input(path) if *path == ["user"] => request.user().into(),
            Source::Input(path) => self.input(path, request.case)?,
            Source::CaseId => request.case.id.as_str().into(),
            Source::RunId => request.run_id.as_str().into(),
            Source::TurnIndex => turn_index(request).into(),
            Source::Messages => history(request).into(),
            Source::Conversation => {
                let user = json!({"role": "user", "content": request.user()});
                history(request).into_iter().chain([user]).collect()
            }
        })
    }

    fn check(&self, case: &CaseSpec) -> Result<(), String> {
        match &self.source {
            Source::Input(path) => self.input(path, case).map(drop),
            _ => Ok(()),
        }
    }

    fn input(&self, path: &[String], case: &CaseSpec) -> Result<Value, String> {
        let input = &case.input;
        let (first, rest) = path.split_first().map_or(("", path), |(first, rest)| (first.as_str(), rest));
        let user = Value::from(input.user.as_str());
        let found = match first {
            "user" => Some(&user),
            "context" => input.context.as_ref(),
            other => input.extra.get(other),
        };
        let found = rest.iter().try_fold(found, |value, key| {
            Some(match value? {
                Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
                other => other.get(key),
            })
        });
        found
            .flatten()
            .cloned()
            .ok_or_else(|| format!("line {} of the body: the case has no value for `{{{{{}}}}}`", self.line, self.name))
    }
}

/// Returns the number of the turn, counted from 0.
fn turn_index(request: RequestInput<'_>) -> usize {
    request.turn.map_or(0, |turn| turn.index)
}

/// Returns the messages before the message of this request.
fn history(request: RequestInput<'_>) -> Vec<Value> {
    request.messages()
}

/// Replaces the placeholders in a string.
fn text(pieces: &[Piece], request: RequestInput<'_>) -> Result<String, String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Placeholder(placeholder) => match placeholder.value(request)? {
                Value::String(value) => text.push_str(&value),
                Value::Null => {}
                other => text.push_str(&other.to_string()),
            },
        }
    }
    Ok(text)
}

/// Splits a string at its placeholders. `source` is the whole body, which has the line.
fn pieces(text: &str, source: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, after) = (&rest[..start], &rest[start + 2..]);
        let Some(end) = after.find("}}") else { return Err(TemplateError::Unclosed { line: line_of(source, "{{") }) };
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.to_owned()));
        }
        pieces.push(Piece::Placeholder(placeholder(&after[..end], source)?));
        rest = &after[end + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Ok(pieces)
}

fn placeholder(inner: &str, source: &str) -> Result<Placeholder, TemplateError> {
    let line = line_of(source, &format!("{{{{{inner}"));
    let name = inner.trim().to_owned();
    let path: Vec<_> = name.split('.').map(str::to_owned).collect();
    let words: Vec<_> = path.iter().map(String::as_str).collect();
    let source = match words.as_slice() {
        ["case", "id"] => Source::CaseId,
        ["run", "id"] => Source::RunId,
        ["turn", "index"] => Source::TurnIndex,
        ["messages"] => Source::Messages,
        ["conversation"] => Source::Conversation,
        // A case can have further fields in its input, such as `session`.
        ["input", first, ..] if !first.is_empty() && (*first != "user" || path.len() == 2) => {
            Source::Input(path[1..].to_vec())
        }
        _ => return Err(TemplateError::Unknown { line, name }),
    };
    Ok(Placeholder { name, line, source })
}

/// Returns the line of the first occurrence of a text, counted from 1.
fn line_of(source: &str, text: &str) -> usize {
    let end = source.find(text).unwrap_or_default();
    source[..end].matches('\n').count() + 1
}

/// Puts quotes around placeholders outside of strings, so that the text is JSON: `{"history": {{messages}}}`.
fn quote_bare_placeholders(source: &str) -> String {
    let mut quoted = String::with_capacity(source.len() + 8);
    let (mut in_string, mut is_escaped) = (false, false);
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        if !in_string
            && let Some(after) = rest.strip_prefix("{{")
            && let Some(end) = after.find("}}")
            // `{{` also starts an object in an invalid text, which the parser then reports.
            && after[..end].chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-'))
        {
            quoted.push('"');
            quoted.push_str(&rest[..end + 4]);
            quoted.push('"');
            rest = &after[end + 2..];
            continue;
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        quoted.push(c);
        rest = &rest[c.len_utf8()..];
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterproof_artifact::{Extra, Side};
    use counterproof_cases::{Expected, Input, Metadata};
    use proptest::prelude::*;

    fn case(user: &str, context: Option<Value>) -> CaseSpec {
        CaseSpec {
            id: "c1".parse().unwrap(),
            title: None,
            input: Input { user: user.to_owned(), context, extra: Extra::new() },
            turns: Vec::new(),
            tool_results: Map::new(),
            expected: Expected::default(),
            metadata: Metadata::default(),
            suite: None,
            extra: Extra::new(),
        }
    }

    fn render(body: &str, case: &CaseSpec) -> Result<Value, String> {
        let template = BodyTemplate::try_from(body.to_owned()).map_err(|error| error.to_string())?;
        template.check(case)?;
        let run_id = "r1".parse().unwrap();
        template.render(RequestInput::single(case, Side::New, &run_id))
    }

    #[test]
    fn a_placeholder_that_is_the_whole_string_keeps_its_type() {
        let case = case("Hi", Some(json!({"n": 7, "tags": ["a"], "none": null})));
        let body = r#"{"a": "{{input.context.n}}", "b": "n={{ input.context.n }}!", "c": "{{input.context}}",
                       "d": "{{input.context.tags.0}}", "e": {{input.context.tags}}, "f": "{{input.context.none}}",
                       "{{case.id}}": ["{{run.id}}", "{{turn.index}}", true, "plain"]}"#;
        let expected = json!({"a": 7, "b": "n=7!", "c": {"n": 7, "tags": ["a"], "none": null}, "d": "a", "e": ["a"], "f": null,
                              "c1": ["r1", 0, true, "plain"]});
        assert_eq!(render(body, &case).unwrap(), expected);
        let messages = json!([{"role": "user", "content": "Hi"}]);
        assert_eq!(render("{{conversation}}", &case).unwrap(), messages);
        assert_eq!(render("{{messages}}", &case).unwrap(), json!([]));
    }

    #[test]
    fn an_error_has_its_line() {
        let error = |body: &str| render(body, &case("Hi", None)).unwrap_err();
        assert!(error("{\n \"a\": nope}").starts_with("line 2 of the body: not JSON"));
        assert!(
            error("{\n\"a\": 1,\n\"b\": \"x {{input}}\"}")
                .starts_with("line 3 of the body: unknown placeholder `{{input}}`")
        );
        assert!(
            error("{\"b\": \"{{user}}\"}")
                .contains("line 1 of the body: unknown placeholder `{{user}}`; expected `input.user`")
        );
        assert!(error("{\"b\": {{user}}}").contains("unknown placeholder `{{user}}`"));
        assert_eq!(
            error("{\"a\":\n\"{{input.context.x}}\"}"),
            "line 2 of the body: the case has no value for `{{input.context.x}}`"
        );
        assert_eq!(error("[\"{{input.user\"]"), "line 1 of the body: `{{` without `}}`");
    }

    proptest! {
        #[test]
        fn no_text_of_a_case_can_change_the_structure(user in ".*") {
            let body = r#"{"message": "{{input.user}}", "prompt": "<{{input.user}}>"}"#;
            let rendered = render(body, &case(&user, None)).unwrap();
            prop_assert_eq!(rendered, json!({"message": user, "prompt": format!("<{user}>")}));
        }
    }
}
