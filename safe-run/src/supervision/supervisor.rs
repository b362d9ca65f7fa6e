//! The process above the command: starts it, tells how it fares, and takes down with it all that it started.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};

use super::connection::{Control, Said};
use super::process_setup::{Place, SUPERVISOR, this_program};
use super::{kill_all, launcher};

/// A command under supervision.
#[derive(Debug)]
pub(crate) struct Supervised {
    pub(crate) control: Control,
    pub(crate) process: Child,
}

/// Where the streams of a command come from and go to.
#[derive(Debug)]
pub(crate) struct Streams<'a> {
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Starts a supervisor, which starts the command. Another program than this one has to know how to be one.
pub(crate) fn supervise(
    program: Option<&Path>,
    place: &Place,
    command: &[OsString],
    streams: Streams<'_>,
) -> io::Result<Supervised> {
    let (control, there) = Control::pair()?;
    control.send_descriptor(streams.stdin)?;
    let program = program.map_or_else(this_program, |program| Ok(program.to_owned()))?;
    let mut supervisor = Command::new(program);
    supervisor.arg0(SUPERVISOR).arg(place.word()).args(command).process_group(0);
    supervisor.stdin(Stdio::from(there)).stdout(Stdio::from(streams.stdout)).stderr(Stdio::from(streams.stderr));
    Ok(Supervised { control, process: supervisor.spawn()? })
}

/// Does the work of a supervisor.
pub(super) fn enter(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok(control) = Control::of_stdin() else { return ExitCode::FAILURE };
    let place = Place::of(arguments.next().as_deref());
    match start(&control, &place, arguments) {
        Ok(command) => {
            watch(&control, command);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = control.say(Said::NotStarted(error.raw_os_error().unwrap_or(0)));
            ExitCode::FAILURE
        }
    }
}

fn start(control: &Control, place: &Place, command: impl Iterator<Item = OsString>) -> io::Result<Pid> {
    let stdin = control.receive_descriptor()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Pid::from_raw(1))?;
    let command = launcher::launch(place, std::os::fd::AsFd::as_fd(&stdin), command)?;
    // Not before: what is blocked here would be blocked in the command too. Whoever wants the command to end says so on the
    // connection; a stray signal must not leave it alone.
    let signals = [Blocked::SIGINT, Blocked::SIGTERM, Blocked::SIGHUP, Blocked::SIGQUIT];
    let stops = [Blocked::SIGTSTP, Blocked::SIGTTIN, Blocked::SIGTTOU];
    let _ = signals.into_iter().chain(stops).collect::<SigSet>().thread_block();
    // Only the command shall hold its streams: when it lets go of them, they are at their end.
    let nowhere = File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(command)
}

/// Passes on signals until it is time to finish, or until the one who passes them is gone.
fn watch(control: &Control, command: Pid) {
    let _ = control.say(Said::Started(command.as_raw_nonzero().get()));
    let told = control.try_clone();
    let waiting = thread::spawn(move || {
        if let Ok(told) = told {
            wait(&told, command);
        }
    });
    while let Some(signal) = control.next_signal() {
        if let Some(signal) = Signal::from_named_raw(signal) {
            // The command is not reaped before the end, so the number of its group stays its own.
            let _ = rustix::process::kill_process_group(command, signal);
        }
    }
    let _ = rustix::process::kill_process_group(command, Signal::KILL);
    let _ = waiting.join();
    let _ = control.say(Said::LeftBehind(kill_all(Some(command))));
}

/// Tells each stop of the command and its end, without reaping it, and reaps all others that end meanwhile.
fn wait(control: &Control, command: Pid) {
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        let came = rustix::process::waitid(WaitId::All, any);
        if came.is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        match rustix::process::waitid(WaitId::Pid(command), any | WaitIdOptions::NOHANG) {
            Ok(Some(status)) if status.stopped() => {
                let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                let _ = rustix::process::waitid(WaitId::Pid(command), stopped);
                let _ = control.say(Said::Stopped(status.stopping_signal().unwrap_or(0)));
            }
            Ok(Some(status)) => {
                let _ = control.say(ended(&status));
                return;
            }
            Ok(None) => {
                // Another one, adopted: nobody asks how it fares. Unless the command has ended since we looked.
                let reaped = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED);
                if let Ok(Some((_, status))) = reaped.map(|reaped| reaped.filter(|(reaped, _)| *reaped == command)) {
                    let _ = control.say(match (status.stopping_signal(), status.exit_status()) {
                        (Some(signal), _) => Said::Stopped(signal),
                        (None, Some(code)) => Said::Exited(code),
                        (None, None) => Said::Killed(status.terminating_signal().unwrap_or(0)),
                    });
                    if !status.stopped() {
                        return;
                    }
                }
            }
            Err(_) => return,
        }
    }
}

fn ended(status: &WaitIdStatus) -> Said {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Said::Exited(code),
        (None, signal) => Said::Killed(signal.unwrap_or(0)),
    }
}
