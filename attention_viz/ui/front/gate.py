"""Refusals before Streamlit: session counts and foreign frames."""

import logging

from google.protobuf.message import DecodeError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

__all__ = ["Gate"]

_log = logging.getLogger(__name__)

_METRICS = "/_stcore/metrics"
# RFC 6455, section 7.4.1: a kind of data that isn't read, and data that isn't what its kind says.
_NO_TEXT, _BROKEN = 1003, 1007


class Gate:
    """An application that receives only readable frames.

    Anybody can send broken ones; Streamlit would log a traceback each.
    """

    def __init__(self, app: ASGIApp, *, metrics: bool) -> None:
        """Stand before an application."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
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
        """Hand on the next frame, or the end."""
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
        """Send what belongs to an open connection."""
        if not self._closed:
            await self._send(message)


def _fault(message: Message) -> tuple[str, int] | None:
    """Return a frame's fault and close code, or None."""
    if message["type"] != "websocket.receive":
        return None
    if (data := message.get("bytes")) is None:
        return "text, where messages are binary", _NO_TEXT
    try:
        _ = BackMsg.FromString(data)
    except DecodeError:
        return "a message that can't be read", _BROKEN
    return None
