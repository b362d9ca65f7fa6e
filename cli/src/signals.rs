//! Ctrl-C and SIGTERM as calls of a function. The caller decides what stopping means.

use std::io;
use std::thread;

use tokio::runtime::Builder;

/// Calls `stop` on every Ctrl-C and every SIGTERM from now on, on a dedicated thread.
///
/// The handlers are installed when this function returns, thus a signal right afterwards does not end the process.
pub(crate) fn on_signal(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _context = runtime.enter();
        Signals::install()?
    };
    // The thread lives until the process ends, as the signal handlers do.
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(signals.listen(stop)))?;
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn listen(mut self, stop: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => stop(),
                _ = self.terminate.recv() => stop(),
            }
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

    async fn listen(mut self, stop: impl Fn()) {
        while self.0.recv().await.is_some() {
            stop();
        }
    }
}
