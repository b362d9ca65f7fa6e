//! Whoever wants to know what happens during a run. What a reporter shows is its own business; where it goes is its caller's.

mod json_lines;
mod plain;

use crate::event::RunEvent;

pub use json_lines::JsonLines;
pub use plain::Plain;

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
