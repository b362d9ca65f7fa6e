"""Runs the protocol's own conformance suite against a server with the proxy of the guard and without it.

Usage: conformance.py --counterproof FILE --python FILE --node FILE --released DIR --preview DIR --folder DIR

Both runs must give the same result for each check of each scenario: servers for the handshake era and for 2026-07-28, and
clients.
"""

import argparse
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from proxy import Proxy

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = "@modelcontextprotocol/conformance/dist/index.js"

# Bounds against hanging only.
WITHIN = 180
START_WITHIN = 60

ATTEMPTS = 3

CLIENT_SCENARIOS = {
    "2025-11-25": ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"],
    "2026-07-28": [
        "tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers",
        "http-invalid-tool-headers", "json-schema-ref-no-deref",
    ],
}


class Suite:
    """One version of the suite."""

    def __init__(self, options, modules, name):
        self.options, self.program, self.name = options, os.path.join(modules, PROGRAM), name

    def run(self, label, arguments):
        """Runs scenarios, and returns the results of their checks by scenario."""
        folder = os.path.join(self.options.folder, label)
        shutil.rmtree(folder, ignore_errors=True)
        command = [self.options.node, self.program, *arguments, "--output-dir", folder]
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=WITHIN, check=False,
        )
        results = {}
        for path in sorted(glob.glob(f"{folder}/**/checks.json", recursive=True)):
            scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", os.path.relpath(os.path.dirname(path), folder))
            with open(path, encoding="utf-8") as file:
                checks = json.load(file)
            results[scenario] = sorted((check["id"], check["status"]) for check in checks if check["status"] != "INFO")
        return results


def compare(what, direct, proxied):
    """Runs both ways until they agree, a few times at most: some scenarios measure time. Returns the number of failures."""
    for _ in range(ATTEMPTS):
        without, found = direct(), proxied()
        different = sorted(name for name in without.keys() | found.keys() if without.get(name) != found.get(name))
        if without and not different:
            checks = [status for results in without.values() for _, status in results]
            passed = checks.count("SUCCESS")
            print(f"    {what}: {len(without)} scenarios, {passed} of {len(checks)} checks pass: the same through the proxy", flush=True)
            return 0
    for name in different:
        print(f"    {what}, {name}: FAILED: {without.get(name)} without the proxy, {found.get(name)} with it", flush=True)
    if not without:
        print(f"    {what}: FAILED: no scenario ran", flush=True)
    return 1


class Server:
    """The running conformance server."""

    def __init__(self, python):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [python, "-B", os.path.join(HERE, "conformance_server.py"), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_WITHIN
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise SystemExit("the conformance server did not start") from None
                time.sleep(0.05)
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def servers(options, suites):
    failures = 0
    for suite, label, arguments in suites:
        def run(kind, url):
            return suite.run(f"server-{label}-{kind}", ["server", "--url", url, *arguments])

        with Server(options.python) as server, Proxy(options.counterproof, server.url) as proxy:
            failures += compare(
                f"server, suite {suite.name}, {label}", lambda: run("direct", server.url), lambda: run("proxy", proxy.url),
            )
    return failures


def clients(options, suite):
    failures = 0
    for version, scenarios in CLIENT_SCENARIOS.items():
        def run(program):
            command = f"{options.python} -B {HERE}/conformance_client.py {program}"
            results = {}
            for scenario in scenarios:
                arguments = ["client", "--command", command, "--scenario", scenario, "--spec-version", version]
                label = f"client-{version}-{'direct' if program == 'direct' else 'proxy'}-{scenario}"
                found = suite.run(label, arguments)
                results[scenario] = next(iter(found.values()), None)
            return results

        failures += compare(f"client, suite {suite.name}, {version}", lambda: run("direct"), lambda: run(options.counterproof))
    return failures


def main():
    parser = argparse.ArgumentParser()
    for name in ("counterproof", "python", "node", "released", "preview", "folder"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    released = Suite(options, options.released, "0.1.16")
    preview = Suite(options, options.preview, "0.2.0-alpha.12")
    failures = servers(options, [
        (released, "2025-11-25", ["--suite", "all"]),
        (preview, "2025-11-25", ["--requirements", "2025-11-25"]),
        (preview, "2026-07-28", ["--requirements", "2026-07-28"]),
    ])
    failures += clients(options, preview)
    sys.exit(1 if failures else 0)


main()
