//! The differences between two policies, by meaning: defaults are filled in, and the order within lists of conditions does not
//! matter.

mod changes;
mod effective;
mod policy_diff;

pub use policy_diff::{FieldChange, PolicyDiff, RuleChange, diff};
