"""Tests of the client and of the scripted model, without the product."""

import json
import os
import re
import stat
import subprocess
import tempfile
import urllib.error
import urllib.request

from client import Client, CommandFailed
from model_server import ModelServer
from sample_repositories import create_test_repo_for_feature, create_test_repo_with_failing_test

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("read", "write", "edit", "search", "shell")
]

FAKE = '''#!/usr/bin/env python3
import json, sys
arguments = sys.argv[1:]
assert arguments[-3:] == ["--ledger", "l.db", "--json"], arguments
if arguments[1] == "timeline":
    start = int(arguments[arguments.index("--cursor") + 1]) if "--cursor" in arguments else 0
    events = [{"seq": seq + 1, "body": {"arguments": arguments}} for seq in range(start, min(start + 200, 450))]
    print(json.dumps({"events": events, "next": str(start + 200) if start + 200 < 450 else None}))
elif arguments[1] == "run":
    print(json.dumps({"status": "failure", "capture": {"session_id": "s"}, "arguments": arguments}))
    sys.exit(1)
else:
    sys.exit("error: unknown session\\nhint: none")
'''


def test_the_client_reads_all_pages_and_names_each_option():
    path = os.path.join(tempfile.mkdtemp(), "fake")
    with open(path, "w", encoding="utf-8") as file:
        file.write(FAKE)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    client = Client(path, "l.db", "http://127.0.0.1:1/v1", "m", options=["--max-turns", "9"])
    events = client.get_session_timeline("s")
    assert [event.seq for event in events] == list(range(1, 451))
    typed = client.get_events_by_type("s", "checkpoint")[0].body.arguments
    assert typed[:5] == ["session", "timeline", "s", "--type", "checkpoint"]
    bounds = client.get_events_between("s", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")[0].body.arguments
    assert bounds[3:7] == ["--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z"]
    session = client.run_workflow(workflow="fix_failing_test", repo="/r", test="a::b", target_files=["x"])
    assert (session.session_id, session.status, session.exit_code) == ("s", "failure", 1)
    expected = "workflow run fix-failing-test --repo /r --test a::b --target-file x --model-url http://127.0.0.1:1/v1 --model m"
    assert session.arguments[:-3] == f"{expected} --forge local --max-turns 9".split()
    try:
        client.get_session_overview("other")
    except CommandFailed as error:
        assert error.code == 1 and "unknown session" in error.stderr
    else:
        raise AssertionError("no error")


def post(url, body):
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def streamed(url, body):
    """Returns the message of a stream, and its usage."""
    text = post(url, {**body, "stream": True, "stream_options": {"include_usage": True}})
    events = [line[6:] for line in text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    message, usage = {"role": "assistant", "content": None}, None
    for event in map(json.loads, events):
        usage = event.get("usage", usage)
        for choice in event["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                message["content"] = (message["content"] or "") + delta["content"]
            for part in delta.get("tool_calls", []):
                calls = message.setdefault("tool_calls", [])
                if "id" in part:
                    calls.append({"id": part["id"], "type": "function", "function": {"name": part["function"]["name"], "arguments": ""}})
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return message, usage


def run_tool(folder, name, arguments):
    """The tools as the agent has them, without their limits."""
    path = os.path.join(folder, arguments.get("path", ""))
    if name == "shell":
        done = subprocess.run(arguments["command"], shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return f"{done.stdout}\nexit code {done.returncode}"
    if name == "search":
        files = [file for file in sorted(os.listdir(folder)) if file.endswith(".py")]
        lines = [(file, number, line) for file in files for number, line in enumerate(open(os.path.join(folder, file)), 1)]
        return "".join(f"{file}:{number}:{line}" for file, number, line in lines if re.search(arguments["pattern"], line))
    if name == "write":
        with open(path, "w", encoding="utf-8") as file:
            file.write(arguments["content"])
        return "written"
    with open(path, encoding="utf-8") as file:
        content = file.read()
    if name == "read":
        return content
    if content.count(arguments["old_string"]) != 1:
        return "error: the text does not occur once"
    return run_tool(folder, "write", {**arguments, "content": content.replace(arguments["old_string"], arguments["new_string"])})


def attempt(server, model, folder, messages):
    """Runs the agent until the model ends its attempt. Returns its last text."""
    for _ in range(40):
        message, _ = streamed(server.url, {"model": model, "messages": messages, "tools": TOOLS})
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            try:
                arguments = json.loads(call["function"]["arguments"])
                result = run_tool(folder, call["function"]["name"], arguments)
            except Exception as error:
                result = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise AssertionError("the model does not end")


def passes(folder):
    return run_tool(folder, "shell", {"command": "python3 run_tests.py"}).endswith("exit code 0")


TASK = "Fix the code so that this test passes: test_example.py::test_should_pass\n\nThe command that runs all tests: python3 run_tests.py"


def test_the_model_does_its_tasks():
    feature = TASK.replace("Fix the code so that this test passes: test_example.py::test_should_pass", "Add fibonacci numbers")
    red = {"role": "user", "content": "A test fails. Correct the code."}
    with ModelServer() as server:
        for model, red_checks in [("scripted", 0), ("scripted:malformed", 0), ("scripted:wrong", 1), ("scripted:regress", 1)]:
            folder, messages = create_test_repo_with_failing_test(), [{"role": "user", "content": TASK}]
            for number in range(red_checks + 1):
                assert "I could not" not in attempt(server, model, folder, messages), model
                assert passes(folder) == (number == red_checks), (model, number)
                messages.append(red)
        folder = create_test_repo_for_feature()
        attempt(server, "scripted", folder, [{"role": "user", "content": feature}])
        assert passes(folder) and os.path.exists(os.path.join(folder, "test_fibonacci.py"))
        bodies = [json.dumps(body, sort_keys=True) for body in server.requests]
        assert len(bodies) == len(set(bodies)), "no request is repeated"


def test_the_answer_follows_from_the_request_alone():
    body = {"model": "scripted", "messages": [{"role": "user", "content": TASK}], "tools": TOOLS}
    with ModelServer() as first, ModelServer() as second:
        texts = {post(server.url, body) for server in (first, second, first)}
        assert len(texts) == 1
        whole = json.loads(texts.pop())["choices"][0]["message"]
        message, usage = streamed(second.url, body)
        assert len(whole["tool_calls"]) == 2 and usage["total_tokens"] > 0
        without_ids = [[call["function"] for call in it["tool_calls"]] for it in (whole, message)]
        assert without_ids[0] == without_ids[1] and whole["content"] == message["content"]


def test_a_faulty_model_fails_first_and_then_answers():
    body = {"messages": [{"role": "user", "content": TASK}], "tools": TOOLS}
    with ModelServer() as server:
        codes = []
        for _ in range(3):
            try:
                codes.append(bool(post(server.url, {**body, "model": "scripted:errors"})))
            except urllib.error.HTTPError as error:
                codes.append(error.code)
        assert codes == [429, 500, True]
        cut = {**body, "model": "scripted:cut", "stream": True}
        try:
            assert "[DONE]" not in post(server.url, cut)
        except Exception as error:
            assert "IncompleteRead" in repr(error)
        assert "[DONE]" in post(server.url, cut)
        assert len(server.requests) == 5
