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
mod steps;
mod waterfall;
mod why;

pub(crate) use page::CasePage;
