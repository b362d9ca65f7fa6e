//! One command from its start to its end.

mod event_loop;
mod output_pipe;
mod poll;
mod pty;
mod signals;
mod start;
mod terminal;

pub use signals::Signals;
pub use start::{Input, Observer, Wires, record};
