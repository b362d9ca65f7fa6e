"""A server for the protocol's own conformance suite: the tools, resources and prompts that its scenarios ask for.

Usage: conformance_server.py PORT

It need not pass every scenario: the suite is run with the proxy and without it, and the results are compared.
"""

import json
import sys
import warnings

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore

warnings.simplefilter("ignore")

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

server = MCPServer("conformance", version="1", log_level="CRITICAL")


class Events(EventStore):
    """Holds all events, so that streams can be resumed."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        first = int(last_event_id)
        stream = self.events[first - 1][0]
        for number, (stream_id, message) in enumerate(self.events[first:], first + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def text(value):
    return types.TextContent(type="text", text=value)


def image():
    return types.ImageContent(type="image", data=IMAGE, mime_type="image/png")


def embedded(uri, mime_type, value):
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    )


@server.tool()
def test_simple_text() -> str:
    """Returns a text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> list[types.ContentBlock]:
    """Returns an image."""
    return [image()]


@server.tool()
def test_audio_content() -> list[types.ContentBlock]:
    """Returns a sound."""
    return [types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[types.ContentBlock]:
    """Returns a resource."""
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@server.tool()
def test_multiple_content_types() -> list[types.ContentBlock]:
    """Returns a text, an image and a resource."""
    value = json.dumps({"test": "data", "value": 123})
    return [
        text("Multiple content types test:"), image(), embedded("test://mixed-content-resource", "application/json", value),
    ]


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three times."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await anyio.sleep(0.05)
    return "Tool with logging executed successfully"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Logs once."""
    await ctx.info("logged")
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress three times."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"Completed step {progress} of 100")
        await anyio.sleep(0.05)
    return "0"


@server.tool()
def test_error_handling() -> str:
    """Fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the model of the client."""
    message = types.SamplingMessage(role="user", content=text(prompt))
    reply = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {reply.content.text}"


async def elicit(ctx, message, properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"action={reply.action}, content={json.dumps(reply.content)}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user of the client."""
    properties = {name: {"type": "string", "description": f"User's {name}"} for name in ("response", "username", "email")}
    return "User response: " + await elicit(ctx, message, properties, ["username", "email"])


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with default values."""
    return "Elicitation completed: " + await elicit(ctx, "Please review the values", {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    })


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with enumerations."""
    titled = [{"const": f"value{number}", "title": f"{name} Option"} for number, name in enumerate(("First", "Second", "Third"), 1)]
    choices = [{"const": f"value{number}", "title": f"{name} Choice"} for number, name in enumerate(("First", "Second", "Third"), 1)]
    plain = ["option1", "option2", "option3"]
    return "Elicitation completed: " + await elicit(ctx, "Please choose", {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": choices}},
    })


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Closes its stream before it answers."""
    await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    return "Reconnection test completed"


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> str | types.InputRequiredResult:
    """Reports progress and asks."""
    await ctx.report_progress(1, 2)
    return ask({"user_name": form("What is your name?", name="string")})


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Announces other tools."""
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Announces other prompts."""
    await ctx.notify_prompts_changed()
    return "changed"


def form(message, **fields):
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def question(message, max_tokens):
    content = types.SamplingMessage(role="user", content=text(message))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[content], max_tokens=max_tokens))


def ask(requests, state=None):
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def answers(ctx, *keys):
    """The answers of the client, if it gave all of them."""
    found = ctx.input_responses or {}
    return found if all(key in found for key in keys) else None


Asking = str | types.InputRequiredResult


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> Asking:
    """Asks the user in the way of 2026-07-28."""
    found = answers(ctx, "user_name")
    return f"Hello, {found['user_name'].content['name']}!" if found else ask({"user_name": form("What is your name?", name="string")})


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> Asking:
    """Asks the model."""
    found = answers(ctx, "capital_question")
    if found:
        return found["capital_question"].content.text
    return ask({"capital_question": question("What is the capital of France?", 100)})


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> Asking:
    """Asks for the roots."""
    found = answers(ctx, "client_roots")
    return str(len(found["client_roots"].roots)) if found else ask({"client_roots": types.ListRootsRequest()})


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> Asking:
    """Asks, and checks its state."""
    if answers(ctx, "confirm") and ctx.request_state == "opaque":
        return "state-ok"
    return ask({"confirm": form("Please confirm", ok="boolean")}, "opaque")


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> Asking:
    """Asks with a state that the client must not change."""
    return "done" if answers(ctx, "confirm") else ask({"confirm": form("Please confirm", ok="boolean")}, "opaque")


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> Asking:
    """Asks for three things at once."""
    if answers(ctx, "user_name", "greeting", "client_roots"):
        return "all inputs received"
    return ask({
        "user_name": form("What is your name?", name="string"),
        "greeting": question("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }, "opaque")


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> Asking:
    """Asks twice."""
    if answers(ctx, "step2"):
        return "both steps done"
    if answers(ctx, "step1"):
        return ask({"step2": form("Step 2: What is your favorite color?", color="string")}, "second")
    return ask({"step1": form("Step 1: What is your name?", name="string")}, "first")


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> Asking:
    """Asks only for what the client supports."""
    capabilities = ctx.client_capabilities
    requests = {}
    if capabilities and capabilities.sampling is not None:
        requests["capital_question"] = question("What is the capital of France?", 100)
    if capabilities and capabilities.elicitation is not None:
        requests["user_name"] = form("What is your name?", name="string")
    return ask(requests) if requests else "nothing to ask"


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str | types.InputRequiredResult:
    """A prompt that asks the user."""
    found = answers(ctx, "user_context")
    if found:
        return "Context: " + found["user_context"].content["context"]
    return ask({"user_context": form("What context should the prompt use?", context="string")})


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {
        "$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
    }},
    "properties": {
        "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool()
def json_schema_2020_12_tool(name: str = "") -> str:
    """Has a schema with many keywords."""
    return name


@server.tool()
def test_missing_capability(ctx: Context) -> str:
    """Needs a client that can sample."""
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client cannot sample", data)
    return "done"


@server.tool()
def test_x_mcp_header(region: str) -> str:
    """Has an argument that clients repeat in a header."""
    return f"region {region}"


# The schema of a function has no place for these keywords.
server._tool_manager.get_tool("json_schema_2020_12_tool").parameters = SCHEMA
server._tool_manager.get_tool("test_x_mcp_header").parameters = {
    "type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"],
}


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    import base64
    return base64.b64decode(IMAGE)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """A resource with a parameter."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """A resource that clients watch."""
    return "watched"


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def user(content):
    return {"role": "user", "content": content}


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[dict]:
    """A prompt with a resource."""
    return [user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")), user(text("Please process it."))]


@server.prompt()
def test_prompt_with_image() -> list[dict]:
    """A prompt with an image."""
    return [user(image()), user(text("Please analyze the image above."))]


@server.completion()
async def complete(ref, argument, context):
    values = [value for value in ("paris", "park", "party") if value.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), has_more=False)


async def accepts(ctx, params):
    return types.EmptyResult()


lowlevel = server._lowlevel_server
for method, kind in {
    "logging/setLevel": types.SetLevelRequestParams, "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
}.items():
    lowlevel.add_request_handler(method, kind, accepts)

server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), event_store=Events(), retry_interval=100)
