"""Runs, heads and rankings as bytes for the browser."""

import contextlib
import threading
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attention_viz.errors import AttentionVizError
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import ANALYSES, FORWARDS, long_text
from attention_viz.trace.once import once, once_for_each

if TYPE_CHECKING:
    from attention_viz.serving.run import Run

# The heads that were looked at last, of all texts together, in bytes: of 8,000 tokens each is some five megabytes.
_MOST_BYTES = 96_000_000
# The part for heads made ahead of a click, in bytes; the rest is for viewed heads.
_MOST_AHEAD = _MOST_BYTES // 2
# The heads kept with the run of an image or audio, in bytes.
_MOST_WITH_RUN = 24_000_000
# Idle seconds before that begins: a page that reruns computes in several goes.
REST = 0.5
# How many heads a ranking names.
_MOST_RANKED = 10


def payload_of(run: "Run") -> bytes:
    """Return the run's explorer bytes, packed once; a long text's have small pictures."""
    return _packed(run).payload


def long_id_of(run: "Run") -> str | None:
    """Return a long text's id for `pack_head`, else None."""
    return _packed(run).long_id


class _Packed:
    """A run's packed bytes, each locked; doesn't keep the run alive."""

    def __init__(self, run: "Run") -> None:
        self._run = weakref.ref(run)

    @once
    def payload(self) -> bytes:
        from attention_viz.explorer import is_long, pack

        run = self._run()
        assert run is not None, "the caller keeps the run alive"
        with long_text(run.tokens):
            return pack(run.trace, terms=() if is_long(run.trace) else None, findings=run.findings, hosted=True)

    @once
    def long_id(self) -> str | None:
        from attention_viz.explorer import id_of

        return id_of(self.payload)

    @once
    def mixers_id(self) -> str:
        from attention_viz.explorer.mixers import channels_id

        run = self._run()
        assert run is not None, "the caller keeps the run alive"
        return channels_id(run.trace)


@once_for_each
def _packed(run: "Run") -> _Packed:
    return _Packed(run)


def head_of(run: "Run", stream: str, layer: int, head: int) -> bytes | None:
    """Return a head's terms; None if the browser has all weights, as of a mixer."""
    if long_id_of(run) is None or stream in run.trace.mixers:
        return None
    packed = _made(run, stream, layer, head)
    if not run.trace.seen.tensors:
        AHEAD.begin(_HeadInSight(weakref.ref(run), stream, layer, head, len(packed)))
    return packed


def channel_of(run: "Run", stream: str, layer: int, channel: int) -> bytes | None:
    """Return one channel or head of a layer without a softmax; None if the browser has all heads."""
    from attention_viz.explorer.mixers import is_fetched, pack_channel

    mixes = run.mixes(stream) and layer in run.trace.layer_numbers(stream)
    if not mixes or not is_fetched(run.trace, stream, layer):
        return None
    of = _packed(run).mixers_id
    heads = _heads_with(run) if run.trace.seen.tensors else HEADS
    packed = heads.get((of, stream, layer, channel), lambda: pack_channel(run.trace, stream, layer, channel, of) or b"")
    return packed or None


def maps_in(packed: bytes) -> bytes:
    """Return the first bytes, the head's maps, drawable before the rest."""
    from attention_viz.explorer import beginning_of

    return beginning_of(packed)


def ranking_of(run: "Run", asked: dict[str, Any] | None) -> dict[str, Any] | None:
    """Rank heads for the browser's pair; None without a pair of this run."""
    from attention_viz.analysis.search import rank_heads

    if asked is None or (long_id := long_id_of(run)) is None or asked.get("of") != long_id:
        return None
    stream, query, key = run.stream(asked["stream"]), int(asked["query"]), int(asked["key"])
    if stream in run.trace.mixers:
        return None
    with ANALYSES:
        found = rank_heads(run.trace, stream, query, key)[:_MOST_RANKED]
    ranked = [{"layer": layer, "head": head, "weight": weight} for layer, head, weight in found]
    return {"of": long_id, "stream": stream, "query": query, "key": key, "ranked": ranked}


def _made(run: "Run", stream: str, layer: int, head: int) -> bytes:
    long_id = long_id_of(run)
    assert long_id is not None
    # Those of a picture or a sound go with its run: it may be a visitor's own.
    heads = _heads_with(run) if run.trace.seen.tensors else HEADS
    return heads.get((long_id, stream, layer, head), lambda: _pack_head(run, stream, layer, head))


@once_for_each
def _heads_with(_run: "Run") -> "SharedCache[tuple[str, str, int, int], bytes]":
    return SharedCache(_MOST_WITH_RUN, len)


def _pack_head(run: "Run", stream: str, layer: int, head: int) -> bytes:
    from attention_viz.explorer import pack_head

    long_id = long_id_of(run)
    assert long_id is not None
    with ANALYSES, long_text(run.tokens):
        return pack_head(run.trace, stream, layer, head, long_id)


@dataclass(frozen=True)
class _HeadInSight:
    of: "weakref.ref[Run]"  # a text that no page shows any more is freed
    stream: str
    layer: int
    head: int
    size: int

    def beside(self) -> list[int]:
        """Return the layer's other heads, nearest first, within memory."""
        run = self.of()
        heads = () if run is None else range(run.trace.head_count(self.layer, self.stream))
        others = sorted(set(heads) - {self.head}, key=lambda other: abs(other - self.head))
        return others[: _MOST_AHEAD // self.size]


class HeadsAhead:
    """Packs a layer's next heads, a quarter of a second each, while the server is idle."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self._lock = threading.Lock()
        self._looked: _HeadInSight | None = None
        self._running = False
        self._busy = 0.0  # the last time a run was computing

    def begin(self, looked: _HeadInSight) -> None:
        """Continue beside this head."""
        with self._lock:
            self._looked = looked
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="heads ahead", daemon=True).start()

    def _run(self) -> None:
        try:
            while (looked := self._next()) is not None:
                self._make(looked)
        except BaseException:  # the next head that is looked at begins anew
            with self._lock:
                self._running = False
            raise

    def _next(self) -> _HeadInSight | None:
        with self._lock:
            looked, self._looked = self._looked, None
            self._running = looked is not None
            return looked

    def _make(self, looked: _HeadInSight) -> None:
        self._busy = time.monotonic()
        for head in looked.beside():
            if not self._may_go_on() or (run := looked.of()) is None:
                return
            with contextlib.suppress(AttentionVizError):  # shown when the head is opened
                _made(run, looked.stream, looked.layer, head)
            del run

    def _may_go_on(self) -> bool:
        """Wait until the server is idle; False for another head."""
        while self._looked is None:
            now = time.monotonic()
            if max(FORWARDS.computing, ANALYSES.computing) > 1:  # this thread is counted
                self._busy = now
            elif now - self._busy >= REST:
                return True
            time.sleep(REST / 10)
        return False


HEADS: "SharedCache[tuple[str, str, int, int], bytes]" = SharedCache(_MOST_BYTES, len)
AHEAD = HeadsAhead()
