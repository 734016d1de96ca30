"""The rest of a layer after its attention, sent to the pipeline once it is there."""

import threading
from collections import OrderedDict

from attention_viz.circuits.layers.ending import ending
from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.errors import AttentionVizError, TraceError
from attention_viz.explorer import rest_source
from attention_viz.explorer.pipeline_payload import rest_id, rows_shown
from attention_viz.explorer.rest_payload import pack_note, pack_rest
from attention_viz.serving.door import ANALYSES
from attention_viz.serving.runs import Run
from attention_viz.steps.head import OpenHead
from attention_viz.ui import widgets

# So many packed rests are remembered, for all visitors.
_MOST = 16
_packed = OrderedDict[tuple[str, tuple[int, ...]], bytes]()
_lock = threading.Lock()

_rest = widgets.component("pipeline_rest", *rest_source())


def show_rest(run: Run, opened: OpenHead, query: int) -> None:
    """Send the layer's rest, from the run that made the trace."""
    _rest(key="steps-rest", data=_rest_of(run, opened, query))


def _rest_of(run: Run, opened: OpenHead, query: int) -> bytes:
    of, rows = rest_id(opened), rows_shown(opened, query)
    if opened.switched:
        return pack_note(of, f"Not computed with {', '.join(opened.switched)}: only this head was computed again.")
    key = of, tuple(rows)
    with _lock:
        known = _packed.get(key)
    if known is not None:
        return known
    try:
        with ANALYSES:
            found = _pack(run, opened, of, rows)
    except TraceError:
        return pack_note(of, "The rest of the layer needs the model, and this trace comes without one.")
    except AttentionVizError as error:
        message = str(error)
        return pack_note(of, message[:1].upper() + message[1:])
    with _lock:
        _packed[key] = found
        while len(_packed) > _MOST:
            _packed.popitem(last=False)
    return found


def _pack(run: Run, opened: OpenHead, of: str, rows: list[int]) -> bytes:
    trace, stream = run.trace, opened.stream
    flow = layer_flow(trace, opened.layer, stream)
    return pack_rest(of, flow, ending(trace, stream, rows), rows, trace.layer_numbers(stream), opened.layer)
