//! What a run is asked to do, in values that are already checked.

pub(crate) mod endpoint;
pub(crate) mod run_settings;
pub(crate) mod secret;
pub(crate) mod target;
