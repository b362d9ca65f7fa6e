//! A reporter that shows nothing.

use crate::event::{Reporter, RunEvent};

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _event: &RunEvent) {}
}
