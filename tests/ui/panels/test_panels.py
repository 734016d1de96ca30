"""Panels of a tiny installed package: each in its place, an error too, and a slow one that holds nothing."""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import attention_viz as av
from attention_viz.ui.panels import running
from attention_viz.ui.panels.running import panels, run_panel
from scripts import serve

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "how-to" / "panels.md"
MODULE = """
import pathlib
import time

import plotly.graph_objects as go


def figure(trace, selection):
    return go.Figure(go.Bar(x=["a"], y=[selection.head])).update_layout(title_text="A figure of its own")


def html(trace, selection):
    words = f"{selection.stream} {selection.layer} {selection.head} {selection.query} {selection.key}"
    loads = "<script>document.title = 'ran'; fetch('http://ELSEWHERE/')</script>"
    loads += "<img src='http://ELSEWHERE/x.png' onerror='parent.document.title = 1'>"
    loads += "<link rel='stylesheet' href='http://ELSEWHERE/x.css'><iframe src='http://ELSEWHERE/'></iframe>"
    return f"<p id='words'>{words}</p><a href='http://ELSEWHERE/'>a link</a>{loads}"


def wrong(trace, selection):
    raise RuntimeError("no <b>number</b> here")


def nothing(trace, selection):
    return 3


def slow(trace, selection):
    here = pathlib.Path(__file__).parent
    while not (here / "go").exists():
        time.sleep(0.05)
    return "<p>at last</p>"
"""
ENTRIES = """[attention_viz.panels]
Heaviest keys = heaviest:panel
Figure = others:figure
<b>Page</b> *of* HTML = others:html
Wrong = others:wrong
Wrong kind = others:nothing
Missing = others:missing
Zz slow = others:slow
"""
ADDRESS = "/?model=induction&text=moon+ring+moon&layer=1&head=1&query=3&key=2"


class Counting(BaseHTTPRequestHandler):
    """Another host, which notes who asks it."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Note a request."""
        self.asked.append(self.path)
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def install(folder: Path, elsewhere: str = "192.0.2.1") -> None:
    """What a wheel's installation leaves in a folder of the path."""
    code = re.search(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert code
    (folder / "heaviest.py").write_text(code[1], "utf-8")
    (folder / "others.py").write_text(MODULE.replace("ELSEWHERE", elsewhere), "utf-8")
    info = folder / "heaviest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: heaviest\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(ENTRIES, "utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, elsewhere: str) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(folder, elsewhere)
    return folder


@pytest.fixture
def open_with(
    browser: Browser, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Page]]:
    """Starts the app with the package on its path, and opens Explore; requests to other hosts fail the test."""
    monkeypatch.setenv("PYTHONPATH", str(folder))
    ends = list[Callable[[], object]]()

    def go(**settings: str) -> Page:
        for name, value in settings.items():
            monkeypatch.setenv(f"ATTENTION_VIZ_{name}", value)
        port = serve.free_port()
        log = (tmp_path / "log").open("wb")
        server = serve.start(port, "--server.address=127.0.0.1", log=log)
        ends.append(lambda: (serve.stop(server), log.close()))
        assert serve.wait_until_healthy(server, port), (tmp_path / "log").read_text()
        page = browser.new_page()
        ends.append(page.close)
        page.goto(f"http://127.0.0.1:{port}{ADDRESS}")
        page.get_by_test_id("explorer-bars").wait_for(timeout=120_000)
        return page

    yield go
    for end in reversed(ends):
        end()
    assert Counting.asked == []


def test_each_panel_is_in_its_place_and_a_slow_one_holds_nothing(open_with: Callable[..., Page], folder: Path) -> None:
    page = open_with()
    expect(page.get_by_role("heading", name="Heaviest keys")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(page.get_by_text("A figure of its own")).to_be_visible()
    expect(page.get_by_role("heading", name="<b>Page</b> *of* HTML", exact=True)).to_be_visible()
    expect(page.get_by_text("RuntimeError: no <b>number</b> here")).to_be_visible()
    expect(page.get_by_text("a panel returns a DataFrame, a Plotly figure or HTML; got int")).to_be_visible()
    expect(page.get_by_text("AttributeError: module 'others' has no attribute 'missing'")).to_be_visible()
    frame = page.frame_locator("iframe[data-testid=panel]")
    expect(frame.locator("#words")).to_have_text("decoder 1 1 3 2")
    assert page.get_by_test_id("panel").get_attribute("sandbox") == ""
    frame.get_by_role("link").click()
    # The slow panel is still at work, and the page answers.
    expect(page.get_by_text("Computing …")).to_be_visible()
    cell = page.get_by_role("gridcell", name="Layer 0 head 3", exact=True)
    cell.scroll_into_view_if_needed()
    cell.hover()
    cell.click()
    expect(frame.locator("#words")).to_contain_text("decoder 0 3")
    assert "ran" not in page.title()
    expect(page.get_by_text("Computing …")).to_be_visible()
    (folder / "go").touch()
    expect(page.frame_locator("iframe[data-testid=panel] >> nth=1").get_by_text("at last")).to_be_visible()
    expect(page.get_by_text("Computing …")).to_have_count(0)


def test_an_operator_switches_them_off(open_with: Callable[..., Page]) -> None:
    page = open_with(PANELS="off")
    page.get_by_text("Verified").first.wait_for()
    expect(page.get_by_role("heading", name="Heaviest keys")).to_have_count(0)


def trace() -> av.Trace:
    q, k, v = torch.randn(3, 1, 2, 4, 3, generator=torch.Generator().manual_seed(1))
    return av.Trace.from_qkv(q, k, v, layout="bhsd")


def test_panels_are_found_by_name_and_off_they_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    assert [one.name for one in panels()] == sorted(re.findall(r"^(.+) = ", ENTRIES, re.MULTILINE))
    monkeypatch.setattr(running, "SETTINGS", av_settings(panels=False))
    assert panels() == ()


def av_settings(*, panels: bool) -> object:
    from attention_viz.serving.settings import Settings

    return Settings(panels=panels)


def test_an_outcome_is_made_once_per_head_and_keeps_no_run_alive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import weakref

    monkeypatch.syspath_prepend(str(folder))
    of, here = trace(), av.Selection("attention", 0, 1, 2, 1)
    panel = EntryPoint("x", "others:wrong", running.GROUP)
    first = run_panel(panel, of, here)
    assert first.result(20).error == "RuntimeError: no <b>number</b> here"
    assert run_panel(panel, of, here) is first
    assert run_panel(panel, of, av.Selection("attention", 0, 0)) is not first
    gone = weakref.ref(of)
    run_panel(panel, of, av.Selection("attention", 0, 0)).result(20)
    del of
    # The thread lets go of its last job when it takes the next one.
    run_panel(panel, trace(), here).result(20)
    gc.collect()
    assert gone() is None


def test_html_that_is_too_long_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    (folder / "long_html.py").write_text("def panel(trace, selection):\n    return 'x' * 2_000_001\n", "utf-8")
    panel = EntryPoint("x", "long_html:panel", running.GROUP)
    found: Future[running.PanelOutcome] = run_panel(panel, trace(), av.Selection("attention", 0, 1))
    assert found.result(20).error == "ValueError: a panel's HTML has at most 2,000,000 characters; got 2,000,001"
