"""Compares sessions of real clients and servers with the guard between them and without it.

Usage: run.py --counterproof FILE --python FILE --node FILE --servers DIR [--node22 FILE --inspector DIR] --folder DIR

Each session runs twice directly and once through the guard, and a last time with a policy that denies one tool. Small
programs at both ends of the connection record every byte. Through the guard, both ends must have the same bytes. The bytes
must also be those of the direct sessions, but for what differs between these. With the policy, only the denied calls and
their refusals may differ.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import compare
import sessions

# A bound against hanging only.
WITHIN = 120

ATTEMPTS = 4

HERE = sessions.HERE


class Failed(Exception):
    """A session differs."""


class Runner:
    """Runs sessions below a folder."""

    def __init__(self, options):
        self.options = options

    def run(self, session, name, between):
        """Runs a session with a command between client and server. Returns the transcripts and the client's exit code."""
        folder = os.path.join(self.options.folder, re.sub("[^A-Za-z0-9]+", "-", session.name), name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        # The same path in each run of a session.
        served = os.path.join(os.path.dirname(folder), "served")
        shutil.rmtree(served, ignore_errors=True)
        os.makedirs(served)
        tee = [self.options.python, os.path.join(HERE, "tee.py")]
        server = [served if word == "FOLDER" else word for word in session.server]
        command = [*tee, f"{folder}/client", "--", *between(folder), *tee, f"{folder}/server", "--", *server]
        start = os.path.join(os.path.dirname(folder), "server")
        with open(start, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        os.chmod(start, 0o755)
        client = [start if word == "SERVER" else word for word in session.client]
        if "SERVER" not in session.client:
            client.append(start)
        home = os.path.join(self.options.folder, "home")
        os.makedirs(home, exist_ok=True)
        environment = os.environ | {"INTEROP_FOLDER": served, "HOME": home, "PYTHONPATH": "", "NO_COLOR": "1"}
        with open(f"{folder}/messages.txt", "wb") as messages:
            status = subprocess.run(
                client, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages, env=environment, timeout=WITHIN, check=False,
            ).returncode
        return Transcripts(folder), status

    def guard(self, policy):
        """The guard, as the command between client and server."""
        def between(folder):
            ledger = ["--ledger", f"{folder}/ledger.db", "--events", f"{folder}/events.jsonl"]
            rules = ["--policy", policy] if policy else []
            return [self.options.counterproof, "guard", "shim", "--server-name", "interop", *ledger, *rules, "--"]

        return between

    def relay(self, fault):
        """A relay, faithful or not."""
        return lambda folder: [self.options.python, os.path.join(HERE, "relay.py"), fault, "--"]

    def direct(self, session, number):
        transcripts, status = self.run(session, f"direct-{number}", lambda folder: [])
        if status != 0 or not transcripts.server_out:
            raise Failed(f"the client fails without the guard: exit code {status}; see {transcripts.folder}/messages.txt")
        return transcripts


class Transcripts:
    """The recorded bytes of a session."""

    def __init__(self, folder):
        self.folder = folder
        self.client_in, self.client_out, self.server_in, self.server_out = (
            self.read(name) for name in ("client.in", "client.out", "server.in", "server.out")
        )

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def difference(self):
        """Describes the first difference between both ends."""
        for name, client, server in (("to the server", self.client_in, self.server_in), ("to the client", self.client_out, self.server_out)):
            if problem := compare.first_difference(client, server):
                return f"{name}: {problem}"
        return None

    def events(self):
        with open(os.path.join(self.folder, "events.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def difference_from(directs, found):
    """Describes the first difference from the direct sessions that is no difference between these."""
    for name in ("client_in", "client_out"):
        varying = compare.Varying([getattr(direct, name) for direct in directs])
        if problem := varying.difference(getattr(found, name)):
            return f"{name}: {problem}"
    return None


def check_session(runner, session):
    """Runs a session in all ways. Returns a line about it."""
    # The session through the guard lies between two direct ones, so that the time of day differs between these too.
    directs = [runner.direct(session, 1)]
    guarded, status = runner.run(session, "guard", runner.guard(None))
    if problem := guarded.difference():
        raise Failed(f"the guard changed bytes {problem}; see {guarded.folder}")
    if status != 0:
        raise Failed(f"the client fails through the guard: exit code {status}; see {guarded.folder}/messages.txt")
    for number in range(2, ATTEMPTS + 2):
        directs.append(runner.direct(session, number))
        problem = difference_from(directs, guarded)
        if not problem:
            break
    else:
        raise Failed(f"a session through the guard differs from {len(directs)} direct ones: {problem}; see {guarded.folder}")
    calls = check_events(guarded)
    lines = guarded.client_in.count(b"\n"), guarded.client_out.count(b"\n")
    size = (len(guarded.client_in) + len(guarded.client_out)) / (1 << 20)
    about = f"{lines[0]} lines to the server and {lines[1]} back, {size:.1f} MiB: identical; {calls} calls recorded"
    if session.denied:
        about += f"; with a policy, {check_policy(runner, session)} refused and the rest identical"
    return about


def check_events(transcripts):
    """Checks that the events are complete. Returns the number of calls."""
    events = transcripts.events()
    names = [event["type"] for event in events]
    if names[0] != "run_start" or names[-1] != "run_end":
        raise Failed(f"the events begin with {names[0]} and end with {names[-1]}; see {transcripts.folder}/events.jsonl")
    started, ended = names.count("tool_call_start"), names.count("tool_call_end")
    messages = [compare.parsed(line) or {} for line in transcripts.client_in.splitlines()]
    calls = [message for message in messages if message.get("method") == "tools/call"]
    repeated = [call for call in calls if "inputResponses" in call["params"]]
    if not started == ended == len(calls) - len(repeated):
        raise Failed(f"{started} calls started and {ended} ended in the events, of {len(calls)}; see {transcripts.folder}")
    return started


def check_policy(runner, session):
    """Runs a session with a policy that denies one tool. Returns the number of refused calls."""
    rule = {"rule_id": "interop", "kind": "deny", "match": {"tool_name": {"glob": [session.denied]}}, "effect": {"action": "BLOCK"}}
    policy = os.path.join(runner.options.folder, f"deny-{session.denied}.json")
    with open(policy, "w", encoding="utf-8") as file:
        # By default, a policy also refuses lines that are no messages.
        defaults = {"decision_on_error": "ALLOW"}
        policy_document = {"policy_id": "interop", "version": "1.0.0", "mode": "guardrails", "defaults": defaults, "rules": [rule]}
        json.dump(policy_document, file)
    found, _ = runner.run(session, "policy", runner.guard(policy))
    calls = compare.blocked_calls(found.client_in, session.denied)
    refusals = compare.refusals(found.client_out, set(calls.values()))
    if not calls or len(refusals) != len(calls):
        raise Failed(f"{len(refusals)} of {len(calls)} denied calls were refused; see {found.folder}")
    if problem := compare.first_difference(compare.without(found.client_in, calls), found.server_in):
        raise Failed(f"with a policy, more than the denied calls differs to the server: {problem}; see {found.folder}")
    if problem := compare.first_difference(compare.without(found.client_out, refusals), found.server_out):
        raise Failed(f"with a policy, more than the refusals differs to the client: {problem}; see {found.folder}")
    return len(calls)


def check_comparison(runner, session):
    """Checks that the comparison detects what a relay may do wrong."""
    directs = [runner.direct(session, 1), runner.direct(session, 2)]
    for fault in ("faithful", "reserialise", "drop", "swap"):
        found, _ = runner.run(session, fault, runner.relay(fault))
        wrong = found.difference() is not None, difference_from(directs, found) is not None
        if wrong != (fault != "faithful",) * 2:
            raise Failed(f"the comparison is wrong about a relay that is {fault}: {wrong}")
    return "a faithful relay is identical; re-serialised messages, a lost notification and a changed letter are detected"


def main():
    parser = argparse.ArgumentParser()
    for name in ("counterproof", "python", "node", "servers", "folder"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("node22", "inspector", "only"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    runner = Runner(options)
    found = sessions.sessions(
        sessions.Programs(options.python, options.node, options.servers, options.node22, options.inspector)
    )
    known = found[3]
    work = [("comparison", check_comparison, sessions.Session("comparison", known.client, known.server, ""))]
    work += [(session.name, check_session, session) for session in found]
    work = [item for item in work if not options.only or options.only in item[0]]
    failures = 0
    # The sessions wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        started = time.monotonic()
        running = {pool.submit(check, runner, session): name for name, check, session in work}
        for future in concurrent.futures.as_completed(running):
            try:
                print(f"    {running[future]}: {future.result()}", flush=True)
            except (Failed, subprocess.TimeoutExpired, OSError) as error:
                failures += 1
                print(f"    {running[future]}: FAILED: {error}", flush=True)
    print(f"    {len(work) - failures} passed, {failures} failed, in {time.monotonic() - started:.0f} s")
    sys.exit(1 if failures else 0)


main()
