"""A server built with FastMCP: one tool for each kind of result. Its answers depend on the requests alone.

Usage: fastmcp_server.py stdio|http [PORT]
"""

import json
import os
import sys

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import (
    AudioContent, ElicitRequest, ElicitRequestFormParams, EmbeddedResource, ImageContent, InputRequiredResult, TextContent,
    TextResourceContents,
)

server = FastMCP("interop", version="1", instructions="A server for tests: ünïcode.")

DATA = "iVBORw0KGgo="


@server.tool
def mixed() -> ToolResult:
    """Returns one block of each kind, and structured content."""
    resource = TextResourceContents(uri="note://a", mime_type="text/plain", text="embedded ☃")
    blocks = [
        TextContent(type="text", text="text ☃ \u2028 end"),
        ImageContent(type="image", data=DATA, mime_type="image/png"),
        AudioContent(type="audio", data=DATA, mime_type="audio/wav"),
        EmbeddedResource(type="resource", resource=resource),
    ]
    return ToolResult(content=blocks, structured_content={"number": 1.0, "text": "☃"})


@server.tool
def fails() -> str:
    """Raises an error."""
    raise ValueError("no such order: ü")


@server.tool
async def steps(count: int, ctx: Context) -> str:
    """Reports progress and logs."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1} ✓")
    await ctx.info("all steps done ✓")
    return "done"


@server.tool
async def waits(ctx: Context) -> str:
    """Waits until the client cancels the call."""
    import anyio
    await ctx.report_progress(0, 1, "waiting")
    await anyio.sleep(60)
    return "not cancelled"


@server.tool
async def asks_model(ctx: Context) -> str:
    """Asks the model of the client."""
    from mcp_types import SamplingMessage
    message = SamplingMessage(role="user", content=TextContent(type="text", text="hello ☃"))
    reply = await ctx.session.create_message(messages=[message], max_tokens=5)
    return f"the model said {reply.content.text}"


@server.tool
async def asks_user(topic: str, ctx: Context) -> str | InputRequiredResult:
    """Asks the user of the client, in the way of 2026-07-28: the client calls again with the answer."""
    if not ctx.input_responses:
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
        form = ElicitRequestFormParams(message=f"About {topic}?", requested_schema=schema)
        return InputRequiredResult(input_requests={"question": ElicitRequest(params=form)}, request_state="asked once")
    return f"the user answered {ctx.input_responses['question'].content}"


@server.tool
def repeat(text: str, times: int) -> str:
    """Returns a text of any size."""
    return text * times


@server.tool
def measure(text: str) -> int:
    """Returns the size of a text of any size."""
    return len(text)


@server.tool
def environment() -> str:
    """Returns the environment variables of the server, in the order of their names."""
    return json.dumps(dict(sorted(os.environ.items())))


@server.resource("note://{name}")
def note(name: str) -> str:
    """A text resource."""
    return f"note {name} ☃"


@server.resource("blob://one", mime_type="application/octet-stream")
def blob() -> bytes:
    """A binary resource."""
    return bytes(range(256))


@server.prompt
def greet(name: str) -> str:
    """A prompt with an argument."""
    return f"Greet {name} in Zürich."


if sys.argv[1] == "http":
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="ERROR")
else:
    server.run(transport="stdio", show_banner=False, log_level="ERROR")
