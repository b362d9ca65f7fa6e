//! Differences as values: of two JSON values, two texts, two lists, two answers. Later stages judge what they mean.

pub mod actions;
pub mod align;
pub mod alignment;
pub mod assign;
pub mod counterparts;
mod differences;
pub(crate) mod elements;
pub mod events;
mod fast_equal;
pub mod json;
mod lcs;
pub mod output;
pub(crate) mod pointers;
pub mod rows;
pub mod sets;
pub(crate) mod steps;
mod table;
pub mod text;

pub use differences::{Differences, WithEvidence};
