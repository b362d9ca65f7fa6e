//! Warnings while a guard runs: they never wait for standard error, which may be a full pipe.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use counterproof_artifact::harmless;

/// Most warnings that wait. Further ones are dropped and counted.
const MAX_WAITING: usize = 64;

const LAST_WARNINGS: Duration = Duration::from_secs(1);

/// The pause between two attempts to send the end of the warnings.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Warnings {
    sender: WarningSender,
    /// Receives one value after the last warning.
    written: Receiver<()>,
}

enum Message {
    Warning(String),
    /// All warnings so far are the last ones.
    End,
}

#[derive(Clone)]
pub(super) struct WarningSender {
    messages: SyncSender<Message>,
    /// Number of warnings that were dropped and are not reported yet.
    dropped: Arc<AtomicU64>,
}

impl Warnings {
    pub(super) fn start() -> io::Result<Self> {
        Self::with_output(io::stderr())
    }

    fn with_output(mut output: impl Write + Send + 'static) -> io::Result<Self> {
        let (messages, received) = mpsc::sync_channel(MAX_WAITING);
        let (done, written) = mpsc::channel();
        let sender = WarningSender { messages, dropped: Arc::default() };
        let dropped = sender.dropped.clone();
        thread::Builder::new().name("warnings".to_owned()).spawn(move || {
            // With a closed standard error, a warning cannot be printed.
            let mut print = |text: &str| _ = writeln!(output, "counterproof guard: {}", harmless(text));
            let print_dropped = |print: &mut dyn FnMut(&str)| match dropped.swap(0, Ordering::Relaxed) {
                0 => {}
                count => print(&format!("{count} warnings were dropped, because standard error was not read in time")),
            };
            while let Ok(Message::Warning(message)) = received.recv() {
                print(&message);
                print_dropped(&mut print);
            }
            print_dropped(&mut print);
            // Fails only if `finish` no longer waits.
            let _ = done.send(());
        })?;
        Ok(Self { sender, written })
    }

    pub(super) fn sender(&self) -> WarningSender {
        self.sender.clone()
    }

    /// Waits until the warnings are written, for a bounded time.
    pub(super) fn finish(self) {
        let until = Instant::now() + LAST_WARNINGS;
        // Not `send`, which would wait without a limit while standard error is a full pipe.
        while let Err(TrySendError::Full(_)) = self.sender.messages.try_send(Message::End) {
            if Instant::now() >= until {
                return;
            }
            thread::sleep(PAUSE);
        }
        let _ = self.written.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

impl WarningSender {
    /// Sends a warning, or drops it if too many wait.
    pub(super) fn send(&self, message: &str) {
        // A closed channel is ignored: the thread has ended, and no warning can be printed.
        if let Err(TrySendError::Full(_)) = self.messages.try_send(Message::Warning(message.to_owned())) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn into_function(self) -> Box<dyn Fn(&str) + Send + Sync> {
        Box::new(move |message| self.send(message))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An output that nothing reads until it is released.
    #[derive(Clone, Default)]
    struct Blocked(Arc<Mutex<Vec<u8>>>);

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn dropped_warnings_are_counted() {
        let output = Blocked::default();
        let blocked = output.0.lock().unwrap();
        let warnings = Warnings::with_output(output.clone()).unwrap();
        (0..200).for_each(|number| warnings.sender().send(&format!("problem {number}")));
        drop(blocked);
        warnings.finish();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let printed = text.lines().filter(|line| line.contains("problem")).count();
        let dropped: usize = text
            .lines()
            .filter_map(|line| line.strip_prefix("counterproof guard: ")?.split_once(" warnings were dropped"))
            .map(|(count, _)| count.parse::<usize>().unwrap())
            .sum();
        assert!(printed >= MAX_WAITING && printed + dropped == 200, "{text}");
    }

    #[test]
    fn an_output_that_nothing_reads_does_not_delay_the_end_for_long() {
        let output = Blocked::default();
        let _blocked = output.0.lock().unwrap();
        let warnings = Warnings::with_output(output.clone()).unwrap();
        (0..200).for_each(|number| warnings.sender().send(&format!("problem {number}")));
        warnings.finish();
    }
}
