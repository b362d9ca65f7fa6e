//! The process of a trial: it gets its input, is sent its signal, and is read to its end. On Unix it has a process group of its
//! own, so that what fails, takes too long or shall end is killed together with what it has started.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;

use crate::cancellation::Stop;
use crate::vectors::Signal;

/// The time between two looks at a process.
const PAUSE: Duration = Duration::from_millis(10);

/// What is done with a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course<'a> {
    /// What it reads; without, its input is left as the command has it.
    pub(crate) stdin: Option<&'a str>,
    /// A signal for it, and the file that is there when it may be sent.
    pub(crate) signal: Option<(Signal, &'a Utf8Path)>,
    /// How long all of it may take.
    pub(crate) limit: Duration,
    /// Whether it shall end before that.
    pub(crate) stop: &'a Stop,
}

impl Course<'_> {
    /// An error where the process may not go on.
    fn check(&self, end: Instant) -> Result<(), String> {
        if self.stop.is_triggered() {
            return Err("interrupted".to_owned());
        }
        if Instant::now() > end {
            return Err(format!("the program did not end within {} s", self.limit.as_secs()));
        }
        Ok(())
    }
}

/// Runs a program to its end, and reads what it prints.
pub(crate) fn run(mut command: Command, course: &Course<'_>) -> Result<Output, String> {
    if course.stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let program = command.get_program().to_string_lossy();
    let failed = format!("failed to start `{program}`");
    let mut child = command.spawn().map_err(|error| format!("{failed}: {error}"))?;
    let output = watch(&mut child, course);
    if output.is_err() {
        kill(&mut child);
    }
    output
}

fn watch(child: &mut Child, course: &Course<'_>) -> Result<Output, String> {
    let end = Instant::now() + course.limit;
    if let (Some(text), Some(mut stdin)) = (course.stdin, child.stdin.take()) {
        let text = text.to_owned();
        // A program that does not read its input is judged by what it does instead, and nobody waits for this thread.
        thread::spawn(move || stdin.write_all(text.as_bytes()));
    }
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    if let Some((signal, ready)) = course.signal {
        wait_for(ready, child, (course, end))?;
        send(child, signal)?;
    }
    let all = |stream: Receiver<io::Result<Vec<u8>>>| loop {
        match stream.recv_timeout(PAUSE) {
            Ok(read) => return read.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => course.check(end)?,
            Err(RecvTimeoutError::Disconnected) => return Err("a stream of the program could not be read".to_owned()),
        }
    };
    let (stdout, stderr) = (all(stdout)?, all(stderr)?);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Output { status, stdout, stderr });
        }
        course.check(end)?;
        thread::sleep(PAUSE);
    }
}

/// Reads a stream in a thread of its own.
fn read(stream: Option<impl Read + Send + 'static>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        // Nobody listens any more where the limit has passed.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn wait_for(ready: &Utf8Path, child: &mut Child, (course, end): (&Course<'_>, Instant)) -> Result<(), String> {
    while !ready.exists() {
        if has_ended(child)? || course.check(end).is_err() {
            return Err("the command did not get to where it waits for a signal".to_owned());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Looks without taking the status: until then the process's number is nobody else's, and neither is its group's.
#[cfg(unix)]
fn has_ended(child: &Child) -> Result<bool, String> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(number(child)?), options).map_err(|error| error.to_string())?;
    Ok(status.is_some())
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> Result<bool, String> {
    Ok(child.try_wait().map_err(|error| error.to_string())?.is_some())
}

#[cfg(unix)]
fn number(child: &Child) -> Result<rustix::process::Pid, String> {
    rustix::process::Pid::from_raw(child.id().cast_signed()).ok_or_else(|| "the program has no process".to_owned())
}

#[cfg(unix)]
fn send(child: &Child, signal: Signal) -> Result<(), String> {
    let signal = match signal {
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Int => rustix::process::Signal::INT,
        Signal::Hup => rustix::process::Signal::HUP,
        Signal::Quit => rustix::process::Signal::QUIT,
    };
    rustix::process::kill_process(number(child)?, signal).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn send(_child: &Child, _signal: Signal) -> Result<(), String> {
    Err("this system cannot send signals".to_owned())
}

/// Kills the program with its group, and waits for it. What has left the group is left alone.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = number(child) {
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
        let course = Course { stdin: Some(&text), signal: None, limit: MINUTE, stop: &Stop::default() };
        let output = run(Command::new("cat"), &course).unwrap();
        assert!(output.stdout == text.as_bytes(), "{} bytes", output.stdout.len());
    }

    #[test]
    fn a_program_that_never_reads_its_input_does_not_outlive_the_limit() {
        let mut command = Command::new("sleep");
        command.arg("300");
        let text = "0123456\n".repeat(1 << 20);
        let course = Course { stdin: Some(&text), signal: None, limit: Duration::from_secs(1), stop: &Stop::default() };
        assert_eq!(run(command, &course).unwrap_err(), "the program did not end within 1 s");
    }

    /// Why a shell failed, and what was heard of a process that it left behind and that would have spoken later.
    fn left_behind(script: &str, signal: Option<(Signal, &Utf8Path)>, limit: Duration) -> io::Result<(String, String)> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec 3>&0; (sleep 20; echo alive >&3) & {script}")).stdin(writer);
        let error =
            run(command, &Course { stdin: None, signal, limit, stop: &Stop::default() }).err().unwrap_or_default();
        Ok((error, io::read_to_string(reader)?))
    }

    #[test]
    fn what_takes_too_long_is_killed_with_what_it_started() {
        let (error, heard) = left_behind("wait", None, Duration::from_secs(1)).unwrap();
        assert_eq!((error.as_str(), heard.as_str()), ("the program did not end within 1 s", ""));
    }

    #[test]
    fn what_never_waits_for_its_signal_is_killed_with_what_it_started() {
        let ready = Utf8Path::new("/proc/absent/ready");
        for (script, limit) in [("exit 0", MINUTE), ("wait", Duration::from_secs(1))] {
            let (error, heard) = left_behind(script, Some((Signal::Term, ready)), limit).unwrap();
            assert_eq!(error, "the command did not get to where it waits for a signal", "{script}");
            assert_eq!(heard, "", "{script}");
        }
    }
}
