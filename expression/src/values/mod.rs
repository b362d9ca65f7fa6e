//! The values of an evaluation: borrowed JSON, and values that the expression computes.

mod containers;
mod number;
mod time;
mod value;

pub(crate) use containers::{Entries, List, Object, Str, shortened};
pub(crate) use number::{Key, Number, compare_numbers, double_text};
pub(crate) use time::{Duration, Timestamp};
pub(crate) use value::{Type, Value};
