//! The supervisor: starts the command, reports its status, and kills all of its descendants at the end.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};

use super::connection::Connection;
use super::connection::ProcessSetup;
use super::connection::Status;
use super::connection::{ENDING, NOTIFYING};
use super::descendants::kill_descendants;
use super::launcher;
use super::launcher::{SUPERVISOR, this_program};
use crate::options::Options;

#[derive(Debug)]
pub(crate) struct Supervised {
    pub(crate) connection: Connection,
    pub(crate) process: Child,
}

#[derive(Debug)]
pub struct CommandStreams<'a> {
    /// Standard input. The command receives a duplicate, so the caller should close its own.
    pub stdin: BorrowedFd<'a>,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

/// Starts a supervisor, which starts the command. The supervisor has the working directory and the environment of the options,
/// and the command inherits both.
pub(crate) fn supervise(
    options: &Options,
    setup: &ProcessSetup,
    command: &[OsString],
    streams: CommandStreams<'_>,
) -> io::Result<Supervised> {
    let (connection, there) = Connection::pair()?;
    connection.send_descriptor(streams.stdin)?;
    // Absolute, because a relative path would be searched in the working directory of the command.
    let program = options.supervisor.as_ref().map_or_else(this_program, std::path::absolute)?;
    let mut supervisor = Command::new(program);
    if let Some(folder) = &options.working_directory {
        supervisor.current_dir(folder);
    }
    for (name, value) in &options.environment {
        match value {
            Some(value) => supervisor.env(name, value),
            None => supervisor.env_remove(name),
        };
    }
    // A process group of its own, so that the keys of the terminal and signals to the group of safe-run do not reach it.
    supervisor.arg0(SUPERVISOR).arg(setup.to_argument()).args(command).process_group(0);
    supervisor.stdin(Stdio::from(there)).stdout(Stdio::from(streams.stdout)).stderr(Stdio::from(streams.stderr));
    let process = supervisor.spawn()?;
    // Without the thread, a stopped supervisor is killed at the end like one that does not answer.
    let id = Pid::from_child(&process);
    let _ = thread::Builder::new().name("supervisor".to_owned()).spawn(move || continue_when_stopped(id));
    Ok(Supervised { connection, process })
}

/// How long the supervisor may take to kill all processes, before it is killed together with them.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Continues the supervisor when the command has stopped it, until it has ended. Does not reap it.
fn continue_when_stopped(supervisor: Pid) {
    let stopped = WaitIdOptions::STOPPED;
    loop {
        match rustix::process::waitid(WaitId::Pid(supervisor), stopped | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {
            Ok(Some(status)) if status.stopped() => {
                // The stop is consumed, or the next wait would return it again.
                let _ = rustix::process::waitid(WaitId::Pid(supervisor), stopped | WaitIdOptions::NOHANG);
                let _ = rustix::process::kill_process(supervisor, Signal::CONT);
                // A command that stops it again and again must not keep this thread busy.
                thread::sleep(Duration::from_millis(1));
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok(connection) = Connection::from_stdin() else { return ExitCode::FAILURE };
    let setup = ProcessSetup::from_argument(arguments.next().as_deref());
    match start(&connection, &setup, arguments) {
        Ok(command) => {
            supervise_until_finished(&connection, command);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = connection.send(Status::NotStarted(error.raw_os_error().unwrap_or(0)));
            ExitCode::FAILURE
        }
    }
}

fn start(connection: &Connection, setup: &ProcessSetup, command: impl Iterator<Item = OsString>) -> io::Result<Pid> {
    let stdin = connection.receive_descriptor()?;
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Pid::from_raw(1))?;
        // If safe-run is killed while this process is stopped, no other process would continue it.
        rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    }
    let command = launcher::launch(setup, std::os::fd::AsFd::as_fd(&stdin), command)?;
    // Signals are blocked after the launch, because the command would inherit the mask. Requests to end arrive over the
    // connection; a stray signal must not end the supervisor and leave the command unsupervised.
    let stops = [Blocked::SIGTSTP, Blocked::SIGTTIN, Blocked::SIGTTOU];
    let _ = ENDING.into_iter().chain(NOTIFYING).chain(stops).collect::<SigSet>().thread_block();
    // The supervisor must not hold the streams of the command, or they would never be at their end.
    let nowhere = File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(command)
}

/// Forwards signals until safe-run asks to finish or is gone, and kills what is left.
fn supervise_until_finished(connection: &Connection, command: Pid) {
    let _ = connection.send(Status::Started(command.as_raw_nonzero().get()));
    // A thread of its own reports, because `waitid` and a read from the connection cannot be awaited together.
    let reporter = connection.try_clone();
    let waiting = thread::spawn(move || {
        if let Ok(reporter) = reporter {
            report_status(&reporter, command);
        }
    });
    while let Some(signal) = connection.receive_signal() {
        if let Some(signal) = Signal::from_named_raw(signal) {
            // The command is not reaped before the end, so its process group id cannot be reused.
            let _ = rustix::process::kill_process_group(command, signal);
        }
    }
    // The reporting thread returns only after the end of the command, so the command is killed before the join.
    let _ = rustix::process::kill_process_group(command, Signal::KILL);
    let _ = waiting.join();
    let _ = connection.send(Status::LeftBehind(kill_descendants(Some(command))));
}

/// Reports each stop of the command and its end, without reaping it. Reaps every other child that ends.
fn report_status(connection: &Connection, command: Pid) {
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        // NOWAIT leaves every child unreaped, so this wait cannot take the status of the command.
        let changed = rustix::process::waitid(WaitId::All, any);
        if changed.is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        match rustix::process::waitid(WaitId::Pid(command), any | WaitIdOptions::NOHANG) {
            Ok(Some(status)) if status.stopped() => {
                // A stop is consumed, or the next wait would return it again. An ending is not: it reserves the process id.
                let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                let _ = rustix::process::waitid(WaitId::Pid(command), stopped);
                let _ = connection.send(Status::Stopped(status.stopping_signal().unwrap_or(0)));
            }
            Ok(Some(status)) => {
                let _ = connection.send(ending(&status));
                return;
            }
            Ok(None) => {
                // An adopted child has changed, which is not reported. The command itself may have changed since the last
                // call, so its status is not lost here.
                let reaped = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED);
                if let Ok(Some((_, status))) = reaped.map(|reaped| reaped.filter(|(reaped, _)| *reaped == command)) {
                    let _ = connection.send(match (status.stopping_signal(), status.exit_status()) {
                        (Some(signal), _) => Status::Stopped(signal),
                        (None, Some(code)) => Status::Exited(code),
                        (None, None) => Status::Killed(status.terminating_signal().unwrap_or(0)),
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

fn ending(status: &WaitIdStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Exited(code),
        (None, signal) => Status::Killed(signal.unwrap_or(0)),
    }
}
