//! Transcripts of Claude Code, written by a generator that follows the format.

use std::collections::HashSet;

use counterproof_artifact::Sha256Digest;
use counterproof_sessions::event::{Command, CommandLine, EventBody, FileChange, FileOperation};
use counterproof_sessions::import::Format;
use counterproof_sessions::session::{SessionStatus, Share};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::import_kit::{Files, history, import_all, jsonl, of_type, tokens, tools, transitions};

const SESSION: &str = "11111111-0000-4000-8000-000000000001";

/// Writes the lines of a transcript. Each continues the line before, unless it is moved.
struct Writer {
    session: String,
    parent: Option<String>,
    second: u32,
    lines: Vec<Value>,
    extra: Value,
    prefix: String,
}

impl Writer {
    fn new(session: &str) -> Self {
        let (lines, extra) = (Vec::new(), json!({}));
        Self { session: session.to_owned(), parent: None, second: 0, lines, extra, prefix: session[..8].to_owned() }
    }

    fn at(&mut self, parent: &str) -> &mut Self {
        self.parent = Some(parent.to_owned());
        self
    }

    fn line(&mut self, kind: &str, fields: Value) -> String {
        self.second += 1;
        let uuid = format!("{}-line-{}", self.prefix, self.second);
        let mut line = json!({
            "type": kind, "uuid": uuid, "parentUuid": self.parent, "sessionId": self.session, "isSidechain": false,
            "timestamp": format!("2026-05-01T10:{:02}:{:02}.000Z", self.second / 60, self.second % 60),
            "cwd": "/w", "version": "2.1.144", "userType": "external",
        });
        for fields in [&self.extra, &fields] {
            line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        }
        self.lines.push(line);
        self.parent = Some(uuid.clone());
        uuid
    }

    fn user(&mut self, text: &str) -> String {
        self.line("user", json!({"message": {"role": "user", "content": text}}))
    }

    fn block(&mut self, message: &str, block: Value, stop: Option<&str>, output: u64) -> String {
        let usage = json!({
            "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": output,
        });
        self.line(
            "assistant",
            json!({"requestId": format!("req-{message}"), "message": {
                "id": message, "type": "message", "role": "assistant", "model": "claude-opus", "content": [block],
                "stop_reason": stop, "usage": usage,
            }}),
        )
    }

    fn answer(&mut self, message: &str, text: &str) -> String {
        self.block(message, json!({"type": "text", "text": text}), Some("end_turn"), 5)
    }

    fn tool(&mut self, message: &str, id: &str, name: &str, input: Value) -> String {
        self.block(message, json!({"type": "tool_use", "id": id, "name": name, "input": input}), Some("tool_use"), 7)
    }

    fn result(&mut self, id: &str, content: Value, is_error: bool, details: Value) -> String {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
        self.line("user", json!({"message": {"role": "user", "content": [block]}, "toolUseResult": details}))
    }
}

#[test]
fn blocks_of_one_message_are_one_call_whose_usage_counts_once() {
    let mut lines = Writer::new(SESSION);
    lines.user("Fix the test");
    lines.block("msg-1", json!({"type": "thinking", "thinking": "hm", "signature": "s"}), None, 1);
    lines.block("msg-1", json!({"type": "text", "text": "I look."}), None, 1);
    lines.tool("msg-1", "toolu_1", "Bash", json!({"command": "cargo test"}));
    lines.result("toolu_1", json!("Exit code 101\nfailed"), true, json!("Error: Exit code 101\nfailed"));
    lines.answer("msg-2", "It fails.");
    let files = Files::new();
    files.lines(&format!("{SESSION}.jsonl"), &lines.lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(session.head.session_id, SESSION);
    assert_eq!(session.head.title.as_deref(), Some("Fix the test"));
    assert_eq!(session.head.status, SessionStatus::Completed);
    assert_eq!(session.head.coverage.llm_calls, Share::Partial);
    assert_eq!(session.head.coverage.files, Share::None);
    assert_eq!(tokens(session), (200, 12, 140, 2));
    let calls = of_type(session, "llm_call");
    let EventBody::LlmCall(first) = &calls[0].body else { panic!() };
    let response = first.response.as_ref().unwrap();
    assert_eq!(response.content.as_deref(), Some("I look."));
    assert_eq!(response.finish_reason.as_deref(), Some("tool_use"));
    assert_eq!(response.tool_calls[0].function.arguments, r#"{"command":"cargo test"}"#);
    assert_eq!(first.request.messages, json!([{"role": "user", "content": "Fix the test"}]));
    assert_eq!(first.request.tools, Value::Null);
    let second = history(session, 1);
    assert_eq!(second[1]["content"].as_array().unwrap().len(), 3, "the blocks are one message");
    assert_eq!(second[2]["content"][0]["tool_use_id"], "toolu_1");
    let tool = &tools(session)[0];
    assert_eq!(tool.result.success, Some(false));
    assert_eq!(tool.result.error.as_deref(), Some("Exit code 101\nfailed"));
    let EventBody::Command(command) = &of_type(session, "command")[0].body else { panic!() };
    assert_eq!(command.exit_code, Some(101));
    assert_eq!(command.command, Some(CommandLine::Shell("cargo test".into())));
    assert_eq!(command.cwd.as_deref(), Some("/w"));
    assert_eq!(imported.report.read["assistant"], 4);
    assert!((imported.report.coverage() - 1.0).abs() < f64::EPSILON);
}

#[test]
fn the_newest_leaf_is_the_session_and_other_leaves_are_forks_with_their_own_events() {
    let mut lines = Writer::new(SESSION);
    lines.user("Begin");
    let shared = lines.answer("msg-1", "one");
    lines.user("Try this");
    let abandoned = lines.answer("msg-old", "two");
    lines.at(&shared).user("Try that");
    lines.answer("msg-new", "three");
    lines.at(&abandoned).user("Go on there");
    lines.answer("msg-older-yet", "four");
    // The newest line is on the first branch after all.
    let files = Files::new();
    files.lines(&format!("{SESSION}.jsonl"), &lines.lines);
    let imported = files.import();
    assert_eq!(imported.sessions.len(), 2);
    let main = imported.session(SESSION);
    assert_eq!(tokens(main).3, 3, "Begin, Try this and Go on there");
    let fork = &imported.sessions[1];
    assert_eq!(fork.head.parent.as_ref().unwrap().session_id, SESSION);
    assert_eq!(fork.head.parent.as_ref().unwrap().checkpoint_id, None);
    assert_eq!(tokens(fork), (100, 5, 70, 1));
    let texts: Vec<Value> = history(fork, 0).as_array().unwrap().iter().map(|it| it["content"].clone()).collect();
    assert_eq!(texts[0], "Begin");
    assert_eq!(texts[1][0]["text"], "one");
    assert_eq!(texts[2], "Try that");
    let all: u64 = imported.sessions.iter().map(|session| tokens(session).1).sum();
    assert_eq!(all, 20, "each call counts once");
}

#[test]
fn results_of_parallel_calls_are_not_forks() {
    let mut lines = Writer::new(SESSION);
    lines.user("Look");
    let first = lines.tool("msg-1", "toolu_a", "Read", json!({"file_path": "/w/a.rs"}));
    let second = lines.tool("msg-1", "toolu_b", "Read", json!({"file_path": "/w/b.rs"}));
    lines.at(&first).result("toolu_a", json!("a"), false, json!({}));
    lines.at(&second).result("toolu_b", json!("b"), false, json!({}));
    lines.answer("msg-2", "Seen");
    let files = Files::new();
    files.lines(&format!("{SESSION}.jsonl"), &lines.lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(tools(session).len(), 2);
    let history = history(session, 1).to_string();
    assert!(history.contains("toolu_a") && history.contains("toolu_b"), "{history}");
    let reads: Vec<_> = of_type(session, "file_operation").into_iter().map(|event| event.body).collect();
    let EventBody::FileOperation(FileOperation { operation: FileChange::Read, path, .. }) = &reads[0] else { panic!() };
    assert_eq!(path, "a.rs");
}

#[test]
fn lines_that_another_file_repeats_count_once() {
    let mut parent = Writer::new(SESSION);
    parent.user("Begin");
    let shared = parent.answer("msg-1", "one");
    let copied = parent.lines.clone();
    parent.answer("msg-2", "two");
    let files = Files::new();
    files.lines("b-parent.jsonl", &parent.lines);
    for (file, id, is_marked) in [
        ("a-fork.jsonl", "22222222-0000-4000-8000-000000000002", false),
        ("0-fork.jsonl", "33333333-0000-4000-8000-000000000003", true),
    ] {
        let mut fork = Writer::new(id);
        fork.second = 100;
        for line in &copied {
            let mut line = line.clone();
            line["sessionId"] = id.into();
            if is_marked {
                line["forkedFrom"] = json!({"sessionId": SESSION, "messageUuid": line["uuid"]});
            }
            fork.lines.push(line);
        }
        fork.at(&shared).user("Other");
        fork.answer(&format!("msg-of-{id}"), "fork");
        files.lines(file, &fork.lines);
    }
    let imported = files.import();
    assert_eq!(imported.report.sessions[0], SESSION, "the parent comes first");
    assert_eq!(tokens(imported.session(SESSION)).3, 2);
    for id in &imported.report.sessions[1..] {
        let fork = imported.session(id);
        assert_eq!(fork.head.parent.as_ref().unwrap().session_id, SESSION);
        assert_eq!(tokens(fork), (100, 5, 70, 1));
        assert_eq!(history(fork, 0).as_array().unwrap().len(), 3);
    }
    let ids: Vec<_> = imported.sessions.iter().flat_map(|it| it.events()).map(|event| event.event_id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}

#[test]
fn subagents_belong_to_the_session_that_started_them() {
    let mut lines = Writer::new(SESSION);
    lines.user("Explore");
    lines.tool("msg-1", "toolu_task", "Task", json!({"prompt": "look"}));
    // In the same file, as older versions wrote it.
    let before = lines.parent.take();
    lines.extra = json!({"isSidechain": true});
    lines.user("look");
    lines.answer("msg-side", "seen");
    lines.parent = before;
    lines.extra = json!({});
    lines.result("toolu_task", json!("seen"), false, json!({"totalDurationMs": 1500}));
    lines.answer("msg-2", "Done");
    let mut agent = Writer::new(SESSION);
    agent.prefix = "agent".to_owned();
    agent.extra = json!({"isSidechain": true, "agentId": "a1b2"});
    agent.user("look deeper");
    agent.answer("msg-agent", "deep");
    let files = Files::new();
    let main = files.lines(&format!("{SESSION}.jsonl"), &lines.lines);
    files.lines(&format!("{SESSION}/subagents/agent-a1b2.jsonl"), &agent.lines);
    let imported = import_all(&[main], None);
    let session = imported.only();
    assert_eq!(imported.report.files, 2);
    assert_eq!(tokens(session).3, 4);
    let agents: Vec<Option<String>> = of_type(session, "llm_call").into_iter().map(|event| event.agent).collect();
    assert_eq!(agents.iter().filter(|agent| agent.is_none()).count(), 2);
    assert!(agents.contains(&Some("a1b2".to_owned())));
    assert!(agents.iter().flatten().any(|agent| agent.starts_with("sidechain-")));
    assert_eq!(tools(session)[0].latency_ms, Some(1500));
    let main: Vec<Value> = (0..4).map(|call| history(session, call)).collect();
    assert!(main.iter().filter(|it| it.to_string().contains("look deeper")).count() == 1);
}

#[test]
fn a_compaction_is_a_transition_after_which_the_history_begins_again() {
    let mut lines = Writer::new(SESSION);
    lines.user("Begin");
    let last = lines.answer("msg-1", "one");
    lines.parent = None;
    let boundary = json!({"subtype": "compact_boundary", "logicalParentUuid": last, "content": "Conversation compacted", "compactMetadata": {"trigger": "auto", "preTokens": 9}});
    lines.line("system", boundary);
    lines.line("user", json!({"isCompactSummary": true, "message": {"role": "user", "content": "Summary"}}));
    lines.answer("msg-2", "two");
    let files = Files::new();
    files.lines("s.jsonl", &lines.lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(transitions(session)[0].trigger, "compaction");
    assert_eq!(transitions(session)[0].context["compactMetadata"]["trigger"], "auto");
    assert_eq!(history(session, 1), json!([{"role": "user", "content": "Summary"}]));
    assert_eq!(session.head.title.as_deref(), Some("Begin"));
}

#[test]
fn errors_titles_pull_requests_and_interruptions_are_read() {
    let mut lines = Writer::new(SESSION);
    lines.user("Begin");
    let error = json!({"subtype": "api_error", "level": "error", "error": {"status": 529, "message": "overloaded"}});
    lines.line("system", error);
    let failed = json!({"isApiErrorMessage": true, "message": {"id": "x", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 500 broken"}]}});
    lines.line("assistant", failed);
    let note = json!({"message": {"id": "y", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}], "usage": {"input_tokens": 0, "output_tokens": 0}}});
    lines.line("assistant", note);
    lines.answer("msg-1", "one");
    lines.user("[Request interrupted by user]");
    lines.lines.push(json!({"type": "custom-title", "customTitle": "My title", "sessionId": SESSION}));
    lines.lines.push(json!({"type": "ai-title", "aiTitle": "Other", "sessionId": SESSION}));
    lines.lines.push(json!({"type": "pr-link", "prNumber": 7, "prUrl": "https://github.com/a/b/pull/7", "prRepository": "a/b", "sessionId": SESSION, "timestamp": "2026-05-01T11:00:00Z"}));
    let files = Files::new();
    files.lines("s.jsonl", &lines.lines);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(session.head.title.as_deref(), Some("My title"));
    assert_eq!(session.head.status, SessionStatus::Interrupted);
    let calls = of_type(session, "llm_call");
    let errors: Vec<_> = calls
        .iter()
        .filter_map(|event| event.error.as_ref())
        .map(|error| (error.status, error.message.as_str()))
        .collect();
    assert_eq!(errors, [(Some(529), "overloaded"), (Some(500), "API Error: 500 broken")]);
    assert_eq!(tokens(session), (100, 5, 70, 3));
    let pull = transitions(session).into_iter().find(|it| it.trigger == "pull_request").unwrap();
    assert_eq!(pull.context["url"], "https://github.com/a/b/pull/7");
    assert_eq!(imported.report.left_out["assistant"], 1);
}

#[test]
fn edits_are_file_operations_with_patches() {
    let mut lines = Writer::new(SESSION);
    lines.user("Edit");
    let hunks = json!([{"oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 1, "lines": ["-a", "+b"]}]);
    let edits = [
        ("Write", json!({"file_path": "/w/new.rs", "content": "x\n"}), json!({"type": "create"})),
        (
            "Edit",
            json!({"file_path": "/w/src/a.rs", "old_string": "a", "new_string": "b"}),
            json!({"structuredPatch": hunks}),
        ),
        (
            "MultiEdit",
            json!({"file_path": "/w/m.rs", "edits": [{"old_string": "1\n", "new_string": "2\n"}]}),
            json!({}),
        ),
        ("NotebookEdit", json!({"notebook_path": "/w/n.ipynb", "new_source": "1"}), json!({})),
        ("Write", json!({"file_path": "/elsewhere/x", "content": "x"}), json!({"type": "update"})),
        ("Edit", json!({"file_path": "/w/failed.rs", "old_string": "a", "new_string": "b"}), json!("Error")),
    ];
    for (number, (name, input, details)) in edits.into_iter().enumerate() {
        let id = format!("toolu_{number}");
        lines.tool(&format!("msg-{number}"), &id, name, input);
        let is_error = details.is_string();
        lines.result(&id, json!("done"), is_error, details);
    }
    let files = Files::new();
    files.lines("s.jsonl", &lines.lines);
    let imported = files.import();
    let operations: Vec<FileOperation> = of_type(imported.only(), "file_operation")
        .into_iter()
        .map(|event| if let EventBody::FileOperation(it) = event.body { it } else { unreachable!() })
        .collect();
    let paths: Vec<_> = operations.iter().map(|it| (it.operation, it.path.as_str())).collect();
    assert_eq!(
        paths,
        [
            (FileChange::Create, "new.rs"),
            (FileChange::Modify, "src/a.rs"),
            (FileChange::Modify, "m.rs"),
            (FileChange::Modify, "n.ipynb"),
            (FileChange::Modify, "/elsewhere/x"),
        ]
    );
    assert_eq!(operations[0].after_sha256, Some(Sha256Digest::from_bytes(b"x\n")));
    assert_eq!(operations[1].patch.as_deref(), Some("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -3,1 +3,1 @@\n-a\n+b\n"));
    assert_eq!(operations[2].patch.as_deref(), Some("--- a/m.rs\n+++ b/m.rs\n@@ -1,1 +1,1 @@\n-1\n+2\n"));
}

#[test]
fn a_stored_result_is_read_within_the_folder_of_the_session_only() {
    let mut lines = Writer::new(SESSION);
    lines.user("Run");
    for (id, path) in [
        ("toolu_in", "/home/x/tool-results/toolu_in.txt"),
        ("toolu_out", "/w/../../secret.txt"),
        ("toolu_link", "/x/link.txt"),
    ] {
        lines.tool(&format!("msg-{id}"), id, "Bash", json!({"command": "x"}));
        let text = format!("<persisted-output>\nOutput too large (1MB). Full output saved to: {path}\n\nPreview:\npre");
        lines.result(id, json!(text), false, json!({"stdout": "pre", "stderr": "", "interrupted": false}));
    }
    let files = Files::new();
    files.lines(&format!("{SESSION}.jsonl"), &lines.lines);
    files.write(
        &format!("{SESSION}/tool-results/toolu_in.txt"),
        "the whole output, key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
    );
    files.write("secret.txt", "not to be read");
    #[cfg(unix)]
    std::os::unix::fs::symlink(files.path("secret.txt"), files.path(&format!("{SESSION}/tool-results/link.txt")))
        .unwrap();
    let imported = import_all(&[files.path(&format!("{SESSION}.jsonl"))], None);
    let results: Vec<_> = tools(imported.only()).into_iter().map(|tool| tool.result).collect();
    assert_eq!(results[0].content.as_deref(), Some("the whole output, key [REDACTED]"));
    assert!(results.iter().all(|result| result.truncated == Some(true)));
    assert!(results[1..].iter().all(|result| result.content.as_deref().unwrap().starts_with("<persisted-output>")));
    assert_eq!(imported.report.secrets.found, 1);
}

#[test]
fn importing_a_growing_file_keeps_the_ids_of_records() {
    let mut lines = Writer::new(SESSION);
    lines.user("Begin");
    for turn in 0..5 {
        let id = format!("toolu_{turn}");
        lines.tool(&format!("msg-{turn}"), &id, "Bash", json!({"command": "ls"}));
        lines.result(&id, json!("a"), false, json!({"stdout": "a"}));
    }
    lines.answer("msg-last", "Done");
    let text = jsonl(&lines.lines);
    let files = Files::new();
    let mut before: HashSet<String> = HashSet::new();
    for end in (0..=text.len()).step_by(97).chain([text.len()]) {
        let path = files.write("s.jsonl", &text[..end]);
        let imported = import_all(&[path], Some(Format::ClaudeCode));
        let ids: HashSet<String> = imported
            .sessions
            .iter()
            .flat_map(|session| session.records())
            .filter(|record| !matches!(record.event.body, EventBody::StateTransition(_)))
            .map(|record| record.event.event_id.as_str().to_owned())
            .collect();
        assert!(before.is_subset(&ids), "at byte {end}");
        assert_eq!(imported.report.opaque.len(), 0, "a torn line does not count");
        before = ids;
    }
    assert_eq!(before.len(), 6 + 5 + 5);
}

#[test]
fn the_prompt_that_was_never_answered_is_not_lost() {
    let mut lines = Writer::new(SESSION);
    lines.user("Begin");
    lines.answer("msg-1", "one");
    lines.user("And this?");
    let files = Files::new();
    files.lines("s.jsonl", &lines.lines);
    let imported = files.import();
    let found = transitions(imported.only());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].trigger.as_str(), &found[0].context["text"]), ("unanswered_prompt", &json!("And this?")));
}

#[test]
fn secrets_are_masked_and_counted_by_session() {
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let files = Files::new();
    for (file, session, times) in [
        ("a", SESSION, 2),
        ("b", "22222222-0000-4000-8000-000000000002", 1),
        ("c", "33333333-0000-4000-8000-000000000003", 0),
    ] {
        let mut lines = Writer::new(session);
        for _ in 0..times {
            lines.user(&format!("export ANTHROPIC_API_KEY={key}"));
        }
        lines.answer(&format!("msg-{file}"), "ok");
        files.lines(&format!("{file}.jsonl"), &lines.lines);
    }
    let imported = files.import();
    assert_eq!((imported.report.secrets.found, imported.report.secrets.sessions), (3, 2));
    for session in &imported.sessions {
        let text: String = session.events().map(|event| serde_json::to_string(&event).unwrap()).collect();
        assert!(!text.contains("abcdefghijklmnop"), "{text}");
    }
}

#[test]
fn unknown_and_unreadable_lines_are_opaque_records() {
    let mut lines = Writer::new(SESSION);
    lines.user("Begin");
    lines.line("new-kind", json!({"payload": [1, 2]}));
    lines.answer("msg-1", "one");
    let text = jsonl(&lines.lines[..2]) + "{broken\n[1]\n" + &jsonl(&lines.lines[2..]) + "{\"torn";
    let files = Files::new();
    files.write("s.jsonl", text);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(of_type(session, "opaque").len(), 3);
    assert_eq!(tokens(session).3, 1);
    assert_eq!(imported.report.read.values().sum::<u64>(), 5);
    assert!((imported.report.coverage() - 0.4).abs() < 1e-9);
}

/// What happens next in a generated transcript.
#[derive(Debug, Clone)]
enum Step {
    Prompt,
    Answer { blocks: usize, tools: usize },
    Fork(prop::sample::Index),
    Compaction,
    Progress(usize),
    Agent,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Prompt),
        4 => (0_usize..3, 0_usize..3).prop_map(|(blocks, tools)| Step::Answer { blocks, tools }),
        1 => any::<prop::sample::Index>().prop_map(Step::Fork),
        1 => Just(Step::Compaction),
        1 => (0_usize..20).prop_map(Step::Progress),
        1 => Just(Step::Agent),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #[test]
    fn every_call_of_a_generated_transcript_counts_once(steps in steps(), repeat in any::<bool>()) {
        let mut lines = Writer::new(SESSION);
        let mut answers = vec![lines.user("Begin")];
        let (mut calls, mut tool_calls) = (0, 0);
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Prompt => _ = lines.user("More"),
                Step::Answer { blocks, tools } => {
                    calls += 1;
                    let message = format!("msg-{number}");
                    for _ in 0..*blocks {
                        lines.block(&message, json!({"type": "text", "text": "t"}), None, 1);
                    }
                    if *tools == 0 {
                        lines.answer(&message, "end");
                    }
                    for tool in 0..*tools {
                        tool_calls += 1;
                        let id = format!("toolu_{number}_{tool}");
                        lines.block(&message, json!({"type": "tool_use", "id": id, "name": "Grep", "input": {}}), Some("tool_use"), 5);
                        lines.result(&id, json!([{"type": "text", "text": "r"}]), false, Value::Null);
                    }
                    answers.push(lines.parent.clone().unwrap());
                }
                Step::Fork(index) => _ = lines.at(index.get::<String>(&answers)),
                Step::Compaction => {
                    let last = lines.parent.take();
                    lines.line("system", json!({"subtype": "compact_boundary", "logicalParentUuid": last}));
                }
                Step::Progress(count) => for _ in 0..*count {
                    lines.line("progress", json!({"data": {"type": "hook_progress"}}));
                },
                Step::Agent => {
                    calls += 1;
                    let before = lines.parent.take();
                    lines.extra = json!({"isSidechain": true, "agentId": format!("agent-{}", number % 3)});
                    lines.user("task");
                    lines.answer(&format!("msg-{number}"), "done");
                    lines.extra = json!({});
                    lines.parent = before;
                }
            }
        }
        let mut all = lines.lines;
        if repeat {
            all.extend(all.clone());
        }
        let files = Files::new();
        files.lines("s.jsonl", &all);
        let imported = files.import();
        let sums = imported.sessions.iter().map(tokens).fold((0, 0, 0), |sums, it| (sums.0 + it.0, sums.1 + it.1, sums.2 + it.3));
        prop_assert_eq!(sums.2, calls);
        prop_assert_eq!(sums.0, calls as u64 * 100);
        prop_assert_eq!(sums.1, calls as u64 * 5);
        let tools: usize = imported.sessions.iter().map(|session| tools(session).len()).sum();
        prop_assert_eq!(tools, tool_calls);
        prop_assert!((imported.report.coverage() - 1.0).abs() < 1e-9);
        for session in &imported.sessions {
            if let Some(parent) = &session.head.parent {
                let parent = imported.report.sessions.iter().position(|id| *id == parent.session_id);
                let own = imported.report.sessions.iter().position(|id| *id == session.head.session_id);
                prop_assert!(parent < own, "a parent comes before its forks");
            }
        }
        let again = files.import();
        let ids = |imported: &crate::import_kit::Imported| -> Vec<_> {
            imported.sessions.iter().flat_map(|it| it.records()).map(|record| record.event.event_id.clone()).collect()
        };
        prop_assert_eq!(ids(&imported), ids(&again));
    }
}

#[test]
fn a_command_keeps_both_streams() {
    let mut lines = Writer::new(SESSION);
    lines.user("Run");
    lines.tool("msg-1", "toolu_1", "Bash", json!({"command": "make", "description": "build"}));
    lines.result(
        "toolu_1",
        json!("out\nwarn"),
        false,
        json!({"stdout": "out", "stderr": "warn", "interrupted": false}),
    );
    let files = Files::new();
    files.lines("s.jsonl", &lines.lines);
    let imported = files.import();
    let EventBody::Command(Command { stdout, stderr, exit_code, call_id, .. }) =
        of_type(imported.only(), "command").remove(0).body
    else {
        panic!()
    };
    assert_eq!((stdout.as_deref(), stderr.as_deref(), exit_code), (Some("out"), Some("warn"), None));
    assert_eq!(call_id.as_deref(), Some("toolu_1"));
}
