//! The guard of an MCP server that talks over standard input and output: `guard shim`.
//!
//! ```text
//! client ──▶ client_pump ──▶ server        lines as they came, without the refused calls
//! client ◀── server_pump ◀── server        lines as they came, with the answers to refused calls between them
//! ```
//!
//! One thread per direction reads, inspects and forwards bytes. A third waits for the server's process. The main thread waits
//! for what ends the run.

mod client_pump;
mod line_reader;
mod replay_server;
mod server_pump;
mod shim;
#[cfg(test)]
mod tests;

pub use client_pump::{ClientEnd, ClientPump};
use line_reader::LineEnds;
pub use line_reader::{LinePart, LineReader, Piece};
pub use replay_server::{ReplayOptions, run_replay};
pub use server_pump::{ClientOutput, ServerEnd, ServerPump};
pub use shim::{ShimEnd, ShimError, ShimOptions, run_shim};
