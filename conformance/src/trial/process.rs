//! Runs the process of a trial: writes its input, sends its signal, and reads its output to the end.
//!
//! The process may itself be an implementation of safe-run, so the library of safe-run does not supervise it: see the
//! documentation of the crate. On Unix, the process has its own process group. If the trial fails, exceeds the time
//! limit or is cancelled, the process is killed together with this group.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;

use super::execution::ProcessError;
use crate::vectors::Signal;
use counterproof_safe_run::Cancellation;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessOptions<'a> {
    /// The text for standard input; `None` leaves the input of the command unchanged.
    pub(super) stdin: Option<&'a str>,
    /// The signal to send, and the file whose existence means that the process is ready for it.
    pub(super) signal: Option<(Signal, &'a Utf8Path)>,
    pub(super) time_limit: Duration,
    pub(super) cancellation: &'a Cancellation,
}

struct Limits<'a> {
    options: &'a ProcessOptions<'a>,
    deadline: Instant,
}

impl Limits<'_> {
    fn check(&self) -> Result<(), ProcessError> {
        if self.options.cancellation.is_cancelled() {
            return Err(ProcessError::Interrupted);
        }
        if Instant::now() > self.deadline {
            return Err(ProcessError::Timeout(self.options.time_limit));
        }
        Ok(())
    }
}

pub(super) fn run(mut command: Command, options: &ProcessOptions<'_>) -> Result<Output, ProcessError> {
    if options.stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|source| {
        let program = command.get_program().to_string_lossy().into_owned();
        ProcessError::Start { program, source }
    })?;
    let output = wait(&mut child, options);
    if output.is_err() {
        kill(&mut child);
    }
    output
}

fn wait(child: &mut Child, options: &ProcessOptions<'_>) -> Result<Output, ProcessError> {
    // One deadline for reading and for waiting: each of them on its own could take the whole limit.
    let limits = Limits { options, deadline: Instant::now() + options.time_limit };
    if let (Some(text), Some(mut stdin)) = (options.stdin, child.stdin.take()) {
        let text = text.to_owned();
        // A program may ignore its input. The thread then blocks, so it is not joined.
        thread::spawn(move || stdin.write_all(text.as_bytes()));
    }
    // Both streams are read in threads: a program that fills one pipe would block while the other is read.
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    if let Some((signal, ready)) = options.signal {
        wait_until_ready(ready, child, &limits)?;
        send(child, signal)?;
    }
    let receive = |stream: Receiver<io::Result<Vec<u8>>>| loop {
        match stream.recv_timeout(POLL_INTERVAL) {
            Ok(read) => return read.map_err(ProcessError::Output),
            Err(RecvTimeoutError::Timeout) => limits.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ProcessError::Output(io::Error::other("the reading thread has panicked")));
            }
        }
    };
    // The streams end before the process is reaped. A descendant that holds them open counts against the time limit.
    let (stdout, stderr) = (receive(stdout)?, receive(stderr)?);
    loop {
        if let Some(status) = child.try_wait().map_err(ProcessError::Wait)? {
            return Ok(Output { status, stdout, stderr });
        }
        limits.check()?;
        options.cancellation.wait(POLL_INTERVAL);
    }
}

fn read(stream: Option<impl Read + Send + 'static>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        // The receiver is gone if the time limit has passed.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn wait_until_ready(ready: &Utf8Path, child: &mut Child, limits: &Limits<'_>) -> Result<(), ProcessError> {
    while !ready.exists() {
        // A program that ends early never becomes ready, and waiting for the limit would only delay the report.
        if has_ended(child)? || limits.check().is_err() {
            return Err(ProcessError::NotReady);
        }
        limits.options.cancellation.wait(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(unix)]
fn has_ended(child: &Child) -> Result<bool, ProcessError> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    // Without reaping the child, so that its id and its process group id cannot be reused yet.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(process_id(child).map_err(ProcessError::Wait)?), options);
    Ok(status.map_err(|error| ProcessError::Wait(error.into()))?.is_some())
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> Result<bool, ProcessError> {
    Ok(child.try_wait().map_err(ProcessError::Wait)?.is_some())
}

#[cfg(unix)]
fn process_id(child: &Child) -> io::Result<rustix::process::Pid> {
    rustix::process::Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(unix)]
fn send(child: &Child, signal: Signal) -> Result<(), ProcessError> {
    let signal = match signal {
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Int => rustix::process::Signal::INT,
        Signal::Hup => rustix::process::Signal::HUP,
        Signal::Quit => rustix::process::Signal::QUIT,
    };
    let process = process_id(child).map_err(ProcessError::Signal)?;
    rustix::process::kill_process(process, signal).map_err(|error| ProcessError::Signal(error.into()))
}

#[cfg(not(unix))]
fn send(_child: &Child, _signal: Signal) -> Result<(), ProcessError> {
    Err(ProcessError::Signal(io::ErrorKind::Unsupported.into()))
}

/// Kills the program and its process group, and reaps the program. Processes that have left the group survive.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    // The group first: once the child is reaped, its id may belong to others.
    if let Ok(group) = process_id(child) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn input_is_written_while_output_is_read() {
        let text = "0123456\n".repeat(1 << 20);
        let options = ProcessOptions {
            stdin: Some(&text),
            signal: None,
            time_limit: MINUTE,
            cancellation: &Cancellation::default(),
        };
        let output = run(Command::new("cat"), &options).unwrap();
        assert!(output.stdout == text.as_bytes(), "{} bytes", output.stdout.len());
    }

    #[test]
    fn a_program_that_never_reads_its_input_is_killed_at_the_time_limit() {
        let mut command = Command::new("sleep");
        command.arg("300");
        let text = "0123456\n".repeat(1 << 20);
        let options = ProcessOptions {
            stdin: Some(&text),
            signal: None,
            time_limit: Duration::from_secs(1),
            cancellation: &Cancellation::default(),
        };
        assert_eq!(run(command, &options).unwrap_err().to_string(), "the program did not end within 1 s");
    }

    /// Returns the error of a script, and what a process that it left behind has printed later.
    fn left_behind(
        script: &str,
        signal: Option<(Signal, &Utf8Path)>,
        time_limit: Duration,
    ) -> io::Result<(String, String)> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec 3>&0; (sleep 20; echo alive >&3) & {script}")).stdin(writer);
        let error =
            run(command, &ProcessOptions { stdin: None, signal, time_limit, cancellation: &Cancellation::default() });
        let error = error.err().map(|error| error.to_string()).unwrap_or_default();
        Ok((error, io::read_to_string(reader)?))
    }

    #[test]
    fn a_program_that_exceeds_the_time_limit_is_killed_with_its_group() {
        let (error, heard) = left_behind("wait", None, Duration::from_secs(1)).unwrap();
        assert_eq!((error.as_str(), heard.as_str()), ("the program did not end within 1 s", ""));
    }

    #[test]
    fn a_program_that_never_becomes_ready_is_killed_with_its_group() {
        let ready = Utf8Path::new("/proc/absent/ready");
        for (script, limit) in [("exit 0", MINUTE), ("wait", Duration::from_secs(1))] {
            let (error, heard) = left_behind(script, Some((Signal::Term, ready)), limit).unwrap();
            assert_eq!(error, "the command did not become ready for its signal", "{script}");
            assert_eq!(heard, "", "{script}");
        }
    }
}
