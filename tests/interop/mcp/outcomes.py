"""What agents with the official SDKs see of the guard: refusals, a budget over two servers, and the crash of a server.

Usage: outcomes.py --counterproof FILE --python1 FILE --python2 FILE --node FILE --sdk DIR --servers DIR --folder DIR --page FILE

Each SDK runs with each form of a refusal. The table of all outcomes must be that of the page; with UPDATE_DOCS=1, it is written
there.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

# A bound against hanging only.
WITHIN = 300

HERE = os.path.dirname(os.path.abspath(__file__))

POLICY = """
policy_id: outcomes
version: "1"
mode: guardrails
responses: {deny_as: FORM}
rules:
  - {rule_id: no-sums, kind: deny, match: {tool_name: {glob: [get-sum]}}, effect: {message: sums are not allowed}}
  - rule_id: three
    kind: budget
    match: {tool_name: {glob: [echo, "list_*"]}}
    effect: {budget: {scope: run, limit_calls: 3}, message: three calls are enough}
"""

SITUATIONS = {
    "block": "a refused call",
    "budget": "the fourth call of a budget of three, which two servers share",
    "crash": "a call that is open when its server ends with code 3",
}

START, END = "<!-- outcomes: start -->", "<!-- outcomes: end -->"


def run(options, name, client, form):
    """Runs an agent as one run, and returns its outcomes by situation."""
    folder = os.path.join(options.folder, f"{name}-{form}".replace(" ", "-").lower())
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(f"{folder}/policy.yaml", "w", encoding="utf-8") as file:
        file.write(POLICY.replace("FORM", form))
    ledger = ["--policy", f"{folder}/policy.yaml", "--ledger", f"{folder}/ledger.db"]
    command = [options.counterproof, "guard", "run", *ledger, "--"]
    agent = [*client, options.counterproof, options.node, options.servers, folder]
    home = os.environ | {"HOME": folder, "XDG_STATE_HOME": "", "PYTHONPATH": ""}
    done = subprocess.run(
        [*command, *agent], cwd=folder, env=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN,
        check=False,
    )
    outcomes = {}
    for line in done.stdout.splitlines():
        if line.startswith("["):
            situation, kind, text = json.loads(line)
            outcomes[situation] = f"{'exception' if kind == 'raised' else 'result'} `{text}`"
    if outcomes.keys() != SITUATIONS.keys() or done.returncode != 0:
        sys.exit(f"{name}, {form}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    if "refused: 2" not in done.stderr:
        sys.exit(f"{name}, {form}: the run did not refuse two calls\n{done.stderr}")
    return outcomes


def main():
    parser = argparse.ArgumentParser()
    for option in ["counterproof", "python1", "python2", "node", "sdk", "servers", "folder", "page"]:
        parser.add_argument(f"--{option}", required=True)
    options = parser.parse_args()
    python = os.path.join(HERE, "outcome_client.py")
    clients = {
        "Python SDK 1": [options.python1, "-B", python],
        "Python SDK 2": [options.python2, "-B", python],
        "TypeScript SDK": [options.node, os.path.join(HERE, "outcome_client.mjs"), options.sdk],
    }
    lines = [f"| situation | `deny_as` | {' | '.join(clients)} |", "|---|---|---|---|---|"]
    found = {form: {name: run(options, name, clients[name], form) for name in clients} for form in ["auto", "error", "tool_result"]}
    for situation, words in SITUATIONS.items():
        for form, outcomes in found.items():
            if situation == "crash" and form != "auto":
                # The policy does not matter.
                if any(outcomes[name][situation] != found["auto"][name][situation] for name in clients):
                    sys.exit(f"{form}: {outcomes}")
                continue
            shown = "" if situation == "crash" else f"`{form}`"
            cells = " | ".join(outcomes[name][situation] for name in clients)
            lines.append(f"| {words} | {shown} | {cells} |")
    table = "\n".join(lines)
    with open(options.page, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(START)
    old, after = rest.split(END)
    if os.environ.get("UPDATE_DOCS"):
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(f"{before}{START}\n\n{table}\n\n{END}{after}")
    elif old.strip() != table:
        sys.exit(f"the table of {options.page} differs; update it with UPDATE_DOCS=1:\n{table}")
    print("outcomes: 3 clients, 3 servers, 3 forms of a refusal: as documented")


main()
