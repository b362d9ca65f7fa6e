//! A repository with a failing test, and a model that mends it.

use std::process::{Child, Command, Stdio};

use camino::Utf8PathBuf;
use counterproof_tests::{Finished, ModelAnswer, ModelRequest, ModelServer, Sandbox, Step};
use serde_json::{Value, json};

pub(crate) const TARGET: &str = "test_calc.Calc.test_add";

const CODE: &str = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n";

const TESTS: &str = "import unittest\n\nfrom calc import add, double\n\n\nclass Calc(unittest.TestCase):\n    def test_add(self):\n        \
                     self.assertEqual(add(2, 3), 5)\n\n    def test_double(self):\n        self.assertEqual(double(4), 8)\n";

const FEATURE_TESTS: &str = "import unittest\n\nfrom calc import triple\n\n\nclass Triple(unittest.TestCase):\n    def \
                             test_triple(self):\n        self.assertEqual(triple(2), 6)\n";

/// A step of the model: tool calls, or its last text.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    Calls(Vec<(&'static str, Value)>),
    Text(&'static str),
}

pub(crate) fn call(tool: &'static str, arguments: Value) -> Turn {
    Turn::Calls(vec![(tool, arguments)])
}

/// Mends the code. It also leaves an untracked file, a link and an empty folder on its way.
pub(crate) fn mending() -> Vec<Turn> {
    vec![
        Turn::Calls(vec![("read", json!({"path": "calc.py"})), ("search", json!({"pattern": "def add"}))]),
        call(
            "shell",
            json!({"command": "mkdir -p empty notes && ln -s ../calc.py notes/link && echo idea > notes/idea.txt"}),
        ),
        call("edit", json!({"path": "calc.py", "old_string": "return a - b", "new_string": "return a + b"})),
        call("shell", json!({"command": "rm -r notes empty && python3 -m unittest -q 2>/dev/null; echo $?"})),
        Turn::Text("`add` subtracted. It adds now."),
    ]
}

pub(crate) fn feature() -> Vec<Turn> {
    let code = format!("{}\n\ndef triple(a):\n    return 3 * a\n", CODE.replace("a - b", "a + b"));
    vec![
        call("read", json!({"path": "calc.py"})),
        call("write", json!({"path": "calc.py", "content": code})),
        call("write", json!({"path": "test_triple.py", "content": FEATURE_TESTS})),
        Turn::Text("`triple` is there."),
    ]
}

/// Answers by the history: a step is done once each of its calls has a result that is not an error.
pub(crate) fn answer(turns: &[Turn], request: &ModelRequest) -> ModelAnswer {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let results: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
    let mut left = results.iter().filter(|it| !it["content"].as_str().unwrap().starts_with("error:")).count();
    let turn = turns.iter().find(|turn| match turn {
        Turn::Calls(calls) if left >= calls.len() => {
            left -= calls.len();
            false
        }
        _ => true,
    });
    let number = results.len();
    let message = match turn {
        Some(Turn::Calls(calls)) => {
            let calls: Vec<Value> = calls[left..]
                .iter()
                .enumerate()
                .map(|(index, (name, arguments))| {
                    let function = json!({"name": name, "arguments": arguments.to_string()});
                    json!({"index": index, "id": format!("call_{number}_{index}"), "type": "function", "function": function})
                })
                .collect();
            json!({"role": "assistant", "content": null, "tool_calls": calls})
        }
        Some(Turn::Text(text)) => json!({"role": "assistant", "content": text}),
        None => json!({"role": "assistant", "content": "done"}),
    };
    chat_answer(&message, body["stream"] == true)
}

fn chat_answer(message: &Value, is_stream: bool) -> ModelAnswer {
    let reason = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    if !is_stream {
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return ModelAnswer::json(200, &json!({"id": "c", "model": "m", "choices": [choice], "usage": usage}));
    }
    let chunks = [
        json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": message, "finish_reason": null}]}),
        json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"id": "c", "model": "m", "choices": [], "usage": usage}),
    ];
    let [first, second, third] = chunks;
    let events = format!("data: {first}\n\ndata: {second}\n\ndata: {third}\n\ndata: [DONE]\n\n");
    ModelAnswer::new(200, "text/event-stream", "").chunked([Step::Send(events.into_bytes())])
}

pub(crate) struct Kit {
    pub(crate) sandbox: Sandbox,
    pub(crate) server: ModelServer,
}

impl Kit {
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        Self::answering(move |_, request| answer(&turns, request))
    }

    pub(crate) fn answering(decide: impl Fn(usize, &ModelRequest) -> ModelAnswer + Send + Sync + 'static) -> Self {
        let server = ModelServer::start(decide);
        let sandbox = Sandbox::new()
            .with_file("repo/calc.py", CODE)
            .with_file("repo/test_calc.py", TESTS)
            .with_file("repo/.gitignore", "__pycache__/\n")
            .with_variable("COUNTERPROOF_LEDGER", "ledger.db")
            .with_variable("GIT_CONFIG_GLOBAL", "/dev/null");
        let kit = Self { sandbox, server };
        kit.git("repo", &["init", "-q", "-b", "main"]);
        kit.git("repo", &["config", "user.name", "Ada"]);
        kit.git("repo", &["config", "user.email", "ada@example.org"]);
        kit.git("repo", &["add", "-A"]);
        kit.git("repo", &["commit", "-q", "-m", "start"]);
        kit
    }

    pub(crate) fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.sandbox.path(folder)).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn model(&self) -> Vec<String> {
        ["--model-url", &format!("{}/v1", self.server.origin()), "--model", "m"].map(str::to_owned).into()
    }

    pub(crate) fn fix(&self) -> Vec<String> {
        let mut arguments =
            ["workflow", "run", "fix-failing-test", "--repo", "repo", "--test", TARGET].map(str::to_owned).to_vec();
        arguments.extend(self.model());
        arguments.extend(
            ["--test-cmd", "python3 -m unittest -v {test}", "--suite-cmd", "python3 -m unittest -v", "--json"]
                .map(str::to_owned),
        );
        arguments
    }

    pub(crate) fn implement(&self) -> Vec<String> {
        let mut arguments = ["workflow", "run", "implement-feature", "--repo", "repo", "--spec", "Add triple"]
            .map(str::to_owned)
            .to_vec();
        arguments.extend(self.model());
        arguments.extend(["--suite-cmd", "python3 -m unittest -v", "--json"].map(str::to_owned));
        arguments
    }

    pub(crate) fn run(&self, arguments: &[String], more: &[&str]) -> Finished {
        self.sandbox.run(arguments.iter().map(String::as_str).chain(more.iter().copied()))
    }

    pub(crate) fn start(&self, arguments: &[String]) -> Child {
        let mut command = self.sandbox.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn session(&self, arguments: &[&str]) -> Finished {
        self.sandbox.run(["session"].iter().chain(arguments).chain(&["--json"]))
    }

    /// Runs a query that succeeds.
    pub(crate) fn query(&self, arguments: &[&str]) -> Value {
        let run = self.session(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        document(&run)
    }

    pub(crate) fn resume(&self, id: &str, more: &[&str]) -> Finished {
        self.session(&[&["resume", id], more].concat())
    }

    pub(crate) fn checkpoints(&self, session: &str) -> Vec<Value> {
        let page = self.query(&["checkpoints", session, "--limit", "1000"]);
        assert_eq!(page["next"], Value::Null);
        page["checkpoints"].as_array().unwrap().clone()
    }

    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        let page = self.query(&["timeline", session, "--limit", "1000"]);
        page["events"].as_array().unwrap().clone()
    }

    /// Returns the record of a pull request, and its files by `git ls-tree`.
    pub(crate) fn pull_request(&self, result: &Value) -> (Value, String) {
        let url = result["pr_url"].as_str().unwrap_or_else(|| panic!("{result}"));
        let path = Utf8PathBuf::from(url.strip_prefix("file://").unwrap());
        let record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let repository = record["repository"].as_str().unwrap();
        let head = record["head"].as_str().unwrap();
        let tree = self.git(repository, &["ls-tree", "-r", head]);
        assert_eq!(record["head_commit"], self.git(repository, &["rev-parse", head]).as_str());
        (record, tree)
    }
}

pub(crate) fn document(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}
