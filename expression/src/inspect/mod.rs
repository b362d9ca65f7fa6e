//! Inspects expressions without values: what they read, where a part is never a boolean, and whether they fail without a field.
//!
//! The results are for warnings and errors about texts. They assume that everything else in the expression is as its author expects.

mod absence;
mod never_boolean;
mod outcomes;
mod parts;
mod path;
mod reads;

pub use never_boolean::NeverBoolean;
pub(crate) use parts::parts;
pub use path::Path;
pub use reads::{Read, ReadKind};

pub(crate) use absence::fails_without;
pub(crate) use never_boolean::never_boolean;
pub(crate) use reads::reads;
