//! The crate as another crate uses it.

mod evidence;
mod kit;
mod labelled;
mod links;
mod nights;
mod properties;
mod repeats;
mod report;
mod rules;
mod verdicts;
