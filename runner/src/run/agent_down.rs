//! The flag that the agent looks down, shared by all case runners.

use std::num::NonZeroU32;

use tokio::sync::watch;

/// Set once by the scheduler when the circuit breaker opens, and never cleared. Case runners poll it and wait for it.
#[derive(Debug, Default)]
pub(crate) struct AgentDown(watch::Sender<Option<NonZeroU32>>);

impl AgentDown {
    /// Sets the flag with the number of consecutive failures that opened the circuit breaker.
    pub(crate) fn set(&self, consecutive: NonZeroU32) {
        self.0.send_replace(Some(consecutive));
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the flag is set, and returns the number of consecutive failures.
    pub(crate) async fn wait(&self) -> NonZeroU32 {
        let mut flag = self.0.subscribe();
        // An error would mean that the sender was dropped, but `self` owns it.
        let consecutive = flag.wait_for(Option::is_some).await;
        consecutive.ok().and_then(|consecutive| *consecutive).unwrap_or(NonZeroU32::MIN)
    }
}
