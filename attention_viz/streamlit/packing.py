"""A trace's bytes for the browser, made once per trace and freed with it."""

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from cachetools import LRUCache

from attention_viz.analysis.findings.link import link_of
from attention_viz.analysis.search import rank_heads
from attention_viz.circuits.findings import findings
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.mixers import channels_id, is_fetched, pack_channel
from attention_viz.explorer.payload import id_of, is_long, pack
from attention_viz.explorer.terms import pack_head
from attention_viz.explorer.widgets.head_selection import Selection
from attention_viz.trace.once import once, once_for_each

if TYPE_CHECKING:
    from attention_viz.analysis.findings.finding import Finding
    from attention_viz.trace.trace import Trace

_Made = TypeVar("_Made")
# What one trace's heads, layers and numbers may take, in bytes; the last used stay.
_ROOM = 48_000_000
# How many heads a ranking names.
_MOST_RANKED = 10


class PackedTrace:
    """A trace's bytes; doesn't keep the trace alive."""

    def __init__(self, trace: "Trace") -> None:
        """Begin with nothing made."""
        self._trace = weakref.ref(trace)
        self._made: LRUCache[Hashable, Any] = LRUCache(_ROOM, lambda one: min(_ROOM, 1_000 + _size(one)))
        self._last: tuple[Hashable, Trace] | None = None
        self._lock = threading.RLock()

    @property
    def trace(self) -> "Trace":
        """The trace, which the caller keeps alive."""
        trace = self._trace()
        assert trace is not None
        return trace

    @once
    def findings(self) -> "tuple[Finding, ...]":
        """The findings worth a look, best first."""
        return findings(self.trace)

    @once
    def payload(self) -> bytes:
        """The explorer's bytes; a long text's have small pictures."""
        terms = () if is_long(self.trace) else None
        return pack(self.trace, terms=terms, findings=self.findings, hosted=True)

    @once
    def id(self) -> str:
        """The bytes' name: an equal trace has the same."""
        return blake2b(self.payload, digest_size=16).hexdigest()

    @once
    def long_id(self) -> str | None:
        """A long text's id, else None."""
        return id_of(self.payload)

    @once
    def mixers_id(self) -> str:
        """The id of the layers without a softmax."""
        return channels_id(self.trace)

    def opening(self) -> Selection:
        """Return the best finding's head and pair, else the first head."""
        if self.findings:
            best = self.findings[0]
            return Selection(best.stream, best.layer, best.head, best.query, best.key)
        stream = self.trace.streams[0]
        return Selection(stream, self.trace.layer_numbers(stream)[0], 0)

    def pair(self, shown: Selection) -> tuple[int, int]:
        """Return the chosen pair, else the one that shows the head."""
        if shown.query is not None and shown.key is not None:
            return shown.query, shown.key
        place = shown.stream, shown.layer, shown.head
        return self.made(("pair", *place), lambda: link_of(self.trace, *place, self.findings))

    def made(self, what: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return a value, made once; errors aren't kept."""
        with self._lock:
            if what not in self._made:
                self._made[what] = make()
            return self._made[what]

    def last(self, what: Hashable, run: "Callable[[], Trace]") -> "Trace":
        """Return an edited run; the last one stays, as a run is large."""
        with self._lock:
            if self._last is None or self._last[0] != what:
                self._last = what, run()
            return self._last[1]

    def head(self, shown: Selection) -> bytes | None:
        """Return a long text's head; None if the browser has all."""
        of = self.long_id
        if of is None or shown.stream in self.trace.mixers:
            return None
        place = shown.stream, shown.layer, shown.head
        return self.made(("head", *place), lambda: pack_head(self.trace, *place, of))

    def channel(self, shown: Selection) -> bytes | None:
        """Return one head or channel of a layer without a softmax; None if the browser has all, or can't draw it."""
        trace, place = self.trace, (shown.stream, shown.layer, shown.head)
        if shown.stream not in trace.mixers or not is_fetched(trace, shown.stream, shown.layer):
            return None
        return self.made(("channel", *place), lambda: pack_channel(trace, *place, self.mixers_id))

    def ranking(self, asked: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Rank a long text's heads for the browser's pair; None without a pair of this text."""
        if asked is None or self.long_id is None or asked.get("of") != self.long_id:
            return None
        stream, query, key = (asked.get(name) for name in ("stream", "query", "key"))
        # A browser may send anything.
        if stream not in self.trace.attention_streams or type(query) is not int or type(key) is not int:
            return None
        try:
            found = self.made(
                ("ranking", stream, query, key), lambda: rank_heads(self.trace, stream, query, key)[:_MOST_RANKED]
            )
        except AttentionVizError:
            return None
        ranked = [{"layer": layer, "head": head, "weight": weight} for layer, head, weight in found]
        return {"of": self.long_id, "stream": stream, "query": query, "key": key, "ranked": ranked}


def _size(made: object) -> int:
    if isinstance(made, tuple):
        return sum(map(_size, made))
    return len(made) if isinstance(made, bytes | str) else 100


@once_for_each
def packed(trace: "Trace") -> PackedTrace:
    """Return a trace's bytes, the same for as long as it lives."""
    return PackedTrace(trace)
