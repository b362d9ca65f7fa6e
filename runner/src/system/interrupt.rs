//! Being asked to stop. Who asks, and on which signal, is the program's business.

use std::sync::Arc;

use tokio::sync::watch;

/// How urgently a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Urgency {
    /// Not at all.
    #[default]
    Run,
    /// Start no case any more; what is in flight may end.
    Finish,
    /// Leave what is in flight.
    Abandon,
}

/// A handle to stop a run from another thread. Clones stop the same run.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<watch::Sender<Urgency>>);

impl Interrupt {
    /// Asks the run to stop. A second call is taken as impatience: what is in flight is left.
    pub fn trigger(&self) {
        self.raise(if self.reached(Urgency::Finish) { Urgency::Abandon } else { Urgency::Finish });
    }

    /// Raises the urgency; it never falls.
    pub(crate) fn raise(&self, urgency: Urgency) {
        self.0.send_if_modified(|now| {
            let higher = urgency > *now;
            *now = urgency.max(*now);
            higher
        });
    }

    /// True once the urgency is that high.
    pub fn reached(&self, urgency: Urgency) -> bool {
        *self.0.borrow() >= urgency
    }

    /// Waits until the urgency is that high.
    pub(crate) async fn wait_for(&self, urgency: Urgency) {
        // The sender lives as long as `self`, so this cannot end early.
        let _ = self.0.subscribe().wait_for(|now| *now >= urgency).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_finishes_and_the_second_abandons() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.reached(Urgency::Finish));
        interrupt.clone().trigger();
        assert!(interrupt.reached(Urgency::Finish) && !interrupt.reached(Urgency::Abandon));
        interrupt.trigger();
        interrupt.raise(Urgency::Finish);
        assert!(interrupt.reached(Urgency::Abandon));
    }
}
