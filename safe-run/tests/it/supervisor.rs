//! Commands that stop or kill their supervisor, which is their parent process. After a limit or a signal, nothing waits for it.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;

use counterproof_safe_run::{Command, CommandStreams, Ending, Options, StopReason, SupervisedCommand, TakenSignals};
use rustix::process::Signal;

use crate::kit::{Sandbox, child, processes_with, send, state, unique_sleep, wait_until};

fn options() -> Options {
    Options {
        supervisor: Some(PathBuf::from(env!("CARGO_BIN_EXE_safe-run"))),
        grace: Duration::from_millis(200),
        ..Options::default()
    }
}

/// A script that starts processes which stop the supervisor again whenever it continues, and ignore TERM.
fn stop_again_and_again(sleep: &str) -> String {
    format!(
        "trap '' TERM; s=$PPID; for i in 1 2 3; do setsid sh -c \"while kill -STOP $s; do :; done; exec sleep {sleep}\" & done; \
         kill -STOP $s; echo ready > ready; exec sleep {sleep}"
    )
}

#[test]
fn a_command_that_stops_its_supervisor_ends_at_the_time_limit() {
    let sleep = unique_sleep();
    let command = Command {
        options: options(),
        timeout: Some(Duration::from_millis(200)),
        ..Command::new(["sh", "-c", &format!("setsid sleep {sleep} & kill -STOP $PPID; exec sleep {sleep}")])
    };
    let record = command.run(&mut |_, _, _| {}).unwrap();
    assert_eq!(record.stopped, Some(StopReason::TimedOut));
    assert!(!record.ending.is_success());
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn a_command_that_stops_its_supervisor_again_and_again_ends_at_the_time_limit() {
    let (sandbox, sleep) = (Sandbox::new(), unique_sleep());
    let command = Command {
        options: Options { working_directory: Some(sandbox.path("")), ..options() },
        timeout: Some(Duration::from_millis(200)),
        ..Command::new(["sh", "-c", &stop_again_and_again(&sleep)])
    };
    let record = command.run(&mut |_, _, _| {}).unwrap();
    assert_eq!((record.stopped, record.ending), (Some(StopReason::TimedOut), Ending::Killed(9)));
    wait_until("no process is left", || processes_with(&sleep).is_empty());
}

#[test]
fn a_signal_ends_a_command_that_has_stopped_its_supervisor() {
    for script in [format!("kill -STOP $PPID; echo ready > ready; exec sleep {}", unique_sleep()), {
        stop_again_and_again(&unique_sleep())
    }] {
        let sandbox = Sandbox::new();
        let running = sandbox.start(["--grace", "0.2", "sh", "-c", &script]);
        sandbox.wait_for("ready");
        running.send(Signal::TERM);
        let finished = running.finish();
        assert!(matches!(finished.code, Some(143 | 137)), "{finished:?}");
        assert!(finished.stderr.contains("command aborted by signal. log: "), "{finished:?}");
        assert!(processes_with(script.rsplit(' ').next().unwrap()).is_empty());
    }
}

#[test]
fn a_command_that_stops_its_supervisor_ends_with_its_own_code() {
    let (sandbox, sleep) = (Sandbox::new(), unique_sleep());
    let finished = sandbox.shell(&format!("setsid sleep {sleep} >&- 2>&- & kill -STOP $PPID; echo out; exit 3"));
    assert_eq!((finished.code, &*finished.stdout), (Some(3), &b"out\n"[..]));
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn a_command_that_kills_its_supervisor_ends_with_it() {
    let (sandbox, sleep) = (Sandbox::new(), unique_sleep());
    let finished = sandbox.shell(&format!("setsid sleep {sleep} & kill -KILL $PPID; exec sleep {sleep}"));
    assert_eq!(finished.code, Some(137));
    assert!(processes_with(&sleep).is_empty());
    assert_eq!(sandbox.logs().len(), 1);
}

#[test]
fn no_process_survives_when_safe_run_is_killed_after_its_supervisor_was_stopped() {
    let (sandbox, sleep) = (Sandbox::new(), unique_sleep());
    let running = sandbox.start(["sh", "-c", &format!("echo ready > ready; exec sleep {sleep}")]);
    sandbox.wait_for("ready");
    let supervisor = child(running.id());
    // safe-run is stopped first, so that it cannot continue the supervisor.
    running.send(Signal::STOP);
    // Again and again: a thread of safe-run that stops later than the others still continues it.
    wait_until("both are stopped", || {
        send(supervisor, Signal::STOP);
        [running.id(), supervisor].map(state) == [Some('T'); 2]
    });
    running.send(Signal::KILL);
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty() && state(supervisor).is_none());
}

#[test]
fn a_supervised_command_that_has_stopped_its_supervisor_is_killed() {
    for is_persistent in [false, true] {
        let (sandbox, sleep) = (Sandbox::new(), unique_sleep());
        let script = if is_persistent {
            stop_again_and_again(&sleep)
        } else {
            format!("trap '' TERM; kill -STOP $PPID; echo ready > ready; exec sleep {sleep}")
        };
        let (input, _writer) = std::io::pipe().unwrap();
        let (_reader, output) = std::io::pipe().unwrap();
        let streams =
            CommandStreams { stdin: input.as_fd(), stdout: output.try_clone().unwrap().into(), stderr: output.into() };
        let options = Options { working_directory: Some(sandbox.path("")), ..options() };
        let command = ["sh", "-c", &script].map(Into::into);
        let command = SupervisedCommand::start(&command, &options, streams, &TakenSignals::none()).unwrap();
        sandbox.wait_for("ready");
        command.signals().kill();
        assert_eq!(command.wait(), Ending::Killed(9));
        command.finish();
        wait_until("no process is left", || processes_with(&sleep).is_empty());
    }
}
