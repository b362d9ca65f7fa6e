//! The root cause of a difference: from a changed action or output back along its evidence and its values to the earliest
//! difference on that path. `docs/verdicts.md` lists the codes.

mod order;
mod root_cause;
mod walk;

pub use root_cause::CauseCode;
pub(crate) use root_cause::clusters;
pub(crate) use root_cause::{input_changed_message, of_answers, of_failures};
pub(crate) use walk::Inquiry;
