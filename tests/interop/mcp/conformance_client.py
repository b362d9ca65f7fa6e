"""A client for the protocol's own conformance suite, which starts it with the URL of a server of its own.

Usage: conformance_client.py COUNTERPROOF|direct URL

With a program, the client talks with a proxy in front of the server.
"""

import json
import os
import sys
import warnings

import anyio
import mcp_types as types
from mcp import Client, MCPError

from proxy import Proxy

warnings.simplefilter("ignore")


async def elicitation(context, params):
    """Accepts with the default values of the form."""
    properties = getattr(params, "requested_schema", None) or {}
    found = properties.get("properties", {}) if isinstance(properties, dict) else {}
    return types.ElicitResult(action="accept", content={name: it["default"] for name, it in found.items() if "default" in it})


async def sampling(context, params):
    text = types.TextContent(type="text", text="answer")
    return types.CreateMessageResult(role="assistant", model="none", content=text)


def arguments(tool):
    """Arguments of the required types."""
    values = {"string": "text", "number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}
    properties = tool.input_schema.get("properties", {})
    return {name: values.get(properties[name].get("type"), "text") for name in tool.input_schema.get("required", [])}


async def run(url):
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= "2026"
    client = Client(
        url, mode="auto" if modern else "legacy", elicitation_callback=elicitation, sampling_callback=sampling,
        read_timeout_seconds=10,
    )
    async with client:
        tools = (await client.list_tools()).tools
        calls = [(call["name"], call["arguments"]) for call in context.get("toolCalls", [])]
        for name, values in calls or [(tool.name, arguments(tool)) for tool in tools]:
            try:
                await client.call_tool(name, values)
            except MCPError as error:
                print(name, error)


def main():
    program, url = sys.argv[1:]
    if program == "direct":
        anyio.run(run, url)
        return
    with Proxy(program, url) as proxy:
        anyio.run(run, proxy.url)


main()
