//! The control room: which contracts need a person, which went wrong, which are done, which run, and which wait.
//!
//! ```text
//! store ─▶ read (tiers, limits) ─▶ ControlRoom ─▶ JSON, to_text; the page is in the crate `report`
//!                                      ▲
//!        evidence of transitions ─▶ item
//! ```
//!
//! The evidence was written by programs of any version, so a field that is missing or has another form is unknown and no error.

mod duration;
mod evidence;
mod item;
mod model;
mod options;
mod read;
mod text;
mod work_process;

pub use duration::{millis_between, show as duration};
pub use evidence::{Changes, MAX_TEXT, RollbackSummary, VerificationResult, VerificationSummary};
pub use item::{Attention, AttentionCode, Command, Item};
pub use model::{ControlRoom, Tier, TierList};
pub use options::ControlRoomOptions;
pub use text::changes;
pub use work_process::WorkProcess;
