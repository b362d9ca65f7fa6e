//! Signals, process groups, and no process that outlives its command.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::kit::{
    Running, Sandbox, child, children, group, processes_with, send, state, unique_sleep, wait_for_signal, wait_until,
};

#[test]
fn the_command_leads_its_own_process_group() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running = sandbox.start(["sleep", &sleep]);
    let (supervisor, command) = running.wait_for_command("sleep");
    assert_eq!(group(command), command);
    assert_ne!(group(supervisor), group(running.id()), "a signal to our group does not reach the supervisor");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn ending_signals_are_forwarded_and_the_command_can_handle_them() {
    for (signal, name, code) in
        [(Signal::INT, "INT", 130), (Signal::TERM, "TERM", 143), (Signal::HUP, "HUP", 129), (Signal::QUIT, "QUIT", 131)]
    {
        let sandbox = Sandbox::new();
        let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready > ready; while :; do sleep 0.01; done");
        let running = sandbox.start(["sh", "-c", &script]);
        sandbox.wait_for("ready");
        running.send(signal);
        let finished = running.finish();
        assert_eq!((finished.code, &finished.stdout[..]), (Some(7), format!("got {name}\n").as_bytes()));
        assert!(finished.stderr.contains("command aborted by signal. log: "), "{finished:?}");

        let sandbox = Sandbox::new();
        let running = sandbox.start(["sh", "-c", &format!("ulimit -c 0; {}", wait_for_signal(name, "ready"))]);
        sandbox.wait_for("ready");
        running.send(signal);
        assert_eq!(running.finish().code, Some(code), "{name}");
        assert!(sandbox.ledger().last().unwrap().ends_with(&format!("[META] safe-run exit: code={code}")));
    }
}

#[test]
fn a_command_that_ignores_a_signal_is_killed_with_its_group_after_the_grace_time() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let script = format!("trap '' TERM; sleep {sleep} & echo ready > ready; while :; do sleep 0.05; done");
    let running = sandbox.start(["--grace", "0.3", "sh", "-c", &script]);
    sandbox.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(137));
    assert!(processes_with(&sleep).is_empty());
}

/// Starts the program with a script that prints as fast as it can. The output is neither forwarded nor recorded.
fn start_printing(options: [&str; 2], script: &str) -> (Sandbox, Running) {
    let sandbox = Sandbox::new().with("TMPDIR", "/nonexistent-folder").with("SAFE_RUN_VIEW", "merged");
    let mut command = sandbox.command(options.iter().chain(&["sh", "-c", script]));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    (sandbox, Running(child))
}

#[test]
fn a_command_that_ignores_a_signal_is_killed_even_while_it_prints() {
    let (sandbox, running) = start_printing(["--grace", "0.2"], "trap '' TERM; echo ready > ready; yes");
    sandbox.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(137));
}

#[test]
fn a_command_that_ignores_a_signal_is_killed_even_while_input_is_always_readable() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM; stty -echo; echo ready > ready; while :; do sleep 0.05; done";
    let mut command = sandbox.command(["--pty", "--grace", "0.2", "sh", "-c", script]);
    // A terminal accepts more input than the command reads, so the poll always has something ready.
    let zeros = fs::File::open("/dev/zero").unwrap();
    let running = Running(command.stdin(zeros).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    sandbox.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(137));
}

#[test]
fn processes_that_print_after_the_command_has_ended_are_killed_after_the_drain_time() {
    let (_sandbox, running) = start_printing(["--drain", "0.2"], "yes & yes & yes & yes & exit 3");
    assert_eq!(running.finish().code, Some(3));
}

#[test]
fn a_stream_that_an_unrelated_process_fills_forever_is_closed() {
    let (sandbox, running) = start_printing(["--drain", "0.2"], "echo $$ > ready; sleep 60");
    let command = sandbox.wait_for("ready");
    // This process is not a descendant of the command, so it is not killed with those.
    let held = format!("exec yes > /proc/{command}/fd/1");
    let mut stranger = Command::new("sh").args(["-c", &held]).spawn().unwrap();
    wait_until("it prints", || {
        let name = fs::read_to_string(format!("/proc/{}/comm", stranger.id()));
        name.is_ok_and(|name| name.trim() == "yes")
    });
    send(command.parse().unwrap(), Signal::KILL);
    assert_eq!(running.finish().code, Some(137));
    assert!(!stranger.wait().unwrap().success(), "its reader is gone");
}

#[test]
fn a_command_that_succeeds_after_a_signal_leaves_no_log() {
    let sandbox = Sandbox::new();
    let running = sandbox.start(["sh", "-c", "trap 'exit 0' TERM; echo ready > ready; while :; do sleep 0.01; done"]);
    sandbox.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(0));
    assert!(sandbox.logs().is_empty());
}

#[test]
fn an_ignored_signal_is_not_forwarded() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = format!("trap '' HUP; exec {program} sh -c 'echo ready > ready; sleep 0.4; exit 9'");
    let mut command = std::process::Command::new("sh");
    let child = command.args(["-c", &script]).current_dir(sandbox.path("")).spawn().unwrap();
    let running = crate::kit::Running(child);
    sandbox.wait_for("ready");
    running.send(Signal::HUP);
    assert_eq!(running.finish().code, Some(9));
}

#[test]
fn ending_signals_stay_ignored_for_the_command_and_sigpipe_does_not() {
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = format!("trap '' INT TERM HUP QUIT PIPE; exec {program} grep SigIgn /proc/self/status");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let mask = u64::from_str_radix(line.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    let is_ignored = |signal: Signal| mask & (1 << (signal.as_raw() - 1)) != 0;
    assert!([Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].into_iter().all(is_ignored), "{line}");
    assert!(!is_ignored(Signal::PIPE), "{line}");
}

/// A script with a child, a grandchild in its own session, and a daemon.
fn family(sleep: &str) -> String {
    format!(
        "sleep {sleep} & (setsid sh -c 'sleep {sleep} & echo there > nested; wait' &) ; setsid sleep {sleep} >/dev/null 2>&1 </dev/null & \
         echo ready > ready; sleep {sleep}"
    )
}

fn wait_for_family(sandbox: &Sandbox, sleep: &str) {
    sandbox.wait_for("ready");
    sandbox.wait_for("nested");
    wait_until("all four run", || processes_with(sleep).len() == 4);
}

#[test]
fn no_process_survives_when_safe_run_is_killed() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running = sandbox.start(["sh", "-c", &family(&sleep)]);
    wait_for_family(&sandbox, &sleep);
    let supervisor = child(running.id());
    running.send(Signal::KILL);
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty() && state(supervisor).is_none());
}

#[test]
fn no_process_survives_when_the_process_group_of_safe_run_is_killed() {
    use std::os::unix::process::CommandExt as _;
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let child = sandbox.command(["sh", "-c", &family(&sleep)]).process_group(0).spawn().unwrap();
    let running = crate::kit::Running(child);
    wait_for_family(&sandbox, &sleep);
    let group = rustix::process::Pid::from_raw(running.id()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty());
}

#[test]
fn no_process_survives_when_the_supervisor_is_killed() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running = sandbox.start(["sh", "-c", &family(&sleep)]);
    wait_for_family(&sandbox, &sleep);
    send(child(running.id()), Signal::KILL);
    assert_eq!(running.finish().code, Some(137));
    assert!(processes_with(&sleep).is_empty());
    assert_eq!(sandbox.logs().len(), 1);
}

#[test]
fn the_command_dies_even_if_safe_run_and_the_supervisor_are_killed() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running = sandbox.start(["sleep", &sleep]);
    let (supervisor, _) = running.wait_for_command("sleep");
    // safe-run is stopped first, so that it cannot react to the death of the supervisor.
    send(running.id(), Signal::STOP);
    send(supervisor, Signal::KILL);
    running.send(Signal::KILL);
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty());
}

#[test]
fn processes_that_a_command_leaves_behind_are_killed_when_it_ends() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let finished = sandbox.shell(&format!("setsid sleep {sleep} >/dev/null 2>&1 & sleep 0.2; echo done"));
    assert_eq!((finished.code, finished.stdout), (Some(0), b"done\n".to_vec()));
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn a_process_that_holds_the_pipe_gets_the_drain_time_and_is_then_killed() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let script = format!("(sleep 0.2; echo late; exec sleep {sleep}) & echo early; exit 4");
    let finished = sandbox.run(["--drain", "1", "sh", "-c", &script]);
    assert_eq!((finished.code, finished.stdout), (Some(4), b"early\nlate\n".to_vec()));
    assert!(processes_with(&sleep).is_empty());
    assert_eq!(sandbox.ledger().last().unwrap(), "[SEQ=4][META] safe-run exit: code=4");
}

#[test]
fn a_signal_ends_the_wait_for_processes_that_hold_the_pipe() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running =
        sandbox.start(["--drain", "3600", "sh", "-c", &format!("echo ready > ready; sleep {sleep} & exit 4")]);
    sandbox.wait_for("ready");
    let command = children(child(running.id()))[0];
    wait_until("the command has ended", || state(command) == Some('Z'));
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(4));
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn the_command_is_stopped_and_continued_with_safe_run() {
    let sandbox = Sandbox::new();
    let sleep = unique_sleep();
    let running = sandbox.start(["sleep", &sleep]);
    let (_, command) = running.wait_for_command("sleep");
    let wrapper = running.id();
    running.send(Signal::TSTP);
    wait_until("both are stopped", || state(wrapper) == Some('T') && state(command) == Some('T'));
    running.send(Signal::CONT);
    wait_until("both go on", || state(wrapper) != Some('T') && state(command) == Some('S'));
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn short_lived_processes_leave_no_zombies_below_the_supervisor() {
    let sandbox = Sandbox::new().with_pipe("go");
    let script = "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; sleep 0.3; echo ready > ready; read x < go";
    let running = sandbox.start(["sh", "-c", script]);
    sandbox.wait_for("ready");
    let supervisor = child(running.id());
    wait_until("all are reaped", || {
        fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap().split_whitespace().count()
            == 1
    });
    sandbox.feed("go");
    assert_eq!(running.finish().code, Some(0));
}
