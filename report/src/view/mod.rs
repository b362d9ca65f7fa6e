//! View building blocks that several pages share. A view holds display-ready values for a template.

pub(crate) mod changes;
pub(crate) mod display;
pub(crate) mod escape;
pub(crate) mod text_diff;
pub(crate) mod verdict;
