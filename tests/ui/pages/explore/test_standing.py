"""The explorer stays where it is while the page runs again: what is taken away is built anew, and flickers."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.conftest import OpenPage
from tests.pages import wait_until_drawn


class Written:
    """What a server writes on a page, and where; what it has sent before it names by its hash."""

    def __init__(self) -> None:
        self.known = dict[str, Delta]()
        self.deltas = list[tuple[tuple[int, ...], Delta]]()

    def read(self, frame: bytes | str) -> None:
        message = ForwardMsg.FromString(frame if isinstance(frame, bytes) else frame.encode())
        kind, place = message.WhichOneof("type"), tuple(message.metadata.delta_path)
        if kind == "delta":
            self.known[message.hash] = message.delta
            self.deltas.append((place, message.delta))
        elif kind == "ref_hash":
            self.deltas.append((place, self.known.get(message.ref_hash, Delta())))


@pytest.mark.parametrize("address", ["/?text=rain+falls+again", "/cross"])
def test_the_explorer_is_not_taken_away_for_another_head(
    page: OpenPage, idle: Callable[[Page], None], address: str
) -> None:
    written, screen = Written(), page(address)
    screen.on("websocket", lambda socket: socket.on("framereceived", written.read))
    screen.reload()  # with everything at hand, and from the first message on
    wait_until_drawn(screen, idle)
    written.deltas.clear()
    screen.get_by_test_id("explorer-grid").get_by_role("gridcell").nth(1).click()
    expect(screen.get_by_test_id("explorer-readout")).to_have_text("Layer 0 · Head 1")
    idle(screen)
    kinds = [(path, delta.WhichOneof("type"), delta.new_element) for path, delta in written.deltas]
    [explorer] = {
        path for path, _, new in kinds if new.bidi_component.component_name.endswith("attention_viz_explorer")
    }
    # An element at one of these places, such as an empty one, is put there instead of all that stands below it.
    above = {explorer[:length] for length in range(len(explorer))}
    assert not [path for path, kind, _ in kinds if path in above and kind == "new_element"]
    assert [new.WhichOneof("type") for path, _, new in kinds if path == explorer] == ["bidi_component"]
