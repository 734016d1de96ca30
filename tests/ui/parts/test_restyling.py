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


def most_restyled(trace: Path) -> int:
    """How many elements got their style anew at one time, the most of a trace of the browser's.

    Not of all times together: a busy machine sends what changed in more pieces, each of which is styled by itself.
    """
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    return max(event["args"]["elementCount"] for event in events if "elementCount" in event.get("args", {}))


@pytest.mark.parametrize("path", ["/", "/heads", "/masks", "/steps"])
def test_another_head_gives_few_elements_their_style_anew(
    path: str, stay: OpenPage, browser: Browser, idle: Callable[[Page], None], tmp_path: Path
) -> None:
    page = stay(f"{path}?layer=2&head=0")
    page.evaluate(GO, with_text(f"{path}?layer=2&head=1"))  # what comes once
    idle(page)
    browser.start_tracing(page=page, path=tmp_path / "trace.json", categories=["-*", "devtools.timeline"])
    page.evaluate(GO, with_text(f"{path}?layer=2&head=3"))
    idle(page)
    _ = browser.stop_tracing()
    assert most_restyled(tmp_path / "trace.json") < page.evaluate(COUNT) / 2
