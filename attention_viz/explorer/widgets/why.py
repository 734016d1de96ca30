"""What contributed to a number, as a widget."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attention_viz.circuits.asked import Logit, Score
from attention_viz.circuits.opened import check_model
from attention_viz.explorer.page import opening_of
from attention_viz.explorer.source import embedded, why_source
from attention_viz.explorer.why_payload import stream_of, streams_beside
from attention_viz.explorer.widgets.code import component_code
from attention_viz.explorer.widgets.component import ComponentWidget
from attention_viz.explorer.widgets.named_number import pack_number

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Trace

__all__ = ["WhyWidget"]


class WhyWidget(ComponentWidget):
    """The parts of a score or a logit."""

    def __init__(self, model: "AttentionModel", trace: "Trace", of: Score | Logit, side: str, theme: str) -> None:
        """Open on the head that contributed most."""
        check_model(model, trace)
        self._of = of
        self._number, (stream, layer, head) = pack_number(trace, of, side)
        opening = opening_of(trace, stream=stream, layer=layer, head=head, theme=theme)  # pyright: ignore[reportArgumentType] -- it checks
        super().__init__(trace, component_code(embedded(why_source())), theme, opening.selection)

    def __repr__(self) -> str:
        """Return model and number."""
        return f"<why of {self._trace.provenance.model!r}: {self._of}>"

    def _packed(self) -> bytes:
        return self._number

    def _told(self) -> list[dict[str, Any]]:
        (place,) = super()._told()
        return [{**place, "by": "wrote"}]

    def _choose(self, choice: Mapping[str, Any]) -> None:
        # The map may have the layers of several streams.
        streams = streams_beside(self._trace, self._chosen["stream"])
        super()._choose({**choice, "stream": stream_of(self._trace, streams, choice["layer"])})
