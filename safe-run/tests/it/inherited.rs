//! What safe-run inherits from its parent: ignored signals, the limit on file sizes, and a system without `/proc`.

use std::process::Command;

use rustix::process::Signal;

use crate::kit::{Finished, Sandbox, child, children, processes_with, send, unique_sleep, wait_for_signal, wait_until};

const IGNORE_CHLD: [&str; 2] = ["env", "--ignore-signal=CHLD"];

/// Runs what follows with files of at most 4 KiB. The size of a pipe or a device has no limit.
const SMALL_FILES: [&str; 4] = ["sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"];

#[test]
fn a_command_ends_where_the_parent_ignores_the_signals_of_children() {
    let sandbox = Sandbox::new();
    let finished = sandbox.start_in(&IGNORE_CHLD, ["sh", "-c", "echo out; exit 3"]).finish();
    assert_eq!((finished.code, finished.stdout), (Some(3), b"out\n".to_vec()));
    for _ in 0..20 {
        // The command ends as early as possible: before the supervisor waits for it.
        assert_eq!(sandbox.start_in(&IGNORE_CHLD, ["true"]).finish().code, Some(0));
    }
    assert_eq!(sandbox.start_in(&IGNORE_CHLD, ["no-such-command-anywhere"]).finish().code, Some(127));
}

#[test]
fn processes_left_behind_are_killed_where_the_parent_ignores_the_signals_of_children() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let script = format!("setsid sleep {sleep} >/dev/null 2>&1 & sleep 0.2; echo done");
    assert_eq!(sandbox.start_in(&IGNORE_CHLD, ["sh", "-c", &script]).finish().code, Some(0));
    assert!(processes_with(&sleep).is_empty());

    let script = format!("(setsid sh -c 'sleep {sleep} & sleep {sleep}; :' &) ; echo ready > ready; sleep {sleep}");
    let running = sandbox.start_in(&IGNORE_CHLD, ["sh", "-c", &script]);
    sandbox.wait_for("ready");
    wait_until("all three run", || processes_with(&sleep).len() == 3);
    send(child(running.id()), Signal::KILL);
    assert_eq!(running.finish().code, Some(137), "the supervisor is gone");
    assert!(processes_with(&sleep).is_empty());
}

/// Returns the signals that `/proc` lists in a line about a command that safe-run has started.
fn signals_of_command(wrapper: &[&str], line: &str) -> u64 {
    let finished = Sandbox::new().start_in(wrapper, ["grep", line, "/proc/self/status"]).finish();
    let mask = String::from_utf8(finished.stdout).unwrap();
    u64::from_str_radix(mask.trim().rsplit('\t').next().unwrap(), 16).unwrap()
}

fn has(mask: u64, signal: Signal) -> bool {
    mask & (1 << (signal.as_raw() - 1)) != 0
}

#[test]
fn the_command_inherits_ignored_signals_and_default_actions_as_they_were() {
    let other = Signal::USR1;
    for signal in [Signal::CHILD, Signal::XFSZ, other] {
        let name = match signal {
            Signal::CHILD => "CHLD",
            Signal::XFSZ => "XFSZ",
            _ => "USR1",
        };
        let ignored = signals_of_command(&["env", &format!("--ignore-signal={name}")], "SigIgn");
        assert!(has(ignored, signal), "{name}");
        let ignored = signals_of_command(&["env", &format!("--default-signal={name}")], "SigIgn");
        assert!(!has(ignored, signal), "{name}");
    }
    assert_eq!(signals_of_command(&["env", "--default-signal"], "SigBlk"), 0, "no signal is blocked");
}

#[test]
fn a_record_beyond_the_file_size_limit_is_reported_as_incomplete() {
    let sandbox = Sandbox::new();
    let script = "yes | head -n 500000; exit 3";
    let finished = sandbox.start_in(&SMALL_FILES, ["sh", "-c", script]).finish();
    assert_eq!((finished.code, finished.stdout.len()), (Some(3), 1_000_000), "{}", finished.stderr);
    let expected = "safe-run: the record is incomplete: File too large (os error 27)\n\
        safe-run: command failed (rc=3). no log: ";
    assert!(finished.stderr.starts_with(expected), "{}", finished.stderr);
    assert!(sandbox.logs().is_empty(), "a log is written completely or not at all");
}

#[test]
fn output_beyond_the_file_size_limit_is_reported() {
    let sandbox = Sandbox::new();
    let script = "ulimit -f 8; exec \"$@\" > output";
    let printing = ["sh", "-c", "yes | head -n 5000; exit 0"];
    let finished = sandbox.start_in(&["sh", "-c", script, "sh"], printing).finish();
    let expected = "safe-run: failed to write to standard output: File too large (os error 27)\n";
    assert_eq!((finished.code, &*finished.stderr), (Some(125), expected));
}

#[test]
fn an_archive_beyond_the_file_size_limit_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.folder("packed");
    assert!(Command::new("cp").arg("/proc/self/exe").arg(sandbox.path("packed")).status().unwrap().success());
    for name in ["packed.tar.gz", "packed.zip"] {
        let finished = sandbox.start_in(&SMALL_FILES, ["archive", "packed", name]).finish();
        assert_eq!(finished.code, Some(41), "{finished:?}");
        assert!(finished.stderr.contains("File too large"), "{finished:?}");
        assert!(!sandbox.path(name).exists());
    }
}

#[test]
fn the_file_size_limit_ends_a_command_as_without_safe_run() {
    let sandbox = Sandbox::new();
    let finished = sandbox.start_in(&SMALL_FILES, ["sh", "-c", "exec yes > big"]).finish();
    assert_eq!(finished.code, Some(153), "{}", finished.stderr);
    assert!(sandbox.log_text().contains("safe-run exit: code=153"));
}

const NOTIFYING: [(Signal, &str); 5] = [
    (Signal::USR1, "USR1"),
    (Signal::USR2, "USR2"),
    (Signal::ALARM, "ALRM"),
    (Signal::VTALARM, "VTALRM"),
    (Signal::PROF, "PROF"),
];

#[test]
fn notifying_signals_are_forwarded_and_end_only_a_command_that_does_not_handle_them() {
    for (signal, name) in NOTIFYING {
        let sandbox = Sandbox::new();
        let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready > ready; while :; do sleep 0.01; done");
        let running = sandbox.start(["--grace", "0.1", "sh", "-c", &script]);
        sandbox.wait_for("ready");
        running.send(signal);
        let finished = running.finish();
        assert_eq!((finished.code, &finished.stdout[..]), (Some(7), format!("got {name}\n").as_bytes()), "{name}");
        assert!(finished.stderr.contains("command failed (rc=7). log: "), "{finished:?}");

        let sandbox = Sandbox::new();
        let running = sandbox.start(["sh", "-c", &wait_for_signal(name, "ready")]);
        sandbox.wait_for("ready");
        running.send(signal);
        let finished: Finished = running.finish();
        assert_eq!(finished.code, Some(128 + signal.as_raw()), "{name}");
        assert!(sandbox.ledger().last().unwrap().ends_with(&format!("code={}", 128 + signal.as_raw())));
    }
}

#[test]
fn a_command_that_handles_a_notifying_signal_continues_beyond_the_grace_time() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo got; echo again > again' USR1; echo ready > ready; \
        while ! test -f again; do sleep 0.01; done; sleep 0.6; echo done";
    let running = sandbox.start(["--grace", "0.1", "sh", "-c", script]);
    sandbox.wait_for("ready");
    // A batch system sends the signal to every process of a job.
    let supervisor = child(running.id());
    send(supervisor, Signal::USR1);
    running.send(Signal::USR1);
    let finished = running.finish();
    assert_eq!((finished.code, &*finished.stdout), (Some(0), &b"got\ndone\n"[..]), "{}", finished.stderr);
}

#[test]
fn the_signal_of_the_processor_time_limit_ends_the_command_with_a_record() {
    let sandbox = Sandbox::new();
    let script = "trap '' XCPU; echo ready > ready; while :; do sleep 0.05; done";
    let running = sandbox.start(["--grace", "0.2", "sh", "-c", script]);
    sandbox.wait_for("ready");
    assert_eq!(children(running.id()).len(), 1);
    running.send(Signal::XCPU);
    let finished = running.finish();
    assert_eq!(finished.code, Some(137));
    assert!(finished.stderr.contains("command aborted by signal. log: "), "{finished:?}");
}

#[test]
fn a_system_without_proc_is_reported() {
    let sandbox = Sandbox::new();
    let without_proc = "mount -t tmpfs none /proc || exit 99; exec \"$@\"";
    let wrapper = ["unshare", "--mount", "--map-root-user", "sh", "-c", without_proc, "sh"];
    let finished = sandbox.start_in(&wrapper, ["true"]).finish();
    if finished.code == Some(99) || finished.stderr.contains("unshare:") {
        println!("skipped: a file system may not be mounted here: {finished:?}");
        return;
    }
    let expected = "safe-run: cannot supervise a command: /proc is not mounted\n  \
        hint: mount it, for example with `mount -t proc proc /proc`\n";
    assert_eq!((finished.code, &*finished.stderr), (Some(125), expected));
}
