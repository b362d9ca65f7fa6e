//! Warnings while a guard runs: they never wait for standard error, which may be a full pipe.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use counterproof_artifact::harmless;

/// Most warnings that wait. Further ones are dropped.
const MAX_WAITING: usize = 64;

/// How long the last warnings may take.
const LAST_WARNINGS: Duration = Duration::from_secs(1);

/// A thread that writes warnings to standard error.
pub(super) struct Warnings {
    sender: SyncSender<Message>,
    /// Receives one value after the last warning.
    written: Receiver<()>,
}

/// What the thread receives.
enum Message {
    Warning(String),
    /// All warnings so far are the last ones.
    End,
}

/// Sends warnings from any thread.
#[derive(Clone)]
pub(super) struct WarningSender(SyncSender<Message>);

impl Warnings {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, messages) = mpsc::sync_channel(MAX_WAITING);
        let (done, written) = mpsc::channel();
        thread::Builder::new().name("warnings".to_owned()).spawn(move || {
            while let Ok(Message::Warning(message)) = messages.recv() {
                // With a closed standard error, the warning cannot be printed.
                let _ = writeln!(io::stderr(), "counterproof guard: {}", harmless(&message));
            }
            let _ = done.send(());
        })?;
        Ok(Self { sender, written })
    }

    /// Returns a sender.
    pub(super) fn sender(&self) -> WarningSender {
        WarningSender(self.sender.clone())
    }

    /// Waits until the warnings are written, for a bounded time.
    pub(super) fn finish(self) {
        if self.sender.try_send(Message::End).is_ok() {
            let _ = self.written.recv_timeout(LAST_WARNINGS);
        }
    }
}

impl WarningSender {
    /// Sends a warning, or drops it if too many wait.
    pub(super) fn send(&self, message: &str) {
        let _ = self.0.try_send(Message::Warning(message.to_owned()));
    }

    /// Returns [`Self::send`] as a function.
    pub(super) fn into_function(self) -> Box<dyn Fn(&str) + Send + Sync> {
        Box::new(move |message| self.send(message))
    }
}
