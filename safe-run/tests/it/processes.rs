//! Signals, groups, and nothing that stays behind.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::kit::{
    Place, Running, child, children, group, processes_with, send, state, unique_sleep, wait_for_signal, wait_until,
};

#[test]
fn the_command_leads_a_process_group_of_its_own() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["sleep", &sleep]);
    let (supervisor, command) = running.wait_for_command("sleep");
    assert_eq!(group(command), command);
    assert_ne!(group(supervisor), group(running.id()), "what ends our group does not end the supervisor");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(143));
}

#[test]
fn signals_to_end_are_passed_on_and_the_command_may_answer() {
    for (signal, name, code) in
        [(Signal::INT, "INT", 130), (Signal::TERM, "TERM", 143), (Signal::HUP, "HUP", 129), (Signal::QUIT, "QUIT", 131)]
    {
        let place = Place::new();
        let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready > ready; while :; do sleep 0.01; done");
        let running = place.start(["sh", "-c", &script]);
        place.wait_for("ready");
        running.send(signal);
        let finished = running.finish();
        assert_eq!((finished.code, &finished.stdout[..]), (Some(7), format!("got {name}\n").as_bytes()));
        assert!(finished.stderr.contains("command aborted by signal. log: "), "{finished:?}");

        let place = Place::new();
        let running = place.start(["sh", "-c", &format!("ulimit -c 0; {}", wait_for_signal(name, "ready"))]);
        place.wait_for("ready");
        running.send(signal);
        assert_eq!(running.finish().code, Some(code), "{name}");
        assert!(place.ledger().last().unwrap().ends_with(&format!("[META] safe-run exit: code={code}")));
    }
}

#[test]
fn who_does_not_listen_is_killed_with_the_whole_group_after_a_grace() {
    let place = Place::new();
    let sleep = unique_sleep();
    let script = format!("trap '' TERM; sleep {sleep} & echo ready > ready; while :; do sleep 0.05; done");
    let running = place.start(["--grace", "0.3", "sh", "-c", &script]);
    place.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(137));
    assert!(processes_with(&sleep).is_empty());
}

/// Starts the program with a script that prints as fast as it can, to nowhere; what it prints is not kept either.
fn start_printing(options: [&str; 2], script: &str) -> (Place, Running) {
    let place = Place::new().with("TMPDIR", "/nonexistent-folder").with("SAFE_RUN_VIEW", "merged");
    let mut command = place.command(options.iter().chain(&["sh", "-c", script]));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    (place, Running(child))
}

#[test]
fn who_does_not_listen_is_killed_even_while_it_prints() {
    let (place, running) = start_printing(["--grace", "0.2"], "trap '' TERM; echo ready > ready; yes");
    place.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(137));
}

#[test]
fn who_does_not_listen_is_killed_even_while_something_can_be_read_at_any_time() {
    let place = Place::new();
    let script = "trap '' TERM; stty -echo; echo ready > ready; while :; do sleep 0.05; done";
    let mut command = place.command(["--pty", "--grace", "0.2", "sh", "-c", script]);
    // A terminal takes more input than anybody reads, so this is never still.
    let zeros = fs::File::open("/dev/zero").unwrap();
    let running = Running(command.stdin(zeros).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    place.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(137));
}

#[test]
fn who_goes_on_printing_when_the_command_is_gone_is_killed_after_a_while() {
    let (_place, running) = start_printing(["--drain", "0.2"], "yes & yes & yes & yes & exit 3");
    assert_eq!(running.finish().code, Some(3));
}

#[test]
fn a_stream_that_a_stranger_prints_on_without_end_is_left() {
    let (place, running) = start_printing(["--drain", "0.2"], "echo $$ > ready; sleep 60");
    let command = place.wait_for("ready");
    // No process of the command's, so it is not killed with what the command left behind.
    let held = format!("exec yes > /proc/{command}/fd/1");
    let mut stranger = Command::new("sh").args(["-c", &held]).spawn().unwrap();
    wait_until("it prints", || {
        let name = fs::read_to_string(format!("/proc/{}/comm", stranger.id()));
        name.is_ok_and(|name| name.trim() == "yes")
    });
    send(command.parse().unwrap(), Signal::KILL);
    assert_eq!(running.finish().code, Some(137));
    assert!(!stranger.wait().unwrap().success(), "nobody reads it any more");
}

#[test]
fn a_command_that_ends_well_after_a_signal_leaves_no_log() {
    let place = Place::new();
    let running = place.start(["sh", "-c", "trap 'exit 0' TERM; echo ready > ready; while :; do sleep 0.01; done"]);
    place.wait_for("ready");
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(0));
    assert!(place.logs().is_empty());
}

#[test]
fn a_signal_that_we_were_told_to_ignore_is_not_passed_on() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = format!("trap '' HUP; exec {program} sh -c 'echo ready > ready; sleep 0.4; exit 9'");
    let mut command = std::process::Command::new("sh");
    let child = command.args(["-c", &script]).current_dir(place.path("")).spawn().unwrap();
    let running = crate::kit::Running(child);
    place.wait_for("ready");
    running.send(Signal::HUP);
    assert_eq!(running.finish().code, Some(9));
}

#[test]
fn a_signal_to_end_that_was_ignored_stays_so_for_the_command_and_a_broken_pipe_does_not() {
    let program = env!("CARGO_BIN_EXE_safe-run");
    let script = format!("trap '' INT TERM HUP QUIT PIPE; exec {program} grep SigIgn /proc/self/status");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let mask = u64::from_str_radix(line.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    let is_ignored = |signal: Signal| mask & (1 << (signal.as_raw() - 1)) != 0;
    assert!([Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].into_iter().all(is_ignored), "{line}");
    assert!(!is_ignored(Signal::PIPE), "{line}");
}

/// A command with a child, a child of that in a session of its own, and one that has given itself to the system.
fn family(sleep: &str) -> String {
    format!(
        "sleep {sleep} & (setsid sh -c 'sleep {sleep} & echo there > nested; wait' &) ; setsid sleep {sleep} >/dev/null 2>&1 </dev/null & \
         echo ready > ready; sleep {sleep}"
    )
}

fn wait_for_family(place: &Place, sleep: &str) {
    place.wait_for("ready");
    place.wait_for("nested");
    wait_until("all four run", || processes_with(sleep).len() == 4);
}

#[test]
fn nothing_survives_when_the_wrapper_is_killed() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["sh", "-c", &family(&sleep)]);
    wait_for_family(&place, &sleep);
    let supervisor = child(running.id());
    running.send(Signal::KILL);
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty() && state(supervisor).is_none());
}

#[test]
fn nothing_survives_when_the_whole_group_of_the_wrapper_is_killed() {
    use std::os::unix::process::CommandExt as _;
    let place = Place::new();
    let sleep = unique_sleep();
    let child = place.command(["sh", "-c", &family(&sleep)]).process_group(0).spawn().unwrap();
    let running = crate::kit::Running(child);
    wait_for_family(&place, &sleep);
    let group = rustix::process::Pid::from_raw(running.id()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty());
}

#[test]
fn nothing_survives_when_the_supervisor_is_killed() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["sh", "-c", &family(&sleep)]);
    wait_for_family(&place, &sleep);
    send(child(running.id()), Signal::KILL);
    assert_eq!(running.finish().code, Some(137));
    assert!(processes_with(&sleep).is_empty());
    assert_eq!(place.logs().len(), 1);
}

#[test]
fn the_command_itself_dies_even_with_both_of_them() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["sleep", &sleep]);
    let (supervisor, _) = running.wait_for_command("sleep");
    // Stopped first, so that neither sees the other die.
    send(running.id(), Signal::STOP);
    send(supervisor, Signal::KILL);
    running.send(Signal::KILL);
    assert_eq!(running.finish().code, None);
    wait_until("no orphan is left", || processes_with(&sleep).is_empty());
}

#[test]
fn what_a_command_leaves_behind_is_killed_when_it_has_ended() {
    let place = Place::new();
    let sleep = unique_sleep();
    let finished = place.shell(&format!("setsid sleep {sleep} >/dev/null 2>&1 & sleep 0.2; echo done"));
    assert_eq!((finished.code, finished.stdout), (Some(0), b"done\n".to_vec()));
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn who_keeps_the_pipe_when_the_command_is_gone_is_waited_for_and_then_killed() {
    let place = Place::new();
    let sleep = unique_sleep();
    let script = format!("(sleep 0.2; echo late; exec sleep {sleep}) & echo early; exit 4");
    let finished = place.run(["--drain", "1", "sh", "-c", &script]);
    assert_eq!((finished.code, finished.stdout), (Some(4), b"early\nlate\n".to_vec()));
    assert!(processes_with(&sleep).is_empty());
    assert_eq!(place.ledger().last().unwrap(), "[SEQ=4][META] safe-run exit: code=4");
}

#[test]
fn a_second_signal_ends_the_wait_for_those_who_keep_the_pipe() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["--drain", "3600", "sh", "-c", &format!("echo ready > ready; sleep {sleep} & exit 4")]);
    place.wait_for("ready");
    let command = children(child(running.id()))[0];
    wait_until("the command has ended", || state(command) == Some('Z'));
    running.send(Signal::TERM);
    assert_eq!(running.finish().code, Some(4));
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn the_command_is_stopped_and_continued_with_the_wrapper() {
    let place = Place::new();
    let sleep = unique_sleep();
    let running = place.start(["sleep", &sleep]);
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
fn many_short_processes_leave_no_zombies_below_the_supervisor() {
    let place = Place::new().with_pipe("go");
    let script = "for i in 1 2 3 4 5 6 7 8; do (setsid true &) ; done; sleep 0.3; echo ready > ready; read x < go";
    let running = place.start(["sh", "-c", script]);
    place.wait_for("ready");
    let supervisor = child(running.id());
    wait_until("all are reaped", || {
        fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap().split_whitespace().count()
            == 1
    });
    place.feed("go");
    assert_eq!(running.finish().code, Some(0));
}
