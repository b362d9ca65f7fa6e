//! The control room: which contracts need a person, which went wrong, which are done, which run, and which wait.
//!
//! ```text
//! store ─▶ read (tiers, limits) ─▶ ControlRoom ─▶ JSON, to_text; the page is in the crate `report`
//!                                      ▲
//!        evidence of transitions ─▶ item
//! ```
//!
//! The evidence was written by programs of any version, so a field that is missing or has another form is unknown and no error.

mod item;
mod read;
mod text;

pub use item::{
    Attention, AttentionCode, Changes, Command, Item, RollbackSummary, Step, VerificationResult, VerificationSummary,
    millis_between, show as duration,
};
pub use read::{ControlRoom, ControlRoomOptions, Tier, TierList, WorkProcess};
pub use text::changes;
