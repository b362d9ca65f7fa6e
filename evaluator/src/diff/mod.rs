//! Differences, as values: of two JSON values, of two texts, of two lists. What a difference means is decided elsewhere.

pub mod actions;
pub mod align;
pub mod distance;
pub mod events;
pub mod json;
pub mod output;
pub mod text;
