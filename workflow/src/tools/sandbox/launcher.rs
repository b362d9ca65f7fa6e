//! Starts this program again, between safe-run's supervisor and a command: it restricts itself, and becomes the command.
//!
//! So the supervisor is outside of the sandbox, and the command cannot send it a signal.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

use super::command::SandboxedCommand;
use super::kind::SandboxError;
use super::landlock::{CommandAccess, restrict};

/// The first argument of a launcher. The access and the command follow.
const LAUNCHER: &str = "counterproof: launch in a sandbox";

/// The exit code if the command was not started.
const NOT_STARTED: u8 = 125;

/// Whether this program has called [`enter`]. A program that has not would run its own `main` as the launcher.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Runs the supervisor or the launcher of a command if this process was started as one, and returns the exit code. Returns
/// `None` in every other process.
///
/// A program that runs commands in a sandbox must call this first in `main`, in place of safe-run's function of this name.
pub fn enter() -> Option<ExitCode> {
    ENTERED.store(true, Ordering::Relaxed);
    counterproof_safe_run::enter().or_else(|| launch(std::env::args_os().skip(1)))
}

/// Returns the words before the command itself.
pub(super) fn words(command: &SandboxedCommand) -> Result<Vec<OsString>, SandboxError> {
    let program = match &command.supervisor {
        // A relative path would be searched in the workspace.
        Some(program) => std::path::absolute(program).unwrap_or_else(|_| program.clone()),
        None if ENTERED.load(Ordering::Relaxed) => PathBuf::from("/proc/self/exe"),
        None => return Err(SandboxError::NotEntered),
    };
    let access = CommandAccess {
        writable: vec![command.workspace.clone(), command.private.clone()],
        readable: command.readable.clone(),
        tcp_ports: command.tcp_ports.clone(),
    };
    Ok(vec![program.into(), LAUNCHER.into(), serde_json::json!(access).to_string().into()])
}

/// Becomes a command. Returns only in a process that is not a launcher, and if the command cannot be started.
fn launch(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != LAUNCHER {
        return None;
    }
    let access = arguments.next().unwrap_or_default();
    let restricted = serde_json::from_slice(access.as_encoded_bytes()).map(|access: CommandAccess| restrict(&access));
    let problem = match (restricted, arguments.next()) {
        (Ok(Ok(())), Some(program)) => Command::new(program).args(arguments).exec().to_string(),
        (Ok(Ok(())), None) => "no program is given".to_owned(),
        (Ok(Err(error)), _) => error.to_string(),
        (Err(error), _) => error.to_string(),
    };
    // The standard error of the command, which has not started.
    let _ = writeln!(std::io::stderr(), "cannot start the command in a sandbox: {problem}");
    Some(ExitCode::from(NOT_STARTED))
}
