//! The functions of the language, one file per family. A function takes evaluated arguments and a budget.

mod convert;
mod format;
mod lists;
mod numbers;
mod table;
mod text;
mod time;

pub(crate) use table::{Function, Style, exists, find, names};
