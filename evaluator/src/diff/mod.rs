//! Differences as values: of two JSON values, two texts, two lists, two answers. Later stages judge what they mean.

pub(crate) mod actions;
pub(crate) mod align;
pub(crate) mod alignment_summary;
pub(crate) mod assign;
pub(crate) mod compared;
pub(crate) mod counterparts;
mod differences;
mod divergence;
pub(crate) mod elements;
pub(crate) mod events;
mod fast_equal;
pub(crate) mod json;
mod lcs;
pub(crate) mod output;
mod part;
pub(crate) mod pointers;
pub(crate) mod rows;
pub(crate) mod sets;
pub(crate) mod steps;
mod table;
pub mod text;

pub use actions::{ActionRow, EvidenceChange};
pub use align::Row;
pub use differences::{Differences, WithEvidence};
pub(crate) use divergence::{EventRole, FirstDifference};
pub use events::EventRow;
pub use json::{ChangeKind, JsonChange, JsonChanges, LocatedValue, diff as diff_json};
pub use output::OutputChange;
pub use pointers::{output_pointers, row_pointers};
pub use rows::Operation;
pub use text as text_diff;
