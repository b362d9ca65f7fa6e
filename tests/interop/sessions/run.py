"""Compares the official clients of model servers with the recording proxy between them and without it.

Usage: run.py --server FILE --folder DIR --counterproof FILE

The same requests are sent twice, directly and while `counterproof session record` records them. The clients must get
the same bytes and show the same objects, the server must get the same requests, and the records must have the requests,
answers and tokens.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# A bound against hanging only.
WITHIN = 240

# Of the connection.
VARYING = {"host", "connection"}


class Failed(Exception):
    """The sessions differ."""


def run(options, name, recorder):
    """Runs the client against a new server. Returns its transcript and the requests that the server got."""
    transcript, log = (os.path.join(options.folder, f"{name}-{part}.jsonl") for part in ("client", "server"))
    with subprocess.Popen([options.server, "--log", log], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        origin = server.stdout.readline().strip()
        urls = {"OPENAI_BASE_URL": f"{origin}/v1", "ANTHROPIC_BASE_URL": origin, "NO_PROXY": "127.0.0.1"}
        client = [sys.executable, "-B", os.path.join(HERE, "client.py"), transcript]
        status = subprocess.run([*recorder, *client], env=os.environ | urls, timeout=WITHIN, check=False).returncode
        server.stdin.close()
    if status != 0:
        raise Failed(f"{name}: the client exits with {status}")
    return lines(transcript), lines(log)


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def recorded(options):
    """Runs the client while it is recorded. Returns its transcript, the server's requests, and the records."""
    path = os.path.join(options.folder, "records.jsonl")
    ledger = ["--ledger", os.path.join(options.folder, "ledger.db")]
    session = [options.counterproof, "session"]
    record = [*session, "record", *ledger, "--session-id", "interop", "--"]
    transcript, requests = run(options, "recorded", record)
    with open(path, "wb") as file:
        subprocess.run([*session, "timeline", *ledger, "interop", "--jsonl"], stdout=file, timeout=WITHIN, check=True)
    return transcript, requests, lines(path)


def compare(what, left, right):
    if len(left) != len(right):
        raise Failed(f"{what}: {len(left)} directly and {len(right)} recorded")
    for first, second in zip(left, right):
        if first != second:
            raise Failed(f"{what} differ:\n  {json.dumps(first)[:2000]}\n  {json.dumps(second)[:2000]}")


def comparable(request):
    headers = [[name.lower(), value] for name, value in request["headers"] if name.lower() not in VARYING]
    return request | {"headers": headers}


def check_records(requests, transcript, records):
    """Checks that the records have what the server got and what it answered."""
    asked = [it for it in requests if it["target"].endswith(("/chat/completions", "/responses", "/messages"))]
    calls = [record for record in records if record["type"] == "llm_call"]
    compare("recorded requests", [json.loads(it["body"]) for it in asked], [call["request"]["body"] for call in calls])
    for call in calls:
        request, body = call["request"], call["request"]["body"]
        fields = ("model", "tools", "temperature", "max_tokens")
        expected = {name: body.get(name) for name in fields} | {"messages": body.get("messages", body.get("input"))}
        compare("fields of requests", [expected], [{name: request[name] for name in expected}])
    kinds = [call["error"] and call["error"]["kind"] for call in calls]
    if kinds.count("cut") < 6 or set(kinds) != {None, "cut", "http"}:
        raise Failed(f"kinds of errors: {kinds}")
    # The scripted server counts 25 tokens in each answer of which a client sees the count.
    seen = sum(1 for it in transcript for part in it["seen"][-1:] if counts(it["name"]) and "raised" not in part)
    total = sum(call["response"]["usage"]["total_tokens"] for call, kind in zip(calls, kinds) if not kind and call["response"]["usage"])
    if total != 25 * seen:
        raise Failed(f"{total} tokens are recorded, and {25 * seen} were answered")
    tools = [record for record in records if record["type"] == "tool_call"]
    found = [(it["call_id"], it["result"]["success"], it["result"]["content"]) for it in tools]
    if found != [("call_a", True, "ü\nexit code 0"), ("call_b", False, "no such file")]:
        raise Failed(f"tool calls: {found}")
    commands = [record["exit_code"] for record in records if record["type"] == "command"]
    if commands != [0]:
        raise Failed(f"commands: {commands}")
    text = json.dumps(records)
    if "sk-openai-interop" in text or "sk-anthropic-interop" in text:
        raise Failed("a key is recorded")
    return f"{len(calls)} model calls, {len(tools)} tool calls, {total} tokens"


def counts(name):
    return name not in ("models", "count") and "no-usage" not in name


def main():
    parser = argparse.ArgumentParser()
    for name in ("server", "folder", "counterproof"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    try:
        direct, expected = run(options, "direct", [])
        transcript, requests, records = recorded(options)
        compare("answers", direct, transcript)
        compare("requests", [comparable(it) for it in expected], [comparable(it) for it in requests])
        about = check_records(requests, transcript, records)
    except (Failed, subprocess.SubprocessError, OSError) as error:
        print(f"    FAILED: {error}", flush=True)
        sys.exit(1)
    print(f"    {len(transcript)} requests of both clients: identical; {about} recorded", flush=True)


main()
