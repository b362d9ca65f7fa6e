//! Runs one command on Windows, where a job object holds its processes: closing the job kills them, also when this process is
//! killed.
//!
//! The command is assigned to the job right after its start, since safe Rust can neither start it in a job nor resume it. What it
//! starts before is outside of the job. The program safe-run is itself in a job of its own first, which ends with it and holds these
//! processes too.
//!
//! The system has neither signals nor process groups: at a limit, a command is killed without a grace time. There is no terminal mode.

use std::io::{self, Read};
use std::os::windows::io::AsRawHandle as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use win32job::{ExtendedLimitInfo, Job, JobError};

use crate::capture::{Capture, Stream};
use crate::command::{Command, Input, Observer};
use crate::options::OutputMode;
use crate::record::{Ending, Record, StartError, StopReason};

const READ_BYTES: usize = 64 * 1024;

/// Reads that wait for this process. A slow reader of our output slows the command down.
const WAITING_READS: usize = 16;

/// How often to look at the command, at its limits and at its cancellation, while no output arrives.
const TICK: Duration = Duration::from_millis(5);

/// How long the streams may stay open after the job was closed. A process outside of it can hold them, or a reader of our output
/// that does not read.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

impl Command {
    /// Runs the command. When this returns, all processes of the job were killed, and [`Record::stopped`] has the limit that ended
    /// the command. What it started before it was assigned to the job can be left: with `owns_process`, until this process ends.
    pub fn run(mut self, observer: &mut Observer<'_>) -> Result<Record, StartError> {
        if self.cancel.is_cancelled() {
            return Err(StartError::Cancelled);
        }
        if self.options.terminal {
            let error = io::Error::new(io::ErrorKind::Unsupported, "this system has no terminal for commands");
            return Err(StartError::Setup(error));
        }
        let (started_at, started) = (Timestamp::now(), Instant::now());
        if self.options.owns_process {
            // Never closed by this process, because that would kill it: the end of the process closes the job.
            kill_on_close().and_then(|job| job.assign_current_process().map(|()| job.into_handle())).map_err(setup)?;
        }
        let job = kill_on_close().map_err(setup)?;
        let mut child = self.spawn()?;
        if let Err(error) = job.assign_process(child.as_raw_handle() as isize) {
            // One that has ended already cannot be assigned. Any other must not run outside of the job.
            if child.try_wait().map_err(StartError::Setup)?.is_none() {
                child.kill().and_then(|()| child.wait()).map_err(StartError::Setup)?;
                return Err(setup(error));
            }
        }
        let session = Session {
            command: &self,
            observer,
            started,
            job: Some(job),
            ending: None,
            stopped: None,
            left_behind: 0,
            capture: Capture::default(),
            capture_error: None,
            printed: 0,
            forwarding: Arc::default(),
            output_errors: Vec::new(),
        };
        let mut record = session.run(child).map_err(StartError::Setup)?;
        (record.command, record.started_at) = (self.words, started_at);
        Ok(record)
    }

    fn spawn(&mut self) -> Result<Child, StartError> {
        let (program, arguments) = self.words.split_first().ok_or(StartError::NoCommand)?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match std::mem::replace(&mut self.input, Input::Inherited) {
            Input::Inherited => Stdio::inherit(),
            Input::Descriptor(file) => file.into(),
        });
        for (name, value) in &self.options.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.options.working_directory {
            if !folder.is_dir() {
                let source = io::ErrorKind::NotADirectory.into();
                return Err(StartError::WorkingDirectory { folder: folder.clone(), source });
            }
            command.current_dir(folder);
        }
        let program = program.to_string_lossy().into_owned();
        command.spawn().map_err(|source| StartError::Command { program, source })
    }
}

fn kill_on_close() -> Result<Job, JobError> {
    Job::create_with_limit_info(ExtendedLimitInfo::new().limit_kill_on_job_close())
}

fn setup(error: JobError) -> StartError {
    StartError::Setup(io::Error::other(error))
}

#[derive(Debug)]
enum Happened {
    Read(Stream, Vec<u8>),
    /// The stream of this process could not be written, so that of the command is read no more.
    NotForwarded(Stream, io::Error),
    Closed,
}

struct Session<'a, 'b> {
    command: &'a Command,
    observer: &'a mut Observer<'b>,
    started: Instant,
    /// Dropped to kill all processes.
    job: Option<Job>,
    ending: Option<Ending>,
    stopped: Option<StopReason>,
    left_behind: u32,
    capture: Capture,
    capture_error: Option<io::Error>,
    printed: u64,
    /// How many streams of this process are being written.
    forwarding: Arc<AtomicUsize>,
    output_errors: Vec<(Stream, io::Error)>,
}

impl Session<'_, '_> {
    fn run(mut self, mut child: Child) -> io::Result<Record> {
        let (sender, happened) = mpsc::sync_channel(WAITING_READS);
        let pipes = (child.stdout.take(), child.stderr.take());
        let mut open = 0;
        for (stream, pipe) in [
            (Stream::Stdout, pipes.0.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
            (Stream::Stderr, pipes.1.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        ] {
            if let Some(pipe) = pipe {
                open += 1;
                let is_forwarded = self.command.options.output == OutputMode::Forward;
                let forwarding = is_forwarded.then(|| Arc::clone(&self.forwarding));
                spawn_reader(stream, pipe, sender.clone(), forwarding)?;
            }
        }
        let limit = self.command.timeout.and_then(|timeout| self.started.checked_add(timeout));
        // When to close the job, and then when to give the streams up.
        let mut deadline = None;
        while open > 0 || self.ending.is_none() {
            // This process has a sender too, so the wait ends only by an event or the time.
            match happened.recv_timeout(TICK) {
                Ok(Happened::Read(stream, bytes)) => self.take(stream, &bytes),
                // A reader that closed its end knows about it.
                Ok(Happened::NotForwarded(_, error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Ok(Happened::NotForwarded(stream, error)) => self.output_errors.push((stream, error)),
                Ok(Happened::Closed) => open -= 1,
                Err(_) => {}
            }
            if self.ending.is_none()
                && let Some(status) = child.try_wait()?
            {
                // The code of a command that was killed is not its own.
                let own = Ending::Exited(status.code().unwrap_or(1));
                self.ending = Some(if self.job.is_some() { own } else { Ending::Killed(9) });
                deadline = deadline.or_else(|| Instant::now().checked_add(self.command.options.drain));
            }
            let is_over = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= Instant::now());
            if self.job.is_some() {
                self.stopped = self.reason_to_stop(is_over(limit));
                if self.stopped.is_some() || is_over(deadline) {
                    self.kill_all();
                    deadline = Instant::now().checked_add(KILL_TIMEOUT);
                }
            } else if self.stopped.is_none() && self.forwarding.load(Ordering::Relaxed) > 0 {
                // Without a limit, a slow reader gets all of the output. Nothing is left that could add to it for ever.
                deadline = Instant::now().checked_add(KILL_TIMEOUT);
            } else if is_over(deadline) {
                break;
            }
        }
        self.kill_all();
        Ok(self.into_record())
    }

    fn reason_to_stop(&self, is_timed_out: bool) -> Option<StopReason> {
        if self.ending.is_some() {
            None
        } else if self.command.output_limit.is_some_and(|limit| self.printed > limit) {
            Some(StopReason::OutputTooLarge)
        } else if is_timed_out {
            Some(StopReason::TimedOut)
        } else {
            self.command.cancel.is_cancelled().then_some(StopReason::Cancelled)
        }
    }

    /// Kills all processes: closing the job does.
    fn kill_all(&mut self) {
        let Some(job) = self.job.take() else { return };
        if self.ending.is_some() {
            let left = job.query_process_id_list().map_or(0, |processes| processes.len());
            self.left_behind = u32::try_from(left).unwrap_or(u32::MAX);
        }
    }

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let at = self.started.elapsed();
        (self.observer)(stream, at, bytes);
        self.printed = self.printed.saturating_add(bytes.len() as u64);
        if self.command.options.output != OutputMode::ObserveOnly && self.capture_error.is_none() {
            self.capture_error = self.capture.push(stream, at, bytes).err();
        }
    }

    fn into_record(self) -> Record {
        Record {
            command: Vec::new(),
            started_at: Timestamp::UNIX_EPOCH,
            elapsed: self.started.elapsed(),
            ending: self.ending.unwrap_or(Ending::Killed(9)),
            aborted_by: None,
            stopped: self.stopped,
            left_behind: self.left_behind,
            capture_error: self.capture_error,
            output_errors: self.output_errors,
            capture: self.capture,
        }
    }
}

/// Reads a stream of the command, and with `forwarding` writes it to that of this process, on a thread of its own: Windows has no wait
/// for several pipes in safe Rust, and a reader of our output that does not read must not keep the limits from being checked.
fn spawn_reader(
    stream: Stream,
    mut pipe: Box<dyn Read + Send>,
    sender: SyncSender<Happened>,
    forwarding: Option<Arc<AtomicUsize>>,
) -> io::Result<()> {
    let read = move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let bytes = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => &buffer[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            if sender.send(Happened::Read(stream, bytes.to_vec())).is_err() {
                break;
            }
            let Some(forwarding) = &forwarding else { continue };
            forwarding.fetch_add(1, Ordering::Relaxed);
            let forwarded = stream.forward(bytes);
            forwarding.fetch_sub(1, Ordering::Relaxed);
            if let Err(error) = forwarded {
                let _ = sender.send(Happened::NotForwarded(stream, error));
                break;
            }
        }
        // The command's next write then fails, as without safe-run.
        drop(pipe);
        let _ = sender.send(Happened::Closed);
    };
    thread::Builder::new().name(stream.title().to_owned()).spawn(read).map(drop)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::cancellation::Cancellation;

    /// The process of a test: prints the port that it listens on, and then waits far longer than any test takes.
    #[test]
    #[ignore = "it is started by the other tests"]
    fn a_process_that_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        println!("port {}", listener.local_addr().unwrap().port());
        thread::sleep(Duration::from_mins(10));
    }

    /// Runs the listening process below a shell, and returns the record and its port.
    fn run(change: impl FnOnce(&mut Command), mut on_port: impl FnMut()) -> (Record, u16) {
        let program = std::env::current_exe().unwrap();
        let test = ["--ignored", "--exact", "--nocapture", "windows::tests::a_process_that_listens"];
        let words = ["cmd".into(), "/c".into(), program.into_os_string()].into_iter();
        let mut command = Command::new(words.chain(test.map(OsString::from)));
        change(&mut command);
        let mut output = String::new();
        let mut port = None;
        let record = command.run(&mut |_, _, bytes| {
            output += &String::from_utf8_lossy(bytes);
            if port.is_none()
                && let Some((number, _)) = output.split_once("port ").and_then(|(_, rest)| rest.split_once('\n'))
            {
                port = Some(number.trim().parse().unwrap());
                on_port();
            }
        });
        (record.unwrap(), port.unwrap())
    }

    #[test]
    fn a_time_limit_kills_all_processes_of_a_command() {
        let (record, port) = run(|command| command.timeout = Some(Duration::from_secs(10)), || {});
        assert_eq!((record.stopped, record.ending), (Some(StopReason::TimedOut), Ending::Killed(9)));
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "no process listens");
    }

    #[test]
    fn a_cancellation_kills_all_processes_of_a_command() {
        let cancellation = Cancellation::default();
        let (record, port) = run(|command| command.cancel = cancellation.clone(), || cancellation.cancel());
        assert_eq!(record.stopped, Some(StopReason::Cancelled));
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "no process listens");
    }

    /// The process of a test: runs a command that prints without an end. The test reads nothing of it.
    #[test]
    #[ignore = "it is started by another test"]
    #[expect(clippy::exit, reason = "the test framework would print, and wait for a reader")]
    fn a_process_whose_output_is_not_read() {
        let mut command = Command::new(["cmd", "/c", "for /l %i in (0,0,1) do @echo a line of the output"]);
        command.options.output = OutputMode::Forward;
        command.timeout = Some(Duration::from_secs(1));
        let record = command.run(&mut |_, _, _| {}).unwrap();
        std::process::exit(if record.stopped == Some(StopReason::TimedOut) { 7 } else { 1 });
    }

    #[test]
    fn a_time_limit_holds_if_nobody_reads_the_output() {
        let test = ["--ignored", "--exact", "--nocapture", "windows::tests::a_process_whose_output_is_not_read"];
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        let mut process = process.args(test).stdout(Stdio::piped()).spawn().unwrap();
        let unread = process.stdout.take();
        assert_eq!(process.wait().unwrap().code(), Some(7));
        drop(unread);
    }

    #[test]
    fn streams_and_exit_codes_are_those_of_the_command() {
        for code in [0, 3, 70_000] {
            let line = format!("echo out& echo err 1>&2& exit {code}");
            let record = Command::new(["cmd", "/c", &line]).run(&mut |_, _, _| {}).unwrap();
            assert_eq!((record.ending, record.stopped), (Ending::Exited(code), None));
            let text = |stream| String::from_utf8(record.head(stream, 100).unwrap().bytes).unwrap();
            assert_eq!(text(Stream::Stdout).trim(), "out");
            assert_eq!(text(Stream::Stderr).trim(), "err");
        }
    }
}
