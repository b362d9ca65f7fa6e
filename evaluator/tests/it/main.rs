//! The crate as another crate uses it.

mod cards;
mod codes;
mod error_rates;
mod evidence;
mod expectations;
mod exports;
mod grounding;
mod grounding_labels;
mod history;
mod hostile;
mod kit;
mod labelled;
mod links;
mod properties;
mod repeats;
mod report;
mod report_folder;
mod rules;
mod sarif;
mod severity;
mod signals;
mod usage;
mod verdicts;
mod xml;
