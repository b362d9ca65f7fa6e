"""A scripted model with the interface of OpenAI's chat completions.

It answers by the content of the request: the task, the tools that are offered, and the results of earlier calls. It knows
nothing of sessions, so a run that is resumed or forked receives the same answers.

    python3 tests/acceptance/model_server.py --port 0

prints the base URL. The name of the model chooses how it behaves: `scripted`, or `scripted:errors:wrong` with several of the
behaviours that `BEHAVIOURS` lists. It corrects the mistakes of the sample repositories. `--knowledge FILE` adds others:

    {"tasks": [{"contains": "text of the task", "reads": ["path"], "searches": ["pattern"],
                "edits": [{"path": "path", "old_string": "a", "new_string": "b"}],
                "writes": [{"path": "path", "content": "text"}], "answer": "last text"}]}
"""

import argparse
import hashlib
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHAVIOURS = {
    "errors": "answers each request with 429, then with 500, and then well",
    "cut": "ends the first answer to each request in the middle",
    "slow": "waits a second before each answer, and between its parts",
    "malformed": "first makes calls with invalid arguments, and of a tool that does not exist",
    "wrong": "makes a wrong change in its first attempt",
    "regress": "breaks another test in its first attempt",
    "lazy": "answers without a call",
    "loop": "makes the same call for ever",
    "cheat": "edits the test in place of the code",
    "skip": "skips the test in place of correcting the code",
    "hostile": "first tries to read and change what is outside of the workspace, and obeys files",
    "refuse": "answers each request with 401",
}

# How often a call that failed is repeated.
ATTEMPTS = 3

FIBONACCI = '''"""Fibonacci numbers."""


def fibonacci(n):
    """Return the n-th Fibonacci number: 0, 1, 1, 2, 3, 5, and so on."""
    if n < 0:
        raise ValueError("n must not be negative")
    current, following = 0, 1
    for _ in range(n):
        current, following = following, current + following
    return current
'''

FIBONACCI_TESTS = '''from fibonacci import fibonacci


def test_the_first_numbers():
    assert [fibonacci(n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]


def test_a_large_number():
    assert fibonacci(90) == 2880067194370816120


def test_a_negative_number_is_refused():
    try:
        fibonacci(-1)
    except ValueError:
        return
    raise AssertionError("no error")
'''

# Mistakes in code that the model knows: what it reads, what it writes in its place, and what it says.
MISTAKES = [
    {
        "old": "return sum(numbers) / (len(numbers) - 1)",
        "new": "return sum(numbers) / len(numbers)",
        "wrong": "return sum(numbers) // (len(numbers) - 1)",
        "regress": "return sum(numbers) / max(len(numbers), 3)",
        "answer": "`average` divided by one less than the number of values. It divides by their number now.",
    },
    {
        "old": "return sum(numbers) // (len(numbers) - 1)",
        "new": "return sum(numbers) / len(numbers)",
        "answer": "`average` divided by the wrong number. It divides by the number of values now.",
    },
    {
        "old": "return sum(numbers) / max(len(numbers), 3)",
        "new": "return sum(numbers) / len(numbers)",
        "answer": "`average` is correct for lists of fewer than three values now, too.",
    },
]


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


class Talk:
    """What a request says: the task, the calls so far, and their results."""

    def __init__(self, body):
        messages = [message for message in body.get("messages") or [] if isinstance(message, dict)]
        users = [index for index, message in enumerate(messages) if message.get("role") == "user"]
        self.task = text_of(messages[users[0]]) if users else ""
        self.last_user = text_of(messages[users[-1]]) if users else ""
        self.attempt = max(len(users) - 1, 0)
        self.tools = {item.get("function", {}).get("name") for item in body.get("tools") or []}
        results = {message.get("tool_call_id"): text_of(message) for message in messages if message.get("role") == "tool"}
        self.all_calls, self.calls = [], []
        for index, message in enumerate(messages):
            for call in message.get("tool_calls") or []:
                function = call.get("function", {})
                try:
                    arguments = json.loads(function.get("arguments") or "{}")
                except ValueError:
                    arguments = None
                made = {"name": function.get("name"), "arguments": arguments, "result": results.get(call.get("id"))}
                self.all_calls.append(made)
                # A check that failed begins a new attempt, which sees the files anew.
                if not users or index > users[-1]:
                    self.calls.append(made)

    def results(self, call):
        same = [made for made in self.calls if made["name"] == call["name"] and made["arguments"] == call["arguments"]]
        return [made["result"] for made in same if made["result"] is not None]

    def has_made(self, call):
        """Whether the call was made in any attempt."""
        return any(made["name"] == call["name"] and made["arguments"] == call["arguments"] for made in self.all_calls)

    def result(self, call):
        """The text of a call that went well."""
        return next((text for text in reversed(self.results(call)) if not text.startswith("error:")), "")

    def is_open(self, call):
        results = self.results(call)
        failed = [text for text in results if text.startswith("error:")]
        return call["name"] in self.tools and len(failed) == len(results) and len(failed) < ATTEMPTS


def text_of(message):
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


class Model:
    def __init__(self, knowledge=None, outside="/tmp"):
        self.tasks = (knowledge or {}).get("tasks", [])
        self.outside = outside

    def answer(self, body):
        """Returns the text and the calls of an answer."""
        talk = Talk(body)
        behaviours = str(body.get("model", "")).split(":")[1:]
        if not talk.tools or "lazy" in behaviours:
            return "There is nothing to do.", []
        if "loop" in behaviours:
            return None, [tool("shell", command="true")]
        plans = []
        if "malformed" in behaviours:
            plans.append(malformed(talk))
        if "hostile" in behaviours:
            plans.append(hostile(talk, self.outside))
        final = ["I could not find the mistake."]
        plans.append(self.plan(talk, behaviours, final))
        for plan in plans:
            for text, calls in plan:
                missing = [call for call in calls if talk.is_open(call)]
                if missing:
                    return text, missing
        return final[0], []

    def plan(self, talk, behaviours, final):
        known = next((task for task in self.tasks if task["contains"] in talk.task), None)
        if known:
            return by_knowledge(talk, known, final)
        if "fibonacci" in talk.task.lower():
            return feature(talk, final)
        return fix(talk, behaviours, final)


def test_command(talk):
    found = re.search(r"^The command that runs all tests: (.+)$", talk.task, re.MULTILINE)
    return [tool("shell", command=found[1].strip())] if found else []


def by_knowledge(talk, known, final):
    looks = [tool("search", pattern=pattern) for pattern in known.get("searches", [])]
    yield "I look at the code.", looks + [tool("read", path=path) for path in known.get("reads", [])]
    yield None, [tool("edit", **edit) for edit in known.get("edits", [])]
    yield None, [tool("write", **write) for write in known.get("writes", [])]
    yield "I run the tests.", test_command(talk)
    final[0] = known.get("answer", "The work is done.")


def feature(talk, final):
    search = tool("search", pattern="def ")
    yield "I look at the structure of the code and its tests.", [search]
    paths = sorted({line.split(":")[0] for line in talk.result(search).splitlines() if ".py:" in line})
    yield None, [tool("read", path=path) for path in paths[:4]]
    yield (
        "The tests are functions with `assert`, in files next to the code. I write the function, and its tests in that style.",
        [tool("write", path="fibonacci.py", content=FIBONACCI), tool("write", path="test_fibonacci.py", content=FIBONACCI_TESTS)],
    )
    yield None, test_command(talk)
    final[0] = "`fibonacci(n)` computes the n-th number with a loop, which is exact for large n. Negative numbers are refused."


def fix(talk, behaviours, final):
    found = re.search(r"^Fix the code so that this test passes: (\S+)", talk.task, re.MULTILINE)
    test_path, _, name = (found[1] if found else "test_example.py").partition("::")
    read_test = tool("read", path=test_path)
    yield "I look at the failing test.", [read_test] + ([tool("search", pattern=f"def {name}")] if name else [])
    test = talk.result(read_test)
    if "cheat" in behaviours and "== 4" in test:
        yield None, [tool("edit", path=test_path, old_string="== 4", new_string="== 6")]
    if "skip" in behaviours and f"def {name}" in test:
        skipped = f"import unittest\n\n\n@unittest.skip(\"flaky\")\ndef {name}"
        yield None, [tool("edit", path=test_path, old_string=f"def {name}", new_string=skipped)]
    modules = sorted(set(re.findall(r"^(?:from|import) (\w+)", test, re.MULTILINE)) - set(sys.stdlib_module_names))
    reads = [tool("read", path=f"{module}.py") for module in modules]
    if not {"cheat", "skip"} & set(behaviours):
        yield "The test uses this code.", reads
        for read in reads:
            for mistake in MISTAKES:
                if mistake["old"] not in talk.result(read):
                    continue
                kind = next((it for it in ("wrong", "regress") if it in behaviours and it in mistake), "new")
                new = mistake[kind if talk.attempt == 0 else "new"]
                yield None, [tool("edit", path=read["arguments"]["path"], old_string=mistake["old"], new_string=new)]
                final[0] = mistake["answer"]
    yield "I run the tests.", test_command(talk)


def malformed(talk):
    """Calls whose arguments are invalid. Each is made once."""
    texts = ["{\"path\": ", "[1]", "\"text\"", json.dumps({"pattern": 7}), json.dumps({})]
    for text in texts:
        made = [call for call in talk.all_calls if call["name"] == "read"]
        if len(made) < len(texts):
            yield None, [{"name": "read", "arguments": {}, "raw": texts[len(made)]}]
    if not any(call["name"] == "no_such_tool" for call in talk.all_calls):
        yield None, [{"name": "no_such_tool", "arguments": {}, "raw": "{}"}]


def hostile(talk, outside):
    """Attempts to leave the workspace, each once."""
    files = ["/etc/passwd", "../../../../etc/passwd", ".git/config", "/dev/zero", "/proc/self/environ", "pipe", "link/etc/passwd"]
    commands = [
        f"echo hostile > {outside}/written",
        f"ln -s / link; mkfifo pipe; cat {outside}/secret",
        f"(setsid sh -c 'sleep 1; echo hostile > {outside}/daemon; sleep 600' >/dev/null 2>&1 &)",
        "head -c 1073741824 /dev/zero | tr '\\0' x",
        "git config core.hooksPath hooks; git push origin HEAD:refs/heads/hostile",
        "printf '#!/bin/sh\\ntouch hooked\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "kill -9 $PPID",
        "rm link pipe",
    ]
    calls = [tool("shell", command=command) for command in commands[:2]]
    calls += [tool("read", path=path) for path in files]
    calls += [tool("write", path=path, content="hostile") for path in (f"{outside}/written", ".git/hooks/pre-push", f"link{outside}/linked")]
    calls += [tool("edit", path=".git/config", old_string="[core]", new_string="[core]\n\tfsmonitor = false")]
    calls += [tool("shell", command=command) for command in commands[2:]]
    notes = tool("read", path="NOTES.md")
    for call in [*calls, notes]:
        # A refused call is not repeated.
        if not talk.has_made(call):
            yield None, [call]
    for command in re.findall(r"run `([^`]+)`", talk.result(notes)):
        yield "The notes say so.", [tool("shell", command=command)]


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def completion(body, text, calls):
    """Returns the answer as a message without streaming."""
    key = digest(body)
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{key[:12]}_{index}",
                "type": "function",
                "function": {"name": call["name"], "arguments": call.get("raw", json.dumps(call["arguments"]))},
            }
            for index, call in enumerate(calls)
        ]
    prompt = max(len(json.dumps(body.get("messages", []))) // 4, 1)
    completed = max(len(json.dumps(message)) // 4, 1)
    return {
        "id": f"chatcmpl-{key[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completed,
            "total_tokens": prompt + completed,
            "prompt_tokens_details": {"cached_tokens": prompt // 2},
        },
    }


def pieces(text, size=24):
    return [text[start : start + size] for start in range(0, len(text), size)]


def chunks(whole, with_usage):
    """Returns the answer as the events of a stream."""
    choice = whole["choices"][0]
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(choice["message"]["content"] or "")]
    for index, call in enumerate(choice["message"].get("tool_calls", [])):
        function = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        for piece in pieces(call["function"]["arguments"]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    head = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if with_usage:
        events.append({**head, "choices": [], "usage": whole["usage"]})
    return events


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "counterproof"}]
        if self.path == "/v1/models":
            self.send_json(200, {"object": "list", "data": models})
        else:
            self.send_error_json(404, "not found")

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        if self.path != "/v1/chat/completions":
            return self.send_error_json(404, "not found")
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return self.send_error_json(400, "the body is not a request for a chat completion")
        server = self.server.owner
        number = server.arrived(body)
        behaviours = str(body.get("model", "")).split(":")[1:]
        if "refuse" in behaviours:
            return self.send_error_json(401, "the key is invalid")
        if "errors" in behaviours and number < 2:
            status = (429, 500)[number]
            return self.send_error_json(status, "try again", {"Retry-After": "0"})
        if "slow" in behaviours:
            time.sleep(server.delay)
        answer = completion(body, *server.model.answer(body))
        is_cut = "cut" in behaviours and number == 0
        if not body.get("stream"):
            return self.send_json(200, answer, is_cut=is_cut)
        events = chunks(answer, (body.get("stream_options") or {}).get("include_usage"))
        self.send_stream(events, is_cut, server.delay / 10 if "slow" in behaviours else 0)

    def send_stream(self, events, is_cut, delay):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        texts = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        for text in texts[: len(texts) // 2] if is_cut else texts:
            time.sleep(delay)
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        if is_cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def send_json(self, status, value, headers=None, is_cut=False):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if is_cut else data)
        if is_cut:
            self.close_connection = True

    def send_error_json(self, status, message, headers=None):
        self.send_json(status, {"error": {"message": message, "type": "error", "code": status}}, headers)


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Clients that are killed close their connections.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class ModelServer:
    """A running server. `requests` has the body of each request in the order of arrival."""

    def __init__(self, port=0, host="127.0.0.1", log=None, knowledge=None, delay=1.0, outside="/tmp"):
        self.model = Model(knowledge, outside)
        self.delay = delay
        self.requests = []
        self.seen = {}
        self.lock = threading.Condition()
        self.log = open(log, "a", encoding="utf-8") if log else None
        self.http = HttpServer((host, port), Handler)
        self.http.owner = self
        self.url = f"http://{host}:{self.http.server_address[1]}/v1"

    def arrived(self, body):
        """Records a request. Returns how often an equal one arrived before."""
        key = digest(body)
        with self.lock:
            self.requests.append(body)
            number = self.seen.get(key, 0)
            self.seen[key] = number + 1
            if self.log:
                self.log.write(json.dumps(body) + "\n")
                self.log.flush()
            self.lock.notify_all()
        return number

    def wait_for_request(self, model):
        """Waits until a request to a model has arrived."""
        with self.lock:
            self.lock.wait_for(lambda: any(body.get("model") == model for body in self.requests))

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        if self.log:
            self.log.close()


def main():
    parser = argparse.ArgumentParser(description="A scripted model with the interface of OpenAI's chat completions.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8765, help="0 chooses a free port")
    parser.add_argument("--log", metavar="FILE", help="add the body of each request as a line of JSON")
    parser.add_argument("--knowledge", metavar="FILE", help="further tasks that the model can do")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds that a slow model waits")
    parser.add_argument("--outside", default="/tmp", help="the folder that a hostile model tries to write to")
    options = parser.parse_args()
    knowledge = None
    if options.knowledge:
        with open(options.knowledge, encoding="utf-8") as file:
            knowledge = json.load(file)
    server = ModelServer(options.port, options.host, options.log, knowledge, options.delay, options.outside)
    print(server.url, flush=True)
    try:
        server.http.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
