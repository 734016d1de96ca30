"""A server of tools in a process of its own, spoken to by the SDK's client over its standard input and output."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, eq=False)
class ToolClient:
    """The SDK's client; each answer is checked by the schema that the server lists."""

    client: Client
    validators: Mapping[str, Draft202012Validator]

    async def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer, which is the same as text and as structured content."""
        found = await self.client.call_tool(name, arguments)
        assert not found.is_error, found.content[0]
        answer = found.structured_content
        self.validators[name].validate(answer)
        assert json.loads(text_of(found)) == answer
        assert len(text_of(found)) <= arguments.get("characters", 10_000)
        return answer

    async def refusal(self, name: str, **arguments: Any) -> str:
        """Call a tool that refuses, and return its sentence."""
        found = await self.client.call_tool(name, arguments)
        assert found.is_error and found.structured_content is None and len(found.content) == 1, (name, arguments, found)
        sentence = text_of(found)
        assert "\n" not in sentence and "Loading" not in sentence and "Traceback" not in sentence
        return sentence

    async def trace(self, text: str, model: str = "induction", **more: Any) -> str:
        """Trace a text and return its id."""
        return (await self.ask("trace", model=model, text=text, **more))["result"]["trace"]


Work = Callable[[ToolClient], Coroutine[Any, Any, None]]


def text_of(found: Any) -> str:
    """The text of an answer."""
    return found.content[0].text


@contextlib.contextmanager
def served(*options: str, log: Path, mode: str = "auto") -> Generator[Callable[[Work], None]]:
    """Start a server; yield what lets a piece of work speak with it; end it by closing its standard input."""
    ready, over = Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, ToolClient]](), 300.0

    async def run() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "attention_viz", "mcp", *options],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=log.parent,
        )
        with log.open("w") as errors:
            async with Client(stdio_client(server, errlog=errors), mode=mode) as client:
                listed = (await client.list_tools()).tools
                found = {one.name: Draft202012Validator(one.output_schema) for one in listed}
                end = asyncio.Event()
                ready.set_result((asyncio.get_running_loop(), end, ToolClient(client, found)))
                await end.wait()

    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(asyncio.run, run())
        wait([serving, ready], over, FIRST_COMPLETED)
        if not ready.done():
            serving.result(0)
        loop, end, tools = ready.result()
        try:
            yield lambda work: asyncio.run_coroutine_threadsafe(work(tools), loop).result(over)
        finally:
            loop.call_soon_threadsafe(end.set)
            serving.result(over)
