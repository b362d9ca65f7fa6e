//! What the pages and drawings of contracts share: states as words, signs and colours, and the folder of a page.

mod page_folder;
mod state_view;

pub use page_folder::PageError;
pub(crate) use page_folder::PageFolder;
pub(crate) use state_view::StateView;
