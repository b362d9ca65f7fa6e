//! Keys of computed objects, in the form in which they are compared.

use super::number::Number;
use super::text::Str;
use super::value::Value;

/// A key. Numbers of different types that are equal are one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key<'j> {
    Bool(bool),
    Int(i64),
    /// Only above the range of `Int`.
    Uint(u64),
    String(Str<'j>),
}

impl<'j> Key<'j> {
    /// Returns the key that a value stands for. A number with a fraction and a value of another type are no key.
    pub(crate) fn of(value: &Value<'j>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Key::Bool(*value)),
            Value::String(text) => Some(Key::String(text.clone())),
            other => other.number().and_then(Self::of_number),
        }
    }

    fn of_number(number: Number) -> Option<Self> {
        let whole = number.to_whole()?;
        i64::try_from(whole).map(Key::Int).or_else(|_| u64::try_from(whole).map(Key::Uint)).ok()
    }
}
