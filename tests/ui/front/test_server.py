"""The server as whoever stands before it finds it: headers, whether it is ready, room for so many, a quiet log."""

import asyncio
import http.client
import json
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPMessage
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect
from streamlit import net_util
from streamlit.web.server.server_util import is_url_from_allowed_origins
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from attention_viz.serving.preload import Preloading
from attention_viz.sources import CATALOGUE
from attention_viz.ui.address.state import DEFAULT
from attention_viz.ui.front.server import server
from attention_viz.ui.front.waiting import headers
from attention_viz.ui.packing import payload_of
from benchmarks.serving import ask_where
from benchmarks.visitor import Visitor
from tests.conftest import ROOT, Server
from tests.ui.served import app

# A word that stands nowhere else.
TYPED = "quixotaphrine"
SITE = "https://learn.example.org"
LISTS = {"model": "lists", "text": f"copy c a f {TYPED} :"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Server]:
    """A server with room for one, below a path of its host."""
    settings = {
        "ATTENTION_VIZ_MOST_VISITORS": "1",
        "ATTENTION_VIZ_FRAMES": SITE,
        "STREAMLIT_SERVER_BASE_URL_PATH": "attention",
    }
    with app(tmp_path_factory.mktemp("front"), pytestconfig, **settings) as server:
        yield server


def _alone(visit: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a thread of its own, since a browser's loop may be in this one."""
    with ThreadPoolExecutor(1) as other:
        other.submit(lambda: asyncio.run(visit())).result()


def get(server: Server, path: str) -> tuple[int, HTTPMessage, bytes]:
    """What comes of a request: the status, the headers and the content."""
    with closing(http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=60)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


@pytest.mark.parametrize("path", ["/attention/", "/attention/ready", "/attention/static/nothing.js", "/nowhere"])
def test_each_answer_has_the_headers(small: Server, path: str) -> None:
    _, found, _ = get(small, path)
    assert {name: found.get_all(name) for name in headers(SITE)} == {
        name: [told] for name, told in headers(SITE).items()
    }
    assert found["X-Content-Type-Options"] == "nosniff"
    assert found["Content-Security-Policy"] == f"frame-ancestors 'self' {SITE}"


@pytest.mark.parametrize("path", ["/attention/_stcore/metrics", "/_stcore/metrics", "/attention/_stcore/metrics/"])
def test_counts_of_sessions_are_closed(small: Server, path: str) -> None:
    status, _, content = get(small, path)
    assert status in (404, 405)
    assert b"session" not in content


@pytest.mark.parametrize(
    ("frame", "line"),
    [("hello", "sent text"), (b"\xff" * 40, "unreadable"), (b"\x0a\xff\xff", "unreadable")],
    ids=["text", "bytes", "cut"],
)
def test_a_broken_frame_ends_its_connection_with_one_line_in_the_log(
    small: Server, frame: str | bytes, line: str
) -> None:
    before = small.log.read_text("utf-8")
    stream = f"{small.address.replace('http', 'ws', 1)}/attention/_stcore/stream"
    with connect(stream, subprotocols=[Subprotocol("streamlit")]) as connection:
        connection.send(frame)
        with pytest.raises(ConnectionClosed):
            while True:
                connection.recv(timeout=30)
    deadline = time.monotonic() + 10
    while line not in (told := small.log.read_text("utf-8")[len(before) :]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert line in told
    assert "Traceback" not in told
    assert len(told.splitlines()) == 1


def test_it_says_whether_the_model_is_ready_that_it_opens_on(small: Server) -> None:
    deadline, seen, told = time.monotonic() + 120, set[tuple[int, str]](), dict[str, Any]()
    while (200, "ready") not in seen and time.monotonic() < deadline:
        status, _, content = get(small, "/attention/ready")
        told = json.loads(content)
        seen.add((status, told["state"]))
        time.sleep(0.1)
    assert {(200, "ready")} <= seen <= {(200, "ready"), (503, "loading")}
    assert told["opens_on"] == DEFAULT.model
    assert told["models"].keys() == CATALOGUE.keys()
    assert told["models"][DEFAULT.model]
    assert not told["models"]["lists"]


def test_whoever_comes_when_all_places_are_taken_is_told_so_and_comes_in_once_there_is_one(small: Server) -> None:
    async def visit() -> None:
        first, second = (Visitor(small.address, LISTS, below="attention") for _ in range(2))
        await first.come()
        answer = await first.open()
        assert answer.errors == ()
        assert first.pages
        await second.come()
        await second.open()
        assert not second.pages
        assert "1 person has to leave before your turn" in second.waiting[-1]
        await first.leave()
        deadline = time.monotonic() + 120
        while not second.pages and time.monotonic() < deadline:
            await asyncio.sleep(1)
            answer = await second.open()
        assert second.pages
        assert answer.errors == ()
        await second.leave()

    _alone(visit)


def test_a_page_that_is_loaded_again_has_the_place_it_had_and_who_waits_is_told_the_same_number(
    small: Server, browser: Browser
) -> None:
    address, waits = f"{small.address}/attention/?model=lists", "1 person has to leave before your turn"
    with closing(browser.new_context()) as first, closing(browser.new_context()) as second:
        here, there = first.new_page(), second.new_page()
        here.goto(address)
        expect(here.get_by_role("link", name="Explore", exact=True)).to_be_visible(timeout=60_000)
        there.goto(address)
        for _ in range(3):
            expect(there.get_by_role("status").first).to_contain_text(waits, timeout=60_000)
            there.reload()
        here.reload()
        expect(here.get_by_role("link", name="Explore", exact=True)).to_be_visible(timeout=60_000)
        # It came in at once, not after the time for which the place of somebody who left is kept.
        expect(there.get_by_role("status").first).to_contain_text(waits, timeout=60_000)


def test_a_page_of_another_site_is_refused_and_no_host_is_asked_where_that_is(
    small: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    # What is taken back afterwards.
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)
    monkeypatch.setattr("requests.get", lambda url, timeout=0: asked.append(url))
    assert not is_url_from_allowed_origins("http://elsewhere.example")
    assert asked
    asked.clear()
    server(ROOT / "app.py", Preloading(DEFAULT.request, payload_of, ()))
    assert not is_url_from_allowed_origins("http://elsewhere.example")
    assert asked == []
    stream = f"{small.address.replace('http', 'ws', 1)}/attention/_stcore/stream"
    with pytest.raises(InvalidStatus, match="403"):
        connect(stream, origin=Origin("http://elsewhere.example"))
    assert "external IP" not in small.log.read_text("utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="servers are found by what Linux tells of processes")
def test_asked_where_it_stands_it_tells_in_its_log_and_goes_on(small: Server) -> None:
    ask_where()
    deadline = time.monotonic() + 60
    # What Python calls the thread in which the server waits for its visitors; of all threads it is written last.
    while "Current thread" not in small.log.read_text("utf-8") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "Current thread" in small.log.read_text("utf-8")
    assert get(small, "/attention/_stcore/health")[0] == 200


def test_the_log_has_nothing_of_what_was_typed(small: Server) -> None:
    async def visit() -> None:
        visitor = Visitor(small.address, {"model": TYPED, "text": f"the {TYPED} sat"}, below="attention")
        await visitor.come()
        deadline = time.monotonic() + 120
        while not visitor.pages and time.monotonic() < deadline:
            await visitor.open()
            await asyncio.sleep(1)
        # Where the page stands in the menu, with the model that isn't there and the sentence.
        for page in sorted(visitor.pages):
            await visitor.follow(page)
        await visitor.leave()

    _alone(visit)
    get(small, f"/attention/?text={TYPED}")
    get(small, f"/attention/{TYPED}.js")
    assert TYPED not in small.log.read_text("utf-8")
