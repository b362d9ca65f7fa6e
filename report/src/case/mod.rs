//! The page of one case, one file per section.

mod actions;
mod anchors;
mod call_outcomes;
mod cells;
mod context;
mod expectations;
mod failures;
mod highlights;
mod output;
mod page;
mod reasons;
mod repeats;
mod replay;
mod root_cause;
mod steps;
mod usage;
mod violations;

pub(crate) use page::CasePage;
