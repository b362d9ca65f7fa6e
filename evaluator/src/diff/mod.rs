//! Differences as values: of two JSON values, two texts, two lists, two answers. Later stages judge what they mean.

pub(crate) mod actions;
pub(crate) mod align;
pub(crate) mod assign;
pub(crate) mod differences;
pub(crate) mod events;
pub(crate) mod item;
pub(crate) mod json;
mod lcs;
pub(crate) mod output;
mod parting;
pub(crate) mod rows;
mod wording;

pub use actions::{ActionRow, EvidenceChange};
pub use align::Row;
pub use differences::{Differences, WithEvidence};
pub(crate) use differences::{EventRole, FirstDifference};
pub use events::EventRow;
pub use json::{ChangeKind, JsonChange, JsonChanges, LocatedValue, diff as diff_json};
pub use output::{LineOrigin, OutputChange, TextChanges, TextLine, TextPart, diff_texts};
pub(crate) use parting::PartedStep;
pub use rows::Operation;
pub use rows::{output_pointers, row_pointers};
