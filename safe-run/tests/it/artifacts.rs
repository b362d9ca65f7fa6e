//! What is left on disk: only after a failure, never over something else, and never in silence.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::process::Command;

use crate::kit::{Finished, Place};

#[test]
fn success_leaves_nothing() {
    let place = Place::new();
    let finished = place.shell("echo fine; echo warning >&2");
    assert_eq!((finished.code, &*finished.stderr), (Some(0), "warning\n"));
    assert!(!place.path(".agent").exists());
}

#[test]
fn a_failure_names_its_log_which_has_the_name_of_the_contract() {
    let place = Place::new();
    let finished = place.shell("exit 7");
    let [name] = &place.logs()[..] else { panic!() };
    assert_eq!(finished.stderr, format!("safe-run: command failed (rc=7). log: .agent/FAIL-LOGS/{name}\n"));
    let stem = name.strip_prefix("safe-run-").and_then(|rest| rest.strip_suffix(".log")).unwrap();
    let parts: Vec<&str> = stem.split('-').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 6, 6], "{name}");
    assert!(parts[..2].iter().all(|part| part.chars().all(|c| c.is_ascii_digit())), "{name}");
    assert!(parts[2].chars().all(|c| c.is_ascii_hexdigit()), "{name}");
}

#[test]
fn every_failure_has_a_log_of_its_own() {
    let place = Place::new();
    (0..5).for_each(|_| assert_eq!(place.shell("exit 1").code, Some(1)));
    assert_eq!(place.logs().len(), 5);
}

#[test]
fn the_older_style_of_names_says_how_it_ended() {
    let place = Place::new().with("SAFE_LOG_STYLE", "m0");
    place.shell("exit 1");
    let [name] = &place.logs()[..] else { panic!() };
    assert!(name.ends_with("-FAIL.log") && name.contains("Z-pid") && name.chars().nth(8) == Some('T'), "{name}");
}

#[test]
fn the_folder_is_where_it_is_said_to_be() {
    let place = Place::new().with("SAFE_LOG_DIR", "some/logs");
    let finished = place.shell("exit 3");
    assert!(finished.stderr.contains("log: some/logs/safe-run-"), "{finished:?}");
    assert_eq!(fs::read_dir(place.path("some/logs")).unwrap().count(), 1);
    assert!(!place.path(".agent").exists());
}

#[test]
fn a_log_that_cannot_be_written_is_told_and_takes_nothing_from_the_command() {
    let place = Place::new().with("SAFE_LOG_DIR", "taken/logs");
    place.put("taken", "a file");
    let finished = place.shell("echo out; exit 42");
    assert_eq!((finished.code, &finished.stdout[..]), (Some(42), &b"out\n"[..]));
    assert!(
        finished.stderr.starts_with("safe-run: command failed (rc=42). no log: failed to write `taken"),
        "{finished:?}"
    );
    let success = place.shell("exit 0");
    assert_eq!((success.code, &*success.stderr), (Some(0), ""));
}

#[test]
fn a_disk_without_room_is_told_and_takes_nothing_from_the_command() {
    let place = Place::new().with("TMPDIR", "/nonexistent-folder");
    let finished = place.shell("head -c 3000000 /dev/zero | tr '\\0' x; exit 42");
    assert_eq!((finished.code, finished.stdout.len()), (Some(42), 3_000_000));
    assert!(finished.stderr.starts_with("safe-run: the record is incomplete: "), "{finished:?}");
    assert!(place.log_text().contains("][META] safe-run incomplete: "), "the log says so too");
}

#[test]
fn the_last_lines_are_shown_if_asked_for() {
    let place = Place::new().with("SAFE_SNIPPET_LINES", "2");
    let finished = place.shell("printf 'L1\\nL2\\nL3\\n'; printf 'E1\\nE2\\nE3' >&2; exit 9");
    let (_, tail) = finished.stderr.split_once("--- safe-run failure tail (2 lines) ---\n").unwrap();
    assert_eq!(tail, "L2\nL3\nE2\nE3\n--- end tail ---\n");
    assert!(!place.shell("echo fine").stderr.contains("tail"));
}

#[test]
fn secrets_are_masked_in_what_is_kept_and_not_in_what_passes_through() {
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let place = Place::new()
        .with("SAFE_REDACT", "PASSWORD")
        .with("PASSWORD", "hunter2-hunter2")
        .with("SAFE_SNIPPET_LINES", "9");
    let finished =
        place.run(["--events", "events", "sh", "-c", &format!("echo key {key}; echo $PASSWORD; exit 1"), key]);
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), format!("key {key}\nhunter2-hunter2\n"));
    for kept in [place.log_text(), fs::read_to_string(place.path("events")).unwrap(), finished.stderr] {
        assert!(!kept.contains(key) && !kept.contains("hunter2"), "{kept}");
        assert!(kept.contains("key [redacted]"), "{kept}");
    }
    assert!(Place::new().shell("exit 1").code == Some(1));
}

#[test]
fn a_secret_that_cannot_be_masked_is_better_than_a_record_of_it() {
    let values: [(&[u8], &str); 2] =
        [(b"\xff\xfe\xfd\xfc\xfb", "is no UTF-8 text"), (b"abc", "has fewer than 4 bytes")];
    for (value, told) in values {
        let place = Place::new().with("SAFE_REDACT", "PASSWORD");
        for (exit, is_told) in [("exit 1", true), ("exit 0", false)] {
            let mut command = place.command(["sh", "-c", &format!("echo $PASSWORD; {exit}")]);
            let finished: Finished = command.env("PASSWORD", OsStr::from_bytes(value)).output().unwrap().into();
            assert_eq!(finished.code, Some(i32::from(is_told)));
            let message = format!("no log: the value of `PASSWORD`, which SAFE_REDACT names, {told}");
            assert_eq!(finished.stderr.contains(&message), is_told, "{finished:?}");
        }
        let mut command = place.command(["--events", "events", "true"]);
        let finished: Finished = command.env("PASSWORD", OsStr::from_bytes(value)).output().unwrap().into();
        assert!(
            finished.code == Some(0) && finished.stderr.contains("safe-run: no events: the value of"),
            "{finished:?}"
        );
        assert!(place.logs().is_empty() && !place.path("events").exists());
    }
}

#[test]
fn a_secret_that_is_not_there_is_told_where_something_is_kept() {
    let place = Place::new().with("SAFE_REDACT", "1,NO_SUCH_VARIABLE");
    let told = "safe-run: SAFE_REDACT names `NO_SUCH_VARIABLE`, which is not set: nothing is masked for it\n";
    let finished = place.shell("exit 1");
    assert!(finished.stderr.starts_with(told) && finished.stderr.matches("SAFE_REDACT").count() == 1, "{finished:?}");
    assert_eq!(place.logs().len(), 1);
    assert_eq!(place.shell("exit 0").stderr, "");
    assert_eq!(place.run(["--events", "events", "true"]).stderr, told);
}

#[test]
fn a_folder_with_what_is_no_file_is_refused_in_every_format_and_leaves_no_archive() {
    for kind in ["pipe", "socket"] {
        let place = Place::new();
        place.folder("folder/inner");
        place.put("folder/inner/file", "text");
        let special = place.path(&format!("folder/inner/{kind}"));
        let _socket = if kind == "socket" {
            Some(UnixListener::bind(&special).unwrap())
        } else {
            assert!(Command::new("mkfifo").arg(&special).status().unwrap().success());
            None
        };
        for name in ["a.tgz", "a.tar.gz", "a.tar.bz2", "a.tbz2", "a.zip"] {
            let finished = place.run(["archive", "folder", name]);
            let told = format!("ERROR: `folder/inner/{kind}` is a pipe, a socket or a device, which is not packed\n");
            assert_eq!((finished.code, finished.stderr), (Some(41), told), "{name}");
        }
        assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 1, "{kind}: nothing but the folder");
        fs::remove_file(&special).unwrap();
        assert_eq!(place.run(["archive", "folder", "a.zip"]).code, Some(0));
    }
}
