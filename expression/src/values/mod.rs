//! The values of an evaluation: borrowed JSON, and values that the expression computes.

mod duration;
mod key;
mod list;
mod number;
mod object;
mod text;
mod timestamp;
mod types;
mod value;

pub(crate) use duration::Duration;
pub(crate) use key::Key;
pub(crate) use list::List;
pub(crate) use number::{Number, compare_numbers, double_text};
pub(crate) use object::{Entries, Object};
pub(crate) use text::{Str, shortened};
pub(crate) use timestamp::Timestamp;
pub(crate) use types::Type;
pub(crate) use value::Value;
