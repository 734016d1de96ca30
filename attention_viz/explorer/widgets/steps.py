"""One head, step by step, as a widget."""

from typing import TYPE_CHECKING, Any

from attention_viz.explorer.page import Opening
from attention_viz.explorer.pipeline_payload import pack_pipeline, rest_id
from attention_viz.explorer.rest_payload import pack_note
from attention_viz.explorer.source import pipeline_source
from attention_viz.explorer.widgets.code import component_code
from attention_viz.explorer.widgets.component import ComponentWidget
from attention_viz.steps.head import open_head
from attention_viz.steps.mixing import open_mixer

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["StepsWidget"]

# How many products of a score have a name.
_TERMS = 6
_REST = "For the rest of the layer, open Step by step in the app."


class StepsWidget(ComponentWidget):
    """The pipeline of one head for a pair of tokens."""

    def __init__(self, trace: "Trace", opening: Opening) -> None:
        """Open on a pair."""
        super().__init__(trace, component_code(pipeline_source()), opening.theme, opening.selection)

    def __repr__(self) -> str:
        """Return model, head and pair."""
        chosen, pair = self.selection, "query {}, key {}".format(*self._pair())
        return f"<steps of {self._trace.provenance.model!r}: layer {chosen['layer']}, head {chosen['head']}, {pair}>"

    def _pair(self) -> tuple[int, int]:
        """Return the chosen pair, else the last query with its heaviest key."""
        stream, layer, head, query, key = self._chosen.values()
        if query is not None:
            return query, key
        weights = self._trace.attention(layer, stream).head(head).rows([-1 % len(self._trace.query_tokens(stream))])
        return len(self._trace.query_tokens(stream)) - 1, int(weights.weights[0].abs().argmax())

    def _packed(self) -> bytes:
        stream, layer, head = (self._chosen[name] for name in ("stream", "layer", "head"))
        mixes = stream in self._trace.mixers
        opened = (open_mixer if mixes else open_head)(self._trace, layer, head, stream)
        self._rest = pack_note(rest_id(opened), _REST)
        return pack_pipeline(opened, *self._pair())

    def _told(self) -> list[dict[str, Any]]:
        (place,) = super()._told()
        query, key = self._pair()
        return [{**place, "query": query, "key": key, "terms": _TERMS}]
