"""The first HTML's title, description and link preview: browsers and messengers read them before anything runs."""

import functools
import html
import re
from importlib import resources
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.kind import MEDIA
from attention_viz.ui.address import DEFAULT, own_example
from attention_viz.ui.address.codec import read
from attention_viz.ui.address.titles import APP, description, labels, title

# Where the server is: without this, Streamlit first asks below the page's own name, and the browser logs two errors.
_BACKEND = (
    "<script>window.__streamlit = {BACKEND_BASE_URL: location.origin + "
    f'location.pathname.replace(/\\/(?:{"|".join(filter(None, labels()))})\\/*$/, "/")}};</script>'
)
_TITLE = re.compile(rb"<title>[^<]*</title>")
# With these, Streamlit answers without content, or with content that can't be read here.
_LEFT_OUT = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
# These describe the content before it was changed.
_REPLACED = (b"content-length", b"etag", b"last-modified")
# As much of a URL as is read, in bytes, and the parameters that name what it shows.
_LONGEST, _READ = 20_000, ("model", "text", *MEDIA)


class Previews:
    """An application whose HTML says what its URL shows."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http" or scope["method"] != "GET" or _is_file(scope["path"]):
            await self._app(scope, receive, send)
            return
        asked = {**scope, "headers": [one for one in scope["headers"] if one[0].lower() not in _LEFT_OUT]}
        start, content = list[Message](), bytearray()

        async def send_changed(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_html(message):
                start.append(message)
            elif message["type"] != "http.response.body" or not start:
                await send(message)
            else:
                content.extend(message.get("body", b""))
                if not message.get("more_body"):
                    said = head_of(scope["path"], scope["query_string"]) + _layout()
                    head = _TITLE.sub(lambda _: said, bytes(content), count=1)
                    await send(_started(start[0], len(head)))
                    await send({"type": "http.response.body", "body": head})

        await self._app(asked, receive, send_changed)


@functools.cache
def _layout() -> bytes:
    """Return the pages' layout as an element, so that nothing moves once the page brings its own."""
    sheet = resources.files("attention_viz.ui.parts").joinpath("layout.css").read_bytes()
    return b"\n    <style>" + sheet + b"</style>"


def _is_file(path: str) -> bool:
    return "." in path.rsplit("/", 1)[-1] or "/_stcore/" in path


def _is_html(message: Message) -> bool:
    kinds = [value for name, value in message.get("headers", ()) if name.lower() == b"content-type"]
    return message["status"] == 200 and any(kind.startswith(b"text/html") for kind in kinds)


def _started(message: Message, length: int) -> Message:
    kept = [one for one in message["headers"] if one[0].lower() not in _REPLACED]
    return {**message, "headers": [*kept, (b"content-length", str(length).encode())]}


def head_of(path: str, query: bytes) -> bytes:
    """Return the HTML elements that say what a URL shows."""
    address = dict(parse_qsl(query[:_LONGEST].decode("latin-1"), errors="replace"))
    model = address.get("model", DEFAULT.model)
    text = address.get("text", own_example(model))[: SETTINGS.longest_input]
    state, _ = read(DEFAULT, {**address, "text": text}, only=_READ)
    page = path.rstrip("/").rsplit("/", 1)[-1]
    called, said = html.escape(title(page, state)), html.escape(description(page, state))
    named = {"og:type": "website", "og:site_name": APP, "og:title": called, "og:description": said}
    described = {"description": said, "twitter:card": "summary"}
    lines = [f"<title>{called}</title>", _BACKEND]
    lines += [f'<meta name="{name}" content="{content}" />' for name, content in described.items()]
    lines += [f'<meta property="{name}" content="{content}" />' for name, content in named.items()]
    return "\n    ".join(lines).encode("utf-8", "replace")
