"""A client of `counterproof` with the names of the contract for workflows.

Each function starts the program once, with `--json`. Lists are read page by page. Results are objects with attributes.
"""

import datetime
import json
import os
import subprocess

PAGE = 200


class Record(dict):
    """An object of JSON whose fields are also attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class CommandFailed(Exception):
    """The program ended with an exit code that has no result."""

    def __init__(self, command, code, stderr):
        super().__init__(f"{' '.join(map(str, command))}\nexit code {code}\n{stderr}")
        self.code = code
        self.stderr = stderr


class Client:
    def __init__(self, program="counterproof", ledger="ledger.db", model_url=None, model="scripted", options=(), environment=None):
        self.program = program
        self.ledger = ledger
        self.model_url = model_url
        self.model = model
        self.options = list(options)
        self.environment = {"OPENAI_API_KEY": "sk-acceptance-0123456789", **os.environ, **(environment or {})}

    def command(self, *arguments):
        return [str(self.program), *map(str, arguments), "--ledger", str(self.ledger), "--json"]

    def call(self, *arguments, codes=(0,)):
        """Runs a command, and returns its document."""
        command = self.command(*arguments)
        finished = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if finished.returncode not in codes:
            raise CommandFailed(command, finished.returncode, finished.stderr)
        document = json.loads(finished.stdout, object_hook=Record)
        if isinstance(document, Record):
            document.setdefault("exit_code", finished.returncode)
        return document

    def pages(self, field, *arguments):
        found, cursor = [], []
        while True:
            page = self.call(*arguments, "--limit", PAGE, *cursor)
            found += page[field]
            if page["next"] is None:
                return found
            cursor = ["--cursor", page["next"]]

    def model_options(self):
        return ["--model-url", self.model_url, "--model", self.model] if self.model_url else []

    def run_arguments(self, workflow, repo, test=None, spec=None, branch=None, target_files=(), examples=(), options=()):
        given = [("--test", test), ("--spec", spec), ("--branch", branch)]
        given += [("--target-file", path) for path in target_files] + [("--example", path) for path in examples]
        arguments = [part for option, value in given if value is not None for part in (option, value)]
        settings = [*getattr(repo, "options", ()), *self.options, *options]
        kind = workflow.replace("_", "-")
        return ["workflow", "run", kind, "--repo", repo, *arguments, *self.model_options(), "--forge", "local", *settings]

    def run_workflow(self, workflow, repo, **inputs):
        return of_session(self.call(*self.run_arguments(workflow, repo, **inputs), codes=(0, 1, 4)))

    def get_session_timeline(self, session_id):
        return self.pages("events", "session", "timeline", session_id)

    def get_events_between(self, session_id, start_time, end_time):
        """`end_time` is exclusive."""
        bounds = ["--since", time_text(start_time), "--until", time_text(end_time)]
        return self.pages("events", "session", "timeline", session_id, *bounds)

    def get_events_by_type(self, session_id, event_type):
        return self.pages("events", "session", "timeline", session_id, "--type", event_type)

    def get_session_overview(self, session_id):
        return self.call("session", "overview", session_id)

    def list_checkpoints(self, session_id):
        return self.pages("checkpoints", "session", "checkpoints", session_id)

    def get_checkpoint(self, checkpoint_id):
        return self.call("session", "checkpoint", checkpoint_id)

    def resume_from_checkpoint(self, checkpoint_id, options=()):
        resumed = self.call("session", "resume", checkpoint_id, *self.model_options(), *options, codes=(0, 1, 4))
        return of_session(resumed)

    def fork_from_checkpoint(self, checkpoint_id):
        return self.call("session", "fork", checkpoint_id)

    def pause_session(self, session_id):
        return self.call("session", "pause", session_id)

    def list_sessions(self):
        return self.pages("sessions", "session", "list")


def of_session(result):
    result["session_id"] = result["capture"]["session_id"]
    return result


def time_text(time):
    if isinstance(time, datetime.datetime):
        return time.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    return time


_client = Client()


def configure(client):
    """Sets the client that the functions of this module use."""
    global _client
    _client = client


def run_workflow(workflow, repo, **inputs):
    return _client.run_workflow(workflow, repo, **inputs)


def get_session_timeline(session_id):
    return _client.get_session_timeline(session_id)


def get_events_between(session_id, start_time, end_time):
    return _client.get_events_between(session_id, start_time, end_time)


def get_events_by_type(session_id, event_type):
    return _client.get_events_by_type(session_id, event_type)


def get_session_overview(session_id):
    return _client.get_session_overview(session_id)


def list_checkpoints(session_id):
    return _client.list_checkpoints(session_id)


def get_checkpoint(checkpoint_id):
    return _client.get_checkpoint(checkpoint_id)


def resume_from_checkpoint(checkpoint_id):
    return _client.resume_from_checkpoint(checkpoint_id)


def fork_from_checkpoint(checkpoint_id):
    return _client.fork_from_checkpoint(checkpoint_id)
