//! The crate as another crate uses it.

mod evidence;
mod kit;
mod labelled;
mod links;
mod properties;
mod report;
mod verdicts;
