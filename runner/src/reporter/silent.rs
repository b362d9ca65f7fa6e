//! A reporter that ignores all events.

use crate::event::{Reporter, RunEvent};

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _event: &RunEvent) {}
}
