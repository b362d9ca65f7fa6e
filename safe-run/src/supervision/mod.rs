//! The two processes between this program and the command. Both are this program, started again under another name.
//!
//! ```text
//! safe-run ── supervisor ── launcher, which becomes the command ── processes that the command starts
//! ```
//!
//! - The **supervisor** has its own process group and adopts the processes that the command leaves behind
//!   (`PR_SET_CHILD_SUBREAPER` on Linux). When it is asked to finish, or when safe-run is gone, it kills all processes below it.
//!   So no process outlives safe-run, even if safe-run is killed. The command can stop the supervisor: this program continues it,
//!   and kills it with all processes below it if it does not finish in time.
//! - The **launcher** makes settings that only the process itself can make in safe Rust: that the system kills it when the
//!   supervisor dies (`PR_SET_PDEATHSIG`), its terminal, and its signal mask. Then it becomes the command.
//!
//! A program that uses this library gets both as soon as it calls [`enter`] at the start of `main`.

mod connection;
mod descendants;
mod launcher;
mod supervisor;

pub(crate) use connection::{Connection, ENDING, NOTIFYING, Placement, ProcessSetup, Status};
pub(crate) use descendants::{adopt_orphans, kill_descendants, kill_tree};
pub(crate) use launcher::check_possible;
pub use launcher::enter;
pub use supervisor::CommandStreams;
pub(crate) use supervisor::{KILL_TIMEOUT, Supervised, supervise};
