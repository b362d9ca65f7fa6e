//! A command that prepares the folder of an agent and runs to its end.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_redaction::RedactError;
use counterproof_safe_run::{Ending, StartError};
use counterproof_store::write::WriteError;

use super::output::Output;
use super::running_agent::{LastLines, StartContext, redactor, supervised};
use crate::environment::Urgency;
use crate::settings::AgentCommand;

/// How long the command may take to end after TERM, before it is killed.
const GRACE: Duration = Duration::from_secs(1);

/// Why the preparation of a folder failed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The program could not be started.
    #[error("`setup` could not be started")]
    NotStarted(#[source] StartError),
    /// The command failed.
    #[error("`setup` ended with {ending}{}", LastLines(lines, log))]
    Failed {
        /// How it ended.
        ending: Ending,
        /// The last lines of its output, masked.
        lines: Vec<String>,
        /// The file with its output.
        log: Utf8PathBuf,
    },
    /// The file for the output could not be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A secret cannot be masked.
    #[error(transparent)]
    Secret(#[from] RedactError),
    /// The system provides no temporary file.
    #[error("cannot start `setup`")]
    System(#[source] io::Error),
    /// The command was interrupted.
    #[error("interrupted during `setup`")]
    Interrupted,
}

/// Runs a command to its end, and saves its output.
pub fn run_setup(command: &AgentCommand, context: &StartContext) -> Result<(), SetupError> {
    let command = command.clone().unbuffered();
    let interrupt = &context.interrupt;
    let output = Output::create(&context.log, redactor(&command, context, &[])?, None)?;
    let run =
        supervised(&command, context, interrupt.at(Urgency::Finish).clone(), GRACE).map_err(SetupError::System)?;
    let ended = run.run(&mut |stream, _, bytes| output.push(stream, bytes));
    output.end(ended.map(|record| record.ending));
    match output.ending() {
        _ if interrupt.reached(Urgency::Finish) => Err(SetupError::Interrupted),
        None | Some(Ok(Ending::Exited(0))) => Ok(()),
        Some(Ok(ending)) => Err(SetupError::Failed { ending, lines: output.last_lines(), log: context.log.clone() }),
        Some(Err(error)) => Err(SetupError::NotStarted(error)),
    }
}
