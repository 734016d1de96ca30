"""What a click has the browser do: only what changed gets its style anew, not all that is on the page.

A rule that ends in `*` or begins in `:has()` or `[class…]` can have the browser forget the style of everything below an
element whenever anything in it changes. Streamlit changes every element of a page twice a run, so it all adds up.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.pages import GO, OpenPage, with_text

# All elements of a page, components' own among them.
COUNT = """() => {
    const count = (root) => [...root.querySelectorAll("*")].reduce(
        (sum, one) => sum + 1 + (one.shadowRoot ? count(one.shadowRoot) : 0), 0);
    return count(document);
}"""


def restyled(trace: Path) -> int:
    """How many elements got their style anew while a trace of the browser's was taken, those of each time added up."""
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    counts = [event["args"]["elementCount"] for event in events if "elementCount" in event.get("args", {})]
    assert counts, "a click that changes no style"
    return sum(counts)


# On Heads a chart is drawn anew as well, part by part.
@pytest.mark.parametrize(("path", "times"), [("/", 1), ("/heads", 2), ("/masks", 1), ("/steps", 1)])
def test_another_head_gives_few_elements_their_style_anew(
    path: str, times: int, page: OpenPage, browser: Browser, idle: Callable[[Page], None], tmp_path: Path
) -> None:
    screen = page(f"{path}?layer=2&head=0")
    screen.evaluate(GO, with_text(f"{path}?layer=2&head=1"))  # what comes once
    idle(screen)
    browser.start_tracing(page=screen, path=tmp_path / "trace.json", categories=["-*", "devtools.timeline"])
    screen.evaluate(GO, with_text(f"{path}?layer=2&head=3"))
    idle(screen)
    _ = browser.stop_tracing()
    assert restyled(tmp_path / "trace.json") < times * screen.evaluate(COUNT)
