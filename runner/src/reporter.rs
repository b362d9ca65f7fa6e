//! Whoever wants to know what happens during a run. What a reporter shows, and where, is its own business.

use crate::event::RunEvent;

/// Takes the events of a run, on the thread that called [`crate::run()`] and in the order in which they happened.
pub trait Reporter {
    /// Takes one event. The run waits for this to return.
    fn report(&mut self, event: &RunEvent);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _event: &RunEvent) {}
}
