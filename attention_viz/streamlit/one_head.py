"""One head step by step, and the parts that contributed to a number."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from attention_viz.circuits.asked import Logit, Score
from attention_viz.circuits.layers.ending import ending
from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.explorer.pipeline_payload import pack_pipeline, rest_id, rows_shown
from attention_viz.explorer.rest_payload import pack_note, pack_rest
from attention_viz.explorer.source import pipeline_source, why_source
from attention_viz.explorer.widgets.head_selection import Selection
from attention_viz.explorer.widgets.named_number import pack_number
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.steps.mixing import MixerHead, open_mixer
from attention_viz.streamlit import mounting
from attention_viz.streamlit.packing import packed

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

# How many of a score's terms are named, as on the app's page.
_TERMS = 6

_pipeline = mounting.register("pipeline", pipeline_source())
_why = mounting.register("why", why_source())


def steps(trace: "Trace", *, key: str, selection: Selection | Mapping[str, Any] | None = None) -> Selection:
    """Show one head as a pipeline, from a pair of tokens to its weight and output, and return the pair.

    The reader chooses the pair, you choose the head: `steps(trace, key="steps", selection=explorer(trace, key="all"))`
    follows an explorer. It opens on the best finding.

    Args:
        trace: from `model.trace`, or from a file, which has no more than the head's own layer.
        key: names this pipeline on the page.
        selection: as in `explorer`.

    Raises:
        TraceError: `selection` has a stream or layer that the trace lacks.
        ShapeError: `selection` has a head or position that isn't there, or the head has no steps.
        ValueError: `selection` has an unknown name, or half a pair.
    """
    of, name = packed(trace), mounting.name_of(key)
    # What the reader chose is known before the head is drawn, which depends on it.
    before = mounting.stored(name, "choice")
    shown, seen = mounting.follow(name, trace, of.id, before, selection, of.opening)
    query, at = of.pair(shown)
    shown = replace(shown, query=query, key=at)
    place = trace, shown.layer, shown.head, shown.stream
    opened = open_mixer(*place) if shown.stream in trace.mixers else open_head(*place)
    _ = _pipeline(key=name, data=pack_pipeline(opened, query, at), height="content", on_choice_change=mounting.nothing)
    mounting.tell(name, shown, seen=seen, terms=_TERMS)
    rows = tuple(rows_shown(opened, query))
    rest = of.made(("rest", shown.stream, shown.layer, rows), lambda: _rest_of(opened, list(rows)))
    mounting.hand_rest(f"{name}-rest", rest)
    return shown


def _rest_of(opened: OpenHead | MixerHead, rows: list[int]) -> bytes:
    of, trace, stream = rest_id(opened), opened.trace, opened.stream
    try:
        flow = layer_flow(trace, opened.layer, stream)
        return pack_rest(of, flow, ending(trace, stream, rows), rows, trace.layer_numbers(stream), opened.layer)
    except TraceError:
        return pack_note(of, "The rest of the layer needs the model, and this trace comes without one.")
    except AttentionVizError as error:
        message = str(error)
        return pack_note(of, message[:1].upper() + message[1:])


def why(
    trace: "Trace",
    of: Score | Logit,
    *,
    key: str,
    selection: Selection | Mapping[str, Any] | None = None,
    side: Literal["key", "query"] = "key",
) -> Selection:
    """Show what contributed to a score or a logit, and return the chosen head.

    Args:
        trace: from `model.trace`; a file has no model to read.
        of: the number. A `Logit` without `against` is compared with the likeliest other word.
        key: names this component on the page.
        selection: as in `explorer`; by default the head that contributes most.
        side: of a `Score`, whether its key or its query is explained.

    Raises:
        TraceError: the trace comes without its model, or `selection` has a stream or layer that it lacks.
        ShapeError: a layer, head, position or token doesn't exist.
        UnusableText: the token's text isn't exactly one token.
        UnsupportedModel: the model can't be decomposed.
        ValueError: unknown side, or an unknown name in `selection`.
    """
    if side not in ("key", "query"):
        raise ValueError(f"unknown side {side!r}; choose key or query")
    bytes_of, name = packed(trace), mounting.name_of(key)
    data, best = bytes_of.made(("why", of, side), lambda: pack_number(trace, of, side))
    mounted = _why(key=name, data=data, height="content", on_choice_change=mounting.nothing)
    choice = mounting.sent(mounted, "choice")
    heard = None if choice is None else {"query": None, "key": None, **choice}
    shown, seen = mounting.follow(
        name, trace, (bytes_of.id, of, side), heard, selection, lambda: Selection(*best), stays=False
    )
    mounting.tell(name, shown, seen=seen, by="wrote")
    return shown
