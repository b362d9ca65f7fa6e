//! A request to stop work, for threads, for async code and for commands.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A handle that stops commands and ends waits. Clones are the same handle. It cannot be reset.
///
/// A signal handler must not call [`Cancellation::cancel`], because it takes a lock: call it from a thread that waits for signals.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    cancelled: Condvar,
}

#[derive(Default)]
struct State {
    is_cancelled: bool,
    callbacks: BTreeMap<u64, Box<dyn FnOnce() + Send>>,
    next_callback: u64,
}

impl Cancellation {
    /// Runs all callbacks and ends all waits. Later calls do nothing.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.is_cancelled = true;
        let callbacks = std::mem::take(&mut state.callbacks);
        // Without the lock: a callback may use this handle, or wake code that does.
        drop(state);
        self.0.cancelled.notify_all();
        for callback in callbacks.into_values() {
            callback();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Waits on this thread. Returns false if it was cancelled before the time is over.
    pub fn wait(&self, time: Duration) -> bool {
        // A time that the clock cannot represent has no end.
        let end = Instant::now().checked_add(time);
        let mut state = self.lock();
        while !state.is_cancelled {
            state = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return true,
                Some(left) => self.0.cancelled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.0.cancelled.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        false
    }

    /// Calls `callback` on the thread that cancels, or now if it was cancelled before. Dropping the result removes the callback.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> CancelCallback {
        let mut state = self.lock();
        let id = state.next_callback;
        state.next_callback += 1;
        if state.is_cancelled {
            drop(state);
            callback();
        } else {
            state.callbacks.insert(id, Box::new(callback));
        }
        CancelCallback { cancellation: self.clone(), id }
    }

    /// Returns a future that is ready once this was cancelled, in any async runtime.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { cancellation: self.clone(), waker: None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
#[must_use = "dropping it removes the callback"]
pub struct CancelCallback {
    cancellation: Cancellation,
    id: u64,
}

impl Drop for CancelCallback {
    fn drop(&mut self) {
        let callback = self.cancellation.lock().callbacks.remove(&self.id);
        // Not under the lock: what the callback owns may use the handle when it is dropped.
        drop(callback);
    }
}

#[derive(Debug)]
pub struct Cancelled {
    cancellation: Cancellation,
    waker: Option<CancelCallback>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        // Registered before the check: in the other order, a cancellation between the two would wake nobody.
        self.waker = Some(self.cancellation.on_cancel(move || waker.wake()));
        if self.cancellation.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use std::thread;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

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

    #[test]
    fn a_callback_runs_once_unless_it_was_dropped() {
        let (cancellation, count) = (Cancellation::default(), Arc::new(Count::default()));
        let callback = || {
            let count = Arc::clone(&count);
            cancellation.on_cancel(move || count.wake())
        };
        let _first = callback();
        drop(callback());
        cancellation.cancel();
        cancellation.cancel();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let _late = callback();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_future_is_woken_once_and_is_ready_then() {
        let (cancellation, count) = (Cancellation::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut future = Box::pin(cancellation.cancelled());
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert!(future.as_mut().poll(&mut context).is_pending());
        cancellation.cancel();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(future.as_mut().poll(&mut context).is_ready());
    }
}
