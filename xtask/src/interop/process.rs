//! Programs with a time limit, and the tested program.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;

use crate::step::root;

/// The path of the tested program, as the tests build it.
pub(super) fn counterproof_program() -> Utf8PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), Utf8PathBuf::from);
    target.join("debug").join(format!("counterproof{}", std::env::consts::EXE_SUFFIX))
}

/// Runs a command without input. Returns false if it cannot be started, fails, or exceeds the time limit and is killed.
pub(crate) fn succeeds(mut command: Command, within: Duration) -> bool {
    let Ok(mut child) = command.stdin(Stdio::null()).spawn() else { return false };
    let end = Instant::now() + within;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            Err(_) => break,
        }
    }
    stop(&mut child);
    false
}

pub(super) fn stop(child: &mut Child) {
    // Fails if the program has already ended, which needs no action.
    let _ = child.kill();
    let _ = child.wait();
}
