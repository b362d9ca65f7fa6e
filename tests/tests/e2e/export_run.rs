//! `export-run`: converts real recordings of safe-run into runs that can be validated, compared and read.

use std::fs;
use std::process::{Command, Stdio};

use counterproof_tests::{Finished, Sandbox, files_below, safe_run};
use serde_json::json;

/// Records `script` and returns the path of the log, if there is one.
fn record(sandbox: &Sandbox, events: &str, script: &str) -> Option<String> {
    let mut command = Command::new(safe_run());
    command.args(["--events", events, "sh", "-c", script]).current_dir(sandbox.root());
    for name in ["SAFE_LOG_DIR", "SAFE_RUN_VIEW", "SAFE_SNIPPET_LINES", "SAFE_LOG_STYLE", "SAFE_REDACT"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    told.lines().find_map(|line| Some(line.split_once(". log: ")?.1.to_owned()))
}

fn export(sandbox: &Sandbox, record: &str, side: &str, more: &[&str]) -> Finished {
    sandbox.run(["export-run", record, "--side", side, "--run-id", "r1"].iter().chain(more))
}

/// Exports two records, validates both runs, compares them, and returns the only case of the evaluation.
#[track_caller]
fn compared(sandbox: &Sandbox, baseline: &str, new: &str) -> serde_json::Value {
    for (side, record) in [("baseline", baseline), ("new", new)] {
        let exported = export(sandbox, record, side, &[]);
        assert_eq!((exported.code, exported.stdout), (Some(0), format!("run folder: runs/{side}/r1\n")));
    }
    let validated = sandbox.run(["validate", "runs"]);
    assert_eq!(validated.code, Some(0), "{validated}");
    let compared = sandbox.run(["compare", "runs/baseline/r1", "runs/new/r1"]);
    assert!(matches!(compared.code, Some(0 | 1)), "{compared}");
    let evaluation = sandbox.json("report/evaluation.json");
    let [case] = &evaluation["cases"].as_array().unwrap()[..] else { panic!("{evaluation}") };
    assert!(sandbox.path("report/index.html").is_file());
    case.clone()
}

const SCRIPT: &str = "echo begin; cat words; cat words >&2; exit $(cat code)";

#[test]
fn two_recordings_of_a_command_are_compared() {
    let sandbox = Sandbox::new().with_file("words", "old\nsame\n").with_file("code", "3");
    let baseline = record(&sandbox, "one", SCRIPT).unwrap();
    let sandbox = sandbox.with_file("words", "new <b>\nsame\n").with_file("code", "4");
    let new = record(&sandbox, "two", SCRIPT).unwrap();
    let case = compared(&sandbox, &baseline, &new);
    assert_eq!(case["verdict"], "changed", "{case}");
    let page = format!("report/cases/{}.html", case["case_id"].as_str().unwrap());
    let page = fs::read_to_string(sandbox.path(&page)).unwrap();
    for shown in ["exit_code 3 → 4", "stdout “old” → “new &#60;b&#62;”", "<b>stdout</b>", "class=\"title\">sh -c"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    // The run includes the complete record.
    let id = case["case_id"].as_str().unwrap();
    let expected = json!({"expect": ["final_output.content.exit_code == 3"]});
    let cases = json!([{"id": id, "input": {"user": "run it"}, "expected": expected}]);
    let config = "[agent]\ndeterministic = true\n";
    let sandbox = sandbox.with_file("cases.json", &cases.to_string()).with_file("counterproof.toml", config);
    let judged = sandbox.run(["compare", "--cases", "cases.json", "runs/baseline/r1", "runs/new/r1"]);
    assert_eq!(judged.code, Some(1), "{judged}");
    assert_eq!(sandbox.json("report/evaluation.json")["cases"][0]["verdict"], "regressed");
    let kept = fs::read(sandbox.path(&format!("runs/new/r1/assets/{id}.log.txt"))).unwrap();
    assert!(kept == fs::read(sandbox.path(&new)).unwrap());
}

#[test]
fn equal_recordings_are_unchanged_from_the_log_or_from_the_events() {
    let sandbox = Sandbox::new().with_file("words", "same\n\n\u{e4}\n").with_file("code", "3");
    let log = record(&sandbox, "one", SCRIPT).unwrap();
    record(&sandbox, "two", SCRIPT).unwrap();
    let case = compared(&sandbox, &log, "two");
    assert_eq!(case["verdict"], "unchanged", "{case}");
}

#[test]
fn long_output_becomes_an_asset_and_is_compared_all_the_same() {
    let script = "seq 1 30000 | sed \"s/^29000$/$(cat words)/\"; printf '\\377\\n'";
    let sandbox = Sandbox::new().with_file("words", "old");
    assert_eq!(record(&sandbox, "one", script), None, "success leaves no log");
    let sandbox = sandbox.with_file("words", "new");
    record(&sandbox, "two", script);
    let case = compared(&sandbox, "one", "two");
    assert_eq!(case["verdict"], "changed", "{case}");
    let id = case["case_id"].as_str().unwrap();
    let payload = sandbox.json(&format!("runs/new/r1/assets/full_payload_new_{id}_e1.json"));
    let lines: Vec<_> = payload["stdout"].as_str().unwrap().split('\n').collect();
    assert_eq!((lines[28_999], lines[30_000], lines[30_001]), ("new", "base64:/w==", ""));
    assert_eq!(case["reasons"][0]["message"], "result of safe-run: stdout “old” → “new”");
}

#[test]
fn several_records_make_one_run_with_a_case_each() {
    let sandbox = Sandbox::new();
    for (events, script) in [("one", "echo one"), ("again", "echo one"), ("two", "echo two; exit 2")] {
        record(&sandbox, events, script);
    }
    let exported = sandbox.run(["export-run", "one", "again", "two", "--side", "new", "--run-id", "r1"]);
    insta::assert_snapshot!(exported, @r"
    exit code: 0
    --- stdout
    run folder: runs/new/r1
    --- stderr
    cmd-sh-14148511: sh -c 'echo one' (exit code 0)
    cmd-sh-14148511-2: sh -c 'echo one' (exit code 0)
    cmd-sh-d8abfdb3: sh -c 'echo two; exit 2' (exit code 2)
    ");
    assert_eq!(sandbox.run(["validate", "runs"]).code, Some(0));
    let run = sandbox.json("runs/new/r1/run.json");
    assert_eq!(run["stats"]["cases_total"], 3);
}

#[test]
fn a_log_and_its_events_are_checked_against_each_other_and_stored_together() {
    let sandbox = Sandbox::new();
    let log = record(&sandbox, "one", "echo one; exit 1").unwrap();
    record(&sandbox, "two", "echo two; exit 1");
    let exported = export(&sandbox, &log, "new", &["--events", "one", "--case-id", "mine"]);
    assert_eq!(exported.code, Some(0), "{exported}");
    let case = sandbox.json("runs/new/r1/mine.json");
    assert_eq!(case["attempts"][0]["outcome"], "ok", "the events have the times: {case}");
    for name in ["mine.log.txt", "mine.events.txt"] {
        assert!(sandbox.path("runs/new/r1/assets").join(name).is_file(), "{name}");
    }
    assert_eq!(sandbox.run(["validate", "runs"]).code, Some(0));
    let exported = export(&sandbox, &log, "baseline", &["--events", "two"]);
    assert_eq!(exported.code, Some(2), "{exported}");
    assert!(exported.stderr.contains("are not records of the same execution: the command differs"), "{exported}");
    assert!(!sandbox.path("runs/baseline/r1").exists());
}

#[test]
fn a_record_from_a_pipe_is_stored_byte_for_byte() {
    let sandbox = Sandbox::new();
    record(&sandbox, "one", "echo one; exit 1");
    let whole = fs::read(sandbox.path("one")).unwrap();
    let mut writer = Command::new("cat").arg(sandbox.path("one")).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = writer.stdout.take().unwrap();
    let arguments = ["export-run", "/dev/stdin", "--side", "new", "--run-id", "r1", "--case-id", "mine"];
    let exported = sandbox.command(arguments).stdin(pipe).status().unwrap();
    writer.wait().unwrap();
    assert!(exported.success());
    assert!(fs::read(sandbox.path("runs/new/r1/assets/mine.events.txt")).unwrap() == whole);
    assert_eq!(sandbox.run(["validate", "runs"]).code, Some(0));
}

#[test]
fn a_command_that_was_killed_differs_from_one_that_exited_with_the_same_code() {
    let sandbox = Sandbox::new().with_file("code", "exit 143");
    record(&sandbox, "one", "eval \"$(cat code)\"");
    let sandbox = sandbox.with_file("code", "kill -TERM $$");
    record(&sandbox, "two", "eval \"$(cat code)\"");
    let case = compared(&sandbox, "one", "two");
    assert_eq!(case["verdict"], "changed", "{case}");
    let page = format!("report/cases/{}.html", case["case_id"].as_str().unwrap());
    assert!(fs::read_to_string(sandbox.path(&page)).unwrap().contains("signal"), "{case}");
}

#[test]
fn a_command_cannot_send_control_characters_to_the_terminal() {
    let sandbox = Sandbox::new();
    // Events repeat the arguments next to their text, so only a log can be crafted.
    let log = record(&sandbox, "events", "exit 1").unwrap();
    let crafted = fs::read_to_string(sandbox.path(&log)).unwrap().replace("exit 1'", "\u{1b}]0;x\u{7}\u{202e}'");
    let sandbox = sandbox.with_file("one", &crafted);
    let exported = export(&sandbox, "one", "new", &[]);
    assert_eq!(exported.code, Some(0), "{exported}");
    assert!(exported.stderr.contains(r"\u{1b}]0;x\u{7}\u{202e}"), "{exported}");
    assert!(!exported.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{exported}");
}

#[test]
fn an_incomplete_record_is_reported_with_its_line_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let log = record(&sandbox, "events", "echo one; echo two; exit 1").unwrap();
    let log = fs::read_to_string(sandbox.path(&log)).unwrap();
    let events = fs::read_to_string(sandbox.path("events")).unwrap();
    let torn = log.split_once("[SEQ=3]").unwrap().0;
    for (text, told) in [
        (torn, "error: `broken`, line 9: the record ends before the exit of the command"),
        (&log.replace("SEQ=3", "SEQ=4"), "error: `broken`, line 10: expected event 3, found event 4"),
        (&log.replacen("two", "twice", 1), "error: `broken`, line 3: the section differs from the ledger"),
        (&events[..events.len() - 9], "error: `broken`, line 4: not an event: "),
        (
            &events.replace("\"exit_code\":1", "\"exit_code\":0"),
            "error: `broken`, line 4: the fields `exit_code` and `text` contradict each other",
        ),
        (
            &events.replace("\"started_at\":", "\"began_at\":"),
            "error: `broken`, line 1: the start of the command has no field `started_at`",
        ),
        (
            &events.replace("\"args\":", "\"words\":"),
            "error: `broken`, line 1: the start of the command has no field `args`",
        ),
        ("merged output\n", "error: `broken`, line 1: the file ends without a ledger of events"),
    ] {
        let sandbox = Sandbox::new().with_file("broken", text);
        let before = files_below(sandbox.root());
        let exported = export(&sandbox, "broken", "new", &[]);
        assert_eq!(exported.code, Some(2), "{exported}");
        assert!(exported.stderr.starts_with(told), "{exported}");
        assert!(files_below(sandbox.root()) == before, "{exported}");
    }
    let absent = export(&sandbox, "absent", "new", &[]);
    assert!(absent.code == Some(3) && absent.stderr.contains("failed to read `absent`"), "{absent}");
    assert_eq!(export(&sandbox, "events", "new", &[]).code, Some(0));
    let again = export(&sandbox, "events", "new", &[]);
    assert!(again.code == Some(2) && again.stderr.contains("already exists"), "{again}");
    let both = sandbox.run(["export-run", "events", "events", "--case-id", "x", "--side", "new", "--run-id", "r2"]);
    assert!(both.code == Some(2) && both.stderr.contains("require a single LOG"), "{both}");
}
