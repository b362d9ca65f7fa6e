//! The index page, one file per section, and the lists of cases.

mod gate;
mod lists;
mod page;

pub(crate) use gate::groups;
pub(crate) use lists::{list_pages, search_scripts};
pub(crate) use page::IndexPage;
