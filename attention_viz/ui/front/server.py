"""The server behind our gate, and its start."""

import contextlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import net_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.starlette import App
from streamlit.web.cli import main_run

from attention_viz.serving.preload import Preloading, readiness
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.front.presses import keep_presses
from attention_viz.ui.front.sharing import Previews
from attention_viz.ui.front.waiting import Headers, headers

_log = logging.getLogger(__name__)

_METRICS = "/_stcore/metrics"
# RFC 6455, section 7.4.1: a kind of data that isn't read, and data that isn't what its kind says.
_NO_TEXT, _BROKEN = 1003, 1007
READY = "/ready"


class Gate:
    """Keep unreadable frames from an application: Streamlit would log a traceback for each."""

    def __init__(self, app: ASGIApp, *, metrics: bool) -> None:
        """Wrap an application."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse."""
        if scope["type"] == "websocket":
            frames = _Frames(receive, send)
            await self._app(scope, frames.receive, frames.send)
        elif scope["type"] == "http" and not self._metrics and scope["path"].rstrip("/").endswith(_METRICS):
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class _Frames:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._closed = False

    async def receive(self) -> Message:
        message = await self._receive()
        found = _fault(message)
        if found is None:
            return message
        what, code = found
        _log.warning("closed a connection that sent %s", what)
        await self.send({"type": "websocket.close", "code": code})
        self._closed = True
        return {"type": "websocket.disconnect", "code": code}

    async def send(self, message: Message) -> None:
        if not self._closed:
            await self._send(message)


def _fault(message: Message) -> tuple[str, int] | None:
    """Return a frame's fault and close code."""
    if message["type"] != "websocket.receive":
        return None
    if (data := message.get("bytes")) is None:
        return "text instead of binary data", _NO_TEXT
    try:
        _ = BackMsg.FromString(data)
    except DecodeError:
        return "an unreadable message", _BROKEN
    return None


def serve(words: Sequence[str], preloading: Preloading) -> None:
    """Serve until this process is terminated."""
    script, arguments, options = _read(words)
    # As if the script had been started itself: Streamlit looks for its configuration beside it.
    sys.argv = [str(script), *arguments]
    with contextlib.suppress(KeyboardInterrupt):  # this also ends a server
        server(script, preloading).run(config=options)


def server(script: Path, preloading: Preloading) -> App:
    """Return the server's application."""
    # For a visitor from another site's page, Streamlit would ask an outside host for this machine's public address, and
    # all visitors would wait meanwhile.
    net_util.get_external_ip = _no_address
    keep_presses()

    async def ready(_: Request) -> JSONResponse:
        state = readiness(preloading)
        # A proxy in front sends no visitors here before.
        return JSONResponse(asdict(state), 200 if state.state == "ready" else 503, {"Cache-Control": "no-store"})

    # The second one for an app that isn't served at the root of its host.
    routes = [Route(READY, ready), Route("/{below:path}" + READY, ready)]
    added = headers(SETTINGS.frames)
    before = [Middleware(Headers, added=added), Middleware(Gate, metrics=SETTINGS.metrics), Middleware(Previews)]
    return App(script, routes=routes, middleware=before)


def _no_address() -> None:
    """Report no public address for this machine."""


def _read(words: Sequence[str]) -> tuple[Path, list[str], dict[str, Any]]:
    given = main_run.make_context("streamlit run", list(words)).params
    script, arguments = Path(given.pop("target")).absolute(), list(given.pop("args"))
    return (
        script,
        arguments,
        {name.replace("_", "."): value for name, value in given.items() if value not in (None, ())},
    )
