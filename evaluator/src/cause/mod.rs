//! The root cause of a difference: from a changed action or output back along its evidence and its values to the earliest
//! difference on that path. `docs/verdicts.md` lists the codes.

mod clusters;
mod effect;
mod inquiry;
mod name;
mod walk;

pub use clusters::clusters;
pub use inquiry::{Inquiry, of_answers, of_failures};
