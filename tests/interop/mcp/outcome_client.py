"""An agent with the Python SDK (1.x or 2.x), which prints what each call to a guarded server gives it.

Usage: outcome_client.py COUNTERPROOF NODE SERVERS FOLDER

One line of JSON for each situation: `result`, the text of a result and whether it is an error; or `raised`, an exception. The
options of the servers have the default environment of the SDK, which passes few variables.
"""

import asyncio
import contextlib
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

COUNTERPROOF, NODE, SERVERS, FOLDER = sys.argv[1:]
EVERYTHING = [NODE, f"{SERVERS}/@modelcontextprotocol/server-everything/dist/index.js"]
FILES = [NODE, f"{SERVERS}/@modelcontextprotocol/server-filesystem/dist/index.js", FOLDER]
# Ends the server with code 3 as soon as the file `stop` exists, in the middle of a call.
CRASHING = ["sh", "-c", 'exec 3<&0; "$@" <&3 & while [ ! -e stop ]; do sleep 0.1; done; kill -9 $!; exit 3', "sh"]


async def outcome(call):
    try:
        result = await call
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"
    data = result.model_dump(by_alias=True)
    text = "".join(part.get("text", "") for part in data["content"])
    return "result", ("isError: " if data["isError"] else "") + text


@contextlib.asynccontextmanager
async def server(name, command):
    guarded = ["guard", "shim", "--server-name", name, "--", *command]
    parameters = StdioServerParameters(command=COUNTERPROOF, args=guarded)
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


def show(situation, kind_and_text):
    print(json.dumps([situation, *kind_and_text]), flush=True)


async def main():
    async with server("everything", EVERYTHING) as everything, server("files", FILES) as files:
        show("block", await outcome(everything.call_tool("get-sum", {"a": 1, "b": 2})))
        # Three calls are allowed in the run, by both servers together.
        for _ in range(2):
            await everything.call_tool("echo", {"message": "hello"})
        await files.call_tool("list_allowed_directories", {})
        show("budget", await outcome(files.call_tool("list_allowed_directories", {})))
    with contextlib.suppress(Exception):
        async with server("crashing", [*CRASHING, *EVERYTHING]) as crashing:
            call = asyncio.create_task(
                outcome(crashing.call_tool("trigger-long-running-operation", {"duration": 300, "steps": 1}))
            )
            # Its answer shows that the server has read the call before it.
            await crashing.list_tools()
            open(os.path.join(os.getcwd(), "stop"), "w").close()
            show("crash", await call)


asyncio.run(main())
