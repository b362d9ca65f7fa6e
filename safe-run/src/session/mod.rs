//! Runs one command from start to end. A single thread waits for both output streams, for signals and for the messages of the
//! supervisor; it captures the output and forwards it.

mod event_loop;
mod io;
mod start;
mod streams;
mod supervised_command;
mod terminal;

pub use io::{Io, Signals, TakenSignals};
pub use start::{record, record_after_taking};
pub use supervised_command::{CommandSignals, SupervisedCommand};
