//! Paths of a mapping into an answer: JSON Pointers in which `*` is any one segment, or CEL expressions.

use std::borrow::Cow;
use std::fmt;

use counterproof_artifact::{escape_invisible, pointer};
use counterproof_expression::Expression;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::native::kind_of;

/// A message names at most this many keys.
const MAX_KEYS: usize = 20;

/// A message quotes at most this many characters of a key.
const MAX_KEY_CHARS: usize = 40;

/// A path that starts at the whole answer. In CEL, the answer is `answer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AnswerPath(Path);

/// A path that starts at an element of a list, such as a call. In CEL, the element is `item` and the whole answer `answer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ElementPath(Path);

#[derive(Debug, Clone, PartialEq)]
enum Path {
    Pointer { source: String, segments: Vec<Segment> },
    Expression(Box<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
enum Segment {
    Key(String),
    Any,
}

/// A text that is neither a JSON Pointer nor a CEL expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A `~` that is not followed by 0 or 1.
    #[error("`{0}` is not a JSON Pointer: write `~0` for `~` and `~1` for `/` in a key")]
    Escape(String),
    /// The expression does not compile.
    #[error(
        "`{text}` is neither a JSON Pointer, which starts with `/`, nor a CEL expression over {variables}: {message}; expected one such as `/output`"
    )]
    Expression {
        /// The text.
        text: String,
        /// The names that an expression can use.
        variables: &'static str,
        /// The error of the compiler.
        message: String,
    },
}

impl Path {
    fn parse(text: String, variables: &[&str], described: &'static str) -> Result<Self, PathError> {
        if !text.is_empty() && !text.starts_with('/') {
            return match Expression::compile(&text, variables) {
                Ok(expression) => Ok(Self::Expression(Box::new(expression))),
                Err(error) => Err(PathError::Expression { text, variables: described, message: error.message }),
            };
        }
        let segment = |text: &str| match text {
            "*" => Some(Segment::Any),
            _ if text.replace("~0", "").replace("~1", "").contains('~') => None,
            // `~1` first: `~01` is the key `~1`.
            _ => Some(Segment::Key(text.replace("~1", "/").replace("~0", "~"))),
        };
        match text.split('/').skip(1).map(segment).collect() {
            Some(segments) => Ok(Self::Pointer { source: text, segments }),
            None => Err(PathError::Escape(text)),
        }
    }

    fn source(&self) -> &str {
        match self {
            Self::Pointer { source, .. } => source,
            Self::Expression(expression) => expression.source(),
        }
    }

    /// Returns all values that the path finds below `root`, in document order. `variables` are those of an expression.
    fn find<'v>(&self, root: &'v Value, variables: &[&Value], owner: &str) -> Result<Vec<Found<'v>>, Missing> {
        let missing = |problem, is_empty_list| Missing { path: self.source().to_owned(), problem, is_empty_list };
        match self {
            Self::Pointer { segments, .. } => {
                let mut search =
                    Search { found: Vec::new(), deepest: Deepest { depth: 0, pointer: String::new(), value: root } };
                search.descend(root, segments, 0, &mut String::new());
                if search.found.is_empty() {
                    let is_empty_list = search.deepest.allows_absence(segments);
                    return Err(missing(search.deepest.describe(owner), is_empty_list));
                }
                Ok(search.found)
            }
            Self::Expression(expression) => {
                let computed = expression.compute(variables).map_err(|error| missing(error.to_string(), false))?;
                Ok(vec![Found { pointer: String::new(), value: Cow::Owned(computed.into_json()) }])
            }
        }
    }

    const fn is_expression(&self) -> bool {
        matches!(self, Self::Expression(_))
    }
}

impl AnswerPath {
    pub(super) const fn is_expression(&self) -> bool {
        self.0.is_expression()
    }

    /// Returns all values that the path finds, or what the answer has instead.
    pub(super) fn find<'v>(&self, answer: &'v Value) -> Result<Vec<Found<'v>>, Missing> {
        self.0.find(answer, &[answer], "the answer")
    }

    /// Returns the elements of the lists that the path finds, joined in order. Lists in lists are flattened, and a single object is an
    /// element. A list that is absent is empty if the object that would contain it exists.
    pub(super) fn elements<'v>(&self, answer: &'v Value) -> Result<Vec<Element<'v>>, Missing> {
        let found = match self.find(answer) {
            Err(missing) if missing.is_empty_list => return Ok(Vec::new()),
            found => found?,
        };
        let mut elements = Vec::new();
        for Found { pointer, value } in found {
            self.flatten(&pointer, value, &mut elements)?;
        }
        Ok(elements)
    }

    /// Returns what the answer has in place of a list that counts as an empty one because it is absent.
    pub(super) fn absence(&self, answer: &Value) -> Option<Missing> {
        self.find(answer).err().filter(|missing| missing.is_empty_list)
    }

    fn flatten<'v>(&self, at: &str, value: Cow<'v, Value>, elements: &mut Vec<Element<'v>>) -> Result<(), Missing> {
        let push = |elements: &mut Vec<Element<'v>>, value: Cow<'v, Value>| {
            // The elements of an expression have no place in the answer.
            let label = if self.0.is_expression() {
                format!("element {} of `{}`", elements.len(), self.0.source())
            } else {
                format!("the element {at}")
            };
            elements.push(Element { label, value });
        };
        match value {
            Cow::Borrowed(Value::Array(items)) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.flatten_item(at, index, Cow::Borrowed(item), elements)),
            Cow::Owned(Value::Array(items)) => items
                .into_iter()
                .enumerate()
                .try_for_each(|(index, item)| self.flatten_item(at, index, Cow::Owned(item), elements)),
            value if value.is_null() => Ok(()),
            value if value.is_object() => {
                push(elements, value);
                Ok(())
            }
            value => Err(Missing {
                path: self.0.source().to_owned(),
                problem: format!("the answer has {at}, {}; expected a list or an object", kind_of(&value)),
                is_empty_list: false,
            }),
        }
    }

    fn flatten_item<'v>(
        &self,
        at: &str,
        index: usize,
        item: Cow<'v, Value>,
        elements: &mut Vec<Element<'v>>,
    ) -> Result<(), Missing> {
        let at = format!("{at}/{index}");
        match &*item {
            // The elements of a list may be texts: ids of documents, for example.
            Value::String(_) | Value::Number(_) => {
                elements.push(Element { label: format!("the element {at}"), value: item });
                Ok(())
            }
            _ => self.flatten(&at, item, elements),
        }
    }
}

impl ElementPath {
    /// Returns the first value that the path finds in an element, or what the element has instead.
    pub(super) fn find<'v>(&self, element: &'v Element<'_>, answer: &Value) -> Result<Cow<'v, Value>, Missing> {
        let found = self.0.find(&element.value, &[answer, &element.value], &element.label)?;
        Ok(found.into_iter().next().map(|found| found.value).unwrap_or_default())
    }

    /// Returns the first value that the path finds in an element. An absent value is `None`.
    pub(super) fn optional<'v>(
        &self,
        element: &'v Element<'_>,
        answer: &Value,
    ) -> Result<Option<Cow<'v, Value>>, Missing> {
        match self.find(element, answer) {
            // An expression that fails is a mistake in the expression: `has()` asks for a field.
            Err(missing) if self.0.is_expression() => Err(missing),
            found => Ok(found.ok()),
        }
    }
}

/// A value that a path found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found<'v> {
    /// Its JSON Pointer. Empty for the value of an expression.
    pub(super) pointer: String,
    pub(super) value: Cow<'v, Value>,
}

/// An element of a list in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Element<'v> {
    /// Its name in messages.
    pub(super) label: String,
    pub(super) value: Cow<'v, Value>,
}

/// A path that found nothing. `Display` shows what the answer has instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) path: String,
    pub(super) problem: String,
    /// Whether only the last segment is missing, so that an absent list is an empty one.
    is_empty_list: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// The search for a pointer.
struct Search<'v> {
    found: Vec<Found<'v>>,
    deepest: Deepest<'v>,
}

/// The longest part of a pointer that exists.
struct Deepest<'v> {
    depth: usize,
    pointer: String,
    value: &'v Value,
}

impl<'v> Search<'v> {
    fn descend(&mut self, value: &'v Value, segments: &[Segment], depth: usize, at: &mut String) {
        let Some((segment, rest)) = segments.split_first() else {
            self.found.push(Found { pointer: at.clone(), value: Cow::Borrowed(value) });
            return;
        };
        if depth > self.deepest.depth {
            self.deepest = Deepest { depth, pointer: at.clone(), value };
        }
        let length = at.len();
        let mut enter = |key: &str, child: &'v Value| {
            pointer::push(at, key);
            self.descend(child, rest, depth + 1, at);
            at.truncate(length);
        };
        match (segment, value) {
            (Segment::Key(key), Value::Object(fields)) => {
                if let Some(child) = fields.get(key) {
                    enter(key, child);
                }
            }
            (Segment::Key(key), Value::Array(items)) => {
                // RFC 6901 allows no leading zeros and no sign.
                let index = key.parse::<usize>().ok().filter(|index| index.to_string() == *key);
                if let Some(child) = index.and_then(|index| items.get(index)) {
                    enter(key, child);
                }
            }
            (Segment::Any, Value::Object(fields)) => fields.iter().for_each(|(key, child)| enter(key, child)),
            (Segment::Any, Value::Array(items)) => {
                items.iter().enumerate().for_each(|(index, child)| enter(&index.to_string(), child));
            }
            _ => {}
        }
    }
}

impl Deepest<'_> {
    /// Reports whether an absent list at the end of the path counts as an empty one: the object that would contain it is there.
    fn allows_absence(&self, segments: &[Segment]) -> bool {
        let is_at_last = segments[self.depth..].iter().skip(1).all(|segment| *segment == Segment::Any);
        match (&segments.get(self.depth), self.value) {
            // Nothing is missing in an empty list.
            (Some(Segment::Any), Value::Array(items)) => items.is_empty(),
            (Some(Segment::Any), Value::Object(fields)) => fields.is_empty(),
            (Some(Segment::Key(_)), Value::Object(_)) => is_at_last,
            _ => false,
        }
    }

    /// Describes the part that exists, such as `the answer has /result with say, did`.
    fn describe(&self, owner: &str) -> String {
        let at = escape_invisible(&self.pointer);
        let (is_root, value) = (self.pointer.is_empty(), self.value);
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let with = if is_root { String::new() } else { format!("{at} with ") };
                format!("{owner} has {with}{}", listed(fields.keys()))
            }
            _ => {
                let size = match value {
                    Value::Array(items) => format!("a list with {} elements", items.len()),
                    Value::Object(_) => "an empty object".to_owned(),
                    other => kind_of(other).to_owned(),
                };
                if is_root { format!("{owner} is {size}") } else { format!("{owner} has {at}, {size}") }
            }
        }
    }
}

/// Lists the keys of an object for a message.
fn listed<'k>(keys: impl ExactSizeIterator<Item = &'k String>) -> String {
    let omitted = keys.len().saturating_sub(MAX_KEYS);
    let names = keys.take(MAX_KEYS).map(|key| escape_invisible(&key.chars().take(MAX_KEY_CHARS).collect::<String>()));
    let names = names.collect::<Vec<_>>().join(", ");
    if omitted > 0 { format!("{names} and {omitted} more") } else { names }
}

impl TryFrom<String> for AnswerPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Path::parse(text, &["answer"], "`answer`").map(Self)
    }
}

impl TryFrom<String> for ElementPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Path::parse(text, &["answer", "item"], "`item` and `answer`").map(Self)
    }
}

impl From<AnswerPath> for String {
    fn from(path: AnswerPath) -> Self {
        path.0.source().to_owned()
    }
}

impl From<ElementPath> for String {
    fn from(path: ElementPath) -> Self {
        path.0.source().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> AnswerPath {
        text.to_owned().try_into().unwrap()
    }

    fn found(text: &str, answer: &Value) -> Vec<Value> {
        path(text).find(answer).unwrap().into_iter().map(|found| found.value.into_owned()).collect()
    }

    fn missing(text: &str, answer: &Value) -> String {
        path(text).find(answer).unwrap_err().to_string()
    }

    fn elements(text: &str, answer: &Value) -> Vec<Value> {
        path(text).elements(answer).unwrap().into_iter().map(|element| element.value.into_owned()).collect()
    }

    #[test]
    fn a_star_is_any_segment_and_values_are_in_document_order() {
        let answer = json!({"steps": [{"tools": [1, 2]}, {"text": "x"}, {"tools": [3]}], "a/b": {"~": 7}});
        assert_eq!(found("/steps/*/tools", &answer), [json!([1, 2]), json!([3])]);
        assert_eq!(found("/steps/0/tools/1", &answer), [json!(2)]);
        assert_eq!(found("/a~1b/~0", &answer), [json!(7)]);
        assert_eq!(found("", &answer), std::slice::from_ref(&answer));
        assert_eq!(found("answer.steps.size() + 1", &answer), [json!(4)]);
    }

    #[test]
    fn a_missing_path_names_what_the_answer_has() {
        let answer = json!({"result": {"say": "hi", "did": []}, "text": "x", "none": {}});
        assert_eq!(missing("/result/text", &answer), "/result/text: the answer has /result with say, did");
        assert_eq!(missing("/reply", &answer), "/reply: the answer has result, text, none");
        assert_eq!(
            missing("/result/did/0/fn", &answer),
            "/result/did/0/fn: the answer has /result/did, a list with 0 elements"
        );
        assert_eq!(missing("/text/x", &answer), "/text/x: the answer has /text, a string");
        assert_eq!(missing("/none/x", &answer), "/none/x: the answer has /none, an empty object");
        assert_eq!(missing("/x", &json!([1])), "/x: the answer is a list with 1 elements");
        assert_eq!(missing("answer.reply", &answer), "answer.reply: missing field `reply`");
    }

    #[test]
    fn lists_are_joined_and_flattened() {
        let answer = json!({"steps": [{"tools": [{"n": 1}, [{"n": 2}]]}, {"tools": null}, {"tools": {"n": 3}}]});
        assert_eq!(elements("/steps/*/tools", &answer), [json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]);
        assert_eq!(elements("answer.steps.map(s, s.tools)", &answer).len(), 3);
        assert_eq!(elements("/ids", &json!({"ids": ["a", "b"]})), [json!("a"), json!("b")]);
        assert!(path("/text").elements(&json!({"text": "x"})).is_err());
    }

    #[test]
    fn an_absent_list_is_empty_only_within_an_existing_object() {
        let answer = json!({"result": {"say": "hi"}, "steps": [], "messages": [{"content": "hi"}], "text": "x"});
        for empty in ["/calls", "/result/did", "/steps/*/tools", "/messages/*/tool_calls", "/result/did/*"] {
            assert!(elements(empty, &answer).is_empty(), "{empty}");
        }
        for absent in ["/outcome/did", "/result/a/b", "/text/did", "/messages/*/a/b"] {
            assert!(path(absent).elements(&answer).is_err(), "{absent}");
        }
    }

    #[test]
    fn an_element_is_named_by_its_place() {
        let answer = json!({"did": [{"name": "a", "input": {}}]});
        let element = path("/did").elements(&answer).unwrap().remove(0);
        let read =
            |text: &str| ElementPath::try_from(text.to_owned()).unwrap().find(&element, &answer).map(Cow::into_owned);
        assert_eq!(read("/fn").unwrap_err().to_string(), "/fn: the element /did/0 has name, input");
        assert_eq!(read("item.name + string(answer.did.size())").unwrap(), "a1");
        assert_eq!(read("").unwrap(), answer["did"][0]);
    }

    #[test]
    fn a_path_that_is_neither_pointer_nor_expression_is_rejected() {
        for text in ["result/text", "/a/~2", "reply", "answer.", "item.x"] {
            assert!(AnswerPath::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_pointer_without_stars_finds_what_serde_finds(
            keys in prop::collection::vec("[a-b~/0-1]{1,2}", 1..4),
            depth in 0_usize..4,
        ) {
            let answer = keys.iter().take(depth).rev().fold(json!([1, 2]), |inner, key| json!({(key.as_str()): inner}));
            let text = keys.iter().fold(String::new(), |at, key| pointer::child(&at, key));
            let ours = path(&text).find(&answer).ok().map(|found| found[0].value.clone().into_owned());
            prop_assert_eq!(ours.as_ref(), answer.pointer(&text));
        }
    }
}
