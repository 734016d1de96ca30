"""All heads of a model as a widget."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.roles import ROLES, roles
from attention_viz.errors import TraceError
from attention_viz.explorer.atlas_payload import pack_atlas
from attention_viz.explorer.page import opening_of
from attention_viz.explorer.source import atlas_source
from attention_viz.explorer.widgets.code import component_code
from attention_viz.explorer.widgets.component import ComponentWidget

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["VIEWS", "AtlasWidget"]

_HEIGHT = 420
VIEWS = ("roles", "patterns", "colours")


class AtlasWidget(ComponentWidget):
    """The atlas: one cell per head."""

    def __init__(self, traces: "Sequence[Trace]", stream: str, view: str, metric: str, theme: str) -> None:
        """Open on the first head."""
        trace = traces[0]
        if stream in trace.mixers:
            raise TraceError(f"the atlas of a notebook has layers with a softmax; the {stream} has none")
        tables = head_table(traces, stream), roles(traces, stream)
        self._atlas = pack_atlas(trace, stream, *tables)
        self._view, self._metric, self._role = view, metric, ""
        opening = opening_of(trace, stream=stream, theme=theme)  # pyright: ignore[reportArgumentType] -- it checks
        super().__init__(trace, component_code(atlas_source(_HEIGHT)), theme, opening.selection)

    def __repr__(self) -> str:
        """Return model and head."""
        chosen = self.selection
        return f"<atlas of {self._trace.provenance.model!r}: layer {chosen['layer']}, head {chosen['head']}>"

    def _packed(self) -> bytes:
        return self._atlas

    def _told(self) -> list[dict[str, Any]]:
        (place,) = super()._told()
        shown = {"view": self._view, "metric": self._metric, "role": self._role or None}
        return [{**place, **shown, "linking": [], "links": "", "over": ""}]

    def _press(self, name: str, value: object) -> None:
        if name == "role" and (value in ROLES or not value):
            self._role = str(value or "")
            self._messages = self._told()
