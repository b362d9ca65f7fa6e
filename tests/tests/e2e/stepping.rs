//! Stops a process at a moment that lasts only milliseconds.

use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// How long the process runs between two looks.
const STEP: Duration = Duration::from_micros(100);

/// Lets a process run in short steps until it is stopped where `is_reached` holds. Returns false if it ended before.
///
/// On a slow machine the process gets less far in each step, so the moment is not missed.
pub(crate) fn stop_when(child: &Child, is_reached: impl Fn() -> bool) -> bool {
    let pid = Pid::from_child(child);
    // The exit status remains for the caller.
    let stopped_or_ended = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        kill_process(pid, Signal::STOP).unwrap();
        // A signal takes effect some time after it was sent.
        let status = waitid(WaitId::Pid(pid), stopped_or_ended).unwrap().unwrap();
        if !status.stopped() {
            return false;
        }
        if is_reached() {
            return true;
        }
        resume(child);
        sleep(STEP);
    }
}

/// Lets a stopped process go on.
pub(crate) fn resume(child: &Child) {
    kill_process(Pid::from_child(child), Signal::CONT).unwrap();
}
