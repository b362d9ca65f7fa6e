//! A temporary folder, the test program, and access to the processes of the system. Each wait has a limit that only a failing
//! test reaches.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::process::ShellCommand;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns the path without symbolic links.
    pub(crate) fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().canonicalize_utf8().unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Creates a command in this folder.
    pub(crate) fn command(&self, line: &str) -> ShellCommand {
        ShellCommand { supervisor: Some(worker()), ..ShellCommand::new(line, self.path()) }
    }
}

/// Returns the example `contract_worker`, which `cargo test` builds.
pub(crate) fn worker() -> PathBuf {
    // Tests are in `<target>/<profile>/deps/`, examples in `<target>/<profile>/examples/`.
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join("contract_worker")
}

/// Returns a duration for `sleep` that no other test uses, so that the processes of a test can be found by it.
pub(crate) fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("8{:07}.{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the number of running processes that have this word as an argument.
pub(crate) fn processes_with(word: &str) -> usize {
    let has_word = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(has_word).count()
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "timed out: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
