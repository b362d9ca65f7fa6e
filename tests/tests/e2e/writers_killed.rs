//! Writers that are killed leave unfinished files and folders. The next call of the same writer removes them, and never those
//! of a writer that is still alive, also if all processes have the same id, as in containers.

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use counterproof_store::write::{self, Durability};
use counterproof_tests::{Agent, Reply, Sandbox, UNSHARE, minimal_answer, safe_run};
use serde_json::{Value, json};

use crate::stepping::{resume, stop_when};

const CASES: usize = 60;

/// Number of attempts to kill a writer while its unfinished files exist.
const ATTEMPTS: usize = 20;

/// Runs a program as process 1 of a namespace of its own, which ends with the wrapper.
const CONTAINER: [&str; 8] = ["sh", "-c", UNSHARE, "sh", "--map-root-user", "--pid", "--fork", "--kill-child"];

/// A command that writes a folder or a file.
struct Writer {
    name: &'static str,
    arguments: Vec<String>,
    /// The folder of the unfinished files, and the start of their names.
    parent: &'static str,
    prefix: &'static str,
    /// The name of the finished folder in the same parent.
    target: &'static str,
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// The commands of the program that write a whole run folder.
fn writers() -> [Writer; 3] {
    let events = (0..CASES).map(|number| format!("events-{number}")).collect::<Vec<_>>().join(" ");
    [
        Writer {
            name: "accept",
            arguments: words("accept --reason decided runs/new/whole"),
            parent: "runs/baseline",
            prefix: ".tmp-counterproof-accept-",
            target: "whole",
        },
        Writer {
            name: "merge",
            arguments: words("merge runs/new/n-s1of2 runs/new/n-s2of2 --out merged/m"),
            parent: "merged",
            prefix: ".tmp-counterproof-merge-",
            target: "m",
        },
        Writer {
            name: "export-run",
            arguments: words(&format!("export-run {events} --side new --run-id e --out exported")),
            parent: "exported/new",
            prefix: ".tmp-counterproof-export-",
            target: "e",
        },
    ]
}

/// A sandbox with a run, the shards of another one, and records of safe-run.
fn sandbox() -> Sandbox {
    let cases: Vec<_> = (0..CASES).map(|index| json!({"id": format!("c{index}"), "input": {"user": "go"}})).collect();
    let sandbox = Sandbox::new().with_file("cases.json", &Value::from(cases).to_string());
    let agent = Agent::start(|_case| Reply::json(&minimal_answer()));
    let url = agent.base_url();
    for more in ["--run-id whole", "--run-id other", "--run-id n --shard 1/2", "--run-id n --shard 2/2"] {
        let line = words(&format!("run --cases cases.json --side new --base-url {url} {more}"));
        let finished = sandbox.run(line);
        assert_eq!(finished.code, Some(0), "{finished}");
    }
    let recorded = Command::new(safe_run()).args(["--events", "events-0", "true"]).current_dir(sandbox.root()).status();
    assert!(recorded.unwrap().success());
    let record = std::fs::read_to_string(sandbox.path("events-0")).unwrap();
    (1..CASES).fold(sandbox, |sandbox, number| sandbox.with_file(&format!("events-{number}"), &record))
}

/// The names in a folder that start with a prefix.
fn names(sandbox: &Sandbox, folder: &str, prefix: &str) -> Vec<String> {
    let entries = sandbox.path(folder).read_dir_utf8().into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Starts a program and waits until its unfinished files exist. Returns `None` where it ended before they were seen.
fn start_writing(sandbox: &Sandbox, mut command: Command, parent: &str, prefix: &str) -> Option<Child> {
    let before = names(sandbox, parent, prefix).len();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    while names(sandbox, parent, prefix).len() <= before {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        sleep(Duration::from_millis(1));
    }
    Some(child)
}

/// Kills a program, and waits until no process that it started has its output open.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
    child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
}

/// Kills a writer while its unfinished folder exists and its target does not.
fn kill_while_writing(sandbox: &Sandbox, wrapper: &[&str], writer: &Writer) {
    for _ in 0..ATTEMPTS {
        let command = sandbox.command_in(wrapper, &writer.arguments);
        if let Some(child) = start_writing(sandbox, command, writer.parent, writer.prefix) {
            kill(child);
        }
        let target = sandbox.path(writer.parent).join(writer.target);
        if !target.exists() {
            assert!(!names(sandbox, writer.parent, writer.prefix).is_empty(), "{}", writer.name);
            return;
        }
        std::fs::remove_dir_all(&target).unwrap();
    }
    panic!("{} was never killed in time", writer.name);
}

#[track_caller]
fn assert_succeeds_and_cleans_up(sandbox: &Sandbox, wrapper: &[&str], writer: &Writer) {
    let finished = sandbox.run_in(wrapper, &writer.arguments);
    assert_eq!(finished.code, Some(0), "{}: {finished}", writer.name);
    assert_eq!(names(sandbox, writer.parent, ""), [writer.target], "{}", writer.name);
    let validated = sandbox.run(["validate", writer.parent]);
    assert_eq!(validated.code, Some(0), "{}: {validated}", writer.name);
}

#[test]
fn the_copy_of_a_killed_writer_is_removed_by_the_next_call() {
    let sandbox = sandbox();
    for writer in writers() {
        kill_while_writing(&sandbox, &["env"], &writer);
        kill_while_writing(&sandbox, &["env"], &writer);
        assert!(names(&sandbox, writer.parent, writer.prefix).len() <= 2, "one folder and its lock");
        assert_succeeds_and_cleans_up(&sandbox, &["env"], &writer);
    }
}

#[test]
fn a_writer_that_is_killed_in_a_container_does_not_block_the_next_container() {
    let sandbox = sandbox();
    let probe = sandbox.run_in(&CONTAINER, ["--version"]);
    if probe.code != Some(0) {
        println!("skipped: a namespace of processes may not be created here: {probe}");
        return;
    }
    for writer in writers() {
        kill_while_writing(&sandbox, &CONTAINER, &writer);
        assert_succeeds_and_cleans_up(&sandbox, &CONTAINER, &writer);
    }
}

#[test]
fn the_unfinished_folder_of_a_living_writer_stays() {
    let sandbox = sandbox();
    let [accept, ..] = writers();
    for _ in 0..ATTEMPTS {
        let mut command = sandbox.command(&accept.arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let target = sandbox.path(accept.parent).join(accept.target);
        let is_writing = || names(&sandbox, accept.parent, accept.prefix).len() == 2 && !target.exists();
        if !stop_when(&child, is_writing) {
            assert!(child.wait_with_output().unwrap().status.success());
            std::fs::remove_dir_all(&target).unwrap();
            continue;
        }
        let unfinished = names(&sandbox, accept.parent, accept.prefix);
        let other = sandbox.run(words("accept --reason decided runs/new/other"));
        assert_eq!(other.code, Some(0), "{other}");
        assert_eq!(names(&sandbox, accept.parent, accept.prefix), unfinished);
        resume(&child);
        let output = child.wait_with_output().unwrap();
        let mut accepted = names(&sandbox, accept.parent, "");
        accepted.sort();
        assert_eq!((output.status.code(), accepted), (Some(0), vec!["other".to_owned(), "whole".to_owned()]));
        let validated = sandbox.run(["validate", "runs"]);
        assert_eq!(validated.code, Some(0), "{validated}");
        return;
    }
    panic!("the writer was never stopped in time");
}

/// A file of many different lines, which neither a compressor nor a copy finishes at once.
fn long_text() -> String {
    let mut text = String::new();
    let mut state: u64 = 1;
    while text.len() < 8_000_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let _ = writeln!(text, "{state:x}");
    }
    text
}

#[test]
fn unfinished_logs_and_archives_of_safe_run_are_removed_by_the_next_call() {
    let sandbox = Sandbox::new().with_file("source/long", &long_text()).with_file("out/.tmp-mine", "a user's file");
    let safe_run_with = |arguments: &[&str]| {
        let mut command = Command::new(safe_run());
        command.args(arguments).current_dir(sandbox.root()).env("SAFE_LOG_DIR", "out");
        command
    };
    for arguments in [&["archive", "source", "out/a.tar.bz2"][..], &["sh", "-c", "cat source/long; exit 1"]] {
        let mut killed = false;
        for _ in 0..ATTEMPTS {
            // The output is not read, so it goes where it cannot fill up.
            let mut command = Command::new("sh");
            command.args(["-c", "exec \"$0\" \"$@\" > shown"]).arg(safe_run()).args(arguments);
            command.current_dir(sandbox.root()).env("SAFE_LOG_DIR", "out");
            if let Some(child) = start_writing(&sandbox, command, "out", ".tmp-") {
                kill(child);
            }
            killed = names(&sandbox, "out", ".tmp-").len() == 2;
            if killed {
                break;
            }
        }
        assert!(killed, "{arguments:?} was never killed in time");
        let output = safe_run_with(arguments).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        assert_eq!(names(&sandbox, "out", ".tmp-"), [".tmp-mine"], "{arguments:?}");
    }
}

#[test]
fn unfinished_files_next_to_an_evaluation_or_a_demo_are_removed() {
    let sandbox = sandbox();
    let accepted = sandbox.run(words("accept --reason decided runs/new/whole"));
    assert_eq!(accepted.code, Some(0), "{accepted}");
    for (folder, line) in
        [("runs/baseline/whole", "compare runs/baseline/whole runs/new/whole"), ("demo", "demo --out demo")]
    {
        let unfinished = format!("{folder}/.tmp-counterproof-AbCdEf");
        write::create_folder(&sandbox.path(folder)).unwrap();
        write::write(&sandbox.path(&unfinished), b"half", Durability::Cached).unwrap();
        let finished = sandbox.run(words(line));
        assert!(matches!(finished.code, Some(0 | 1)), "{line}: {finished}");
        assert!(!sandbox.path(&unfinished).exists(), "{line}");
    }
}
