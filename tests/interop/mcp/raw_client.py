"""A client that writes given bytes: messages that the client libraries do not send, and unusual spellings of those they do.

Usage: raw_client.py everything|filesystem|fastmcp|stateless -- COMMAND [ARGUMENT…]

Each step waits for what it causes, so that two sessions exchange the same messages in the same order.
"""

import json
import os
import queue
import subprocess
import sys
import threading

# A bound against hanging only.
WAIT = 30

BIG = 3 << 20


class Peer:
    """The connected server."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        self.waiting = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, text):
        """Sends one line exactly as given."""
        self.child.stdin.write(text.encode() + b"\n")
        self.child.stdin.flush()

    def next(self):
        line = self.lines.get(timeout=WAIT)
        if line is None:
            raise SystemExit("the server closed its output")
        return json.loads(line)

    def until(self, wanted):
        """Reads until a message is wanted. Answers requests of the server in between."""
        while True:
            message = self.next()
            for part in message if isinstance(message, list) else [message]:
                if "method" in part and "id" in part:
                    self.answer(part)
            if wanted(message):
                return message

    def answer(self, request):
        results = {
            "roots/list": {"roots": [{"uri": "file:///srv/wörk", "name": "wörk"}]},
            "sampling/createMessage": {
                "role": "assistant", "model": "none", "content": {"type": "text", "text": "sämpled"}, "stopReason": "endTurn",
            },
            "elicitation/create": {"action": "accept", "content": {"name": "Zoë", "check": True}},
            "ping": {},
        }
        number = json.dumps(request["id"])
        if request["method"] in results:
            result = json.dumps(results[request["method"]], ensure_ascii=False)
            self.send('{"result":' + result + ', "id":' + number + ', "jsonrpc":"2.0"}')
        else:
            self.send('{"jsonrpc":"2.0","id":' + number + ',"error":{"code":-32601,"message":"unknown"}}')

    def request(self, number, method, params=None, text=None):
        """Sends a request and returns its response."""
        if text is None:
            text = json.dumps({"jsonrpc": "2.0", "id": number, "method": method} | ({"params": params} if params is not None else {}))
        self.send(text)
        return self.until(lambda message: "method" not in message and message.get("id") == number)

    def call(self, number, name, arguments, **params):
        return self.request(number, "tools/call", {"name": name, "arguments": arguments} | params)

    def notify(self, method, params=None):
        self.send(json.dumps({"jsonrpc": "2.0", "method": method} | ({"params": params} if params is not None else {})))

    def initialize(self, version, capabilities):
        client = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "1"}}
        response = self.request(0, "initialize", client)
        self.notify("notifications/initialized")
        return response

    def close(self):
        self.child.stdin.close()
        self.child.wait(timeout=WAIT)


def is_notification(method):
    return lambda message: isinstance(message, dict) and message.get("method") == method


def common(peer):
    """What every server answers, with results or with errors."""
    # Unusual spellings of valid messages: white space, escapes, order of keys, numbers, unknown keys.
    peer.request("string-id", "ping", text='{ "method":"ping",\t"id":"string-id" , "jsonrpc":"2.0" }')
    peer.request(9007199254740991, "ping", text='{"jsonrpc":"2.0","id":9007199254740991,"method":"p\\u0069ng"}')
    peer.request("ü/☃\u2028", "ping", text='{"jsonrpc":"2.0","id":"ü/☃\u2028","method":"ping"}')
    peer.request(-4, "ping", {"_meta": {"example.org/trace": "00-4bf9", "progressToken": "p"}})
    peer.request(5, "no/such_method", {"x": [1.0, 1e300, -0.0]})
    peer.request(6, "tools/list", {})
    peer.notify("notifications/no_such_notification", {"a": 1})
    peer.notify("notifications/cancelled", {"requestId": 12345, "reason": "never sent"})
    # A response to a request that the server never made.
    peer.send('{"jsonrpc":"2.0","id":"nothing","result":{}}')
    # Batches: the libraries of these servers reject them or ignore them. The ping afterwards is answered in both cases.
    peer.send('[{"jsonrpc":"2.0","id":70,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/none"}]')
    peer.send("[]")
    peer.request(71, "ping")
    # Lines that are no messages.
    peer.send("this is not JSON")
    peer.send('{"jsonrpc":"2.0","id":1')
    peer.send("")
    peer.request(72, "ping")


def everything(peer):
    capabilities = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
    peer.initialize("2025-11-25", capabilities)
    # The server asks for the roots of the client, and logs the answer.
    peer.until(is_notification("notifications/message"))
    common(peer)
    peer.request(10, "prompts/list")
    peer.request(11, "prompts/get", {"name": "args-prompt", "arguments": {"city": "Zürich", "state": "☃"}})
    peer.request(12, "prompts/get", {"name": "resource-prompt", "arguments": {"resourceType": "Blob", "resourceId": "2"}})
    peer.request(13, "prompts/get", {"name": "no-such-prompt"})
    argument = {"name": "department", "value": "E"}
    peer.request(14, "completion/complete", {"ref": {"type": "ref/prompt", "name": "completable-prompt"}, "argument": argument})
    peer.request(15, "resources/list")
    peer.request(16, "resources/templates/list")
    peer.request(17, "resources/read", {"uri": "demo://resource/dynamic/text/1"})
    peer.request(18, "resources/read", {"uri": "demo://resource/dynamic/blob/1"})
    peer.request(19, "resources/read", {"uri": "demo://resource/none"})
    peer.request(20, "resources/subscribe", {"uri": "demo://resource/dynamic/text/1"})
    peer.request(21, "resources/unsubscribe", {"uri": "demo://resource/dynamic/text/1"})
    peer.request(22, "logging/setLevel", {"level": "debug"})
    peer.call(30, "echo", {"message": "ünïcödé \u202e ☃ \U0001f980 \"quoted\" \\ /"})
    peer.request(31, "tools/call", text='{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"name":"get-sum","arguments":{"a":1.0,"b":2e0}}}')
    peer.call(32, "get-sum", {"a": "one"})
    peer.call(33, "get-tiny-image", {})
    peer.call(34, "get-annotated-message", {"messageType": "error", "includeImage": True})
    peer.call(35, "get-resource-links", {"count": 3})
    peer.call(36, "get-resource-reference", {"resourceType": "Blob", "resourceId": 1})
    peer.call(37, "get-structured-content", {"location": "New York"})
    peer.call(38, "gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"})
    peer.call(39, "no-such-tool", {})
    peer.call(40, "get-roots-list", {})
    peer.call(50, "trigger-long-running-operation", {"duration": 0.2, "steps": 4}, _meta={"progressToken": "tökn"})
    peer.send('{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":1}}}')
    peer.notify("notifications/cancelled", {"requestId": 51, "reason": "changed my mind"})
    peer.request(52, "ping")
    peer.call(53, "trigger-sampling-request", {"prompt": "say ü", "maxTokens": 5})
    peer.call(54, "trigger-elicitation-request", {})
    peer.call(55, "trigger-url-elicitation", {"url": "https://example.org/a", "message": "please", "elicitationId": "e1", "errorPath": True})
    peer.call(56, "echo", {"message": "x" * BIG})
    peer.call("last", "echo", {"message": "end"})


def filesystem(peer):
    peer.initialize("2025-06-18", {})
    common(peer)
    folder = os.environ["INTEROP_FOLDER"]
    peer.call(10, "list_allowed_directories", {})
    peer.call(11, "write_file", {"path": folder + "/ä.txt", "content": "línea\r\n☃\n"})
    peer.call(12, "read_text_file", {"path": folder + "/ä.txt"})
    peer.call(13, "edit_file", {"path": folder + "/ä.txt", "edits": [{"oldText": "☃", "newText": "☀"}]})
    peer.call(14, "read_text_file", {"path": folder + "/ä.txt", "head": 1})
    peer.call(15, "list_directory", {"path": folder})
    peer.call(16, "read_text_file", {"path": "/etc/passwd"})
    peer.call(17, "write_file", {"path": folder + "/big", "content": "0123456789abcdef" * (BIG // 16)})
    peer.call(18, "read_text_file", {"path": folder + "/big"})
    peer.call(19, "read_media_file", {"path": folder + "/big"})
    peer.call(20, "move_file", {"source": folder + "/big", "destination": folder + "/bigger"})
    peer.call(21, "search_files", {"path": folder, "pattern": "**/*.txt"})


def fastmcp(peer):
    """The revision of 2025-03-26, the only one with batches."""
    peer.initialize("2025-03-26", {"sampling": {}, "elicitation": {}})
    common(peer)
    peer.call(10, "mixed", {})
    peer.call(11, "fails", {})
    peer.call(12, "steps", {"count": 3}, _meta={"progressToken": 7})
    peer.call(13, "asks_model", {})
    peer.call(14, "repeat", {"text": "ö", "times": BIG // 2})
    peer.call(15, "measure", {"text": "ö" * (BIG // 2)})
    peer.request(16, "resources/read", {"uri": "note://ünïcode"})
    peer.request(17, "prompts/get", {"name": "greet", "arguments": {"name": "Zoë"}})


def stateless(peer):
    """The revision of 2026-07-28: no handshake, and each request says who asks."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }

    def request(number, method, params):
        return peer.request(number, method, params | {"_meta": meta | params.get("_meta", {})})

    request("d", "server/discover", {})
    request(1, "tools/list", {})
    request(2, "tools/call", {"name": "mixed", "arguments": {}})
    request("three", "tools/call", {"name": "fails", "arguments": {}})
    request(4, "tools/call", {"name": "steps", "arguments": {"count": 2}, "_meta": {"progressToken": "t"}})
    asked = request(5, "tools/call", {"name": "asks_user", "arguments": {"topic": "naïve"}})["result"]
    answers = {key: {"action": "accept", "content": {"answer": "ja ✓"}} for key in asked["inputRequests"]}
    state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
    request(6, "tools/call", {"name": "asks_user", "arguments": {"topic": "naïve"}, "inputResponses": answers} | state)
    request(7, "tools/call", {"name": "no_such_tool", "arguments": {}})
    request(8, "no/such_method", {})
    # Without the metadata that the revision requires.
    peer.request(9, "tools/list", {})
    request(10, "tools/call", {"name": "measure", "arguments": {"text": "ö" * (BIG // 2)}})
    request(11, "resources/read", {"uri": "note://ünïcode"})
    request(12, "tools/call", {"name": "environment", "arguments": {}})


def main():
    peer = Peer(sys.argv[3:])
    globals()[sys.argv[1]](peer)
    peer.close()


main()
