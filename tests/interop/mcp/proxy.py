"""The proxy of the guard, for the time of a test."""

import os
import signal
import subprocess
import tempfile
from urllib.parse import urlsplit, urlunsplit

# A bound against hanging only.
WITHIN = 30


class Proxy:
    """A running proxy in front of a server. `url` is the URL of the server with the address of the proxy."""

    def __init__(self, program, upstream, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="guard-proxy-")
        self.events = os.path.join(self.folder.name, "events.jsonl")
        command = [
            program, "guard", "proxy", "--listen", "127.0.0.1:0", "--upstream", upstream, "--server-name", "interop",
            "--events", self.events, "--ledger", os.path.join(self.folder.name, "ledger.db"), *options,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise SystemExit(f"the proxy did not start: {line!r}")
        address = line.split("http://", 1)[1].split("/", 1)[0].strip()
        self.url = urlunsplit(urlsplit(upstream)._replace(netloc=address))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(WITHIN)
        finally:
            self.process.kill()
            self.folder.cleanup()
