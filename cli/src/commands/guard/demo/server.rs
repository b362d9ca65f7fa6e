//! `counterproof guard demo-server`: the MCP server of the demo.

use std::io;

use counterproof_artifact::Exit;
use counterproof_demo::{ServerEnd, serve_tools};

use crate::command_error::CommandError;

/// Serve the tools of the demo over standard input and output.
///
/// Exit code 0: the client closed its end. 1: the planted fault. 3: a message could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {}

/// Runs the command.
pub(crate) fn serve() -> Result<Exit, CommandError> {
    match serve_tools(io::stdin().lock(), io::stdout().lock()).map_err(CommandError::io)? {
        ServerEnd::Closed => Ok(Exit::Done),
        ServerEnd::Crashed => Ok(Exit::Findings),
    }
}
