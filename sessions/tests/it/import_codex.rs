//! Rollouts of Codex, written by a generator that follows the format.

#![allow(clippy::needless_pass_by_value, reason = "values of `json!` are made for one call")]

use counterproof_sessions::event::{Api, CommandLine, EventBody, FileChange, RequestedCall};
use counterproof_sessions::import::{Format, ImportedSession};
use counterproof_sessions::protocol::AnsweredCalls;
use counterproof_sessions::session::SessionStatus;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use crate::import_kit::{Files, Imported, history, jsonl, of_type, tokens, tools, transitions};

/// Writes the lines of a rollout.
#[derive(Clone)]
struct Writer {
    second: u64,
    total: [u64; 3],
    lines: Vec<Value>,
}

impl Writer {
    fn new(meta: Value) -> Self {
        let mut writer = Self { second: 0, total: [0; 3], lines: Vec::new() };
        let mut payload = json!({"timestamp": "2026-05-01T10:00:00.000Z", "cwd": "/w", "originator": "codex_cli", "cli_version": "0.104.0", "source": "cli"});
        payload.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        writer.line("session_meta", payload);
        writer.line("turn_context", json!({"cwd": "/w", "model": "gpt-5.3-codex", "approval_policy": "never"}));
        writer
    }

    fn line(&mut self, kind: &str, payload: Value) {
        self.second += 2;
        let time = format!(
            "2026-05-01T{:02}:{:02}:{:02}.000Z",
            10 + self.second / 3600,
            self.second / 60 % 60,
            self.second % 60
        );
        self.lines.push(json!({"timestamp": time, "type": kind, "payload": payload}));
    }

    fn item(&mut self, item: Value) {
        self.line("response_item", item);
    }

    fn event(&mut self, event: Value) {
        self.line("event_msg", event);
    }

    fn user(&mut self, text: &str) {
        self.event(json!({"type": "task_started", "turn_id": "t"}));
        self.item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}));
        self.event(json!({"type": "user_message", "message": text}));
    }

    fn answer(&mut self, text: &str) {
        self.event(json!({"type": "agent_message", "message": text}));
        self.item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
    }

    fn count(&mut self, input: u64, cached: u64, output: u64) {
        for (total, added) in self.total.iter_mut().zip([input, cached, output]) {
            *total += added;
        }
        let usage = |[input, cached, output]: [u64; 3]| json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 0, "total_tokens": input + output});
        let info = json!({"total_token_usage": usage(self.total), "last_token_usage": usage([input, cached, output]), "model_context_window": 1});
        self.event(json!({"type": "token_count", "info": info, "rate_limits": {}}));
    }

    fn repeat_count(&mut self) {
        let last = self.lines.iter().rev().find(|line| line["payload"]["type"] == "token_count").cloned();
        self.event(last.map_or(json!({"type": "token_count", "info": null}), |line| line["payload"].clone()));
    }

    fn call(&mut self, name: &str, arguments: Value, id: &str) {
        let arguments = arguments.to_string();
        self.item(json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": id}));
    }

    fn output(&mut self, id: &str, output: impl Into<Value>) {
        self.item(json!({"type": "function_call_output", "call_id": id, "output": output.into()}));
    }
}

fn sums(imported: &Imported) -> (u64, u64, u64, usize) {
    imported
        .sessions
        .iter()
        .map(tokens)
        .fold((0, 0, 0, 0), |sums, it| (sums.0 + it.0, sums.1 + it.1, sums.2 + it.2, sums.3 + it.3))
}

#[test]
fn a_call_that_is_imported_states_the_same_as_one_that_is_recorded() {
    for output in [
        json!("Exit code: 2\nWall time: 0.5 seconds\nTotal output lines: 1\nOutput:\nno\nexit code 7\n"),
        json!("Chunk ID: a1\nWall time: 2 seconds\nProcess exited with code 0\nOutput:\na\n…9 tokens truncated…\nb"),
        json!("Wall time: 2 seconds\nProcess running with session ID 4\nOutput:\n"),
        json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":3,\"duration_seconds\":0.25}}"),
        json!("{\"metadata\":{\"exit_code\":3}}"),
        json!([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}, {"type": "input_text", "text": "exit code 1"}]),
        json!({"content": "no", "success": false}),
        json!(""),
    ] {
        let mut lines = Writer::new(json!({"id": "thread-1"}));
        lines.call("shell", json!({"command": ["ls"]}), "c");
        lines.output("c", output.clone());
        let files = Files::new();
        files.lines("rollout-a.jsonl", &lines.lines);
        let imported = files.import();
        let mut calls = AnsweredCalls::new("s");
        let asked = RequestedCall::new(Some("c".into()), "shell".into(), "{\"command\":[\"ls\"]}".into());
        calls.asked(&[asked], jiff::Timestamp::UNIX_EPOCH);
        let item = json!({"type": "function_call_output", "call_id": "c", "output": output.clone()});
        let request = json!({"input": [item]}).to_string();
        let recorded = calls.answered(Api::OpenaiResponses, request.as_bytes());
        let command = recorded.iter().find_map(|event| match &event.body {
            EventBody::Command(command) => Some(command),
            _ => None,
        });
        let EventBody::Command(other) = &of_type(imported.only(), "command")[0].body else { panic!() };
        let command = command.unwrap();
        assert_eq!((&command.stdout, command.exit_code), (&other.stdout, other.exit_code), "{output}");
        assert_eq!(command.latency_ms, other.latency_ms, "{output}");
        let EventBody::ToolCall(call) = &recorded[0].body else { panic!() };
        let other = &tools(imported.only())[0];
        assert_eq!((&call.result.content, call.result.truncated), (&other.result.content, other.result.truncated));
    }
}

#[test]
fn each_distinct_token_count_is_a_call_and_repeated_ones_are_not() {
    let mut lines = Writer::new(json!({"id": "thread-1"}));
    lines.item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]}));
    lines.user("Add a file");
    lines.repeat_count();
    lines.item(
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e"}),
    );
    lines.call("shell_command", json!({"command": "ls", "workdir": "/w/sub"}), "call_1");
    lines.count(100, 40, 9);
    lines.output("call_1", "Exit code: 2\nWall time: 0.5 seconds\nOutput:\nno\n");
    lines.repeat_count();
    lines.answer("Done");
    lines.count(200, 90, 5);
    lines.event(json!({"type": "task_complete", "last_agent_message": "Done"}));
    let files = Files::new();
    files.lines("2026/05/01/rollout-a.jsonl", &lines.lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(session.head.session_id, "thread-1");
    assert_eq!(session.head.title.as_deref(), Some("Add a file"));
    assert_eq!(tokens(session), (300, 14, 130, 2));
    let EventBody::LlmCall(first) = &of_type(session, "llm_call")[0].body else { panic!() };
    assert_eq!(first.request.model.as_deref(), Some("gpt-5.3-codex"));
    assert_eq!(first.request.messages.as_array().unwrap().len(), 2);
    assert_eq!(first.response.as_ref().unwrap().content, None);
    assert_eq!(first.response.as_ref().unwrap().tool_calls[0].id.as_deref(), Some("call_1"));
    let kinds: Vec<Value> = history(session, 1).as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["message", "message", "reasoning", "function_call", "function_call_output"]);
    let tool = &tools(session)[0];
    assert_eq!((tool.result.success, tool.latency_ms), (Some(false), Some(500)));
    let EventBody::Command(command) = &of_type(session, "command")[0].body else { panic!() };
    assert_eq!(command.command, Some(CommandLine::Shell("ls".into())));
    assert_eq!(
        (command.exit_code, command.cwd.as_deref(), command.stdout.as_deref()),
        (Some(2), Some("/w/sub"), Some("no\n"))
    );
    assert!((imported.report.coverage() - 1.0).abs() < f64::EPSILON);
    assert_eq!(imported.report.left_out["event_msg/token_count"], 2);
}

#[test]
fn a_fork_has_only_its_own_events_even_if_its_copies_have_other_times() {
    let mut parent = Writer::new(json!({"id": "parent"}));
    parent.user("Begin");
    parent.answer("one");
    parent.count(100, 0, 1);
    let shared = parent.clone();
    parent.user("Parent goes on");
    parent.answer("two");
    parent.count(150, 0, 2);
    let mut fork = Writer { second: 1000, ..shared.clone() };
    fork.lines.clear();
    fork.line(
        "session_meta",
        json!({"id": "fork", "forked_from_id": "parent", "timestamp": "2026-05-01T10:16:42.000Z", "cwd": "/w"}),
    );
    let time = fork.lines[0]["timestamp"].clone();
    for line in &shared.lines {
        let mut line = line.clone();
        line["timestamp"] = time.clone();
        fork.lines.push(line);
    }
    fork.repeat_count();
    fork.user("Fork goes on");
    fork.answer("three");
    fork.count(170, 0, 3);
    let mut grandchild = fork.clone();
    grandchild.second = 2000;
    grandchild.lines.insert(0, json!({"timestamp": "2026-05-01T10:40:00.000Z", "type": "session_meta", "payload": {"id": "grandchild", "forked_from_id": "fork", "timestamp": "2026-05-01T10:40:00.000Z"}}));
    grandchild.user("Grandchild goes on");
    grandchild.answer("four");
    grandchild.count(190, 0, 4);
    let files = Files::new();
    files.lines("rollout-1-grandchild.jsonl", &grandchild.lines);
    files.lines("rollout-2-fork.jsonl", &fork.lines);
    files.lines("rollout-3-parent.jsonl", &parent.lines);
    let imported = files.import();
    assert_eq!(imported.report.sessions, ["parent", "fork", "grandchild"]);
    assert_eq!(sums(&imported), (610, 10, 0, 4));
    assert_eq!(tokens(imported.session("fork")), (170, 3, 0, 1));
    assert_eq!(imported.session("fork").head.parent.as_ref().unwrap().session_id, "parent");
    assert_eq!(imported.session("grandchild").head.parent.as_ref().unwrap().session_id, "fork");
    let text = history(imported.session("fork"), 0).to_string();
    assert!(text.contains("Begin") && text.contains("one") && !text.contains("Parent goes on"), "{text}");

    // Without the parent, the copies are recognized by their time.
    let alone = Files::new();
    alone.lines("rollout-2-fork.jsonl", &fork.lines);
    let imported = alone.import();
    assert_eq!(tokens(imported.only()), (170, 3, 0, 1));
}

#[test]
fn one_thread_may_have_several_files_and_the_plain_one_wins() {
    let mut first = Writer::new(json!({"id": "thread-1"}));
    first.user("Begin");
    first.answer("one");
    first.count(10, 0, 1);
    let mut second = Writer { second: 500, ..first.clone() };
    second.lines.clear();
    second.line("session_meta", json!({"id": "thread-1", "timestamp": "2026-05-01T10:00:00.000Z", "cwd": "/w"}));
    second.user("Go on");
    second.answer("two");
    second.count(20, 0, 2);
    let compressed = compress_to_vec(jsonl(&first.lines).as_bytes(), CompressionLevel::Fastest);
    let files = Files::new();
    files.write("01/rollout-a.jsonl.zst", &compressed);
    files.lines("02/rollout-b.jsonl", &second.lines);
    files.write("02/rollout-b.jsonl.zst", "not read");
    let imported = files.import();
    let session = imported.only();
    assert_eq!(imported.report.files, 2);
    assert_eq!(imported.report.problems, []);
    assert_eq!(tokens(session), (30, 3, 0, 2));
    assert_eq!(history(session, 1).as_array().unwrap().len(), 3);

    // Two frames one after the other, and a file that is cut off.
    let files = Files::new();
    let path = files.write(
        "x.jsonl.zst",
        [&compressed[..], &compress_to_vec(jsonl(&second.lines[1..]).as_bytes(), CompressionLevel::Fastest)].concat(),
    );
    assert_eq!(tokens(crate::import_kit::import_all(&[path], None).only()), (30, 3, 0, 2));
    let path = files.write("y.jsonl.zst", &compressed[..compressed.len() - 9]);
    let imported = crate::import_kit::import_all(&[path], Some(Format::Codex));
    assert_eq!(imported.report.problems.len(), 1);
}

#[test]
fn compactions_rollbacks_and_interruptions_change_the_history() {
    let mut lines = Writer::new(json!({"id": "thread-1"}));
    lines.user("Begin");
    lines.answer("one");
    lines.count(10, 0, 1);
    let kept = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Kept"}]});
    lines.line("compacted", json!({"message": "Summary", "replacement_history": [kept]}));
    lines.event(json!({"type": "context_compacted"}));
    lines.user("Wrong turn");
    lines.answer("two");
    lines.count(20, 0, 1);
    lines.event(json!({"type": "thread_rolled_back", "num_turns": 1}));
    lines.user("Right turn");
    lines.answer("three");
    lines.count(30, 0, 1);
    lines.event(json!({"type": "turn_aborted", "reason": "interrupted"}));
    let files = Files::new();
    files.lines("r.jsonl", &lines.lines);
    let imported = files.import();
    let session = imported.only();
    let triggers: Vec<_> = transitions(session).into_iter().map(|it| it.trigger).collect();
    assert_eq!(triggers, ["compaction", "rollback", "turn_aborted"]);
    assert_eq!(session.head.status, SessionStatus::Interrupted);
    let texts: Vec<Value> =
        history(session, 2).as_array().unwrap().iter().map(|it| it["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["Kept", "Right turn"]);
}

#[test]
fn patches_are_file_operations() {
    let patch = "*** Begin Patch\n*** Add File: new.rs\n+x\n*** Update File: old.rs\n@@\n-a\n+b\n*** End Patch";
    let mut lines = Writer::new(json!({"id": "thread-1"}));
    lines.user("Patch");
    lines.item(json!({"type": "custom_tool_call", "status": "completed", "call_id": "c1", "name": "apply_patch", "input": patch}));
    lines.call("shell", json!({"command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{patch}\nEOF")]}), "c2");
    lines.item(json!({"type": "custom_tool_call", "call_id": "c3", "name": "apply_patch", "input": patch}));
    lines.item(json!({"type": "custom_tool_call", "call_id": "c4", "name": "apply_patch", "input": patch}));
    lines.count(10, 0, 1);
    lines.item(json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "{\"output\":\"Success\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"}));
    lines.output("c2", json!({"content": "ok", "success": true}));
    lines.item(
        json!({"type": "custom_tool_call_output", "call_id": "c3", "output": "Exit code: 1\nOutput:\nno such file"}),
    );
    lines.event(json!({"type": "patch_apply_end", "call_id": "c4", "success": true, "changes": {"/w/old.rs": {"update": {"unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": "/w/moved.rs"}}}}));
    lines.item(json!({"type": "custom_tool_call_output", "call_id": "c4", "output": "Success"}));
    let files = Files::new();
    files.lines("r.jsonl", &lines.lines);
    let imported = files.import();
    let operations: Vec<_> = of_type(imported.only(), "file_operation")
        .into_iter()
        .map(|event| {
            if let EventBody::FileOperation(it) = event.body {
                (it.operation, it.path, it.from_path)
            } else {
                unreachable!()
            }
        })
        .collect();
    let expected = |change, path: &str, from: Option<&str>| (change, path.to_owned(), from.map(str::to_owned));
    let pair = [expected(FileChange::Create, "new.rs", None), expected(FileChange::Modify, "old.rs", None)];
    let moved = expected(FileChange::Rename, "moved.rs", Some("old.rs"));
    assert_eq!(operations, [&pair[..], &pair[..], &[moved]].concat());
}

#[test]
fn files_of_older_versions_have_calls_without_tokens() {
    let lines = [
        json!({"id": "old", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": null, "git": {}}),
        json!({"record_type": "state"}),
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Begin"}]}),
        json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "c1"}),
        json!({"type": "function_call_output", "call_id": "c1", "output": "{\"output\":\"a\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.0}}"}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}),
    ];
    let files = Files::new();
    files.lines("r.jsonl", &lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(session.head.session_id, "old");
    assert_eq!(of_type(session, "llm_call").len(), 2);
    let EventBody::LlmCall(call) = &of_type(session, "llm_call")[1].body else { panic!() };
    assert_eq!(call.response.as_ref().unwrap().usage, None);
    assert_eq!(tools(session)[0].result.success, Some(true));
    assert!((imported.report.coverage() - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_usage_record_and_a_token_count_of_one_call_count_once() {
    let mut lines = Writer::new(json!({"id": "thread-1"}));
    lines.user("Begin");
    for (number, input) in [10, 20].into_iter().enumerate() {
        lines.answer("text");
        let usage = json!({"input_tokens": input, "cached_input_tokens": 0, "output_tokens": 1, "reasoning_output_tokens": 0, "total_tokens": input + 1});
        lines.line("token_usage_record", json!({"response_id": format!("resp_{number}"), "usage": usage}));
        lines.count(input, 0, 1);
    }
    let files = Files::new();
    files.lines("r.jsonl", &lines.lines);
    assert_eq!(tokens(files.import().only()), (30, 2, 0, 2));
}

proptest! {
    #[test]
    fn sums_equal_the_last_total_with_any_repeats(
        turns in prop::collection::vec((1_u64..1000, 0_u64..100, 1_u64..50, 0_usize..3, any::<bool>()), 1..25),
        end in any::<prop::sample::Index>(),
    ) {
        let mut lines = Writer::new(json!({"id": "thread-1"}));
        lines.user("Begin");
        for (number, (input, cached, output, tools, repeats)) in turns.iter().enumerate() {
            lines.line("turn_context", json!({"cwd": "/w", "model": "m"}));
            if *repeats {
                lines.repeat_count();
            }
            for tool in 0..*tools {
                lines.call("exec_command", json!({"cmd": "ls"}), &format!("call_{number}_{tool}"));
            }
            if *tools == 0 {
                lines.answer("text");
            }
            lines.count(*input, *cached.min(input), *output);
            for tool in 0..*tools {
                lines.output(&format!("call_{number}_{tool}"), "Process exited with code 0\nOutput:\nx");
            }
        }
        let files = Files::new();
        files.lines("r.jsonl", &lines.lines);
        let imported = files.import();
        let session = imported.only();
        prop_assert_eq!(tokens(session), (lines.total[0], lines.total[2], lines.total[1], turns.len()));
        prop_assert_eq!(tools(session).len(), turns.iter().map(|turn| turn.3).sum::<usize>());
        // The records of a part of the file are records of the whole file.
        let text = jsonl(&lines.lines);
        let path = files.write("r.jsonl", &text[..end.index(text.len())]);
        let part = crate::import_kit::import_all(&[path], Some(Format::Codex));
        let whole: Vec<_> = session.records().iter().map(|record| &record.event.event_id).collect();
        for record in part.sessions.iter().flat_map(ImportedSession::records) {
            let is_counted = match &record.event.body {
                EventBody::LlmCall(call) => call.response.as_ref().is_some_and(|response| response.usage.is_some()),
                body => !matches!(body, EventBody::StateTransition(_)),
            };
            prop_assert!(!is_counted || whole.contains(&&record.event.event_id));
        }
    }
}
