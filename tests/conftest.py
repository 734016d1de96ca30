"""What tests share: one browser and one server for each worker, pages on which any error counts, types left unchecked.

A page is handed on from test to test, emptied in between: it knows the app's scripts by then, and opens in half the
time.

A test that opens a page carries the marker `browser` by itself: `pytest -m "not browser"` leaves them all out.
"""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import jaxtyping
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from scripts import serve
from scripts.browser import LAUNCH_FLAGS, NONE_FOUND, find

# Opened at /steps, Streamlit first asks for its health below /steps, is told 404, and asks again at the root.
HARMLESS = re.compile(r"/[^/]+/_stcore/(health|host-config)$")

# True once the script has been at rest for a moment: straight after a click it has not begun to run yet.
AT_REST = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    const still = app?.getAttribute("data-test-script-state") === "notRunning";
    window.atRestSince = still ? (window.atRestSince ?? performance.now()) : undefined;
    return still && performance.now() - window.atRestSince > 300;
}"""


class OpenPage(Protocol):
    """Opens a page and waits until it is drawn."""

    def __call__(self, address: str = "/", *, dark: bool = False, width: int = 1360, height: int = 860) -> Page: ...


@dataclass(frozen=True)
class Server:
    """The running app: where it answers, and what it prints."""

    address: str
    log: Path


@dataclass
class Watched:
    """A page in a browser profile of its own, and whatever goes wrong on it."""

    page: Page
    host: str = ""
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self.console)
        self.page.on("pageerror", lambda error: self.problems.append(f"uncaught error: {error}"))
        self.page.on("request", lambda request: self.request(request.url))
        self.page.on("websocket", lambda socket: self.request(socket.url))

    def console(self, message: ConsoleMessage) -> None:
        where = message.location.get("url", "")
        if message.type == "error" and not HARMLESS.search(urlsplit(where).path):
            self.problems.append(f"console error: {message.text} ({where})")

    def request(self, address: str) -> None:
        """Data and blobs are made on the page itself; everything else has to come from where the page came from."""
        parts = urlsplit(address)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self.host:
            self.problems.append(f"asked another host: {address}")

    def empty(self) -> None:
        """Leave nothing of a test for the next one."""
        self.page.unroute_all(behavior="ignoreErrors")
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.context.clear_cookies()
        self.page.goto("about:blank")
        self.problems.clear()


UNCAUGHT = "an exception in the app that nothing caught: see its log"
RUNNING = pytest.StashKey[Server]()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without a screen."""
    found = find()
    if found is None:
        pytest.fail(NONE_FOUND)
    expect.set_options(timeout=20_000)  # milliseconds: a machine that runs several tests at once takes its time
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(LAUNCH_FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def app_server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Server]:
    """The app as `make run` starts it, on a port of its own."""
    port, log = serve.free_port(), tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as file:
        process = serve.start(port, "--server.address=127.0.0.1", log=file)
        try:
            if not serve.wait_until_healthy(process, port):
                pytest.fail(f"The app did not start:\n{log.read_text()}")
            pytestconfig.stash[RUNNING] = Server(f"http://127.0.0.1:{port}", log)
            yield pytestconfig.stash[RUNNING]
        finally:
            serve.stop(process)


@pytest.fixture(scope="session")
def idle() -> Callable[[Page], None]:
    """Waits until the app has done what was asked of it: `idle(screen)` after every click."""

    def wait(page: Page) -> None:
        page.evaluate("window.atRestSince = undefined")
        page.wait_for_function(AT_REST, timeout=90_000)

    return wait


@pytest.fixture(scope="session")
def spare_pages() -> list[Watched]:
    """Empty pages that a test before this one has left."""
    return []


@pytest.fixture
def page(
    browser: Browser, spare_pages: list[Watched], idle: Callable[[Page], None], request: pytest.FixtureRequest
) -> Iterator[OpenPage]:
    """Opens pages, each with nothing of another in it: `screen = page("/steps?layer=1", dark=True, width=390)`.

    An address that begins with a slash is one of the app's; any other (`file:` for an exported explorer) is taken as it
    is. After the test, an error on the console, a request to another host, or an exception in the app fails it.
    """
    opened: list[Watched] = []

    def open_page(address: str = "/", *, dark: bool = False, width: int = 1360, height: int = 860) -> Page:
        in_app = address.startswith("/")
        if in_app:
            address = request.getfixturevalue("app_server").address + address
        opened.append(spare_pages.pop() if spare_pages else Watched(browser.new_context().new_page()))
        opened[-1].host = urlsplit(address).netloc
        screen = opened[-1].page
        screen.emulate_media(color_scheme="dark" if dark else "light")
        screen.set_viewport_size({"width": width, "height": height})
        screen.goto(address)
        if in_app:
            # Before its first run has begun a page is at rest as well.
            screen.get_by_role("textbox", name="Sentence", exact=True).wait_for(timeout=90_000)
            idle(screen)
            assert exceptions_so_far(request.config) == before, UNCAUGHT  # at once: nothing waited for would appear
        return screen

    before = exceptions_so_far(request.config)
    yield open_page
    problems = [problem for watched in opened for problem in watched.problems]
    if exceptions_so_far(request.config) > before:
        problems.append(UNCAUGHT)
    for watched in opened:
        if not watched.page.is_closed():
            watched.empty()
            spare_pages.append(watched)
    assert not problems, "\n".join(problems)


@contextmanager
def unchecked_types() -> Iterator[None]:
    """As outside the tests, where nothing but our own errors stands between a wrong argument and torch."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


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


@contextmanager
def on_one_thread() -> Iterator[None]:
    """While this lasts, torch computes on one thread; each room's conftest says why it wants that."""
    import torch  # not above: tests of scripts and of the architecture run without it

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def exceptions_so_far(config: pytest.Config) -> int:
    """How many exceptions the app has let through since it started."""
    server = config.stash.get(RUNNING, None)
    return server.log.read_text(errors="replace").count("Uncaught app execution") if server else 0


def pytest_configure() -> None:
    """Ctrl-C means what it means in a terminal: what a shell starts in the background is told to leave it alone."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show what the app printed beside a failure on one of its pages."""
    report = yield
    server = item.config.stash.get(RUNNING, None)
    if report.failed and server and {"page", "app_server"} & set(getattr(item, "fixturenames", ())):
        printed = server.log.read_text(errors="replace").splitlines()[-60:]
        report.sections.append(("the app's log, its end", "\n".join(printed)))
    return report
