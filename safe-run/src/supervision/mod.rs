//! The two processes between this program and the command.

mod connection;
mod descendants;
mod launcher;
mod process_setup;
mod supervisor;

pub(crate) use connection::{Control, Said};
pub(crate) use descendants::kill_all;
pub use process_setup::enter;
pub(crate) use process_setup::{Place, Placement, is_entered};
pub(crate) use supervisor::{Streams, Supervised, supervise};
