"""The sessions: which client talks with which server, and which tool a policy denies in the last run of the session."""

import os
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Programs:
    """What was installed."""

    python: str
    node: str
    # Folders `node_modules`.
    servers: str
    # The program `node` of the version that the Inspector needs, and the Inspector. None if one of them is missing.
    node22: str | None
    inspector: str | None


@dataclass
class Session:
    name: str
    # The client; the command that starts the server follows.
    client: list
    # The server, without the folder that it serves.
    server: list
    # A tool that the client calls.
    denied: str


def script(name):
    return os.path.join(HERE, name)


def sessions(programs):
    everything = [programs.node, f"{programs.servers}/@modelcontextprotocol/server-everything/dist/index.js", "stdio"]
    filesystem = [programs.node, f"{programs.servers}/@modelcontextprotocol/server-filesystem/dist/index.js", "FOLDER"]
    fastmcp = [programs.python, script("fastmcp_server.py"), "stdio"]

    def raw(scenario):
        return [programs.python, script("raw_client.py"), scenario, "--"]

    def sdk(era, scenario):
        return [programs.python, script("sdk_client.py"), era, scenario, "--"]

    found = [
        Session("given bytes, everything", raw("everything"), everything, "get-sum"),
        Session("given bytes, filesystem", raw("filesystem"), filesystem, "read_text_file"),
        Session("given bytes, FastMCP 2025-03-26", raw("fastmcp"), fastmcp, "measure"),
        Session("given bytes, FastMCP 2026-07-28", raw("stateless"), fastmcp, "mixed"),
        Session("Python SDK, everything", sdk("legacy", "everything"), everything, "echo"),
        Session("Python SDK, FastMCP with initialize", sdk("legacy", "fastmcp"), fastmcp, "mixed"),
        Session("Python SDK, FastMCP 2026-07-28", sdk("modern", "fastmcp"), fastmcp, "steps"),
    ]
    if programs.node22 and programs.inspector:
        found += inspector(programs, everything, fastmcp)
    return found


def inspector(programs, everything, fastmcp):
    launcher = f"{programs.inspector}/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

    def command(*options):
        # The command that starts the server comes before the options.
        return [programs.node22, launcher, "--cli", "SERVER", *options]

    echo = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=grüezi ☃"]
    mixed = ["--method", "tools/call", "--tool-name", "mixed", "--protocol-era", "modern"]
    return [
        Session("Inspector, everything: tools/list", command("--method", "tools/list"), everything, ""),
        Session("Inspector, everything: tools/call", command(*echo), everything, "echo"),
        Session("Inspector, FastMCP 2026-07-28: tools/call", command(*mixed), fastmcp, "mixed"),
    ]
