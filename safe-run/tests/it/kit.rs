//! A temporary folder in which tests run the program, and access to the processes of the system. No helper measures time; each
//! wait has a limit that only a failing test reaches.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use counterproof_store::write::{Durability, write};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

/// The limit of each wait. Only a failing test reaches it.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Sandbox {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        // A script ignores some signals for its background jobs. The program would inherit that.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(env!("CARGO_BIN_EXE_safe-run"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        let settings = ["LOG_DIR", "RUN_VIEW", "SNIPPET_LINES", "LOG_STYLE", "RUN_RECORD_DIR", "REDACT"];
        for name in settings.map(|name| format!("SAFE_{name}")) {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs a shell script.
    pub(crate) fn shell(&self, script: &str) -> Finished {
        self.run(["sh", "-c", script])
    }

    /// Starts the program, whose streams are pipes.
    pub(crate) fn start(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        let mut command = self.command(arguments);
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Starts the program through a wrapper, such as `env` or `sh`, that runs its arguments.
    pub(crate) fn start_in(&self, wrapper: &[&str], arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        let program = self.command(arguments);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).args(program.get_args().skip(1)).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Running(command.spawn().unwrap())
    }

    /// Writes a file into the folder.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = Utf8PathBuf::from_path_buf(self.path(name)).unwrap();
        write(&path, text.as_bytes(), Durability::Cached).unwrap();
    }

    /// Creates a folder and its parents.
    pub(crate) fn folder(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    /// Creates a named pipe.
    pub(crate) fn with_pipe(self, name: &str) -> Self {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().unwrap().success());
        self
    }

    /// Writes a line into a named pipe.
    pub(crate) fn feed(&self, name: &str) {
        let fed = Command::new("sh").args(["-c", "echo go > \"$0\""]).arg(self.path(name)).status().unwrap();
        assert!(fed.success());
    }

    /// Returns the file names in the log folder.
    pub(crate) fn logs(&self) -> Vec<String> {
        let listed = fs::read_dir(self.path(".agent/FAIL-LOGS")).into_iter().flatten();
        listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Returns the only log.
    pub(crate) fn log(&self) -> Vec<u8> {
        let logs = self.logs();
        let [name] = &logs[..] else { panic!("{logs:?}") };
        fs::read(self.path(".agent/FAIL-LOGS").join(name)).unwrap()
    }

    /// Returns the only log as text.
    pub(crate) fn log_text(&self) -> String {
        String::from_utf8(self.log()).unwrap()
    }

    /// Returns the lines of the ledger of the only log, without its markers.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let log = String::from_utf8_lossy(&self.log()).into_owned();
        let (_, ledger) = log.rsplit_once("\n--- BEGIN EVENTS ---\n").expect("a ledger");
        let ledger = ledger.strip_suffix("--- END EVENTS ---\n").expect("the ledger's end");
        ledger.split_terminator('\n').map(str::to_owned).collect()
    }

    /// Waits until a file has a complete line, and returns its text.
    pub(crate) fn wait_for(&self, name: &str) -> String {
        let path = self.path(name);
        wait_until(name, || fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
        fs::read_to_string(path).unwrap().trim().to_owned()
    }
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

/// The running program.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn id(&self) -> i32 {
        self.0.id().cast_signed()
    }

    pub(crate) fn send(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Waits until the launcher has become the command, and returns the process ids of the supervisor and the command.
    pub(crate) fn wait_for_command(&self, name: &str) -> (i32, i32) {
        let found = || {
            let supervisor = *children(self.id()).first()?;
            let command = *children(supervisor).first()?;
            let comm = fs::read_to_string(format!("/proc/{command}/comm")).ok()?;
            (comm.trim() == name).then_some((supervisor, command))
        };
        wait_until("the command runs", || found().is_some());
        found().unwrap()
    }

    pub(crate) fn finish(self) -> Finished {
        let (sender, receiver) = std::sync::mpsc::channel();
        let id = self.id();
        thread::spawn(move || sender.send(self.0.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(LIMIT) else {
            send(id, Signal::KILL);
            panic!("the program does not end");
        };
        output.unwrap().into()
    }
}

pub(crate) fn send(process: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// Returns the end of a script that waits for a signal and dies by it. A shell that is starting a program can lose a signal, so
/// the script traps it.
pub(crate) fn wait_for_signal(name: &str, ready: &str) -> String {
    format!("trap \"trap - {name}; kill -{name} \\$\\$\" {name}; echo ready > {ready}; while :; do sleep 0.02; done")
}

/// Returns a duration for `sleep` that no other test uses, so that the processes of a test can be found by it.
pub(crate) fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("7{:07}.{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the running processes that have this word as an argument.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let listed = fs::read_dir("/proc").unwrap().flatten();
    let processes = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_word = |process: &i32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    processes.filter(|process| has_word(process) && !matches!(state(*process), None | Some('Z'))).collect()
}

/// Returns the state of a process as in `/proc`: `S` sleeping, `T` stopped, …
pub(crate) fn state(process: i32) -> Option<char> {
    stat(process, 0)?.chars().next()
}

/// Returns the process group of a process.
pub(crate) fn group(process: i32) -> i32 {
    stat(process, 2).unwrap().parse().unwrap()
}

/// Returns a field that follows the name.
fn stat(process: i32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}

/// Returns the children of a process, the oldest first.
pub(crate) fn children(process: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Returns the only child of a process.
pub(crate) fn child(process: i32) -> i32 {
    let children = children(process);
    let [child] = children[..] else { panic!("{children:?}") };
    child
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "timed out: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
