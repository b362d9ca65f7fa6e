//! The severity of a case: a score between 0 and 1 that ranks cases for a reader. The gate does not use it.
//!
//! `docs/verdicts.md` has the parts, their weights, and the reasons for both.

mod distances;
mod part;
mod score;
mod told;
mod writes;

pub use part::SeverityPart;
pub(crate) use score::{RepeatRates, SeverityInput, compute};
