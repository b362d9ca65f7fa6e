//! What the runner takes from the system, passed in by the caller: time, randomness, the commit and the request to stop.

pub(crate) mod checkout;
pub(crate) mod clock;
pub(crate) mod interrupt;
pub(crate) mod jitter;
