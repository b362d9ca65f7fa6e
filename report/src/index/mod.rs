//! The index page, one file per section, and the lists of cases.

mod case_lists;
mod first_screen;
mod groups;
mod page;
mod rows;
mod runs;
mod search;
mod suites;

pub(crate) use case_lists::CaseLists;
pub(crate) use groups::groups;
pub(crate) use page::IndexPage;
pub(crate) use rows::Rows;
pub(crate) use search::scripts as search_scripts;
pub(crate) use suites::SuitesPage;
