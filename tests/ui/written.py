"""What the server writes on a page, as the browser hears of it."""

from collections.abc import Callable

from playwright.sync_api import Page
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.pages import wait_until_drawn

__all__ = ["Written", "written_on"]


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

    def stays(self, component: str) -> bool:
        """Whether a component is written anew in its place, once, and nothing instead of what stands above it.

        Args:
            component: how its name ends.
        """
        kinds = [(path, delta.WhichOneof("type"), delta.new_element) for path, delta in self.deltas]
        [place] = {path for path, _, new in kinds if new.bidi_component.component_name.endswith(component)}
        # An element at one of these places, such as an empty one, is put there instead of all that stands below it.
        above = {place[:length] for length in range(len(place))}
        instead = [path for path, kind, _ in kinds if path in above and kind == "new_element"]
        return not instead and [new.WhichOneof("type") for path, _, new in kinds if path == place] == ["bidi_component"]


def written_on(page: Page, idle: Callable[[Page], None]) -> Written:
    """All that is written on a page from now on, with everything at hand: it is opened again, and then forgotten."""
    written = Written()
    page.on("websocket", lambda socket: socket.on("framereceived", written.read))
    page.reload()  # what stands there already is named by hashes, to be known
    wait_until_drawn(page, idle)
    written.deltas.clear()
    return written
