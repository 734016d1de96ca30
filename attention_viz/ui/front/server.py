"""Streamlit's application with our headers and a readiness URL."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit import net_util
from streamlit.starlette import App
from streamlit.web.cli import main_run

from attention_viz.serving.preload import Preloading, readiness
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.front.gate import Gate
from attention_viz.ui.front.headers import Headers, headers

__all__ = ["READY", "serve", "server"]

READY = "/ready"


def serve(words: Sequence[str], preloading: Preloading) -> None:
    """Serve until this process is told to end."""
    script, arguments, options = _read(words)
    # As if the script had been started itself: Streamlit looks for its configuration beside it.
    sys.argv = [str(script), *arguments]
    with contextlib.suppress(KeyboardInterrupt):  # that is how a server is told to end, too
        server(script, preloading).run(config=options)


def server(script: Path, preloading: Preloading) -> App:
    """The application that answers."""
    # Of whoever comes from a page of another site, Streamlit would ask a host outside whether that site is at this
    # machine's public address, and all visitors would wait meanwhile.
    net_util.get_external_ip = _no_address

    async def ready(_: Request) -> JSONResponse:
        state = readiness(preloading)
        # Who stands in front, such as a proxy, sends nobody here before.
        return JSONResponse(asdict(state), 200 if state.state == "ready" else 503, {"Cache-Control": "no-store"})

    # The second one for an app that isn't served at the root of its host.
    routes = [Route(READY, ready), Route("/{below:path}" + READY, ready)]
    before = [Middleware(Headers, added=headers(SETTINGS.frames)), Middleware(Gate, metrics=SETTINGS.metrics)]
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
