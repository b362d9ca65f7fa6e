//! The handle that stops a run. The caller decides when to use it, for example on a signal.

use std::sync::Arc;

use tokio::sync::watch;

/// How urgently a run must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Urgency {
    /// The run continues.
    #[default]
    Run,
    /// Start no further case; attempts in flight may finish.
    Finish,
    /// Abandon attempts in flight.
    Abandon,
}

/// A handle that stops a run from another thread. Clones stop the same run.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<watch::Sender<Urgency>>);

impl Interrupt {
    /// Stops the run after the attempts in flight. A second call abandons those too.
    pub fn trigger(&self) {
        self.raise(if self.reached(Urgency::Finish) { Urgency::Abandon } else { Urgency::Finish });
    }

    /// Raises the urgency. It never decreases.
    pub(crate) fn raise(&self, urgency: Urgency) {
        self.0.send_if_modified(|now| {
            let higher = urgency > *now;
            *now = urgency.max(*now);
            higher
        });
    }

    /// Reports whether the urgency is at least this high.
    pub fn reached(&self, urgency: Urgency) -> bool {
        *self.0.borrow() >= urgency
    }

    /// Waits until the urgency is at least this high.
    pub(crate) async fn wait_for(&self, urgency: Urgency) {
        // An error would mean that the sender was dropped, but `self` owns it.
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
