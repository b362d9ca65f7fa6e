//! The wish that everything ends: whoever listens for signals says so, and the trials that run look at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A wish to end that its copies share.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Says that all trials shall end. What runs is killed, and no other is begun.
    pub fn trigger(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once it was said.
    pub fn is_triggered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
