//! Inspects expressions without values: what they read, where a part is never a boolean, and whether they fail without a field.
//!
//! The results are for warnings and errors about texts. They assume that everything else in the expression is as its author expects.

mod absence;
mod never_boolean;
mod reads;

pub(crate) use absence::fails_without;
pub use never_boolean::NeverBoolean;
pub(crate) use never_boolean::never_boolean;
pub use reads::{Path, Read, ReadKind};
pub(crate) use reads::{parts, reads};
