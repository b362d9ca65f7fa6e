//! A repository with a failing test, and a model that mends it, by the content of its requests.

use serde_json::{Value, json};

use super::model_server::{ModelAnswer, ModelRequest, Step};

/// The failing test.
pub const TARGET: &str = "test_calc.Calc.test_add";

pub const CODE: &str = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n";

/// The name of one test looks like a secret, which is masked in checkpoints.
pub const TESTS: &str = "import unittest\n\nfrom calc import add, double\n\n\nclass Calc(unittest.TestCase):\n    def test_add(self):\n        \
                     self.assertEqual(add(2, 3), 5)\n\n    def test_double(self):\n        self.assertEqual(double(4), 8)\n\n    \
                     def test_password_reset_ghp_abcdefghijklmnopqrstuvwxyz0123456789(self):\n        self.assertEqual(double(1), 2)\n";

const FEATURE_TESTS: &str = "import unittest\n\nfrom calc import triple\n\n\nclass Triple(unittest.TestCase):\n    def \
                             test_triple(self):\n        self.assertEqual(triple(2), 6)\n";

/// A step of the model: tool calls, or its last text.
#[derive(Debug, Clone)]
pub enum Turn {
    Calls(Vec<(&'static str, Value)>),
    Text(&'static str),
}

pub fn call(tool: &'static str, arguments: Value) -> Turn {
    Turn::Calls(vec![(tool, arguments)])
}

/// Mends the code. It also leaves an untracked file, a link and an empty folder on its way.
pub fn mending() -> Vec<Turn> {
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

pub fn feature() -> Vec<Turn> {
    let code = format!("{CODE}\n\ndef triple(a):\n    return 3 * a\n");
    vec![
        call("read", json!({"path": "calc.py"})),
        call("write", json!({"path": "calc.py", "content": code})),
        call("write", json!({"path": "test_triple.py", "content": FEATURE_TESTS})),
        Turn::Text("`triple` is there."),
    ]
}

/// Answers by the history: a step is done once each of its calls has a result that is not an error.
pub fn answer(turns: &[Turn], request: &ModelRequest) -> ModelAnswer {
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

/// Asks for one call, whose arguments may be invalid. `body` is that of the request.
pub fn calling(tool: &str, arguments: &str, body: &Value) -> ModelAnswer {
    let function = json!({"name": tool, "arguments": arguments});
    let call = json!({"index": 0, "id": "call", "type": "function", "function": function});
    chat_answer(&json!({"role": "assistant", "content": null, "tool_calls": [call]}), body["stream"] == true)
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
