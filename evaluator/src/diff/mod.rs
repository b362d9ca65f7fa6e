//! Differences, as values: of two JSON values, of two texts, of two lists. What a difference means is decided elsewhere.

pub mod actions;
pub mod align;
pub mod assign;
pub mod distance;
pub(crate) mod elements;
pub mod events;
pub mod json;
mod lcs;
pub mod order;
pub mod output;
pub mod rows;
pub mod sets;
pub(crate) mod steps;
mod table;
pub mod text;
