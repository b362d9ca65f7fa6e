//! The process that becomes the command: it takes its place and goes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::fd::BorrowedFd;
use rustix::process::{Pid, Signal};

use super::connection::{Control, Said};
use super::process_setup::{LAUNCHER, Place, Placement, this_program};

/// Starts a launcher with the supervisor's standard output and standard error. Gives the process that is now the command.
pub(super) fn launch(place: &Place, stdin: BorrowedFd<'_>, command: impl Iterator<Item = OsString>) -> io::Result<Pid> {
    let (here, there) = Control::pair()?;
    here.send_descriptor(stdin)?;
    let mut launcher = Command::new(this_program()?);
    launcher.arg0(LAUNCHER).arg(place.word()).arg(std::process::id().to_string()).args(command);
    launcher.stdin(Stdio::from(there));
    if place.placement == Placement::Group {
        launcher.process_group(0);
    }
    let mut child = launcher.spawn()?;
    // The launcher's end is in the launcher alone from here on.
    drop(launcher);
    match here.hear() {
        Some(Said::NotStarted(error)) => {
            let _ = child.wait();
            Err(io::Error::from_raw_os_error(error))
        }
        _ => Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::NotFound.into()),
    }
}

/// Becomes the command, or says why not.
pub(super) fn enter(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok(control) = Control::of_stdin() else { return ExitCode::FAILURE };
    let place = Place::of(arguments.next().as_deref());
    let supervisor = arguments.next();
    let error = become_command(&control, &place, supervisor.as_deref(), arguments);
    let _ = control.say(Said::NotStarted(error.raw_os_error().unwrap_or(0)));
    ExitCode::FAILURE
}

fn become_command(
    control: &Control,
    place: &Place,
    supervisor: Option<&OsStr>,
    mut command: impl Iterator<Item = OsString>,
) -> io::Error {
    let prepare = || -> io::Result<()> {
        die_with_parent(supervisor)?;
        rustix::stdio::dup2_stdin(control.receive_descriptor()?)?;
        if place.placement == Placement::Terminal {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        place.blocked.thread_unblock()?;
        Ok(())
    };
    match (prepare(), command.next()) {
        (Ok(()), Some(program)) => Command::new(program).args(command).exec(),
        (Err(error), _) => error,
        (Ok(()), None) => io::ErrorKind::InvalidInput.into(),
    }
}

/// Has the system kill this process, and the command that it becomes, when the supervisor dies.
#[cfg(target_os = "linux")]
fn die_with_parent(supervisor: Option<&OsStr>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may be dead already, in which case no signal comes.
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().to_string());
    let is_alive = parent.as_deref().map(OsStr::new) == supervisor;
    if is_alive { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_supervisor: Option<&OsStr>) -> io::Result<()> {
    let _ = Signal::KILL;
    Ok(())
}
