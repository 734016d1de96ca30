"""The explorer as a widget: its selection is Python's and the reader's."""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import traitlets

from attention_viz.analysis.search import rank_heads
from attention_viz.circuits.findings import findings
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.mixers import channels_id, is_fetched, pack_channel
from attention_viz.explorer.page import Explorer, Opening
from attention_viz.explorer.payload import LaterPictures, id_of, is_long, pack
from attention_viz.explorer.terms import pack_head
from attention_viz.explorer.widgets.code import EXPLORER
from attention_viz.explorer.widgets.selection import checked
from attention_viz.explorer.widgets.widget import SelectingWidget
from attention_viz.trace.ahead import unsaid
from attention_viz.trace.once import once_for_each
from attention_viz.trace.spelling import xml_text

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["ExplorerWidget"]

# With more weights, heads come one by one: these are some three megabytes.
MOST_AT_ONCE = 8_000_000
# How many heads a ranking names.
_MOST_RANKED = 10


class _Later:
    """A trace's pictures and findings, made once for all of its widgets."""

    def __init__(self) -> None:
        self.pictures = LaterPictures()
        self._lock, self._found = threading.Lock(), ""

    def findings(self, trace: "Trace") -> str:
        """Return the findings as JSON, in ASCII: half of a surrogate pair can't be sent otherwise."""
        with self._lock:
            self._found = self._found or json.dumps([asdict(one) for one in findings(trace)])
            return self._found


@once_for_each
def _later(_trace: "Trace") -> _Later:
    return _Later()


class ExplorerWidget(Explorer, SelectingWidget):
    """An explorer with a channel to its notebook."""

    # The opening head's packet: the first picture doesn't wait for an answer.
    _head = traitlets.Bytes().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)

    def __init__(self, trace: "Trace", opening: Opening) -> None:
        """Open on a head."""
        Explorer.__init__(self, trace, opening)
        self._long_id: str | None = None
        self._rest: list[tuple[dict[str, Any], list[bytes]]] = []
        self._working: threading.Thread | None = None
        SelectingWidget.__init__(self, trace, EXPLORER, opening.theme, opening.selection)

    def _prepare(self) -> None:
        trace = self._trace
        if not self._data:
            with unsaid():
                if is_long(trace, MOST_AT_ONCE):
                    # Pictures of all heads and findings take longer than the first picture may.
                    self._data = pack(trace, terms=(), findings=(), hosted=True, pictures=False)
                else:
                    self._data = pack(trace, hosted=True)
            self._long_id = id_of(self._data)
            self._head = self._first_head()

    def _answer(self, question: Mapping[str, Any]) -> None:
        match question["kind"]:
            case "data":
                self._prepare()
            case "rest":
                self._send_rest()
            case "pair":
                self._send_ranking(question)
            case "head":
                self._send_head(question)
            case _:
                pass

    def _send_head(self, question: Mapping[str, Any]) -> None:
        place = {**question, "query": None, "key": None}
        place.pop("kind")
        chosen = checked(self._trace, self._chosen, place)
        stream, layer, head = chosen["stream"], chosen["layer"], chosen["head"]
        try:
            packet = self._packet(stream, layer, head)
        except AttentionVizError as error:
            self.send({"kind": "refused", "words": xml_text(str(error))})
            return
        if packet is not None:
            self.send({"kind": "packet"}, [packet])

    def _first_head(self) -> bytes:
        try:
            return self._packet(*(self._chosen[name] for name in ("stream", "layer", "head"))) or b""
        except AttentionVizError:  # said once the browser asks
            return b""

    def _packet(self, stream: str, layer: int, head: int) -> bytes | None:
        trace = self._trace
        if stream in trace.mixers:
            fetched = is_fetched(trace, stream, layer)
            return pack_channel(trace, stream, layer, head, channels_id(trace)) if fetched else None
        return None if self._long_id is None else pack_head(trace, stream, layer, head, self._long_id)

    def _send_ranking(self, question: Mapping[str, Any]) -> None:
        if self._long_id is None or question["of"] != self._long_id:
            return
        pair = {name: question[name] for name in ("of", "stream", "query", "key")}
        if pair["stream"] in self._trace.mixers:
            return
        found = rank_heads(self._trace, pair["stream"], pair["query"], pair["key"])[:_MOST_RANKED]
        ranked = [{"layer": layer, "head": head, "weight": weight} for layer, head, weight in found]
        self.send({"kind": "ranking", "ranking": {**pair, "ranked": ranked}})

    def _send_rest(self) -> None:
        """Send what a view lacks; make it on a thread, so that heads don't wait for it."""
        if self._long_id is None:
            return
        with self._lock:
            known = list(self._rest)
            if self._working is None:
                self._working = threading.Thread(target=self._make_rest, args=(self._long_id,), daemon=True)
                self._working.start()
        for message, buffers in known:
            self.send(message, buffers)

    def _make_rest(self, long_id: str) -> None:
        trace, (stream, layer) = self._trace, (self._chosen["stream"], self._chosen["layer"])
        places = [(one, number) for one in trace.attention_streams for number in trace.layer_numbers(one)]
        for place in sorted(places, key=lambda place: (place != (stream, layer), place[0] != stream)):
            self._keep({"kind": "packet"}, [_later(trace).pictures.packet(trace, long_id, *place)])
        self._keep({"kind": "findings", "found": _later(trace).findings(trace)}, [])

    def _keep(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        with self._lock:
            self._rest.append((message, buffers))
        self.send(message, buffers)
