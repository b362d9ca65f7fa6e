//! Signals that ask a process to end, as calls of a function. The caller decides what stopping means.

#[cfg(unix)]
use std::future::poll_fn;
use std::io;
#[cfg(unix)]
use std::task::Poll;
use std::thread;

use tokio::runtime::Builder;

/// Calls `stop` on every Ctrl-C and every SIGTERM from now on, on a dedicated thread.
///
/// The handlers are installed when this function returns, thus a signal right afterwards does not end the process.
pub(crate) fn on_signal(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    listen(stop, Signals::install)
}

/// Calls `stop` as [`on_signal`] does, and also on SIGHUP and SIGQUIT (Unix) unless they are ignored, as below `nohup`.
pub(crate) fn on_ending_signal(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    listen(stop, Signals::install_ending)
}

fn listen(stop: impl Fn() + Send + 'static, install: impl FnOnce() -> io::Result<Signals>) -> io::Result<()> {
    // A runtime of this thread alone: the commands use different runtimes, or none.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _context = runtime.enter();
        install()?
    };
    // The thread lives until the process ends, as the signal handlers do.
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(signals.listen(stop)))?;
    Ok(())
}

#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::SignalKind;

        Self::of(&[SignalKind::interrupt(), SignalKind::terminate()])
    }

    fn install_ending() -> io::Result<Self> {
        use tokio::signal::unix::SignalKind;

        let others = [SignalKind::hangup(), SignalKind::quit()];
        let others = others.into_iter().filter(|kind| !counterproof_safe_run::is_ignored(kind.as_raw_value()));
        Self::of(&[SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(others).collect::<Vec<_>>())
    }

    fn of(kinds: &[tokio::signal::unix::SignalKind]) -> io::Result<Self> {
        kinds.iter().map(|kind| tokio::signal::unix::signal(*kind)).collect::<io::Result<_>>().map(Self)
    }

    async fn listen(mut self, stop: impl Fn()) {
        loop {
            poll_fn(|context| {
                // All are polled, so that each of them wakes the task.
                let ready = self.0.iter_mut().map(|signal| signal.poll_recv(context).is_ready());
                if ready.fold(false, |any, ready| any | ready) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            stop();
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn install() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    fn install_ending() -> io::Result<Self> {
        Self::install()
    }

    async fn listen(mut self, stop: impl Fn()) {
        while self.0.recv().await.is_some() {
            stop();
        }
    }
}
