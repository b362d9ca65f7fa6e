//! Runs one command from start to end. A single thread waits for both output streams, for signals and for the messages of the
//! supervisor; it captures the output and forwards it.

mod command;
mod deadline;
mod event_loop;
mod input_relay;
mod io;
mod output_pipe;
mod poll;
mod pty;
mod reading;
mod ready;
mod signals;
mod start;
mod state;
mod supervised_command;
mod terminal;

pub use command::Command;
pub use io::{Input, Io, Observer};
pub use signals::{Signals, TakenSignals};
pub use start::{record, record_after_taking};
pub use supervised_command::{CommandSignals, SupervisedCommand};
