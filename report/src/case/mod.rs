//! The page of one case, one file per section.

mod actions;
mod answer_card;
mod answer_text;
mod arguments;
mod cells;
mod chat;
mod context;
mod failures;
mod issue_text;
mod output;
mod page;
mod reasons;
mod repeats;
mod run_picker;
mod steps;
mod waterfall;
mod why;

pub(crate) use context::{action, event, failure};
pub(crate) use page::CasePage;
pub(crate) use run_picker::{PickerInput, RunPicker, view as run_picker};
