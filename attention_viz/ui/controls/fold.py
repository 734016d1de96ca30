"""On phones, the row folded into one line that opens."""

from collections.abc import Collection
from importlib import resources

from streamlit.components import v2 as components

from attention_viz.explorer import script
from attention_viz.serving import permissions as allowed
from attention_viz.trace.shown.kind import InputKind
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls.chips import chips
from attention_viz.ui.controls.model import name_in_file
from attention_viz.ui.controls.thing import reads, thing_label
from attention_viz.ui.parts.open_trace import opened
from attention_viz.views.style.wording import one_line

__all__ = ["show_fold"]

_LONGEST_TEXT, _LONGEST_MODEL = 80, 24

# Registered once, when the module is imported: a component's name stands for its code from then on.
_css = resources.files("attention_viz").joinpath("explorer", "static", "page", "fold.css").read_text("utf-8")
_fold = components.component(
    "attention_viz_fold",
    js=script("page/fold.js"),
    css=_css,
)


def show_fold(what: str, place: str = "", leave_out: Collection[str] | None = None) -> None:
    """Draw the line, hidden by CSS if the row fits.

    Args:
        place: by default model, layer and head.
        leave_out: useless changed options; None for all.
    """
    state = visit.shared()
    place = place or f"{_model(state)} · {state.layer}·{state.head}"
    text = one_line(_read(state), _LONGEST_TEXT)
    changed = "" if leave_out is None else ", ".join(chips(state, leave_out).values())
    _fold(key="fold", data={"text": text, "place": place, "what": what, "changed": changed})


def _model(state: State) -> str:
    run = opened()
    return (
        one_line(allowed.display_name(state.model), _LONGEST_MODEL)
        if run is None
        else name_in_file(run.trace, _LONGEST_MODEL)
    )


def _read(state: State) -> str:
    return state.text if reads(state) == InputKind.TEXT else thing_label(state)
