//! The crate as another crate uses it.

mod kit;
mod properties;
mod verdicts;
