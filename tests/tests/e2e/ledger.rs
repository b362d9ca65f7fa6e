//! `counterproof ledger`: events of any producer in, tables and lines out.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use counterproof_store::write::{Durability, write};
use counterproof_tests::{Finished, Sandbox, UNSHARE, program};
use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// An event of a producer that states nothing but what is required.
fn event(run: &str, kind: &str, ts: &str, more: &Value) -> String {
    let mut event = json!({"v": "0.1.0", "type": kind, "ts": ts, "run_id": run});
    for (field, value) in more.as_object().unwrap() {
        event[field] = value.clone();
    }
    event.to_string() + "\n"
}

/// The events of two runs: one with an allowed and a refused call, and one without an end.
fn events() -> String {
    let call =
        |id: &str, tool: &str| json!({"call_id": id, "server_name": "git", "tool_name": tool, "args_hash": "0a"});
    let start = |id: &str, tool: &str, preview: &str| {
        let mut call = call(id, tool);
        call["bytes_in"] = json!(70);
        call["preview"] = json!({"truncated": false, "args_preview": preview});
        json!({ "call": call })
    };
    let decide = |id: &str, tool: &str, action: &str| json!({"call": call(id, tool), "decision": {"action": action, "rule_id": null, "severity": "info"}});
    let end = |id: &str, tool: &str, status: &str| json!({"call": call(id, tool), "status": status, "latency_ms": 12, "bytes_out": 34, "preview": {"truncated": true}});
    let identity = json!({
        "agent_id": "coder", "client": "codex", "env": "ci", "principal": "ada",
        "workload": {"repo": "acme/shop", "branch": "main"}, "run": {"mode": "guardrails"},
    });
    [
        event("r1", "run_start", "2026-01-31T12:00:00Z", &identity),
        event("r1", "tool_call_start", "2026-01-31T12:00:01Z", &start("c1", "status", "{}")),
        event("r1", "tool_call_decision", "2026-01-31T12:00:01Z", &decide("c1", "status", "ALLOW")),
        event("r1", "tool_call_end", "2026-01-31T12:00:02Z", &end("c1", "status", "OK")),
        event("r1", "tool_call_start", "2026-01-31T12:00:03Z", &start("c2", "push", "{}")),
        event("r1", "tool_call_decision", "2026-01-31T12:00:03Z", &decide("c2", "push", "BLOCK")),
        event("r1", "tool_call_end", "2026-01-31T12:00:03Z", &end("c2", "push", "ERROR")),
        event("r1", "run_end", "2026-01-31T12:00:04Z", &json!({"run": {"status": "SUCCEEDED"}})),
        event("r2", "run_start", "2026-02-01T12:00:00Z", &json!({})),
        event("r2", "tool_call_start", "2026-02-01T12:00:01Z", &start("c3", "push", "{\"later\":1}")),
    ]
    .concat()
}

fn sandbox() -> Sandbox {
    Sandbox::new().with_file("events.jsonl", &events()).with_variable("COUNTERPROOF_LEDGER", "ledger.db")
}

fn ingested() -> Sandbox {
    let sandbox = sandbox();
    assert_eq!(sandbox.run(["ledger", "ingest", "events.jsonl"]).code, Some(0));
    sandbox
}

fn json_of(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

#[test]
fn a_ledger_that_does_not_exist_is_an_error_and_an_empty_one_is_not() {
    let sandbox = sandbox();
    for command in ["query", "runs", "tail", "export"] {
        assert_eq!(sandbox.run(["ledger", command]).code, Some(3), "{command}");
    }
    assert_snapshot!(sandbox.run(["ledger", "query"]), @r##"
exit code: 3
--- stderr
error: there is no ledger at `ledger.db`
hint: record calls with `counterproof guard`, or name another ledger with `--ledger`
    "##);
    assert_eq!(
        sandbox.command(["ledger", "ingest"]).output().unwrap().status.code(),
        Some(0),
        "standard input is empty"
    );
    assert_snapshot!(sandbox.run(["ledger", "query"]), @r##"
exit code: 0
--- stderr
no calls in `ledger.db` meet the conditions
    "##);
    assert_snapshot!(sandbox.run(["ledger", "tail", "--json"]), @r##"
exit code: 0
--- stderr
no events in `ledger.db`
    "##);
}

#[test]
fn calls_are_listed_by_their_fields() {
    let sandbox = ingested();
    assert_snapshot!(sandbox.run(["ledger", "query"]), @r##"
exit code: 0
--- stdout
ts                        run_id  server  tool    decision  rule  status  latency_ms  call_id
2026-02-01T12:00:01.000Z  r2      git     push    -         -     -       -           c3
2026-01-31T12:00:03.000Z  r1      git     push    BLOCK     -     ERROR   12          c2
2026-01-31T12:00:01.000Z  r1      git     status  ALLOW     -     OK      12          c1
    "##);
    let found = |arguments: &[&str]| {
        let finished = sandbox.run([&["ledger", "query", "--json"], arguments].concat());
        let calls = json_of(&finished)["calls"].as_array().unwrap().clone();
        calls.iter().map(|call| call["call_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found(&["--run", "r1"]), "c2 c1");
    assert_eq!(found(&["--tool", "push"]), "c3 c2");
    assert_eq!(found(&["--server", "git", "--limit", "1"]), "c3");
    assert_eq!(found(&["--decision", "block"]), "c2");
    assert_eq!(found(&["--status", "OK"]), "c1");
    assert_eq!(found(&["--args-hash", "0A", "--since", "2026-01-31T13:00:03+01:00"]), "c3 c2");
    assert_eq!(found(&["--since", "1h"]), "");
    let cut = sandbox.run(["ledger", "query", "--limit", "2"]);
    assert_eq!(cut.stderr, "more than 2 calls meet the conditions; raise `--limit` to list them\n", "{cut}");
    assert_eq!(sandbox.run(["ledger", "query", "--limit", "3"]).stderr, "");
}

#[test]
fn a_call_is_shown_with_its_arguments_its_result_and_what_was_observed() {
    let call = json!({"call_id": "c4", "server_name": "git", "tool_name": "push", "args_hash": "0b"});
    let mut start = json!({ "call": call });
    start["call"]["preview"] = json!({"truncated": false, "args_preview": "{\"to\":\n\"main\"}"});
    let observed = json!({"action": "BLOCK", "rule_id": "no-push", "severity": "high"});
    let decision = json!({
        "call": call,
        "decision": {"action": "ALLOW", "rule_id": null, "severity": "info", "observed": observed,
                     "explain": {"summary": "observed", "reason_code": "OBSERVED"}},
    });
    let end = json!({"call": call, "status": "OK", "latency_ms": 3, "preview": {"truncated": false, "result_preview": "{\"ok\":true}"}});
    let lines = [
        event("r3", "tool_call_start", "2026-02-02T12:00:01Z", &start),
        event("r3", "tool_call_decision", "2026-02-02T12:00:01Z", &decision),
        event("r3", "tool_call_end", "2026-02-02T12:00:02Z", &end),
    ];
    let sandbox = ingested().with_file("more.jsonl", &lines.concat());
    assert_eq!(sandbox.run(["ledger", "ingest", "more.jsonl"]).code, Some(0));
    assert_snapshot!(sandbox.run(["ledger", "query", "--would-refuse", "--previews"]), @r##"
exit code: 0
--- stdout
2026-02-02T12:00:01.000Z
  run         r3
  call        c4
  tool        git.push
  decision    ALLOW (observed: BLOCK)
  rule        no-push (OBSERVED)
  status      OK
  latency_ms  3
  args        {"to": "main"}
  result      {"ok":true}
    "##);
    let found = json_of(&sandbox.run(["ledger", "query", "--run", "r3", "--previews", "--json"]));
    assert_eq!(found["calls"][0]["args_preview"], "{\"to\":\n\"main\"}");
    assert_eq!(found["calls"][0]["result_preview"], "{\"ok\":true}");
}

#[test]
fn refused_and_failed_calls_are_shown_with_the_reason() {
    let call = |id: &str| json!({"call_id": id, "server_name": "git", "tool_name": "push", "args_hash": "0b"});
    let decide = |id: &str, action: &str, summary: &str| json!({"call": call(id), "decision": {"action": action, "rule_id": null, "explain": {"summary": summary, "reason_code": "R"}}});
    let end = |id: &str, message: &str| json!({"call": call(id), "status": "ERROR", "error": {"class": "transport", "message": message}});
    let lines = [
        event("r3", "tool_call_decision", "2026-02-02T12:00:01Z", &decide("c4", "BLOCK", "pushes\nare not allowed")),
        event("r3", "tool_call_end", "2026-02-02T12:00:01Z", &end("c4", "pushes\nare not allowed")),
        event("r3", "tool_call_decision", "2026-02-02T12:00:02Z", &decide("c5", "ALLOW", "Allowed")),
        event("r3", "tool_call_end", "2026-02-02T12:00:03Z", &end("c5", &"the server ended ".repeat(200))),
    ];
    let sandbox = ingested().with_file("more.jsonl", &lines.concat());
    assert_eq!(sandbox.run(["ledger", "ingest", "more.jsonl"]).code, Some(0));
    let shown = sandbox.run(["ledger", "query", "--run", "r3", "--previews"]).stdout;
    assert_eq!(shown.matches("  refused     pushes are not allowed\n").count(), 1, "{shown}");
    assert_eq!(shown.matches("  error       the server ended the server").count(), 1, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() < 2100), "{shown}");
    let found = json_of(&sandbox.run(["ledger", "query", "--run", "r3", "--previews", "--json"]));
    assert_eq!(found["calls"][1]["decision_summary"], "pushes\nare not allowed");
    assert_eq!(found["calls"][0]["decision_summary"], Value::Null, "the call was allowed");
    assert!(found["calls"][0]["error_message"].as_str().unwrap().starts_with("the server ended"), "{found}");
    let without = json_of(&sandbox.run(["ledger", "query", "--run", "r3", "--json"]));
    assert_eq!(without["calls"][0].get("error_message"), None);
}

#[test]
fn a_filter_that_nothing_can_meet_is_an_error() {
    let sandbox = ingested();
    assert_snapshot!(sandbox.run(["ledger", "query", "--run", "nope"]), @r##"
exit code: 2
--- stderr
error: the ledger `ledger.db` has no run `nope`
hint: list the runs with `counterproof ledger runs --ledger ledger.db`
    "##);
    assert_snapshot!(sandbox.run(["ledger", "runs", "--run", "nope"]), @r##"
exit code: 2
--- stderr
error: the ledger `ledger.db` has no run `nope`
hint: list the runs with `counterproof ledger runs --ledger ledger.db`
    "##);
    let refused = sandbox.run(["ledger", "query", "--decision", "BLOCKED"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("REJECT_WITH_HINT"), "the values are listed: {refused}");
    assert_eq!(sandbox.run(["ledger", "query", "--status", "okay"]).code, Some(2));
    // A run without calls is no error.
    let start = event("r4", "run_start", "2026-02-02T12:00:00Z", &json!({}));
    let sandbox = sandbox.with_file("more.jsonl", &start);
    assert_eq!(sandbox.run(["ledger", "ingest", "more.jsonl"]).code, Some(0));
    assert_eq!(sandbox.run(["ledger", "query", "--run", "r4"]).code, Some(0));
}

#[test]
fn id_002_runs_without_an_identity_are_unknown() {
    let sandbox = ingested();
    assert_snapshot!(sandbox.run(["ledger", "runs"]), @r##"
exit code: 0
--- stdout
started_at                run_id  agent    client   env      principal  workload        status     sources  calls  refused  errors
2026-02-01T12:00:00.000Z  r2      unknown  unknown  unknown  unknown    unknown         NOT ENDED  1        1      0        0
2026-01-31T12:00:00.000Z  r1      coder    codex    ci       ada        acme/shop@main  SUCCEEDED  1        2      1        1
    "##);
    let runs = json_of(&sandbox.run(["ledger", "runs", "--json"]));
    assert_eq!(runs["runs"][0]["principal"], Value::Null);
    assert_eq!(runs["runs"][1]["workload"]["repo"], "acme/shop");
}

#[test]
fn ingest_names_invalid_lines_and_adds_the_others_once() {
    let sandbox = sandbox();
    let lines = "{\"type\":\"a\"}\n\nnonsense\n".to_owned() + &event("r9", "new_type", "yesterday", &json!({}));
    let lines = lines + &event("r9", "new_type", "9999-12-31T23:59:59Z", &json!({}));
    let sandbox =
        sandbox.with_file("odd.jsonl", &(lines + &event("r9", "new_type", "2026-03-01T00:00:00Z", &json!({}))));
    assert_snapshot!(sandbox.run(["ledger", "ingest", "odd.jsonl"]), @r##"
exit code: 1
--- stdout
ledger.db: 1 events added, 0 skipped
--- stderr
odd.jsonl:1: missing field `ts` at column 12
odd.jsonl:3: expected ident at column 2
odd.jsonl:4: field `ts`: `yesterday` is not an RFC 3339 time
odd.jsonl:5: field `ts`: the time `9999-12-31T23:59:59Z` is out of range; the latest one is 9999-12-30T22:00:00.999999999Z
error: invalid lines: 4
hint: correct them and add the file again; events that are in the ledger are skipped
    "##);
    assert_snapshot!(sandbox.run(["ledger", "ingest", "odd.jsonl", "--json"]), @r##"
exit code: 1
--- stdout
{
  "added": 0,
  "already_stored": 1,
  "without_rows": 0,
  "invalid_lines": 4
}
--- stderr
odd.jsonl:1: missing field `ts` at column 12
odd.jsonl:3: expected ident at column 2
odd.jsonl:4: field `ts`: `yesterday` is not an RFC 3339 time
odd.jsonl:5: field `ts`: the time `9999-12-31T23:59:59Z` is out of range; the latest one is 9999-12-30T22:00:00.999999999Z
error: invalid lines: 4
hint: correct them and add the file again; events that are in the ledger are skipped
    "##);
    assert_eq!(sandbox.run(["ledger", "ingest", "missing.jsonl"]).code, Some(3));
}

#[test]
fn an_export_has_the_lines_as_they_were_written() {
    let hostile = event("r3", "unknown\u{202e}", "2026-02-02T12:00:00.5+01:00", &json!({"x": "\u{1b}[2J", "n": 1.50}));
    let sandbox = ingested().with_file("more.jsonl", &hostile.replace("1.5", "1.50"));
    assert_eq!(sandbox.run(["ledger", "ingest", "more.jsonl"]).code, Some(0));
    assert_eq!(sandbox.run(["ledger", "export", "--out", "all.jsonl"]).code, Some(0));
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    assert_eq!(read("all.jsonl"), read("events.jsonl") + &read("more.jsonl"));
    sandbox.run(["ledger", "export", "--run", "r2", "--out", "r2.jsonl"]);
    assert_eq!(
        read("r2.jsonl"),
        read("events.jsonl").lines().skip(8).map(|line| line.to_owned() + "\n").collect::<String>()
    );
    let printed = sandbox.run(["ledger", "export", "--run", "r3"]).stdout;
    assert!(!printed.contains('\u{202e}') && printed.contains("\\u202e"), "{printed}");
    let value: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(value, serde_json::from_str::<Value>(&read("more.jsonl")).unwrap());
}

#[test]
fn old_runs_are_deleted_with_everything_about_them() {
    let sandbox = ingested();
    assert_snapshot!(sandbox.run(["ledger", "prune", "--older-than", "1d", "--dry-run"]), @r##"
exit code: 0
--- stdout
run_id  last_event_at
r1      2026-01-31T12:00:04.000Z
--- stderr
runs that have not ended stay: 1; `--include-open` deletes them too
    "##);
    let recent =
        event("r3", "tool_call_start", &jiff::Timestamp::now().to_string(), &json!({"call": {"call_id": "c9"}}));
    let sandbox = sandbox.with_file("recent.jsonl", &recent);
    sandbox.run(["ledger", "ingest", "recent.jsonl"]);
    assert_snapshot!(sandbox.run(["ledger", "prune", "--older-than", "1d", "--include-open", "--vacuum"]), @r##"
exit code: 0
--- stdout
runs deleted: 2
    "##);
    assert_eq!(json_of(&sandbox.run(["ledger", "query", "--json"]))["calls"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(["ledger", "export"]).stdout, recent);
}

#[test]
fn files_that_are_no_ledgers_are_refused_and_left_alone() {
    let sandbox = sandbox().with_file("text.db", &"text ".repeat(200));
    assert_snapshot!(sandbox.run(["ledger", "query", "--ledger", "text.db"]), @r##"
exit code: 2
--- stderr
error: `text.db` is not a ledger: it is not a SQLite database
hint: name another file with `--ledger`
    "##);
    for command in [&["query"][..], &["runs"], &["tail"], &["export"], &["ingest", "events.jsonl"]] {
        let refused = sandbox.run([&["ledger"][..], command, &["--ledger", "."]].concat());
        let expected = "error: `.` is not a ledger: it is a folder, and a ledger is a file, such as `./ledger.db`\n\
                        hint: name another file with `--ledger`\n";
        assert_eq!((refused.code, refused.stderr.as_str()), (Some(2), expected), "{command:?}");
    }
    let doctor = sandbox.run(["ledger", "doctor", "--ledger", "."]);
    assert!(doctor.stdout.contains("it is a folder") && !doctor.stdout.contains("chmod"), "{doctor}");
    let text = std::fs::read_to_string(sandbox.path("text.db")).unwrap();
    assert_eq!(text, "text ".repeat(200));
    assert_snapshot!(sandbox.run(["ledger", "query", "--ledger", "mysql://h/d"]), @r##"
exit code: 2
--- stderr
error: invalid ledger (`--ledger` or COUNTERPROOF_LEDGER): a ledger cannot be at a `mysql` URL: pass a file, or a `postgres://` URL
    "##);
}

#[test]
fn the_doctor_names_problems_with_their_remedies() {
    let sandbox = ingested();
    let doctor = || sandbox.run(["ledger", "doctor"]).redact(sandbox.root().as_str(), "[root]");
    assert_snapshot!(doctor(), @r##"
exit code: 0
--- stdout
state  check             found
ok     integrity         ok
ok     journal_mode      wal
ok     schema_version    1
ok     events            no gap in the numbers of any source
ok     calls             as many as the end of each source states
ok     runs_without_end  0, of which a process was killed
ok     spool             0 files of running processes, 0 of ended ones, 0 bytes in `[root]/ledger.db.spool`
ok     set_aside         no invalid lines
ok     permissions       only the owner can read the files
    "##);
    // A number of a source is missing, and others can read the file.
    let numbered =
        |seq: u64| event("r5", "x", "2026-02-03T00:00:00Z", &json!({"seq": seq, "source": {"shim_id": "s"}}));
    let sandbox = sandbox.with_file("gap.jsonl", &(numbered(1) + &numbered(3)));
    sandbox.run(["ledger", "ingest", "gap.jsonl"]);
    std::fs::set_permissions(sandbox.path("ledger.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let found = sandbox.run(["ledger", "doctor"]);
    assert_eq!(found.code, Some(1));
    assert!(
        found.stdout.contains("with `counterproof ledger ingest --ledger ledger.db FILE`")
            && found.stdout.contains("run `chmod go-rwx -- "),
        "{found}"
    );
    let remedy = found.stdout.lines().last().unwrap();
    assert!(!remedy.contains("-wal") && !remedy.contains(".spool"), "only files that exist: {found}");
    // Pages of tables are overwritten.
    let mut bytes = std::fs::read(sandbox.path("ledger.db")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x5a);
    write(&sandbox.path("ledger.db"), &bytes, Durability::Cached).unwrap();
    let found = sandbox.run(["ledger", "doctor"]);
    assert_eq!(found.code, Some(1));
    assert!(found.stdout.contains("restore a backup"), "{found}");
}

#[test]
fn events_of_processes_that_were_killed_are_reported_in_a_sentence() {
    let waiting =
        |seq: u64| event("r5", "run_start", "2026-02-03T00:00:00Z", &json!({"seq": seq, "source": {"shim_id": "s"}}));
    let sandbox = ingested();
    std::fs::create_dir(sandbox.path("ledger.db.spool")).unwrap();
    for (number, expected) in [
        (1, "events added: 1, of 1 process that was killed\n"),
        (1, "the ledger already had all events of 1 process that was killed\n"),
    ] {
        write(&sandbox.path("ledger.db.spool/a.jsonl"), waiting(number).as_bytes(), Durability::Cached).unwrap();
        assert_eq!(sandbox.run(["ledger", "runs"]).stderr, expected);
    }
    write(&sandbox.path("ledger.db.spool/a.jsonl"), b"{\"type\": 1}\n", Durability::Cached).unwrap();
    let rejected = sandbox.run(["ledger", "runs"]).stderr;
    assert!(rejected.contains("`counterproof ledger doctor --ledger ledger.db` names their files"), "{rejected}");
}

#[test]
fn tail_prints_events_that_arrive_until_it_is_interrupted() {
    let sandbox = ingested();
    let arguments = ["ledger", "tail", "--follow", "--poll", "10ms", "--limit", "1"];
    let mut tail = sandbox.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("c3"));
    let mut ingest = sandbox.command(["ledger", "ingest"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let arrives = event("r7", "run_start", "2026-03-01T00:00:00Z", &json!({}));
    ingest.stdin.take().unwrap().write_all(arrives.as_bytes()).unwrap();
    assert!(ingest.wait().unwrap().success());
    assert_eq!(lines.next().unwrap().unwrap(), "2026-03-01T00:00:00Z  r7  run_start");
    kill_process(Pid::from_child(&tail), Signal::INT).unwrap();
    assert_eq!(tail.wait().unwrap().code(), Some(4));
}

#[test]
fn tail_ends_when_its_reader_has_gone() {
    let sandbox = ingested();
    let arguments = ["ledger", "tail", "--follow", "--poll", "10ms"];
    let mut tail = sandbox.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    drop(tail.stdout.take());
    let arrives = event("r7", "run_start", "2026-03-01T00:00:00Z", &json!({}));
    let sandbox = sandbox.with_file("arrives.jsonl", &arrives);
    // The first lines may have been printed before the pipe was closed.
    for number in 0..1000 {
        sandbox.run(["ledger", "ingest", "arrives.jsonl"]);
        if let Some(status) = tail.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0));
            return;
        }
        assert!(number < 999, "it ends");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_empty_file_is_no_ledger_and_stays_empty() {
    let sandbox = sandbox().with_file("empty.db", "");
    for command in ["query", "runs", "tail", "export", "doctor"] {
        let finished = sandbox.run(["ledger", command, "--ledger", "empty.db"]);
        assert!(matches!(finished.code, Some(1 | 3)), "{finished}");
        assert_eq!(sandbox.path("empty.db").metadata().unwrap().len(), 0, "{command}");
    }
    assert_eq!(sandbox.run(["ledger", "ingest", "events.jsonl", "--ledger", "empty.db"]).code, Some(0));
}

#[test]
fn a_ledger_that_cannot_be_written_can_be_read() {
    let sandbox = ingested();
    let script = format!(
        "mkdir copy && cp ledger.db copy/ && mkdir copy/ledger.db.spool && echo '{{}}' > copy/ledger.db.spool/a.jsonl && \
         mount --bind copy copy && mount -o remount,ro,bind copy || exit 99\n\
         for command in query runs tail export doctor; do\n\
         {} ledger $command --ledger copy/ledger.db > $command.out 2>> errors; echo $command $?\ndone",
        program().display()
    );
    let mut command = Command::new("sh");
    let wrapper = ["-c", UNSHARE, "sh", "--mount", "--map-root-user", "sh", "-c", &script];
    let output = command.args(wrapper).current_dir(sandbox.root()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(99) || said.contains("unshare:") {
        println!("skipped: a file system may not be mounted here: {said}");
        return;
    }
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    let codes = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        codes.lines().collect::<Vec<_>>(),
        ["query 0", "runs 0", "tail 0", "export 0", "doctor 1"],
        "{}",
        read("errors")
    );
    assert_eq!(read("export.out"), read("events.jsonl"));
    assert_eq!(read("errors").matches("can only be read; events that wait in").count(), 5, "{}", read("errors"));
    assert!(read("query.out").contains("c2") && read("doctor.out").contains("ok"), "{}", read("doctor.out"));
}

#[test]
fn a_live_run_is_found_by_all_names_of_its_ledger() {
    let sandbox = sandbox();
    let folder = sandbox.path("state");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("state", sandbox.path("folder")).unwrap();
    std::os::unix::fs::symlink("state/ledger.db", sandbox.path("link.db")).unwrap();
    let mut shim = sandbox
        .command(["guard", "shim", "--server-name", "s", "--ledger", "link.db", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shim.stdin.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n").unwrap();
    let mut output = BufReader::new(shim.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    for ledger in ["link.db", "state/ledger.db", "folder/ledger.db", "./state/../link.db"] {
        let start = std::time::Instant::now();
        let mut runs = sandbox.run(["ledger", "runs", "--ledger", ledger]);
        while !runs.stdout.contains("RUNNING") && start.elapsed() < Duration::from_mins(1) {
            runs = sandbox.run(["ledger", "runs", "--ledger", ledger]);
        }
        assert!(runs.stdout.contains("RUNNING"), "{ledger}: {runs}");
        let pruned = sandbox.run(["ledger", "prune", "--older-than", "1ns", "--include-open", "--ledger", ledger]);
        assert!(pruned.stdout.contains("runs deleted: 0"), "{ledger}: {pruned}");
    }
    drop(input);
    shim.wait().unwrap();
}

#[test]
fn tail_shows_events_that_cannot_be_parsed() {
    let line = "{\"type\":\"odd\",\"ts\":\"2026-03-01T00:00:00Z\",\"run_id\":\"r8\",\"n\":1e999}\n";
    let sandbox = sandbox().with_file("odd.jsonl", line);
    sandbox.run(["ledger", "ingest", "odd.jsonl"]);
    let shown = sandbox.run(["ledger", "tail"]).stdout;
    assert_eq!(shown, format!("2026-03-01T00:00:00.000Z  r8  odd  {line}"));
}

#[test]
fn passwords_in_urls_of_ledgers_are_never_printed() {
    let sandbox = sandbox();
    for url in [
        "postgres://u@127.0.0.1:1/db?password=s3cr@et",
        "postgres://u:s3cr@et@127.0.0.1:1/db",
        "postgres://127.0.0.1:1/db?password=s3cr@et",
        "postgres://u@127.0.0.1:1/db?pass%77ord=s3cr%40et",
    ] {
        for command in ["query", "doctor"] {
            let finished = sandbox.run(["ledger", command, "--ledger", url]);
            assert!(!finished.to_string().contains("s3c") && !finished.to_string().contains("et@"), "{finished}");
        }
    }
}

#[test]
fn a_guard_warns_about_readers_of_a_file_of_events_that_exists() {
    let sandbox = sandbox().with_file("out.jsonl", "");
    let run = || {
        let arguments = ["guard", "shim", "--server-name", "s", "--events", "out.jsonl", "--", "true"];
        let output = sandbox.command(arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    std::fs::set_permissions(sandbox.path("out.jsonl"), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(run().contains("other users can read the events in out.jsonl; run `chmod go-rwx -- out.jsonl`"));
    assert_eq!(sandbox.path("out.jsonl").metadata().unwrap().permissions().mode() & 0o777, 0o644);
    std::fs::remove_file(sandbox.path("out.jsonl")).unwrap();
    assert!(!run().contains("other users"));
}

#[test]
fn a_location_that_is_refused_does_not_show_its_password() {
    let url = "mysql://ada:hunter2-hunter2@db.example/ledger";
    let commands: [&[&str]; 3] = [
        &["ledger", "runs", "--ledger", url],
        &["guard", "shim", "--server-name", "a", "--ledger", url, "--", "true"],
        &["guard", "run", "--ledger", url, "--", "true"],
    ];
    for command in commands {
        let refused = Sandbox::new().run(command);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(!refused.stderr.contains("hunter2") && refused.stderr.contains("mysql"), "{}", refused.stderr);
    }
    let from_variable = Sandbox::new().with_variable("COUNTERPROOF_LEDGER", url).run(["ledger", "runs"]);
    assert_eq!(from_variable.code, Some(2));
    assert!(!from_variable.stderr.contains("hunter2"), "{}", from_variable.stderr);
}
