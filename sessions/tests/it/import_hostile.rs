//! Files with values of wrong types, and files of hostile size: no panic, no recursion, and every line is accounted for.

use counterproof_sessions::import::{Format, ImportError, ImportOptions, MAX_LINE_BYTES, SourceError, import};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::import_kit::{Files, import_all, jsonl, of_type, redactor, tokens};

/// Values of wrong types in the fields of all formats.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "user",
            "assistant",
            "system",
            "compact_boundary",
            "tool_use",
            "tool_result",
            "text",
            "message",
            "function_call",
            "token_count",
            "a",
            "b",
            "2026-01-01T00:00:00Z",
            "+262143-01-01T00:00:00Z",
            "-009999-01-01T00:00:00Z",
            "99999999999999999999999",
            "[{",
            "Bash",
            "Edit",
            "<persisted-output>",
            "apply_patch",
            "*** Begin Patch\n*** Move to: \n*** End Patch",
            "chat",
            "LLM",
            "execute_tool",
            "é\u{0}\n",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((fields(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn fields() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "uuid",
        "parentUuid",
        "sessionId",
        "timestamp",
        "message",
        "content",
        "id",
        "name",
        "input",
        "tool_use_id",
        "usage",
        "input_tokens",
        "output_tokens",
        "requestId",
        "isSidechain",
        "agentId",
        "toolUseResult",
        "structuredPatch",
        "file_path",
        "edits",
        "payload",
        "role",
        "info",
        "last_token_usage",
        "total_token_usage",
        "call_id",
        "arguments",
        "output",
        "changes",
        "forked_from_id",
        "subtype",
        "forkedFrom",
        "num_turns",
        "replacement_history",
        "action",
        "resourceSpans",
        "scopeSpans",
        "spans",
        "traceId",
        "spanId",
        "attributes",
        "key",
        "value",
        "stringValue",
        "intValue",
        "arrayValue",
        "values",
        "events",
        "status",
        "startTimeUnixNano",
        "steps",
        "step_id",
        "source",
        "tool_calls",
        "observation",
        "results",
        "metrics",
        "schema_version",
        "session_id",
        "subagent_trajectories",
        "agent",
        "gen_ai.operation.name",
        "gen_ai.input.messages",
        "gen_ai.prompt.0.role",
        "openinference.span.kind",
        "llm.input_messages.9.message.tool_calls.0.tool_call.id",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn lines_with_any_values_are_accounted_for(
        lines in prop::collection::vec(prop::collection::vec((fields(), values()), 0..8), 1..30),
        format in prop::sample::select(Format::ALL.to_vec()),
        torn in any::<bool>(),
    ) {
        let lines: Vec<Value> = lines.into_iter().map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())).collect();
        let mut text = jsonl(&lines);
        if torn {
            text.push_str("{\"type\":\"us");
        }
        let files = Files::new();
        let path = files.write("x.jsonl", text);
        let imported = import_all(&[path], Some(format));
        if matches!(format, Format::ClaudeCode | Format::Codex) {
            prop_assert_eq!(imported.report.read.values().sum::<u64>(), lines.len() as u64);
        }
        for session in &imported.sessions {
            for event in session.events() {
                serde_json::to_string(&event).unwrap();
            }
        }
    }

    #[test]
    fn any_bytes_are_accounted_for(bytes in prop::collection::vec(any::<u8>(), 0..2000), format in prop::sample::select(Format::ALL.to_vec())) {
        let files = Files::new();
        for name in ["x.jsonl", "x.json", "y.jsonl.zst"] {
            files.write(name, &bytes);
        }
        import_all(&[files.path("")], Some(format));
        import_all(&[files.path("")], None);
    }
}

#[test]
fn numbers_that_are_no_counts_of_tokens_are_unknown() {
    let huge = 1_u64 << 62;
    let usage = json!({"input_tokens": huge, "cache_read_input_tokens": huge, "output_tokens": huge,
        "prompt_tokens": huge, "completion_tokens": huge, "cached_tokens": huge, "cached_input_tokens": huge});
    let claude = json!({"type": "assistant", "uuid": "u", "sessionId": "s", "timestamp": "2026-05-01T10:00:00Z", "requestId": "r",
        "message": {"id": "m", "role": "assistant", "content": "x", "usage": usage}});
    let codex = [
        json!({"timestamp": "2026-05-01T10:00:00Z", "type": "session_meta", "payload": {"id": "t"}}),
        json!({"timestamp": "2026-05-01T10:00:01Z", "type": "response_item",
            "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}}),
        json!({"timestamp": "2026-05-01T10:00:02Z", "type": "event_msg",
            "payload": {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}}),
    ];
    let atif = json!({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "source": "agent", "message": "x", "metrics": usage}]});
    let span = |fields: Value| {
        json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "01", "name": "x", "attributes": fields,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000250000000"})
    };
    let otlp = span(json!({"gen_ai.operation.name": "chat", "gen_ai.completion": "x",
        "gen_ai.usage.input_tokens": huge, "gen_ai.usage.output_tokens": huge.to_string()}));
    let openinference = span(json!({"openinference.span.kind": "LLM", "output.value": "x",
        "llm.token_count.prompt": huge, "llm.token_count.completion": 5e14}));
    for (format, lines) in [
        (Format::ClaudeCode, vec![claude]),
        (Format::Codex, codex.to_vec()),
        (Format::Atif, vec![atif]),
        (Format::Otlp, vec![otlp]),
        (Format::Openinference, vec![openinference]),
    ] {
        let files = Files::new();
        let path = files.lines("x.jsonl", &lines);
        let imported = import_all(&[path], Some(format));
        assert_eq!(tokens(imported.only()), (0, 0, 0, 1), "{format:?}");
    }
}

#[test]
fn a_flood_of_progress_and_a_cycle_take_linear_time() {
    let line = |number: usize| {
        let parent = if number == 0 { 99_999 } else { number - 1 };
        json!({
            "type": "progress", "uuid": format!("u{number}"), "parentUuid": format!("u{parent}"), "sessionId": "s",
            "timestamp": "2026-05-01T10:00:00Z", "data": {"type": "bash_progress", "output": "x"},
        })
    };
    let mut lines: Vec<Value> = (0..100_000).map(line).collect();
    lines.push(json!({
        "type": "assistant", "uuid": "last", "parentUuid": "u99999", "sessionId": "s", "timestamp": "2026-05-01T10:00:01Z", "requestId": "r",
        "message": {"id": "m", "role": "assistant", "content": "hello", "usage": {"input_tokens": 1, "output_tokens": 2}},
    }));
    let files = Files::new();
    files.lines("s.jsonl", &lines);
    let imported = files.import();
    assert_eq!(imported.report.left_out["progress"], 100_000);
    assert_eq!(tokens(imported.only()), (1, 2, 0, 1));
}

#[test]
fn many_calls_with_long_histories_take_linear_memory() {
    let mut lines = Vec::new();
    for number in 0..20_000 {
        let (kind, message) = if number % 2 == 0 {
            ("user", json!({"role": "user", "content": "x".repeat(200)}))
        } else {
            (
                "assistant",
                json!({"id": format!("m{number}"), "role": "assistant", "content": [{"type": "text", "text": "y"}], "usage": {"input_tokens": 1, "output_tokens": 1}}),
            )
        };
        lines.push(json!({
            "type": kind, "uuid": format!("u{number}"), "parentUuid": (number > 0).then(|| format!("u{}", number - 1)), "sessionId": "s",
            "timestamp": "2026-05-01T10:00:00Z", "requestId": format!("r{number}"), "message": message,
        }));
    }
    let files = Files::new();
    files.lines("s.jsonl", &lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(tokens(session).3, 10_000);
    let last = session.records().last().unwrap();
    assert_eq!(session.histories().history(last.last_message).len(), 19_999);
}

#[test]
fn deep_and_long_lines_are_opaque() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let long = format!("{{\"type\":\"user\",\"content\":\"{}\"}}", "x".repeat(MAX_LINE_BYTES));
    let good = json!({"type": "assistant", "uuid": "u", "sessionId": "s", "timestamp": "2026-05-01T10:00:01Z", "requestId": "r", "message": {"id": "m", "role": "assistant", "content": "hello"}});
    let files = Files::new();
    files.write("s.jsonl", format!("{good}\n{{\"a\":{deep}}}\n{long}\n"));
    let imported = files.import();
    assert_eq!(imported.report.opaque["(unreadable)"], 2);
    assert_eq!(of_type(imported.only(), "opaque").len(), 2);
    assert_eq!(tokens(imported.only()).3, 1);
}

#[test]
fn times_out_of_range_and_ids_that_cannot_be_printed_are_replaced() {
    let lines = [
        json!({"type": "user", "uuid": "a", "sessionId": "x\u{1b}[31m", "timestamp": "+262143-01-01T00:00:00Z", "message": {"content": "hi"}}),
        json!({"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "x\u{1b}[31m", "timestamp": "1900-01-01T00:00:00Z", "message": {"id": "m", "content": []}}),
    ];
    let files = Files::new();
    files.lines("s.jsonl", &lines);
    let imported = files.import();
    let head = &imported.only().head;
    assert!(head.session_id.chars().all(|it| it.is_ascii_hexdigit()));
    assert!(head.started_at.as_second() > 1_600_000_000, "the time of the file");
}

#[test]
fn other_files_are_not_imported() {
    let files = Files::new();
    files.write("package.json", "{\"name\": \"x\"}");
    files.write("notes.txt", "x");
    files.write("empty.jsonl", "");
    let imported = files.import();
    assert_eq!(imported.report.files, 0);
    assert_eq!(imported.report.unrecognized.len(), 2);
    let options = ImportOptions { format: None, since: None, redactor: redactor() };
    let import = |name: &str| import(&[files.path(name)], &options, &mut |_| Ok(()), &mut |_| {});
    assert!(matches!(import("package.json"), Err(ImportError::Source(SourceError::UnknownFormat { .. }))));
    assert!(matches!(import("missing"), Err(ImportError::Source(SourceError::Read { .. }))));
}

#[test]
fn sessions_that_ended_before_a_time_are_left_out() {
    let files = Files::new();
    for (name, year) in [("old", 2024), ("new", 2026)] {
        let line = json!({"type": "assistant", "uuid": name, "sessionId": name, "timestamp": format!("{year}-05-01T10:00:00Z"), "requestId": name, "message": {"id": name, "content": []}});
        files.lines(&format!("{name}.jsonl"), &[line]);
    }
    let options =
        ImportOptions { format: None, since: Some("2026-01-01T00:00:00Z".parse().unwrap()), redactor: redactor() };
    let mut seen = Vec::new();
    let report =
        import(&[files.path("")], &options, &mut |_| Ok(()), &mut |progress| seen.push(progress.files_read)).unwrap();
    assert_eq!(report.sessions, ["new"]);
    assert_eq!(report.files, 1);
    assert_eq!(seen, [0, 1, 2]);
}
