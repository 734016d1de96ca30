"""A server that has just been started: everybody gets the recorded picture first, and then the live one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import expect
from streamlit.proto.Delta_pb2 import Delta

from benchmarks.visitor import Answer, Visitor
from scripts import serve
from tests.conftest import OpenPage

RECORDED = "Recorded: shown until the model has run here"
VISITORS = 30


@pytest.fixture
def fresh_server() -> Iterator[str]:
    """The address of a server that answers, and has not got far with loading."""
    port = serve.free_port()
    server = serve.start(port, "--server.address=127.0.0.1")
    try:
        assert serve.wait_until_healthy(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.stop(server)


@dataclass
class Watching(Visitor):
    """A visitor who notes the badges and the pictures that came, in order."""

    seen: list[str] = field(default_factory=list[str])

    def _read(self, delta: Delta) -> list[str]:
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "markdown":
            self.seen += [word for word in ("Recorded", "Verified") if word in element.markdown.body]
        if delta.add_block.popover.label.startswith((":green[", ":orange[", ":red[")):
            self.seen.append("Verified")
        if kind == "bidi_component" and element.bidi_component.bytes:
            self.seen.append("picture")
        return super()._read(delta)


async def all_at_once(visitors: list[Watching]) -> list[Answer]:
    """They come together and open the app."""

    async def visit(visitor: Watching) -> Answer:
        await visitor.come()
        answer = await visitor.open()
        await visitor.leave()
        return answer

    return await asyncio.gather(*map(visit, visitors))


def test_thirty_visitors_and_a_browser_get_the_recorded_picture_until_the_live_one_takes_its_place(
    fresh_server: str, open_page: OpenPage
) -> None:
    visitors = [Watching(fresh_server, {}) for _ in range(VISITORS)]
    # In a thread of its own, since the browser's loop is in this one.
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(asyncio.run, all_at_once(visitors))
        page = open_page(f"{fresh_server}/")
        explorer = page.get_by_test_id("explorer")
        # Which of the two a browser sees first is a matter of how busy the machine is; of the visitors below it isn't.
        expect(explorer).to_be_visible(timeout=60_000)
        # The live picture is drawn in the same place, so nothing jumps.
        before = explorer.bounding_box()
        answers = asked.result()
    expect(page.get_by_text("Verified").first).to_be_visible(timeout=120_000)
    expect(page.get_by_text(RECORDED)).to_have_count(0)
    assert before is not None and explorer.bounding_box() == before
    assert [answer.errors for answer in answers] == [()] * VISITORS
    assert all({"picture", "Verified"} <= set(visitor.seen) for visitor in visitors)
    # Who comes last on a busy machine may find the live one there already.
    first = [visitor for visitor in visitors if "Recorded" in visitor.seen]
    assert first
    assert all(visitor.seen.index("Recorded") < visitor.seen.index("Verified") for visitor in first)
