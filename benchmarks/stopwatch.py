"""Measure how long something takes to appear in a browser: from an action to the painted frame that shows it."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Browser, Page

from benchmarks.serving import VIEWPORT

__all__ = ["CLOCK", "LEAST_TOLD", "PAUSE", "Way", "in_app", "open_page"]

# Until the page rests again, in milliseconds.
PAUSE = 250
# The least that the browser's own clock of events tells of, in milliseconds.
LEAST_TOLD = 16

# Looks after each frame has been painted whether what was asked for is there. Before the click, or before the pointer
# comes, `expect` says what to look for; `began` is when the browser received it.
_STOPWATCH = """() => {
    let [began, ready] = [null, null];
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
        if (ready()) [window.took, began, ready] = [performance.now() - began, null, null];
        else requestAnimationFrame(() => channel.port2.postMessage(null));
    };
    let kind = "click";
    const start = (event) => {
        if (ready === null || began !== null || event.type !== kind) return;
        began = event.timeStamp;
        requestAnimationFrame(() => channel.port2.postMessage(null));
    };
    for (const one of ["click", "pointerover", "pointermove", "keydown"]) document.addEventListener(one, start, true);
    window.expect = (condition, event = "click") => { window.took = null; [ready, kind] = [condition, event]; };
}"""

# How long the browser says that events took, from the pointer's coming to the screen.
CLOCK = """(least) => {
    window.shown = [];
    const told = (list) => list.getEntries().filter(({name}) => name === "pointerover");
    const note = (list) => window.shown.push(...told(list).map(({duration}) => duration));
    new PerformanceObserver(note).observe({type: "event", durationThreshold: least});
}"""


@dataclass(frozen=True)
class Way:
    """A ready page, and the action that shows another thing: that with a number, or the next one."""

    page: Page
    choose: Callable[[int], None]
    shown: list[float] | None = None  # beside it, until the screen shows it

    def milliseconds(self, number: int) -> float:
        """Return the time from the click or hover to the painted frame that shows it."""
        self.page.bring_to_front()
        self.choose(number)
        took = self.page.wait_for_function("() => window.took", timeout=30_000).json_value()
        self.page.wait_for_timeout(PAUSE)
        if self.shown is not None:
            self.shown.append(max([LEAST_TOLD, *self.page.evaluate("() => window.shown.splice(0)")]))
        return float(took)


def open_page(browser: Browser, address: str) -> Page:
    """Open a URL in its own window, with the stopwatch in it."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.add_init_script(f"({_STOPWATCH})()")
    page.goto(address)
    return page


def in_app(page: Page) -> Page:
    """Open a page of the app, and wait until its badge says verified."""
    page.get_by_role("button", name="Verified").wait_for(timeout=120_000)
    return page
