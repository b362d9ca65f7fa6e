//! A request to stop everything that one execution does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A handle that stops commands and ends waits. Clones are the same handle.
///
/// A handler of signals calls [`Cancellation::cancel`]; it must run on a thread, since it takes a lock.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Cancellation {
    /// Stops running commands, prevents further ones, and ends waits.
    pub fn cancel(&self) {
        *self.lock() = true;
        self.0.changed.notify_all();
    }

    /// True after [`Cancellation::cancel`].
    pub fn is_cancelled(&self) -> bool {
        *self.lock()
    }

    /// Waits. Returns false if it was cancelled before the time is over.
    pub fn wait(&self, time: Duration) -> bool {
        // A time that no clock reaches has no end.
        !self.wait_until(Instant::now().checked_add(time), || false)
    }

    /// Waits until a deadline, or until `is_over` is true after [`Cancellation::wake`]. Returns true if it was cancelled.
    pub(super) fn wait_until(&self, deadline: Option<Instant>, is_over: impl Fn() -> bool) -> bool {
        let mut is_cancelled = self.lock();
        loop {
            if *is_cancelled || is_over() {
                return *is_cancelled;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            is_cancelled = match left {
                Some(Duration::ZERO) => return false,
                Some(left) => self.0.changed.wait_timeout(is_cancelled, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.0.changed.wait(is_cancelled).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Makes waits check their conditions again. `change` runs while no wait checks them.
    pub(super) fn wake(&self, change: impl FnOnce()) {
        let lock = self.lock();
        change();
        drop(lock);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.is_cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_wait_ends_when_it_is_cancelled_and_later_waits_do_not_begin() {
        let cancellation = Cancellation::default();
        assert!(cancellation.wait(Duration::from_millis(1)), "the time is over");
        let waiting = cancellation.clone();
        let thread = thread::spawn(move || waiting.wait(Duration::MAX));
        cancellation.cancel();
        assert!(!thread.join().unwrap());
        assert!(!cancellation.wait(Duration::MAX) && cancellation.is_cancelled());
    }
}
