//! What the pages and drawings of contracts share: states as words, signs and colours.

mod state_view;

pub(crate) use state_view::StateView;
