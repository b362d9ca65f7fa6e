//! Sessions of invented coding agents, as a recorder writes them: histories that repeat, results of tools, commands and
//! changes of files. Everything that differs between two recordings follows from a number.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

use counterproof_artifact::Sha256Digest;
use counterproof_sessions::event::{
    Api, Command, CommandLine, EventBody, EventError, FileChange, FileOperation, LlmCall, LlmRequest, LlmResponse,
    RequestedCall, SessionEvent, StateTransition, ToolCall, ToolResult, Usage,
};
use counterproof_sessions::session::{Coverage, Origin, SessionHead, SessionStatus, Share};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A session under construction.
pub(crate) struct Sample {
    pub(crate) head: SessionHead,
    pub(crate) events: Vec<SessionEvent>,
    recording: u64,
    now: Timestamp,
    history: Vec<Value>,
    agent: Option<String>,
    calls: u64,
}

impl Sample {
    /// Starts a session. Another `recording` has other ids, times and folders.
    pub(crate) fn new(title: &str, recording: u64) -> Self {
        let day = SignedDuration::from_hours(i64::try_from(recording).unwrap() * 25);
        let start: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let now = start + day;
        let head = SessionHead {
            session_id: format!("0190f3c2-7b1e-7a11-9c3d-{recording:012x}"),
            title: Some(title.to_owned()),
            origin: Origin::Record,
            workflow: None,
            status: SessionStatus::Completed,
            started_at: now,
            ended_at: None,
            parent: None,
            coverage: Coverage {
                llm_calls: Share::All,
                tool_calls: Share::Partial,
                files: Share::Partial,
                commands: Share::Partial,
            },
        };
        let history =
            vec![json!({"role": "system", "content": "You are a careful coding agent. Work in the given folder."})];
        Self { head, events: Vec::new(), recording, now, history, agent: None, calls: 0 }
    }

    /// The working tree of this recording.
    pub(crate) fn folder(&self) -> String {
        format!("/tmp/tmp.k{:07x}/repo", self.recording * 7919 + 99)
    }

    pub(crate) fn wait(&mut self, millis: u64) -> &mut Self {
        self.now += SignedDuration::from_millis(i64::try_from(millis + self.recording % 7).unwrap());
        self
    }

    pub(crate) fn user(&mut self, text: &str) -> &mut Self {
        self.history.push(json!({"role": "user", "content": text}));
        self
    }

    pub(crate) fn add(&mut self, body: EventBody) -> &mut Self {
        let seq = self.events.len() as u64 + 1;
        let key = format!("{}-{seq}", self.recording);
        let mut event = SessionEvent::reconstructed(&key, self.now, body);
        event.seq = Some(seq);
        event.agent.clone_from(&self.agent);
        self.events.push(event);
        self
    }

    fn request(&self) -> LlmRequest {
        let tools = json!([
            {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}},
            {"type": "function", "function": {"name": "edit", "parameters": {"type": "object"}}},
        ]);
        let messages = Value::Array(self.history.clone());
        let body =
            json!({"model": "gpt-5-mini", "stream": true, "temperature": 0.2, "messages": messages, "tools": tools});
        LlmRequest {
            api: Some(Api::OpenaiChat),
            model: Some("gpt-5-mini".to_owned()),
            messages,
            tools,
            temperature: json!(0.2),
            max_tokens: Value::Null,
            body,
        }
    }

    /// A request that failed: the status of the answer, or an answer that was cut.
    pub(crate) fn failed(&mut self, status: Option<u16>, message: &str) -> &mut Self {
        let request = self.request();
        let kind = if status.is_some() { "http" } else { "network" };
        self.add(EventBody::LlmCall(LlmCall { request, response: None, latency_ms: Some(40), cost: None }));
        let error = EventError { kind: kind.to_owned(), status, message: message.to_owned() };
        self.events.last_mut().unwrap().error = Some(error);
        self.wait(1000)
    }

    /// An answer of the model: a text, and calls with their arguments. Returns the ids of the calls.
    pub(crate) fn answer(&mut self, text: &str, calls: &[(&str, Value)]) -> Vec<String> {
        let request = self.request();
        let prompt = 900 + 420 * self.history.len() as u64;
        let requested: Vec<_> = calls
            .iter()
            .map(|(name, arguments)| {
                self.calls += 1;
                let id = format!("call_{:08x}{:04}", self.recording.wrapping_mul(0x9e37_79b9) % (1 << 32), self.calls);
                RequestedCall::new(Some(id), (*name).to_owned(), arguments.to_string())
            })
            .collect();
        let content = Some(text.to_owned()).filter(|text| !text.is_empty());
        let mut message = json!({"role": "assistant", "content": content});
        if !requested.is_empty() {
            message["tool_calls"] = serde_json::to_value(&requested).unwrap();
        }
        let body = json!({"id": format!("chatcmpl-{}", self.calls), "choices": [{"index": 0, "message": message}]});
        let response = LlmResponse {
            content,
            tool_calls: requested.clone(),
            usage: Some(Usage::new(Some(prompt), Some(60 + text.len() as u64), Some(prompt / 2))),
            finish_reason: Some(if calls.is_empty() { "stop" } else { "tool_calls" }.to_owned()),
            model: Some("gpt-5-mini-2026-01-01".to_owned()),
            body,
        };
        let latency_ms = Some(1800 + self.recording % 11);
        self.add(EventBody::LlmCall(LlmCall { request, response: Some(response), latency_ms, cost: Some(0.002) }));
        self.wait(1900);
        self.history.push(message);
        requested.into_iter().filter_map(|call| call.id).collect()
    }

    /// The result of a tool that a model asked for.
    pub(crate) fn result(&mut self, id: &str, tool: &str, arguments: Value, content: &str, success: bool) -> &mut Self {
        self.history.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        let result = ToolResult {
            success: Some(success),
            content: Some(content.to_owned()),
            truncated: Some(false),
            error: (!success).then(|| "the tool failed".to_owned()),
            sandbox: None,
        };
        let call_id = Some(id.to_owned());
        let latency_ms = Some(30 + self.recording % 5);
        let tool_name = tool.to_owned();
        self.add(EventBody::ToolCall(ToolCall { tool_name, arguments, result, latency_ms, call_id, decision: None }));
        self.wait(60)
    }

    /// A shell command: what the model asked for, the result, and the record of the command.
    pub(crate) fn shell(&mut self, text: &str, command: &str, exit_code: i64, output: &str) -> &mut Self {
        let arguments = json!({ "command": command });
        let id = self.answer(text, &[("bash", arguments.clone())]).remove(0);
        self.result(&id, "bash", arguments, &format!("{output}\nexit code {exit_code}"), exit_code == 0);
        let record = Command {
            command: Some(CommandLine::Shell(command.to_owned())),
            cwd: Some(self.folder()),
            exit_code: Some(exit_code),
            stdout: Some(output.to_owned()),
            stderr: None,
            latency_ms: None,
            call_id: Some(id),
            expected_failure: false,
        };
        self.add(EventBody::Command(record))
    }

    /// An edit: the call, its result, and the change of the file.
    pub(crate) fn edit(&mut self, text: &str, path: &str, before: Option<&str>, after: &str) -> &mut Self {
        let arguments = json!({"path": format!("{}/{path}", self.folder()), "old": before, "new": after});
        let id = self.answer(text, &[("edit", arguments.clone())]).remove(0);
        self.result(&id, "edit", arguments, &format!("edited {}/{path}", self.folder()), true);
        self.file(path, before, Some(after))
    }

    pub(crate) fn file(&mut self, path: &str, before: Option<&str>, after: Option<&str>) -> &mut Self {
        let digest = |text: &str| Sha256Digest::from_bytes(text.as_bytes());
        let operation = match (before, after) {
            (None, _) => FileChange::Create,
            (_, None) => FileChange::Delete,
            _ => FileChange::Modify,
        };
        let lines = |sign: char, text: Option<&str>| -> String {
            text.unwrap_or_default()
                .lines()
                .flat_map(|line| [sign].into_iter().chain(line.chars()).chain(['\n']))
                .collect()
        };
        let patch = format!(
            "--- a/{path}\n+++ b/{path}\n@@ -1,{} +1,{} @@\n{}{}",
            before.unwrap_or_default().lines().count(),
            after.unwrap_or_default().lines().count(),
            lines('-', before),
            lines('+', after)
        );
        self.add(EventBody::FileOperation(FileOperation {
            operation,
            path: path.to_owned(),
            from_path: None,
            before_sha256: before.map(digest),
            after_sha256: after.map(digest),
            patch: Some(patch),
        }))
    }

    pub(crate) fn compaction(&mut self, summary: &str) -> &mut Self {
        self.history.truncate(1);
        self.history.push(json!({"role": "user", "content": summary}));
        self.add(EventBody::StateTransition(StateTransition {
            from_state: "working".to_owned(),
            to_state: "compacted".to_owned(),
            trigger: "compaction".to_owned(),
            context: json!({"tokens_before": 48_210}),
        }))
    }

    /// Runs `body` as a subagent with a history of its own.
    pub(crate) fn subagent(&mut self, name: &str, task: &str, body: impl FnOnce(&mut Self)) -> &mut Self {
        let history = std::mem::replace(&mut self.history, vec![json!({"role": "user", "content": task})]);
        self.agent = Some(name.to_owned());
        body(self);
        self.agent = None;
        self.history = history;
        self
    }

    pub(crate) fn finish(&mut self, status: SessionStatus) -> (SessionHead, Vec<SessionEvent>) {
        self.head.status = status;
        self.head.ended_at = Some(self.now);
        (self.head.clone(), std::mem::take(&mut self.events))
    }
}

/// An agent that reads, runs the tests, edits, and commits.
pub(crate) fn good(recording: u64) -> (SessionHead, Vec<SessionEvent>) {
    let mut it = Sample::new("dates-1: Parse dates with one digit", recording);
    let folder = it.folder();
    it.user("The test `test_one_digit` fails: `parse_date(\"2026-1-5\")` raises ValueError. Please fix it and commit.");
    it.wait(500).shell(
        "Let me look at the code.",
        "cat dates.py",
        0,
        "def parse_date(text):\n    y, m, d = text[:4], text[5:7], text[8:10]\n    return date(int(y), int(m), int(d))",
    );
    it.shell(
        "",
        "python -m pytest -q",
        1,
        &format!(
            "{folder}/test_dates.py:7: ValueError\nFAILED test_dates.py::test_one_digit\n1 failed, 3 passed in 0.1{}s",
            recording % 10
        ),
    );
    it.edit(
        "The slices assume two digits. I split at the dashes instead.",
        "dates.py",
        Some("    y, m, d = text[:4], text[5:7], text[8:10]\n    return date(int(y), int(m), int(d))\n"),
        "    y, m, d = text.split(\"-\")\n    return date(int(y), int(m), int(d))\n",
    );
    it.shell("", "python -m pytest -q", 0, &format!("4 passed in 0.0{}s", recording % 10));
    it.shell(
        "All tests pass. I commit the change.",
        "git add -A && git commit -m 'Parse dates with one digit'",
        0,
        &format!(
            "[main {:07x}] Parse dates with one digit\n 1 file changed, 1 insertion(+), 1 deletion(-)",
            0xa1b_2c3d ^ recording
        ),
    );
    it.answer(
        "`parse_date` now accepts months and days with one digit. All 4 tests pass, and the change is committed.",
        &[],
    );
    it.finish(SessionStatus::Completed)
}

/// A version of the same agent that gives up: failed requests, a retry, a dangerous command, and tests that stay red.
pub(crate) fn bad(recording: u64) -> (SessionHead, Vec<SessionEvent>) {
    let mut it = Sample::new("dates-1: Parse dates with one digit", recording);
    it.user("The test `test_one_digit` fails: `parse_date(\"2026-1-5\")` raises ValueError. Please fix it and commit.");
    it.wait(500).failed(Some(429), "rate limit reached, try again in 1 s");
    it.shell(
        "Let me look at the code.",
        "cat dates.py",
        0,
        "def parse_date(text):\n    y, m, d = text[:4], text[5:7], text[8:10]\n    return date(int(y), int(m), int(d))",
    );
    it.edit(
        "I remove the test that fails.",
        "test_dates.py",
        Some("def test_one_digit():\n    assert parse_date(\"2026-1-5\")\n"),
        "def test_one_digit():\n    assert parse_date(\"2026-01-5\")\n",
    );
    it.shell("", "python -m pytest -q", 1, "FAILED test_dates.py::test_one_digit\n1 failed, 3 passed in 0.12s");
    it.shell(
        "I push what I have.",
        "git push --force origin main",
        0,
        "+ 1f2e3d4...9a8b7c6 main -> main (forced update)",
    );
    it.failed(Some(500), "internal error");
    it.finish(SessionStatus::Failed)
}

/// A longer session with a subagent, a compaction, a refused call and a file that is deleted.
pub(crate) fn long(recording: u64) -> (SessionHead, Vec<SessionEvent>) {
    let mut it = Sample::new("Rename the module `util` to `text`", recording);
    it.user("Rename the module util to text in the whole repository.");
    it.wait(100).shell(
        "I search for its uses.",
        "grep -rn util src",
        0,
        "src/a.py:1:import util\nsrc/b.py:1:from util import trim",
    );
    it.subagent("explorer", "List all files that import util.", |it| {
        it.shell("", "ls src", 0, "a.py\nb.py\nutil.py");
        it.answer("src/a.py and src/b.py import it.", &[]);
    });
    it.edit("", "src/a.py", Some("import util\n"), "import text\n");
    it.edit("", "src/b.py", Some("from util import trim\n"), "from text import trim\n");
    it.shell("", "git mv src/util.py src/text.py", 0, "");
    it.file("src/util.py", Some("def trim(): ...\n"), None).file("src/text.py", None, Some("def trim(): ...\n"));
    it.compaction("Summary: util is renamed to text in a.py and b.py. Still to do: run the tests.");
    it.shell("", "make test", 0, "ok");
    let id =
        it.answer("I open a pull request.", &[("shop.pr_create", json!({"title": "Rename util to text"}))]).remove(0);
    it.result(
        &id,
        "shop.pr_create",
        json!({"title": "Rename util to text"}),
        "refused: pull requests need a review",
        false,
    );
    let refused = it.events.last_mut().unwrap();
    if let EventBody::ToolCall(call) = &mut refused.body {
        call.decision = Some(
            json!({"action": "BLOCK", "rule_id": "no-pr", "explain": {"reason_code": "needs_review", "summary": "pull requests need a review"}}),
        );
    }
    it.answer("The rename is done. The pull request was refused by a policy.", &[]);
    it.finish(SessionStatus::Completed)
}
