"""Sends model requests with the official clients, and writes what they show of each answer.

Usage: client.py FILE

The base URLs come from the environment, as the clients take them. The file has one line of JSON for each request.
"""

import hashlib
import json
import sys

import anthropic
import httpx2 as httpx
import openai

MODELS = ("text", "tools", "no-usage", "gzip", "huge", "closing", "busy", "cut", "failing")
MESSAGES = [{"role": "user", "content": "Grüße"}]
TOOL = {"type": "object", "properties": {"command": {"type": "string"}}}


class Transcript:
    """The lines of the file, and the bytes of the bodies that the clients read."""

    def __init__(self, file):
        self.file = file
        self.bytes = []

    def client(self):
        transcript = self

        class Stream(httpx.SyncByteStream):
            """Passes a body on, and keeps its bytes."""

            def __init__(self, inner):
                self.inner = inner
                self.body = hashlib.sha256()
                transcript.bytes.append(self)

            def __iter__(self):
                for piece in self.inner:
                    self.body.update(piece)
                    yield piece

            def close(self):
                self.inner.close()

        class Transport(httpx.HTTPTransport):
            """Keeps the status, the headers and the bytes of each answer."""

            def handle_request(self, request):
                response = super().handle_request(request)
                without = ("connection", "transfer-encoding")
                kept = [(name.lower(), value) for name, value in response.headers.multi_items()]
                stream = Stream(response.stream)
                stream.head = [response.status_code, [pair for pair in kept if pair[0] not in without]]
                response.stream = stream
                return response

        return httpx.Client(transport=Transport())

    def add(self, name, send):
        """Sends a request, and writes what the client makes of the answer."""
        self.bytes.clear()
        seen = []
        try:
            for part in send():
                seen.append(part.model_dump(mode="json"))
        except (openai.OpenAIError, anthropic.AnthropicError, httpx.HTTPError) as error:
            seen.append({"raised": type(error).__name__, "status": getattr(error, "status_code", None)})
        answers = [[stream.head, stream.body.hexdigest()] for stream in self.bytes]
        print(json.dumps({"name": name, "seen": seen, "answers": answers}), file=self.file, flush=True)


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        transcript = Transcript(file)
        # A cut answer is not asked for again, and a 429 is.
        chat = openai.OpenAI(api_key="sk-openai-interop", http_client=transcript.client(), max_retries=1)
        claude = anthropic.Anthropic(api_key="sk-anthropic-interop", http_client=transcript.client(), max_retries=1)
        for model in MODELS:
            for stream in (False, True):
                send_all(transcript, chat, claude, model, stream)
        transcript.add("models", lambda: chat.models.list())
        transcript.add("count", lambda: [claude.messages.count_tokens(model="text", messages=MESSAGES)])
        tool_round(transcript, chat, claude)


def send_all(transcript, chat, claude, model, stream):
    def parts(answer):
        return answer if stream else [answer]

    options = {"stream_options": {"include_usage": True}} if stream else {}
    functions = [{"type": "function", "function": {"name": "shell", "parameters": TOOL}}]
    tools = [{"type": "function", "name": "shell", "parameters": TOOL, "strict": False}]
    claude_tools = [{"name": "shell", "input_schema": TOOL}]
    name = f"{model} {'stream' if stream else 'whole'}"
    transcript.add(f"chat {name}", lambda: parts(chat.chat.completions.create(
        model=model, messages=MESSAGES, tools=functions, temperature=0.25, max_tokens=9, stream=stream, **options)))
    transcript.add(f"responses {name}", lambda: parts(chat.responses.create(
        model=model, input=MESSAGES, tools=tools, stream=stream)))
    transcript.add(f"messages {name}", lambda: parts(claude.messages.create(
        model=model, messages=MESSAGES, tools=claude_tools, max_tokens=9, stream=stream)))


def tool_round(transcript, chat, claude):
    """Answers the tool calls of the model `tools`."""
    call = {"id": "call_a", "type": "function", "function": {"name": "shell", "arguments": '{"command": "echo ü"}'}}
    history = [*MESSAGES, {"role": "assistant", "content": None, "tool_calls": [call]}]
    history.append({"role": "tool", "tool_call_id": "call_a", "content": "ü\nexit code 0"})
    transcript.add("chat result", lambda: [chat.chat.completions.create(model="tools", messages=history)])
    use = {"type": "tool_use", "id": "call_b", "name": "read_file", "input": {"path": "src/a.rs"}}
    result = {"type": "tool_result", "tool_use_id": "call_b", "content": "no such file", "is_error": True}
    history = [*MESSAGES, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    transcript.add("messages result", lambda: [claude.messages.create(model="tools", messages=history, max_tokens=9)])


main()
