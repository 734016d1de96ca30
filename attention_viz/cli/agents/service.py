"""The server that speaks the Model Context Protocol over standard input and output."""

import asyncio
import base64
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from attention_viz import __version__
from attention_viz.cli.agents.bounded import fitted
from attention_viz.cli.agents.calls import CallStopped, ToolCall, ToolCalls
from attention_viz.cli.agents.parameters import checked
from attention_viz.cli.agents.picture import HeadPicture
from attention_viz.cli.agents.tools import TOOLS
from attention_viz.cli.answers.answer import envelope
from attention_viz.cli.answers.keys import object_schema
from attention_viz.cli.answers.kinds import schema_of
from attention_viz.cli.exits import SUCCESS
from attention_viz.cli.output import one_line
from attention_viz.errors import AttentionVizError

_NAME = "attention-viz"
_INSTRUCTIONS = (
    "See what attention in a transformer really computes. Start with the tool trace: it runs a model on a text and "
    "returns an id that the other tools take. Layers have the model's own numbers; heads and positions count from 0."
)
# Characters of an error's sentence.
_LONGEST_ERROR = 2_000
_MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


def serve(seconds: int) -> None:
    """Serve until the client closes the connection; stop each call after this time."""
    calls = ToolCalls(seconds)
    asyncio.run(_serve(calls))
    if not calls.end():
        # A call is inside torch, which must not lose its interpreter.
        sys.stderr.flush()
        os._exit(SUCCESS)


async def _serve(calls: ToolCalls) -> None:
    async def list_tools(_context: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_LISTED)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            message = f"unknown tool {params.name[:60]!r}; choose from {', '.join(TOOLS)}"
            raise MCPError(types.INVALID_PARAMS, one_line(message))
        try:
            return await calls.run(lambda call: _answer(call, params.name, params.arguments or {}))
        except AttentionVizError as error:
            return _failed(str(error))
        except CallStopped:
            return _failed("the call was cancelled")
        except Exception as error:
            traceback.print_exc()
            return _failed(f"internal error ({type(error).__name__}); the server's log has the lines")

    server = Server(
        _NAME, version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _answer(call: ToolCall, name: str, given: dict[str, Any]) -> types.CallToolResult:
    tool = TOOLS[name]
    arguments = SimpleNamespace(**checked(tool.takes, given))
    found = tool.run(call, arguments)
    picture = found if isinstance(found, HeadPicture) else None
    structured, text = fitted(envelope(found.answer if isinstance(found, HeadPicture) else found), arguments.characters)
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    return types.CallToolResult(content=[*content, *_pictures(picture)], structured_content=structured)


def _pictures(picture: HeadPicture | None) -> list[types.ContentBlock]:
    if picture is None:
        return []
    kind = _MEDIA_TYPES[picture.form]
    if picture.form == "png":
        return [types.ImageContent(data=base64.b64encode(picture.content).decode(), mime_type=kind)]
    facts = picture.answer.facts
    address = f"attention-viz://picture/{facts['stream']}/{facts['layer']}/{facts['head']}.svg"
    inside = types.TextResourceContents(uri=address, mime_type=kind, text=picture.content.decode())
    return [types.EmbeddedResource(resource=inside)]


def _failed(message: str) -> types.CallToolResult:
    sentence = one_line(message)[:_LONGEST_ERROR]
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


_LISTED = [
    types.Tool(
        name=name,
        description=tool.purpose,
        input_schema=object_schema(tool.takes),
        output_schema=schema_of(name),
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
    for name, tool in TOOLS.items()
]
