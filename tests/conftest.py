"""What tests share: one browser and one server for each worker, pages on which any error counts, types left unchecked.

A page is handed on from test to test, emptied in between: it knows the app's scripts by then, and opens in half the
time. One that only gets another address (the fixture `stay`) is drawn in a third of that.

A test that opens a page carries the marker `browser` by itself: `pytest -m "not browser"` leaves them all out.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import hypothesis
import jaxtyping
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts import serve
from scripts.browser import LAUNCH_FLAGS, NONE_FOUND, find
from tests.pages import (
    AT_REST,
    GO,
    RESTING,
    UNCAUGHT,
    OpenPage,
    Recolour,
    Server,
    Watched,
    hand_on,
    problems_of,
    spare_page,
    uncaught,
    wait_until_drawn,
    with_text,
)

ROOT = Path(__file__).parents[1]
# The key of the server's Class page.
TEACHER = "correct horse"

# Before anything imports torch: as many processes run tests as there are cores, and with more threads than one each
# they would mostly wait for each other. The recipes' sums come out as they did in training, too.
os.environ["OMP_NUM_THREADS"] = "1"

# Wherever shapes stand in signatures they hold while the tests run, and so do the types beside them; all other types
# are the type checker's. As for it, an int will do for a float.
SHAPED = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "attention_viz").rglob("*.py"))
    if "from jaxtyping import" in path.read_text("utf-8")
]
assert not (early := sys.modules.keys() & set(SHAPED)), f"imported before their signatures can be checked: {early}"
jaxtyping.install_import_hook(SHAPED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# The tests of these rooms run the same functions as those of the rooms below, a hundred times as often.
UNCHECKED = {"cli", "corpus", "explorer", "lesson", "recipes", "scripts", "serving", "ui", "views"}

# A busy machine takes its time.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attention_viz.models.model import AttentionModel

RUNNING = pytest.StashKey[Server]()  # the server whose pages are looked at
FAILED = pytest.StashKey[bool]()

# A page lives for a second: to make its scripts faster, and to tidy its memory, costs more than it brings.
SHORT_LIVED = "--js-flags=--no-maglev --no-turbofan --min-semi-space-size=32"
# A camera that shows a moving ball and a microphone that beeps; a page gets at them only where a test grants it.
MADE_UP = "--use-fake-device-for-media-stream"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without a screen."""
    found = find()
    if found is None:
        pytest.fail(NONE_FOUND)
    expect.set_options(timeout=20_000)  # milliseconds: a machine that runs several tests at once takes its time
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*LAUNCH_FLAGS, SHORT_LIVED, MADE_UP])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def app_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app as `make run` starts it, on a port of its own."""
    port, log = serve.free_port(), tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as file:
        process = serve.start(port, "--server.address=127.0.0.1", log=file, teacher=TEACHER)
        try:
            if not serve.wait_until_healthy(process, port):
                pytest.fail(f"The app did not start:\n{log.read_text()}")
            yield Server(f"http://127.0.0.1:{port}", log)
        finally:
            serve.stop(process)


@pytest.fixture(scope="session")
def idle() -> Callable[[Page], None]:
    """Waits until the app has done what was asked of it: `idle(page)` after every click."""

    def wait(page: Page) -> None:
        page.evaluate("window.atRestSince = undefined; window.atRestFrames = 0")
        page.wait_for_function(AT_REST, timeout=90_000, polling=50)

    return wait


@pytest.fixture(scope="session")
def minilm() -> "AttentionModel":
    """The real model, as anybody loads it."""
    from tests.shipped import MINILM, shipped  # not above: tests of scripts and of the architecture run without torch

    return shipped(MINILM)


@pytest.fixture(scope="session")
def smollm2() -> "AttentionModel":
    """The real language model, as anybody loads it."""
    from tests.shipped import SMOLLM2, shipped

    return shipped(SMOLLM2)


@pytest.fixture(scope="session")
def eager_minilm() -> "PreTrainedModel":
    """The same weights under transformers' eager attention, which ours never touched."""
    from tests.shipped import MINILM, plain

    return plain(MINILM)


@pytest.fixture(scope="session")
def spare_pages() -> list[Watched]:
    """Empty pages that a test before this one has left."""
    return []


@pytest.fixture
def open_page(
    browser: Browser, spare_pages: list[Watched], idle: Callable[[Page], None], request: pytest.FixtureRequest
) -> Iterator[OpenPage]:
    """Opens pages, each with nothing of another in it: `page = open_page("/steps?layer=1", dark=True, width=390)`.

    An address that begins with a slash is one of the app's; any other (`file:` for an exported explorer) is taken as it
    is. After the test, an error on the console, a request to another host, or an exception in the app fails it.
    """
    opened: list[Watched] = []
    before: dict[Server, int] = {}

    def go(address: str = "/", *, dark: bool = False, width: int = 1360, height: int = 860) -> Page:
        in_app = address.startswith("/")
        if in_app:
            server = request.config.stash[RUNNING] = request.getfixturevalue("app_server")
            address = server.address + address
        if server := request.config.stash.get(RUNNING, None):
            before.setdefault(server, server.exceptions())
        opened.append(spare_page(spare_pages, browser))
        opened[-1].host = urlsplit(address).netloc
        page = opened[-1].dress(dark, width, height)
        page.goto(address)
        if in_app:
            wait_until_drawn(page, idle)
            assert not uncaught(before), UNCAUGHT  # at once: nothing that a test waits for would appear
        return page

    yield go
    problems = problems_of(opened, before)
    hand_on(opened, spare_pages)
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def standing(app_server: Server, spare_pages: list[Watched]) -> Iterator[list[Watched]]:
    """The page that `stay` keeps open while one file's tests run, once there is one."""
    kept: list[Watched] = []
    yield kept
    hand_on(kept, spare_pages)


@pytest.fixture
def stay(
    browser: Browser,
    app_server: Server,
    standing: list[Watched],
    spare_pages: list[Watched],
    idle: Callable[[Page], None],
    request: pytest.FixtureRequest,
) -> Iterator[OpenPage]:
    """Goes to an address on one page that stays open: `page = stay("/steps?layer=1")`; `open_page`'s rules hold.

    Its address changes as Back and Forward change it, in the session of the tests before, so this is for claims that
    hold whatever was on the screen; some of what an address leaves out stays, so it names all that the claim needs, but
    for the example's text. What is told of a first visit, of files, or of a text that its address can't carry takes
    `open_page`; and so does a second page beside the first. After a failure the next test gets a new one.
    """
    request.config.stash[RUNNING] = app_server
    before = {app_server: app_server.exceptions()}
    for watched in standing:
        watched.problems.clear()

    def go(address: str = "/", *, dark: bool = False, width: int = 1360, height: int = 860) -> Page:
        if not standing:
            standing.append(spare_page(spare_pages, browser))
            standing[0].host = urlsplit(app_server.address).netloc
            standing[0].dress(dark, width, height).goto(app_server.address + address)
            wait_until_drawn(standing[0].page, idle)
        else:
            # A run that the test before has left going would write its own address over this one.
            standing[0].page.locator(RESTING).wait_for(timeout=90_000)
            was_dark = standing[0].page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            page = standing[0].dress(dark, width, height)
            if dark != was_dark:
                # Run in its new colours first: that run would overtake the one for the new address.
                page.wait_for_timeout(250)
                idle(page)
            page.evaluate(GO, with_text(address))
            idle(standing[0].page)
        assert not uncaught(before), UNCAUGHT
        return standing[0].page

    yield go
    problems = problems_of(standing, before)
    if problems or request.node.stash.get(FAILED, False):
        hand_on(standing, spare_pages)
        standing.clear()
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="session")
def recolour(idle: Callable[[Page], None]) -> Recolour:
    """Has an open page of the app go dark or light with its system: `recolour(page, True)`."""

    def to(page: Page, dark: bool) -> None:
        page.emulate_media(color_scheme="dark" if dark else "light")
        background = "rgb(14, 17, 23)" if dark else "rgb(255, 255, 255)"
        expect(page.get_by_test_id("stApp")).to_have_css("background-color", background)
        page.wait_for_timeout(250)  # milliseconds: until the page has asked to be drawn in its new colours
        idle(page)

    return to


@contextmanager
def unchecked_types() -> Iterator[None]:
    """As outside the tests, where nothing but our own errors stands between a wrong argument and torch."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Nobody checks types while this test runs."""
    with unchecked_types():
        yield


@pytest.fixture(scope="module")
def unchecked_module() -> Iterator[None]:
    """Nobody checks types in a whole file, what it prepares for its tests included."""
    with unchecked_types():
        yield


def pytest_configure() -> None:
    """Ctrl-C means what it means in a terminal: what a shell starts in the background is told to leave it alone."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Check no signatures in rooms that call what the rooms below have checked: it takes up to a quarter of a test."""
    room = item.path.relative_to(ROOT / "tests").parts[0]
    with unchecked_types() if room in UNCHECKED else nullcontext():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note a failure for `stay`, and show what the app printed beside one on its pages."""
    report = yield
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    server = item.config.stash.get(RUNNING, None)
    if report.failed and server and {"open_page", "stay", "app_server"} & set(getattr(item, "fixturenames", ())):
        printed = server.log.read_text(errors="replace").splitlines()[-60:]
        report.sections.append(("the app's log, its end", "\n".join(printed)))
    return report


@pytest.fixture
def together() -> Callable[..., list[object]]:
    """Runs jobs in threads of their own, all started at once: `together(first, second)`. A hang fails the test."""

    def run(*jobs: Callable[[], object], seconds: float = 60) -> list[object]:
        results: list[object] = [None] * len(jobs)
        errors: list[Exception] = []
        start = threading.Barrier(len(jobs))

        def work(number: int) -> None:
            try:
                start.wait(seconds)
                results[number] = jobs[number]()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
        assert not any(thread.is_alive() for thread in threads), f"still running after {seconds} s"
        if errors:
            raise errors[0]
        return results

    return run


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights are read while this test runs."""

    from transformers import PreTrainedModel

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("weights were read")

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", refuse)
