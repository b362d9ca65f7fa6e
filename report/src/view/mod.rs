//! View building blocks that several pages share. A view holds display-ready values for a template.

pub(crate) mod changes;
pub(crate) mod display;
pub(crate) mod verdict;
pub(crate) mod word;
