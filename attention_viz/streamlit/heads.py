"""All heads of a trace: the explorer and the atlas."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from attention_viz.analysis.arrived import channels_together
from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import ROLES, roles
from attention_viz.explorer.atlas_payload import HeadTables, pack_atlas
from attention_viz.explorer.source import atlas_source, component_source
from attention_viz.explorer.widgets.head_selection import Selection
from attention_viz.streamlit import mounting
from attention_viz.streamlit.packing import packed
from attention_viz.trace.ahead import unsaid

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

_HEIGHT = 420

_explorer = mounting.register("explorer", component_source())
_atlas = mounting.register("atlas", atlas_source(_HEIGHT))


def explorer(trace: "Trace", *, key: str, selection: Selection | Mapping[str, Any] | None = None) -> Selection:
    """Show the explorer in a Streamlit app, and return the choice.

    It opens on the best finding. The browser gets the trace once; a choice is some hundred bytes. A long text's heads
    come one at a time. Cache the trace with `st.cache_resource`, since its bytes are made once per trace.

    Args:
        trace: from `model.trace`, a file, or any other source.
        key: names this explorer on the page; several need keys of their own.
        selection: what to show, as a `Selection` or by names, such as ``{"layer": 4, "head": 5}``; missing names stay,
            and another head drops the pair. It counts when it changes, so that the reader can go on from there.

    Raises:
        TraceError: `selection` has a stream or layer that the trace lacks.
        ShapeError: `selection` has a head or position that isn't there.
        ValueError: `selection` has an unknown name, or half a pair.
    """
    of, name = packed(trace), mounting.name_of(key)
    mounted = _explorer(key=name, data=of.payload, on_choice_change=mounting.nothing, on_pair_change=mounting.nothing)
    choice = mounting.sent(mounted, "choice")
    shown, seen = mounting.follow(name, trace, of.id, choice, selection, of.opening)
    mounting.tell(name, shown, seen=seen)
    for kind, bytes_of in (("head", of.head), ("one-channel", of.channel)):
        if (part := bytes_of(shown)) is not None:
            mounting.hand_head(f"{name}-{kind}", part)
    if (ranking := of.ranking(mounting.sent(mounted, "pair"))) is not None:
        mounting.tell(name, shown, "ranking", seen=seen, ranking=ranking)
    return shown


def atlas(
    trace: "Trace",
    *,
    key: str,
    selection: Selection | Mapping[str, Any] | None = None,
    stream: str | None = None,
    view: Literal["roles", "patterns"] = "roles",
    metric: str | None = None,
) -> Selection:
    """Show all heads of a trace as one grid, and return the chosen one.

    Args:
        trace: with all layers.
        key: names this atlas on the page.
        selection: as in `explorer`.
        stream: whose heads; by default the first stream's, with the layers without a softmax that read its tokens.
        view: heads by their roles, or as small pictures of their weights.
        metric: a name of `METRICS`, to colour heads by it instead.

    Raises:
        TraceError: the trace has only some layers, or `selection` has a stream or layer that it lacks.
        ShapeError: `selection` has a head or position that isn't there.
        ValueError: unknown view or metric, or an unknown name in `selection`.
    """
    if view not in ("roles", "patterns"):
        raise ValueError(f"unknown view {view!r}; choose roles or patterns")
    if metric is not None and metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; choose {', '.join(METRICS)}")
    of, name = packed(trace), mounting.name_of(key)
    streams = _streams(trace, stream)
    data = of.made(("atlas", streams), lambda: _packed_atlas(trace, streams))
    mounted = _atlas(
        key=name, data=data, height="content", on_choice_change=mounting.nothing, on_role_change=mounting.nothing
    )
    choice = mounting.sent(mounted, "choice")
    # Another head has a pair of its own.
    heard = None if choice is None else {"query": None, "key": None, **choice}
    shown, seen = mounting.follow(name, trace, of.id, heard, selection, of.opening)
    role = mounting.picked(name, getattr(mounted, "role", None), ROLES)
    by = "colours" if metric else view
    links = {"linking": [], "links": "", "over": ""}
    mounting.tell(name, shown, seen=seen, view=by, metric=metric or next(iter(METRICS)), role=role, **links)
    return shown


def _streams(trace: "Trace", stream: str | None) -> tuple[str, ...]:
    """Return the streams of one grid: with and without a softmax, if they read the same tokens."""
    first = trace.streams[0] if stream is None else trace.stream(stream)
    together = trace.mixers and first in (*trace.attention_streams[:1], *trace.mixers)
    return (*trace.attention_streams[:1], *trace.mixers) if together else (first,)


def _packed_atlas(trace: "Trace", streams: tuple[str, ...]) -> bytes:
    together = channels_together(trace) if trace.mixers else trace
    with unsaid():
        tables = {one: HeadTables(head_table(together, one), roles([together], one)) for one in streams}
    first = tables.pop(streams[0])
    return pack_atlas(together, streams[0], *first, tables)
