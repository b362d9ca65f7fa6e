//! The page of one case, one file per section.

mod actions;
mod cells;
mod context;
mod failures;
mod output;
mod page;
mod reasons;
mod repeats;
mod steps;

pub(crate) use page::CasePage;
