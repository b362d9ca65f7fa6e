"""Compares transcripts: byte for byte within a session, and between sessions but for what differs anyway."""

import json
import re

# What may differ between two sessions is one of these: a time, an id, a port.
TOKEN = re.compile(rb"[A-Za-z0-9:._+/=-]+|[^A-Za-z0-9:._+/=-]+")


def first_difference(left, right):
    """Describes where two byte strings differ, or returns None."""
    if left == right:
        return None
    at = next((i for i, pair in enumerate(zip(left, right)) if pair[0] != pair[1]), min(len(left), len(right)))
    line = left.count(b"\n", 0, at) + 1
    shown = [text[max(0, at - 40):at + 40] for text in (left, right)]
    return f"byte {at} in line {line}: {shown[0]!r} and {shown[1]!r}; {len(left)} and {len(right)} bytes"


def parsed(line):
    """The message of a line, or None."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def streams(transcript):
    """Splits a transcript into what has an order: all requests and responses, and each kind of notification.

    A server may send a notification before or after the response to another request.
    """
    result = {}
    for line in transcript.splitlines(keepends=True):
        message = parsed(line) or {}
        key = "requests and responses"
        if "method" in message and "id" not in message:
            params = message.get("params")
            token = params.get("progressToken") if isinstance(params, dict) else None
            key = f"{message['method']} {token!r}"
        result.setdefault(key, []).append(TOKEN.findall(line))
    return result


class Varying:
    """What differs between several sessions with the same peers."""

    def __init__(self, transcripts):
        self.all = [streams(transcript) for transcript in transcripts]

    def difference(self, transcript):
        """Describes the first difference of a transcript from all others that is not a difference between those."""
        known = self.all[0]
        found = streams(transcript)
        for key in known.keys() | found.keys():
            lines = found.get(key, [])
            others = [streams.get(key, []) for streams in self.all]
            if len(lines) not in {len(other) for other in others}:
                return f"{key}: {len(lines)} lines instead of {len(others[0])}"
            for number, line in enumerate(lines):
                peers = [other[number] for other in others if number < len(other)]
                if problem := line_difference(line, peers):
                    return f"{key}, line {number + 1}: {problem}"
        return None


def line_difference(line, peers):
    if line in peers:
        return None
    if len({len(tokens) for tokens in peers} | {len(line)}) != 1:
        return f"{b''.join(line)[:200]!r} instead of {b''.join(peers[0])[:200]!r}"
    for position, token in enumerate(line):
        values = {peer[position] for peer in peers}
        if len(values) == 1 and token not in values:
            return f"{token[:80]!r} instead of {values.pop()[:80]!r}"
    return None


def blocked_calls(transcript, tool):
    """The lines that call a tool, and the ids of these calls."""
    lines = {}
    for line in transcript.splitlines(keepends=True):
        message = parsed(line)
        params = message.get("params") if message else None
        if message and message.get("method") == "tools/call" and isinstance(params, dict) and params.get("name") == tool:
            lines[line] = message["id"]
    return lines


def without(transcript, lines):
    return b"".join(line for line in transcript.splitlines(keepends=True) if line not in lines)


def refusals(transcript, ids):
    """The lines that refuse one of these calls, in order."""
    result = []
    for line in transcript.splitlines(keepends=True):
        message = parsed(line)
        if message and message.get("id") in ids and "method" not in message:
            if not is_refusal(message):
                raise SystemExit(f"a blocked call was answered with {line[:300]!r}")
            result.append(line)
    return result


def is_refusal(message):
    """True for the error of the handshake era, and for the result of 2026-07-28, which reserves the range of the code."""
    error, result = message.get("error", {}), message.get("result", {})
    if error:
        return error.get("code") == -32081 and "subluminal" in error.get("data", {})
    return result.get("isError") is True and "subluminal" in result.get("_meta", {})
