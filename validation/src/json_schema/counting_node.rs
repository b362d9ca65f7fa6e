//! JSON values that count: each access of the validator takes steps from the budget of the thread.
//!
//! The parts of a schema that apply other schemas do not access the value. The counting keyword does, and each part has it.

use std::borrow::Cow;
use std::slice;

use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use jsonschema::{JsonType, Keyword, ValidationError};
use serde_json::{Map, Number, Value, map};

use super::steps::{nodes, take, take_for_member, take_for_text};

/// The representation of counting values.
pub(super) struct Counting;

#[derive(Debug, Clone, Copy)]
pub(super) struct CountingNode<'a>(pub(super) &'a Value);

impl Json for Counting {
    type Node<'a> = CountingNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, run: impl FnOnce(CountingNode<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| run(CountingNode(value)))
    }
}

impl<'a> Node<'a, Counting> for CountingNode<'a> {
    type Object = CountingObject<'a>;
    type Array = CountingArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<CountingObject<'a>> {
        take(1);
        self.0.as_object().map(CountingObject)
    }

    fn as_array(&self) -> Option<CountingArray<'a>> {
        take(1);
        self.0.as_array().map(|items| CountingArray(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        take_for_text(text.map_or(0, str::len));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        take(1);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        take(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        take(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        take(1);
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        take(1 + self.0.as_str().map_or(0, str::len) as u64 / 64);
        self.0.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Both sides are read to the end if they are equal.
        take(1 + if self.0.is_object() || self.0.is_array() { nodes(expected) } else { 0 });
        self.0.equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        take(1);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        take(1);
        self.0.identity()
    }
}

#[derive(Debug)]
pub(super) struct CountingObject<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, Counting> for CountingObject<'a> {
    type Node = CountingNode<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<CountingNode<'a>> {
        take(1);
        self.0.get(key).map(CountingNode)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

/// The members of an object that counts.
#[derive(Debug)]
pub(super) struct Members<'a>(map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, CountingNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.0.next();
        take_for_member(member.map_or(0, |(name, _)| name.len()));
        member.map(|(name, value)| (name.as_str(), CountingNode(value)))
    }
}

#[derive(Debug)]
pub(super) struct CountingArray<'a>(&'a [Value]);

impl<'a> Array<'a, Counting> for CountingArray<'a> {
    type Node = CountingNode<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        take(self.0.iter().map(nodes).sum());
        Array::<SerdeJson>::is_unique(&self.0)
    }
}

/// The elements of an array that counts.
#[derive(Debug)]
pub(super) struct Elements<'a>(slice::Iter<'a, Value>);

impl<'a> Iterator for Elements<'a> {
    type Item = CountingNode<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        take(1);
        self.0.next().map(CountingNode)
    }
}

/// The counting keyword. It accepts every value.
pub(super) struct CountingKeyword;

impl<'i> Keyword<'i, Counting> for CountingKeyword {
    fn validate(&self, _: CountingNode<'i>) -> Result<(), ValidationError<'i>> {
        take(1);
        Ok(())
    }

    fn is_valid(&self, _: CountingNode<'i>) -> bool {
        take(1);
        true
    }
}
