//! The functions of the language, one file per family. A function takes evaluated arguments and a budget.

mod convert;
mod doubles;
mod encoders;
mod extremes;
mod format;
mod function;
mod lists;
mod search;
mod sizes;
mod table;
mod text;
mod text_builder;
mod time;
mod zones;

pub(crate) use function::{Function, Style};
pub(crate) use table::{exists, find, names};
