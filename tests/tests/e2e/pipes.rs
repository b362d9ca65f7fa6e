//! No command waits for a pipe or reads a device without end: each file of a run folder is a pipe in turn, and each command
//! that reads run folders ends.

use std::io::{Read, Seek};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_tests::{Agent, Reply, Sandbox, minimal_answer};
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A command that does not end is killed after this time.
const TIME_OUT: Duration = Duration::from_mins(2);

const NEW: &str = "runs/new/sample-new";
const BASELINE: &str = "runs/baseline/sample-baseline";
const SHARD: &str = "runs/new/n-s1of1";

/// An address where no agent listens.
const NO_AGENT: &str = "http://127.0.0.1:9";

/// Files of a run folder, those that a run does not always have included.
const FILES: [&str; 6] = [
    "run.json",
    "labels.json",
    "refund_damaged_001.json",
    "assets/manifest.json",
    "assets/stock_check_001.attempt1.body.txt",
    "assets/full_payload_new_order_history_001_e3.json",
];

fn sandbox() -> Sandbox {
    let samples = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-runs"));
    let mut sandbox = Sandbox::new();
    for (path, bytes) in counterproof_tests::files_below(samples) {
        let name = path.strip_prefix(samples).unwrap_or(&path);
        sandbox = sandbox.with_file(name.as_str(), &String::from_utf8_lossy(&bytes));
    }
    sandbox
}

fn make_pipe(path: &Utf8Path) {
    let _ = std::fs::remove_file(path);
    mknodat(CWD, path.as_std_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Returns the exit code, or `None` if the command had to be killed.
fn exit_code(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < TIME_OUT {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[track_caller]
fn ends(sandbox: &Sandbox, arguments: &[&str], place: &str) {
    let mut command = sandbox.command(arguments);
    // A file takes any amount of text without a reader.
    let mut stderr = tempfile::tempfile().unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr.try_clone().unwrap());
    assert!(exit_code(&mut command.spawn().unwrap()).is_some(), "{arguments:?} does not end where {place} is a pipe");
    let mut text = String::new();
    stderr.rewind().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    assert!(!text.contains("try '--help'"), "{arguments:?} does not get as far as {place}: {text}");
}

#[test]
fn commands_end_where_a_file_of_a_run_folder_is_a_pipe() {
    let case = format!("{NEW}/refund_damaged_001.json");
    for file in FILES {
        let sandbox = sandbox();
        make_pipe(&sandbox.path(&format!("{NEW}/{file}")));
        for arguments in [
            &["validate", NEW][..],
            &["validate", "."],
            &["validate", &case],
            &["compare", "--baseline", BASELINE, "--new", NEW, "--cases", "cases.json", "--out", "out"],
            &["report", "out/evaluation.json"],
            &["replay", &case],
            &["run", "--cases", "cases.json", "--side", "new", "--resume", "sample-new", "--base-url", NO_AGENT],
            &["accept", NEW, "--reason", "good", "--allow-failures"],
        ] {
            ends(&sandbox, arguments, file);
        }
    }
}

#[test]
fn a_merge_ends_where_a_file_of_a_shard_is_a_pipe() {
    let agent = Agent::start(|_case| Reply::json(&minimal_answer()));
    let sandbox = || Sandbox::new().with_file("cases.json", r#"[{"id": "only", "input": {"user": "go"}}]"#);
    let merge = |sandbox: &Sandbox| sandbox.run(["merge", SHARD, "--out", "merged"]);
    for file in [None, Some("run.json"), Some("only.json"), Some("assets/manifest.json")] {
        let sandbox = sandbox();
        let base = agent.base_url();
        let shard = ["run", "--cases", "cases.json", "--side", "new", "--run-id", "n", "--shard", "1/1"];
        let finished = sandbox.run(shard.into_iter().chain(["--base-url", &base]));
        assert_eq!(finished.code, Some(0), "{finished}");
        let Some(file) = file else {
            let merged = merge(&sandbox);
            assert_eq!(merged.code, Some(0), "{merged}");
            continue;
        };
        make_pipe(&sandbox.path(&format!("{SHARD}/{file}")));
        ends(&sandbox, &["merge", SHARD, "--out", "merged"], file);
    }
}

#[test]
fn commands_end_where_another_document_is_a_pipe() {
    let sandbox = sandbox();
    for name in ["evaluation.json", "history/one/evaluation.json", "report/.counterproof-report", "record.log"] {
        let path = sandbox.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        make_pipe(&path);
    }
    for arguments in [
        &["report", "evaluation.json"][..],
        &["history", "evaluation.json", "--out", "past"],
        &["history", "history", "--out", "past"],
        &["replay", "evaluation.json"],
        &["compare", "--baseline", BASELINE, "--new", NEW, "--out", "report"],
    ] {
        ends(&sandbox, arguments, "a document");
    }
}

#[test]
fn files_that_no_argument_names_are_no_pipes() {
    let sandbox = sandbox().with_file("folder/cases.json", "[]");
    make_pipe(&sandbox.path("folder/more.json"));
    let cases = ["compare", "--baseline", BASELINE, "--new", NEW, "--cases", "folder", "--out", "out"];
    ends(&sandbox, &cases, "a file of a folder of cases");
    make_pipe(&sandbox.path("counterproof.toml"));
    for arguments in [
        &["compare", "--baseline", BASELINE, "--new", NEW, "--out", "out"][..],
        &["run", "--cases", "cases.json", "--side", "new", "--run-id", "r", "--base-url", NO_AGENT],
    ] {
        ends(&sandbox, arguments, "counterproof.toml");
    }
}

#[test]
fn devices_without_end_are_rejected() {
    let sandbox = sandbox();
    for arguments in [
        &["replay", "/dev/zero"][..],
        &["report", "/dev/zero"],
        &["validate", "/dev/zero"],
        &["history", "/dev/zero", "--out", "past"],
        &["run", "--config", "/dev/zero", "--cases", "cases.json", "--side", "new", "--run-id", "r"],
    ] {
        ends(&sandbox, arguments, "the argument");
    }
    let text = sandbox.run(["replay", "/dev/zero"]).stderr;
    assert!(text.contains("a regular file is needed here"), "{text}");
}

#[test]
fn a_configuration_can_come_from_a_pipe() {
    let sandbox = sandbox();
    let fifo = sandbox.path("config.toml");
    make_pipe(&fifo);
    let arguments = ["compare", "--baseline", BASELINE, "--new", NEW, "--config", "config.toml", "--out", "out"];
    let mut child = sandbox.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a pipe is not a file that a crash can tear")]
    let writer = std::thread::spawn(move || std::fs::OpenOptions::new().write(true).open(fifo).map(drop));
    let code = exit_code(&mut child);
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    writer.join().unwrap().unwrap();
}
