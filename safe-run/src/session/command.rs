//! A command that is run to its end within limits: a time, an amount of output, and a cancellation.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::io::{Input, Observer};
use super::signals::{Signals, TakenSignals};
use super::start::{SessionInput, run_session};
use super::state::Limits;
use crate::cancellation::Cancellation;
use crate::options::Options;
use crate::record::{Record, StartError, StopReason};

/// A command and its limits. At the time limit and when it is cancelled, the command gets TERM and has the grace time of the options
/// to end. At the output limit it is killed.
#[derive(Debug)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    pub options: Options,
    pub input: Input,
    pub timeout: Option<Duration>,
    /// Maximum bytes of both streams together.
    pub output_limit: Option<u64>,
    pub cancel: Cancellation,
}

impl Command {
    /// Creates a command without limits, with the standard input of this process.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            options: Options::default(),
            input: Input::Inherited,
            timeout: None,
            output_limit: None,
            cancel: Cancellation::default(),
        }
    }

    /// Runs the command. When this returns, no process of it is left, and [`Record::stopped`] has the limit that ended it.
    pub fn run(self, observer: &mut Observer<'_>) -> Result<Record, StartError> {
        if self.cancel.is_cancelled() {
            return Err(StartError::Cancelled);
        }
        let (signals, received) = Signals::pipe().map_err(StartError::Setup)?;
        let was_cancelled = Arc::new(AtomicBool::new(false));
        let callback = self.cancel.on_cancel({
            let was_cancelled = Arc::clone(&was_cancelled);
            move || {
                was_cancelled.store(true, Ordering::Relaxed);
                signals.send(Signal::SIGTERM as u8);
            }
        });
        let limits = Limits { timeout: self.timeout, output: self.output_limit };
        let input = SessionInput { input: self.input, received, taken: TakenSignals::none(), limits };
        let mut record = run_session(&self.words, &self.options, input, observer)?;
        drop(callback);
        // The session knows the other limits only, and has recorded the first one.
        let cancelled = was_cancelled.load(Ordering::Relaxed).then_some(StopReason::Cancelled);
        record.stopped = record.stopped.or(cancelled);
        Ok(record)
    }
}
