//! Ctrl-C and SIGTERM, turned into requests to stop. What stopping means is decided by whoever is asked.

use std::io;
use std::thread;

use tokio::runtime::Builder;

/// Calls `stop` on every Ctrl-C and every SIGTERM from now on, on a thread of its own.
pub(crate) fn on_signal(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // The thread lives until the process ends, as the signal handlers do.
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen(stop)))?;
    Ok(())
}

#[cfg(unix)]
async fn listen(stop: impl Fn()) {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => stop(),
            _ = terminate.recv() => stop(),
        }
    }
}

#[cfg(not(unix))]
async fn listen(stop: impl Fn()) {
    while tokio::signal::ctrl_c().await.is_ok() {
        stop();
    }
}
