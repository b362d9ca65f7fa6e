//! The root cause of a difference: from a changed action or output back along its evidence and its values to the earliest
//! difference on that path. `docs/verdicts.md` lists the codes.

mod cause_code;
mod clusters;
mod effect;
mod inquiry;
mod name;
mod relevance;
mod walk;

pub use cause_code::CauseCode;
pub(crate) use clusters::clusters;
pub(crate) use inquiry::{Inquiry, of_answers, of_failures};
