//! Files that a run leaves: only after a failure, never over an existing file, and always reported.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::process::Signal;

use crate::kit::{Finished, Sandbox, wait_until};

#[test]
fn success_leaves_no_files() {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell("echo fine; echo warning >&2");
    assert_eq!((finished.code, &*finished.stderr), (Some(0), "warning\n"));
    assert!(!sandbox.path(".agent").exists());
}

#[test]
fn a_failure_reports_its_log_with_a_name_of_the_contract() {
    let sandbox = Sandbox::new();
    let finished = sandbox.shell("exit 7");
    let [name] = &sandbox.logs()[..] else { panic!() };
    assert_eq!(finished.stderr, format!("safe-run: command failed (rc=7). log: .agent/FAIL-LOGS/{name}\n"));
    let stem = name.strip_prefix("safe-run-").and_then(|rest| rest.strip_suffix(".log")).unwrap();
    let parts: Vec<&str> = stem.split('-').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 6, 6], "{name}");
    assert!(parts[..2].iter().all(|part| part.chars().all(|c| c.is_ascii_digit())), "{name}");
    assert!(parts[2].chars().all(|c| c.is_ascii_hexdigit()), "{name}");
}

#[test]
fn every_failure_gets_its_own_log() {
    let sandbox = Sandbox::new();
    (0..5).for_each(|_| assert_eq!(sandbox.shell("exit 1").code, Some(1)));
    assert_eq!(sandbox.logs().len(), 5);
}

#[test]
fn log_names_of_the_m0_style_state_the_outcome() {
    let sandbox = Sandbox::new().with("SAFE_LOG_STYLE", "m0");
    sandbox.shell("exit 1");
    let [name] = &sandbox.logs()[..] else { panic!() };
    assert!(name.ends_with("-FAIL.log") && name.contains("Z-pid") && name.chars().nth(8) == Some('T'), "{name}");
}

#[test]
fn safe_log_dir_sets_the_log_folder() {
    let sandbox = Sandbox::new().with("SAFE_LOG_DIR", "some/logs");
    let finished = sandbox.shell("exit 3");
    assert!(finished.stderr.contains("log: some/logs/safe-run-"), "{finished:?}");
    assert_eq!(fs::read_dir(sandbox.path("some/logs")).unwrap().count(), 1);
    assert!(!sandbox.path(".agent").exists());
}

#[test]
fn safe_run_record_dir_gets_the_events_of_every_command() {
    let sandbox = Sandbox::new().with("SAFE_RUN_RECORD_DIR", "records").with("SAFE_REDACT", "1");
    let (good, bad) =
        (sandbox.shell("echo out"), sandbox.shell("echo sk-ant-api03-abcdefghijklmnopqrstuvwx >&2; exit 3"));
    assert_eq!((good.code, bad.code), (Some(0), Some(3)));
    assert_eq!(good.stderr, "");
    let files: Vec<_> = fs::read_dir(sandbox.path("records")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let texts: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(texts.iter().filter(|text| text.contains("\"exit_code\":0") && text.contains("out")).count(), 1);
    assert_eq!(texts.iter().filter(|text| text.contains("\"exit_code\":3") && !text.contains("sk-ant")).count(), 1);
    assert!(files.iter().all(|path| path.extension().is_some_and(|it| it == "jsonl")) && files.len() == 2);
    assert_eq!(sandbox.logs().len(), 1, "the log of the failure is not affected");
    let sandbox = Sandbox::new().with("SAFE_RUN_RECORD_DIR", "taken/records");
    sandbox.put("taken", "a file");
    let finished = sandbox.shell("echo out");
    assert_eq!((finished.code, &finished.stdout[..]), (Some(0), &b"out\n"[..]));
    assert!(finished.stderr.starts_with("safe-run: no record in SAFE_RUN_RECORD_DIR: "), "{finished:?}");
}

#[test]
fn a_log_that_cannot_be_written_is_reported_and_does_not_affect_the_command() {
    let sandbox = Sandbox::new().with("SAFE_LOG_DIR", "taken/logs");
    sandbox.put("taken", "a file");
    let finished = sandbox.shell("echo out; exit 42");
    assert_eq!((finished.code, &finished.stdout[..]), (Some(42), &b"out\n"[..]));
    assert!(
        finished.stderr.starts_with("safe-run: command failed (rc=42). no log: failed to write `taken"),
        "{finished:?}"
    );
    let success = sandbox.shell("exit 0");
    assert_eq!((success.code, &*success.stderr), (Some(0), ""));
}

#[test]
fn a_full_disk_is_reported_and_does_not_affect_the_command() {
    let sandbox = Sandbox::new().with("TMPDIR", "/nonexistent-folder");
    let finished = sandbox.shell("head -c 3000000 /dev/zero | tr '\\0' x; exit 42");
    assert_eq!((finished.code, finished.stdout.len()), (Some(42), 3_000_000));
    assert!(finished.stderr.starts_with("safe-run: the record is incomplete: "), "{finished:?}");
    assert!(sandbox.log_text().contains("][META] safe-run incomplete: "), "the log notes it too");
}

#[test]
fn the_last_lines_are_printed_on_request() {
    let sandbox = Sandbox::new().with("SAFE_SNIPPET_LINES", "2");
    let finished = sandbox.shell("printf 'L1\\nL2\\nL3\\n'; printf 'E1\\nE2\\nE3' >&2; exit 9");
    let (_, tail) = finished.stderr.split_once("--- safe-run failure tail (2 lines) ---\n").unwrap();
    assert_eq!(tail, "L2\nL3\nE2\nE3\n--- end tail ---\n");
    assert!(!sandbox.shell("echo fine").stderr.contains("tail"));
}

#[test]
fn secrets_are_redacted_in_records_and_not_in_forwarded_output() {
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let sandbox = Sandbox::new()
        .with("SAFE_REDACT", "PASSWORD")
        .with("PASSWORD", "hunter2-hunter2")
        .with("SAFE_SNIPPET_LINES", "9");
    let finished =
        sandbox.run(["--events", "events", "sh", "-c", &format!("echo key {key}; echo $PASSWORD; exit 1"), key]);
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), format!("key {key}\nhunter2-hunter2\n"));
    for saved in [sandbox.log_text(), fs::read_to_string(sandbox.path("events")).unwrap(), finished.stderr] {
        assert!(!saved.contains(key) && !saved.contains("hunter2"), "{saved}");
        assert!(saved.contains("key [redacted]"), "{saved}");
    }
    assert!(Sandbox::new().shell("exit 1").code == Some(1));
}

#[test]
fn no_record_is_written_if_a_secret_cannot_be_redacted() {
    let values: [(&[u8], &str); 2] =
        [(b"\xff\xfe\xfd\xfc\xfb", ": it is not valid UTF-8"), (b"abc", " reliably: it is shorter than 4 bytes")];
    for (value, reason) in values {
        let sandbox = Sandbox::new().with("SAFE_REDACT", "PASSWORD");
        for (exit, is_reported) in [("exit 1", true), ("exit 0", false)] {
            let mut command = sandbox.command(["sh", "-c", &format!("echo $PASSWORD; {exit}")]);
            let finished: Finished = command.env("PASSWORD", OsStr::from_bytes(value)).output().unwrap().into();
            assert_eq!(finished.code, Some(i32::from(is_reported)));
            let message = format!("no log: cannot redact the value of `PASSWORD` (named in SAFE_REDACT){reason}");
            assert_eq!(finished.stderr.contains(&message), is_reported, "{finished:?}");
        }
        let mut command = sandbox.command(["--events", "events", "true"]);
        let finished: Finished = command.env("PASSWORD", OsStr::from_bytes(value)).output().unwrap().into();
        assert!(
            finished.code == Some(0) && finished.stderr.contains("safe-run: no events: cannot redact the value of"),
            "{finished:?}"
        );
        assert!(sandbox.logs().is_empty() && !sandbox.path("events").exists());
    }
}

#[test]
fn an_unset_secret_is_reported_when_a_record_is_written() {
    let sandbox = Sandbox::new().with("SAFE_REDACT", "1,NO_SUCH_VARIABLE");
    let warning = "safe-run: SAFE_REDACT names `NO_SUCH_VARIABLE`, which is not set; there is no value to redact\n";
    let finished = sandbox.shell("exit 1");
    assert!(
        finished.stderr.starts_with(warning) && finished.stderr.matches("SAFE_REDACT").count() == 1,
        "{finished:?}"
    );
    assert_eq!(sandbox.logs().len(), 1);
    assert_eq!(sandbox.shell("exit 0").stderr, "");
    assert_eq!(sandbox.run(["--events", "events", "true"]).stderr, warning);
}

#[test]
fn a_folder_with_a_pipe_or_socket_is_rejected_in_every_format_and_leaves_no_archive() {
    for kind in ["pipe", "socket"] {
        let sandbox = Sandbox::new();
        sandbox.folder("folder/inner");
        sandbox.put("folder/inner/file", "text");
        let special = sandbox.path(&format!("folder/inner/{kind}"));
        let _socket = if kind == "socket" {
            Some(UnixListener::bind(&special).unwrap())
        } else {
            assert!(Command::new("mkfifo").arg(&special).status().unwrap().success());
            None
        };
        for name in ["a.tgz", "a.tar.gz", "a.tar.bz2", "a.tbz2", "a.zip"] {
            let finished = sandbox.run(["archive", "folder", name]);
            let expected = format!("ERROR: cannot pack `folder/inner/{kind}`: it is a pipe, a socket or a device\n");
            assert_eq!((finished.code, finished.stderr), (Some(41), expected), "{name}");
        }
        assert_eq!(fs::read_dir(sandbox.path("")).unwrap().count(), 1, "{kind}: only the folder is left");
        fs::remove_file(&special).unwrap();
        assert_eq!(sandbox.run(["archive", "folder", "a.zip"]).code, Some(0));
    }
}

#[test]
fn an_archive_that_a_signal_interrupts_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        sandbox.folder("folder");
        // Takes hours to pack, and no space.
        sandbox.put("folder/large", "");
        #[expect(clippy::disallowed_methods, reason = "a file of a test need not survive a crash")]
        let file = fs::OpenOptions::new().write(true).open(sandbox.path("folder/large")).unwrap();
        file.set_len(1 << 40).unwrap();
        let running = sandbox.start(["archive", "folder", "a.zip"]);
        let entries = || fs::read_dir(sandbox.path("")).unwrap().count();
        wait_until("the archive is being written", || entries() == 2);
        running.send(signal);
        let finished = running.finish();
        assert_eq!((finished.code, &*finished.stderr), (None, ""), "ended by the signal");
        assert_eq!(entries(), 1, "{signal:?}");
    }
}
