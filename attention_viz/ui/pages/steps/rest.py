"""The rest of a layer after its attention or mixer, sent to the pipeline once it is there."""

from attention_viz.circuits.layers.ending import ending
from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.explorer import rest_source
from attention_viz.explorer.pipeline_payload import rest_id, rows_shown
from attention_viz.explorer.rest_payload import pack_note, pack_rest
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import ANALYSES
from attention_viz.serving.runs import Run
from attention_viz.steps.head import OpenHead
from attention_viz.steps.mixing import MixerHead
from attention_viz.ui import widgets

# What all visitors' packed rests may take together, in bytes.
_ROOM = 20_000_000
_packed = SharedCache[tuple[str, tuple[int, ...]], bytes](_ROOM, len)

_rest = widgets.component("pipeline_rest", *rest_source())


def show_rest(run: Run, opened: OpenHead | MixerHead, query: int) -> None:
    """Send the layer's rest, from the run that made the trace."""
    _rest(key="steps-rest", data=_rest_of(run, opened, query))


def _rest_of(run: Run, opened: OpenHead | MixerHead, query: int) -> bytes:
    of, rows = rest_id(opened), rows_shown(opened, query)
    if isinstance(opened, OpenHead) and opened.switched:
        return pack_note(of, f"Not computed with {', '.join(opened.switched)}: only this head was computed again.")
    try:
        return _packed.get((of, tuple(rows)), lambda: _pack(run, opened, of, rows))
    except TraceError:
        return pack_note(of, "The rest of the layer needs the model, and this trace comes without one.")
    except AttentionVizError as error:
        message = str(error)
        return pack_note(of, message[:1].upper() + message[1:])


def _pack(run: Run, opened: OpenHead | MixerHead, of: str, rows: list[int]) -> bytes:
    trace, stream = run.trace, opened.stream
    with ANALYSES:
        flow = layer_flow(trace, opened.layer, stream)
        return pack_rest(of, flow, ending(trace, stream, rows), rows, trace.layer_numbers(stream), opened.layer)
