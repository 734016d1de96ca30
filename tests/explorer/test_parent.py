"""A saved page in another page's frame: it answers the page around it with what is chosen, and nobody else."""

import functools
import html
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, Page

from attention_viz.explorer import explore
from attention_viz.trace.trace import Trace
from tests.explorer.conftest import self_attention

LISTEN = 'window.heard = []; addEventListener("message", ({data}) => heard.push(data));'
ASK = "() => frames[0].postMessage({type: 'attention_viz:listen'}, '*')"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def around(open_page: Callable[..., Page], tmp_path: Path) -> Iterator[Callable[[str], Page]]:
    """Opens a page with a body of its own from a server."""
    handler = functools.partial(Quiet, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def go(body: str) -> Page:
        (tmp_path / "blog.html").write_text(
            f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script>{LISTEN}</script>{body}',
            "utf-8",
        )
        return open_page(f"http://127.0.0.1:{server.server_port}/blog.html")

    yield go
    server.shutdown()
    server.server_close()


def framed(trace: Trace) -> str:
    return f'<iframe sandbox="allow-scripts" width="1200" height="900" srcdoc="{html.escape(explore(trace).html())}">'


def choose(frame: FrameLocator, layer: int, head: int) -> None:
    frame.get_by_role("gridcell", name=f"Layer {layer} head {head}", exact=True).click()


def wait_for(page: Page, layer: int, head: int) -> dict[str, Any]:
    page.wait_for_function(f"heard.some(({{layer, head}}) => layer === {layer} && head === {head})")
    found: dict[str, Any] = page.evaluate("heard[heard.length - 1]")
    return found


def test_the_page_around_hears_the_choice_once_it_asks_and_no_word_of_the_text(
    around: Callable[[str], Page],
) -> None:
    page = around(framed(self_attention(5)))
    frame = page.frame_locator("iframe")
    choose(frame, 0, 1)
    assert page.evaluate("heard") == []
    page.evaluate(ASK)
    assert wait_for(page, 0, 1).keys() == {"type", "stream", "layer", "head", "query", "key"}
    choose(frame, 1, 2)
    told = wait_for(page, 1, 2)
    assert told == {
        "type": "attention_viz:selection",
        "stream": "encoder",
        "layer": 1,
        "head": 2,
        "query": None,
        "key": None,
    }


def test_a_frame_beside_it_is_not_answered(around: Callable[[str], Page]) -> None:
    asks = "parent.frames[0].postMessage({type: 'attention_viz:listen'}, '*'); parent.postMessage('asked', '*');"
    script = html.escape(f"<script>setInterval(() => {{ {asks} }}, 20);</script>")
    page = around(f'{framed(self_attention(5))}</iframe><iframe sandbox="allow-scripts" srcdoc="{script}"></iframe>')
    frame = page.frame_locator("iframe").first
    frame.get_by_test_id("explorer-bars").locator("li").first.wait_for()
    for head in (1, 2):
        page.evaluate("heard.length = 0")
        page.wait_for_function("heard.length >= 5")
        choose(frame, 0, head)
    assert page.evaluate("[...new Set(heard)]") == ["asked"]


def test_a_page_of_its_own_tells_nobody(open_page: Callable[..., Page], tmp_path: Path) -> None:
    explore(self_attention(5)).save_html(tmp_path / "own.html")
    page = open_page((tmp_path / "own.html").as_uri())
    page.get_by_test_id("explorer-bars").locator("li").first.wait_for()
    page.evaluate(LISTEN)
    page.evaluate("postMessage({type: 'attention_viz:listen'}, '*')")
    page.wait_for_function("heard.length === 1")
    page.get_by_role("gridcell", name="Layer 1 head 2", exact=True).click()
    assert page.evaluate("heard.map(({type}) => type)") == ["attention_viz:listen"]
