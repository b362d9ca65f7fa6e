//! Processes under attack: they must end, and never by a panic.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::attempt::{Fault, ensure};

/// A process that takes longer is stuck. Far above what any command here takes, also on a busy machine.
const STUCK_AFTER: Duration = Duration::from_mins(2);

/// Exit codes of `counterproof`.
const CODES: [i32; 4] = [0, 1, 2, 3];

/// A started process.
pub(crate) struct Running {
    line: String,
    child: Child,
    stdout: File,
    stderr: File,
}

/// A process that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) line: String,
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    /// Starts a command. Its streams go to files, so that a full pipe cannot block it.
    pub(crate) fn start(mut command: Command) -> Result<Self, Fault> {
        let line = format!("{command:?}");
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let child = command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
        Ok(Self { line, child, stdout, stderr })
    }

    /// Returns what the process has printed to standard output.
    pub(crate) fn stdout_so_far(&self) -> Result<String, Fault> {
        // Read by place: the process writes at the offset that both share.
        let mut bytes = vec![0; usize::try_from(self.stdout.metadata()?.len()).unwrap_or_default()];
        self.stdout.read_exact_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the resident memory of the process, on systems that report it as Linux does.
    pub(crate) fn memory_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }

    /// Sends a signal. The process may have ended already.
    pub(crate) fn send(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Kills the process after a time, and waits for it.
    pub(crate) fn kill_after(mut self, time: Duration) -> Result<Ended, Fault> {
        thread::sleep(time);
        let _ = self.child.kill();
        self.wait()
    }

    /// Waits for the process. A stuck one is killed, and is a fault.
    pub(crate) fn wait(mut self) -> Result<Ended, Fault> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if start.elapsed() > STUCK_AFTER {
                self.child.kill()?;
                self.child.wait()?;
                return Err(Fault::new(format!("{} is stuck", self.line)));
            }
            thread::sleep(Duration::from_millis(2));
        };
        let text = |mut file: File| -> Result<String, Fault> {
            let mut bytes = Vec::new();
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (stdout, stderr) = (text(self.stdout)?, text(self.stderr)?);
        let ended = Ended { line: self.line, code: status.code(), signal: status.signal(), stdout, stderr };
        ensure!(!ended.stderr.contains("panicked at"), "{} panicked: {}", ended.line, ended.stderr);
        Ok(ended)
    }
}

/// Runs a command to its end.
pub(crate) fn finish(command: Command) -> Result<Ended, Fault> {
    Running::start(command)?.wait()
}

impl Ended {
    /// The process was not ended by a signal, and has one of our exit codes.
    pub(crate) fn ended_properly(&self) -> Result<(), Fault> {
        let is_ours = self.code.is_some_and(|code| CODES.contains(&code));
        ensure!(is_ours, "{} ended with code {:?}, signal {:?}: {}", self.line, self.code, self.signal, self.stderr);
        Ok(())
    }

    /// The process has this exit code.
    pub(crate) fn has_code(&self, code: i32) -> Result<(), Fault> {
        let (line, found) = (&self.line, self.code);
        ensure!(found == Some(code), "{line} ended with {found:?} instead of {code}: {} {}", self.stdout, self.stderr);
        Ok(())
    }
}
