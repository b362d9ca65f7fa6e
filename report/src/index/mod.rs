//! The index page, one file per section, and the lists of cases.

mod case_row;
mod gate;
mod lists;
mod page;
mod root_causes;
mod runs;
mod search;
mod usage_columns;

pub(crate) use lists::pages as list_pages;
pub(crate) use page::IndexPage;
pub(crate) use root_causes::groups;
pub(crate) use search::scripts as search_scripts;
