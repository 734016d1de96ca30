"""What tests know of pages: how one is opened, given another address, watched, and handed on to the next test."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, quote_plus, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Download, Locator, Page

# Notes when the page last asked the app for something, and when it last heard from it.
LISTEN = """(() => {
    window.asked = window.heard = 0;
    const send = WebSocket.prototype.send;
    const followed = new WeakSet();
    WebSocket.prototype.send = function (data) {
        if (!followed.has(this)) this.addEventListener("message", () => { window.heard = performance.now(); });
        followed.add(this);
        window.asked = performance.now();
        send.call(this, data);
    };
})()"""

# True once the script has been at rest for a moment. Straight after a click the page has not asked yet, and straight
# after it has asked the script has not begun to run; frames are counted, too, since a busy machine draws few of them.
AT_REST = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    const now = performance.now();
    const answered = !(window.asked > window.heard) || now - window.asked > 10_000;
    const still = answered && app?.getAttribute("data-test-script-state") === "notRunning";
    window.atRestSince = still ? (window.atRestSince ?? now) : undefined;
    window.atRestFrames = still ? (window.atRestFrames ?? 0) + 1 : 0;
    return still && now - window.atRestSince > 250 && window.atRestFrames > 4;
}"""


# What pages open on when nothing was chosen.
EXAMPLE = "The bank of the river was flooded"
EXAMPLES = {"/cross": "the tired girl finds the red key"}

RESTING = '[data-testid="stApp"][data-test-script-state="notRunning"]'

# As Back and Forward do it: the page stays, its address becomes another, and the app hears of it.
GO = """address => {
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate", {state: null}));
}"""


# From the second frame on: by then what was done to the place has been drawn.
IN_FRAMES = """place => new Promise(done => {
    const answers = [];
    const look = () => answers.push(SAID) < 8 ? requestAnimationFrame(look) : done(answers);
    requestAnimationFrame(() => requestAnimationFrame(look));
})"""


def in_frames(place: Locator, said: str) -> list[Any]:
    """What `said`, JavaScript about `place`, comes to in each of eight frames: where it flickers, not the same."""
    answers: list[Any] = place.evaluate(IN_FRAMES.replace("SAID", said))
    return answers


def open_menu(page: Page, name: str) -> Locator:
    """What stands behind a button of the row, such as "Export"; it may be open already."""
    inside = page.get_by_test_id("stPopoverBody")
    if not inside.is_visible():
        page.get_by_role("button", name=name, exact=True).click()
    return inside


def exported(page: Page, label: str, timeout: float = 30_000) -> Download:
    """The file that a button behind "Export" hands out; the menu is closed again."""
    button = open_menu(page, "Export").get_by_role("button", name=label)
    with page.expect_download(timeout=timeout) as download:
        button.click()
    page.keyboard.press("Escape")
    return download.value


class OpenPage(Protocol):
    """Opens a page and waits until it is drawn."""

    def __call__(self, address: str = "/", *, dark: bool = False, width: int = 1360, height: int = 860) -> Page: ...


Recolour = Callable[[Page, bool], None]


@dataclass(frozen=True)
class Server:
    """The running app: where it answers, and what it prints."""

    address: str
    log: Path

    def exceptions(self) -> int:
        """How many exceptions the app has let through since it started."""
        return self.log.read_text(errors="replace").count("Uncaught app execution")


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
        if message.type == "error":
            self.problems.append(f"console error: {message.text} ({where})")

    def request(self, address: str) -> None:
        """Data and blobs are made on the page itself; everything else has to come from where the page came from."""
        parts = urlsplit(address)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self.host:
            self.problems.append(f"asked another host: {address}")

    def dress(self, dark: bool, width: int, height: int) -> Page:
        """The page in the colours and the size that a test asks for, with motion, which one before may have stopped."""
        self.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="no-preference")
        self.page.set_viewport_size({"width": width, "height": height})
        return self.page

    def empty(self) -> None:
        """Leave nothing of a test for the next one."""
        self.page.unroute_all(behavior="ignoreErrors")
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.context.clear_cookies()
        self.page.goto("about:blank")
        self.problems.clear()


UNCAUGHT = "an exception in the app that nothing caught: see its log"


def with_text(address: str) -> str:
    """An address that names a text: without one an open page keeps its own, which may be too long for an address."""
    parts = urlsplit(address)
    if not parts.query or "text" in parse_qs(parts.query, keep_blank_values=True):
        return address
    return f"{address}&text={quote_plus(EXAMPLES.get(parts.path, EXAMPLE))}"


def spare_page(spare_pages: list[Watched], browser: Browser) -> Watched:
    """A page that is empty: one that was handed on, or else a new one."""
    if spare_pages:
        return spare_pages.pop()
    page = browser.new_context().new_page()
    page.add_init_script(LISTEN)
    return Watched(page)


def hand_on(opened: list[Watched], spare_pages: list[Watched]) -> None:
    """Empty pages for the tests to come."""
    for watched in opened:
        if not watched.page.is_closed():
            watched.empty()
            spare_pages.append(watched)


def wait_until_drawn(page: Page, idle: Callable[[Page], None]) -> None:
    """Wait for a page that has just been opened: before its first run has begun it is at rest as well."""
    box = page.get_by_role("textbox", name="Sentence", exact=True)
    # Presented, it has none; on a phone it stands behind a line.
    others = page.get_by_role("button", name=re.compile(r"^Sentence(, model, layer and head| and lesson)"))
    # A picture or a sound stands in its place.
    field = page.locator(".st-key-texts").get_by_test_id("stPopoverButton")
    box.or_(others).or_(field).filter(visible=True).first.wait_for(timeout=90_000)
    idle(page)


def uncaught(before: dict[Server, int]) -> bool:
    """Whether an app has let more exceptions through than it had before."""
    return any(server.exceptions() > count for server, count in before.items())


def problems_of(opened: list[Watched], before: dict[Server, int]) -> list[str]:
    """Whatever went wrong on pages, and in the apps behind them."""
    problems = [problem for watched in opened for problem in watched.problems]
    return [*problems, UNCAUGHT] if uncaught(before) else problems
