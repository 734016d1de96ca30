"""Each answer's headers, and the waiting page."""

import secrets
from collections.abc import Mapping

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.visitors import Visitors
from attention_viz.ui import visit

# The cookie that marks the tabs of one browser; it ends with the browser.
_BROWSER = "attention_viz_browser"
# Streamlit's page requests this before each connection, never from the browser's cache.
_ASKED_FIRST = "/_stcore/health"
# Seconds between checks of a waiting visitor.
_PAUSE = 5


def headers(frames: str) -> dict[str, str]:
    """Return each answer's headers; `frames` may frame the app."""
    return {
        # Browsers must use the declared type and not guess that a file is a script.
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": f"frame-ancestors 'self' {frames}".strip(),
        # The URL holds the sentence; another site mustn't learn it from a followed link.
        "Referrer-Policy": "same-origin",
    }


class Headers:
    """An application with added headers."""

    def __init__(self, app: ASGIApp, added: Mapping[str, str]) -> None:
        """Wrap an application."""
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
    if not scope["path"].endswith(_ASKED_FIRST) or _BROWSER in HTTPConnection(scope).cookies:
        return []
    phrase = f"{_BROWSER}={secrets.token_urlsafe(16)}; HttpOnly; Path=/; SameSite=Lax"
    return [(b"set-cookie", phrase.encode())]


def wait_for_room() -> None:
    """Show only the visitor's queue position on a full server."""
    if _ahead():
        _wait()
        st.stop()


def _is_connected(session: str) -> bool:
    return runtime.get_instance().is_active_session(session)


_visitors = Visitors(SETTINGS.most_visitors, _is_connected)


def _ahead() -> int:
    context = get_script_run_ctx()
    # Without a server there is one visitor.
    if context is None or not runtime.exists():
        return 0
    return _visitors.ahead(context.session_id, st.context.cookies.get(_BROWSER, ""))


@st.fragment(run_every=_PAUSE)
def _wait() -> None:
    ahead = _ahead()
    if not ahead:
        visit.run_again()
    people = "1 person has" if ahead == 1 else f"{ahead} people have"
    st.html(
        f'<p role="status">All {SETTINGS.most_visitors:,} places here are taken: {people} to leave before your turn. '
        "The page then opens by itself, with everything in its URL. A tab keeps its place until twenty seconds after "
        "it is closed.</p>"
    )
