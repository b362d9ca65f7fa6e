//! Patterns of paths, and the exact answer to whether two of them can match the same path.
//!
//! | pattern | matches |
//! |---|---|
//! | `*` | any characters of one name |
//! | `?` | one character of a name |
//! | `[a-z]`, `[!a-z]` | one character in the set, or not in it |
//! | `{a,b}` | one of the alternatives |
//! | `**` as a whole name | any number of names, also none |
//! | `\x` | the character `x` |
//!
//! The patterns of cases files are other ones: there `*` stands for any characters of a whole name, and nothing else is special.

mod braces;
mod characters;
mod intersection;
mod pattern;

pub(super) use pattern::{PathPattern, PatternError, escape};
