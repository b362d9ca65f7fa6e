//! Rules of comparison: the values that are ignored, or that need not be literally equal.
//!
//! A rule selects values by the tool or the event type that they belong to and by a pattern of their JSON Pointer, and
//! states how they are compared. It acts in two ways: on a [`view`] of each value, which decides the pairing, and on the
//! difference itself, whose pointers and values stay the original ones. `docs/configuration.md` describes how rules are
//! written, `docs/verdicts.md` what they do.

mod config;
mod forms;
mod rule;

pub use config::{RuleError, RuleProblem, RuleTables};
pub use forms::Renaming;
pub(crate) use rule::coarse_view;
pub use rule::{InvalidPattern, Scope};
pub use rule::{Notes, view};
pub use rule::{Rules, Subject};
