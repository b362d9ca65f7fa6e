//! Starts this program again under another name: the entry of both processes, and the launcher, which becomes the command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::BorrowedFd;
use rustix::process::{Pid, Signal};

use super::connection::{Connection, Placement, ProcessSetup, Status};
use super::{launcher, supervisor};
use crate::options::Options;
use crate::record::StartError;
use crate::signal_actions::keep_exit_statuses;

/// Starts a launcher with the supervisor's standard output and standard error. Returns the process id of the command.
pub(super) fn launch(
    setup: &ProcessSetup,
    stdin: BorrowedFd<'_>,
    command: impl Iterator<Item = OsString>,
) -> io::Result<Pid> {
    let (here, there) = Connection::pair()?;
    let mut launcher = Command::new(this_program()?);
    launcher.arg0(LAUNCHER).arg(setup.to_argument()).arg(std::process::id().to_string()).args(command);
    launcher.stdin(Stdio::from(there));
    // Not for a new session: `setsid` fails in a process that leads a group already.
    if setup.placement == Placement::NewGroup {
        launcher.process_group(0);
    }
    let mut child = launcher.spawn()?;
    // From here on only the launcher holds its end, so the connection closes when it becomes the command.
    drop(launcher);
    // The launcher starts the command only after it has received its input. By then this process can observe the end of the
    // command. It must not change its action for SIGCHLD any earlier: the command inherits an ignored signal from it.
    keep_exit_statuses()?;
    // This fails only if the launcher is gone, which its status reports.
    let _ = here.send_descriptor(stdin);
    // The connection closes when the launcher becomes the command, so the end of the stream means success.
    match here.receive() {
        Some(Status::NotStarted(error)) => {
            let _ = child.wait();
            Err(io::Error::from_raw_os_error(error))
        }
        _ => Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::NotFound.into()),
    }
}

pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok(connection) = Connection::from_stdin() else { return ExitCode::FAILURE };
    let setup = ProcessSetup::from_argument(arguments.next().as_deref());
    let supervisor = arguments.next();
    let error = become_command(&connection, &setup, supervisor.as_deref(), arguments);
    let _ = connection.send(Status::NotStarted(error.raw_os_error().unwrap_or(0)));
    ExitCode::FAILURE
}

fn become_command(
    connection: &Connection,
    setup: &ProcessSetup,
    supervisor: Option<&OsStr>,
    mut command: impl Iterator<Item = OsString>,
) -> io::Error {
    let prepare = || -> io::Result<()> {
        // First, so that no later step can leave a process behind if the supervisor dies.
        die_with_parent(supervisor)?;
        rustix::stdio::dup2_stdin(connection.receive_descriptor()?)?;
        if setup.placement == Placement::NewSession {
            // Only the leader of a session can acquire a controlling terminal.
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        // The signal mask survives `exec`: the command could not be interrupted otherwise.
        setup.blocked.thread_unblock()?;
        Ok(())
    };
    match (prepare(), command.next()) {
        (Ok(()), Some(program)) => Command::new(program).args(command).exec(),
        (Err(error), _) => error,
        (Ok(()), None) => io::ErrorKind::InvalidInput.into(),
    }
}

/// Makes the system kill this process, and thus the command, when the supervisor dies.
#[cfg(target_os = "linux")]
fn die_with_parent(supervisor: Option<&OsStr>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the supervisor died before this call, no signal comes. The parent has changed then.
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().to_string());
    let is_alive = parent.as_deref().map(OsStr::new) == supervisor;
    if is_alive { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_supervisor: Option<&OsStr>) -> io::Result<()> {
    let _ = Signal::KILL;
    Ok(())
}

/// Whether this program has called [`enter`]. A program that has not would run its own `main` as the supervisor.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Runs the supervisor or the launcher if this process was started as one, and returns the exit code. Returns `None` in every
/// other process.
///
/// A program that records commands must call this first in `main`, before it starts a thread.
pub fn enter() -> Option<ExitCode> {
    ENTERED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    if name == SUPERVISOR {
        Some(supervisor::run(arguments))
    } else if name == LAUNCHER {
        Some(launcher::run(arguments))
    } else {
        None
    }
}

pub(crate) fn check_possible(options: &Options) -> Result<(), StartError> {
    if options.supervisor.is_none() && !ENTERED.load(Ordering::Relaxed) {
        return Err(StartError::NotEntered);
    }
    if is_possible() { Ok(()) } else { Err(StartError::NoProc) }
}

/// The program name (`argv[0]`) of the supervisor.
pub(super) const SUPERVISOR: &str = "safe-run: supervisor";

/// The program name (`argv[0]`) of the launcher.
pub(super) const LAUNCHER: &str = "safe-run: launcher";

/// Returns true if [`this_program`] exists. Fails on Linux without `/proc`.
pub(crate) fn is_possible() -> bool {
    !cfg!(target_os = "linux") || this_program().is_ok_and(|program| program.exists())
}

/// Returns a path to this program that stays valid on Linux even if the file was replaced or removed.
pub(super) fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
