"""Headers of each server answer, whatever the request."""

import secrets
from collections.abc import Mapping

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BROWSER", "Headers", "headers"]

# The cookie by which tabs of one browser are told from those of others; it goes when the browser is closed.
BROWSER = "attention_viz_browser"
# What Streamlit's page asks for each time before it connects, and never out of the browser's memory.
_ASKED_FIRST = "/_stcore/health"


def headers(frames: str) -> dict[str, str]:
    """Return each answer's headers.

    Args:
        frames: sites allowed to frame the app, beside its own.
    """
    return {
        # A file is what it is called: no browser guesses that one is a script.
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": f"frame-ancestors 'self' {frames}".strip(),
        # The address holds the sentence, which no other site is to learn from a link that was followed.
        "Referrer-Policy": "same-origin",
    }


class Headers:
    """An application that adds these headers to each answer."""

    def __init__(self, app: ASGIApp, added: Mapping[str, str]) -> None:
        """Stand before an application."""
        self._app = app
        self._added = [(name.lower().encode(), value.encode()) for name, value in added.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        added = [*self._added, *_named(scope)]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name for name, _ in self._added}
                kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in ours]
                message = {**message, "headers": [*kept, *added]}
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _named(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Name a browser at random; no script reads it, no other site gets it."""
    if not scope["path"].endswith(_ASKED_FIRST) or BROWSER in HTTPConnection(scope).cookies:
        return []
    phrase = f"{BROWSER}={secrets.token_urlsafe(16)}; HttpOnly; Path=/; SameSite=Lax"
    return [(b"set-cookie", phrase.encode())]
