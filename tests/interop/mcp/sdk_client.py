"""The client of the Python SDK, unmodified, through everything that it can ask of a server.

Usage: sdk_client.py legacy|modern everything|fastmcp -- COMMAND [ARGUMENT…]
       sdk_client.py legacy|modern fastmcp URL

`legacy` starts with `initialize`; `modern` speaks 2026-07-28: `server/discover`, and calls that are repeated with answers.
"""

import sys
import warnings

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

warnings.simplefilter("ignore")

BIG = 2 << 20


async def sampling(context, params):
    text = types.TextContent(type="text", text="sämpled ☃")
    return types.CreateMessageResult(role="assistant", model="none", content=text, stop_reason="endTurn")


async def elicitation(context, params):
    return types.ElicitResult(action="accept", content={"name": "Zoë", "check": True, "answer": "ja ✓"})


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///srv/wörk", name="wörk")])


class Session:
    """A connected client."""

    def __init__(self, client, logged):
        self.client = client
        self.logged = logged

    async def tries(self, awaitable):
        """Awaits a request that may answer with an error: the transcript shows which."""
        try:
            return await awaitable
        except MCPError:
            return None

    async def call(self, tool, arguments, **options):
        return await self.tries(self.client.call_tool(tool, arguments, **options))

    async def lists(self):
        await self.tries(self.client.list_tools())
        await self.tries(self.client.list_resources())
        await self.tries(self.client.list_resource_templates())
        await self.tries(self.client.list_prompts())

    async def cancels(self, tool, arguments):
        """Starts a call, and cancels it as soon as it reports progress."""
        with anyio.move_on_after(20) as scope:
            async def progress(done, total, message):
                scope.cancel()

            await self.call(tool, arguments, progress_callback=progress)


async def nothing(done, total, message):
    pass


async def everything(session):
    client = session.client
    # The server asks for the roots after the handshake, and then logs.
    with anyio.fail_after(20):
        await session.logged.wait()
    await session.lists()
    await client.send_ping()
    await client.set_logging_level("debug")
    await client.read_resource("demo://resource/dynamic/blob/1")
    await client.subscribe_resource("demo://resource/dynamic/text/1")
    await client.unsubscribe_resource("demo://resource/dynamic/text/1")
    await client.get_prompt("args-prompt", {"city": "Zürich"})
    reference = types.PromptReference(type="ref/prompt", name="completable-prompt")
    await client.complete(reference, {"name": "department", "value": "S"})
    await session.call("echo", {"message": "ünïcödé ☃"}, meta={"example.org/trace": "a"})
    await session.call("get-tiny-image", {})
    await session.call("get-structured-content", {"location": "Chicago"})
    await session.call("get-sum", {"a": "one"})
    await session.call("trigger-long-running-operation", {"duration": 0.2, "steps": 2}, progress_callback=nothing)
    await session.cancels("trigger-long-running-operation", {"duration": 0.2, "steps": 2})
    await session.call("trigger-sampling-request", {"prompt": "ü"})
    await session.call("trigger-elicitation-request", {})
    await session.call("echo", {"message": "☃" * (BIG // 3)})
    await session.call("no-such-tool", {})
    # Longer than the rest of the cancelled call, which still reports its progress.
    await session.call("trigger-long-running-operation", {"duration": 0.3, "steps": 1})


async def fastmcp(session):
    client = session.client
    await session.lists()
    await session.call("mixed", {})
    await session.call("fails", {})
    await session.call("steps", {"count": 3}, progress_callback=nothing)
    await session.cancels("waits", {})
    await session.call("repeat", {"text": "☃", "times": BIG // 3})
    await session.call("measure", {"text": "☃" * (BIG // 3)}, meta={"example.org/trace": "b"})
    await client.read_resource("note://ünïcode")
    await client.read_resource("blob://one")
    await client.get_prompt("greet", {"name": "Zoë"})
    await session.call("no_such_tool", {})
    await session.tries(client.get_prompt("no_such_prompt"))
    if client.protocol_version >= "2026-07-28":
        # Two requests: the second carries the answers of the user.
        await session.call("asks_user", {"topic": "naïve"})
    else:
        await session.call("asks_model", {})
        await client.send_ping()


async def main():
    era, scenario, *rest = sys.argv[1:]
    server = StdioServerParameters(command=rest[1], args=rest[2:]) if rest[0] == "--" else rest[0]
    logged = anyio.Event()

    async def logging(params):
        logged.set()

    client = Client(
        server, mode="legacy" if era == "legacy" else "auto", sampling_callback=sampling, elicitation_callback=elicitation,
        list_roots_callback=roots, logging_callback=logging, log_level="debug", read_timeout_seconds=30, cache=None,
    )
    async with client:
        if (client.protocol_version >= "2026-07-28") != (era == "modern"):
            raise SystemExit(f"the client negotiated {client.protocol_version}")
        await globals()[scenario](Session(client, logged))


anyio.run(main)
