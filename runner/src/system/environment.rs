//! Everything that a run takes from its surroundings, in one value.

use std::sync::Arc;

use super::checkout::Checkout;
use super::clock::{Clock, SystemClock};
use super::interrupt::Interrupt;
use super::jitter::Jitter;

/// The clock, randomness, checkout and stop handle of a run.
pub struct Environment {
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of the random part of waits.
    pub jitter: Jitter,
    /// The checked-out commit, for `run.json`.
    pub checkout: Option<Checkout>,
    /// The handle that stops the run.
    pub interrupt: Interrupt,
}

impl Environment {
    /// Creates an environment with the real clock and real randomness, and without a checkout.
    pub fn from_system() -> Self {
        Self {
            clock: Arc::new(SystemClock::start()),
            jitter: Jitter::from_system(),
            checkout: None,
            interrupt: Interrupt::default(),
        }
    }
}
