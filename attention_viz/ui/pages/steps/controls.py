"""The Step by step page's pickers."""

from typing import Any

import streamlit as st
from torch import Tensor

from attention_viz.scratch.variants import VARIANTS
from attention_viz.serving.own import LARGEST_WIDTH
from attention_viz.steps.head import PRECISIONS, OpenHead
from attention_viz.steps.steps import NOTATIONS, STEPS, Step, steps_of
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.pages.steps.page import MOST_TERMS, PIPELINE, STEP_CHOICES, is_pipeline
from attention_viz.ui.parts.selection import take_pair
from attention_viz.ui.selection import SHARED
from attention_viz.views.style.wording import shortened

_SCALE_LABELS = {"d_k": "√d_k", "d_model": "√d_model", "none": "none"}
_NOTATION_LABELS = {"rows": "tokens as rows (Q Kᵀ)", "columns": "tokens as columns (Qᵀ K)", "keys down": "K Qᵀ"}

# The parameter for the position on an axis of tokens; any other axis uses the dimension.
_NAMES = {"token": "query", "query": "query", "key": "key"}
_TOKEN_WIDTH, _DIMENSION_WIDTH = 140, 130
# The key of the slider for the width of a head.
_WIDTH = "steps-d_k"


def possible(as_run: OpenHead) -> dict[str, Any]:
    """Return choices by name, the model's own way first."""
    own = str(as_run.attention.query.dtype).removeprefix("torch.")
    queries, keys = as_run.attention.shape
    widest = max(as_run.d_model or 0, as_run.d_k, as_run.attention.value.shape[-1])
    return {
        "step": [PIPELINE, *steps_of(as_run)],
        "query": range(queries),
        "key": range(keys),
        "dimension": range(widest),
        "scale": _scales(as_run),
        "precision": ["model", *(kind for kind in PRECISIONS if kind != own)],
        "notation": list(NOTATIONS),
        "variant": variants(),
        "all": ["no", "yes"],
    }


def variants() -> list[str]:
    """Return our own module's attention variants, itself first."""
    return ["multi", *(name for name in VARIANTS if name != "multi")]


def _scales(as_run: OpenHead) -> list[str]:
    known = ["model", "d_k", "d_model", "none"]
    return [name for name in known if not (name == "d_k" and _usual(as_run)) and (name != "d_model" or as_run.d_model)]


def _usual(as_run: OpenHead) -> bool:
    """Return whether the model scales by 1/√d_k."""
    return abs(as_run.attention.scale * as_run.d_k**0.5 - 1) < 1e-6


def as_the_model(as_run: OpenHead) -> dict[str, str]:
    """Return the meaning of "model", by switch name."""
    precision = str(as_run.attention.query.dtype).removeprefix("torch.")
    return {"precision": precision} | ({"scale": "d_k"} if _usual(as_run) else {})


def show_step_list(steps: dict[str, Step]) -> None:
    """List the steps."""
    names = [PIPELINE, *steps]
    with st.container(key="steps-walk", horizontal=True, vertical_alignment="center", gap="small"):
        widgets.show(
            st.segmented_control,
            "Step",
            of=STEP_CHOICES,
            name="step",
            options={name: steps[name].label if name in steps else name.capitalize() for name in names},
            required=True,
            wrap=True,
            label_visibility="collapsed",
        )
        widgets.show_switch("All at once", STEP_CHOICES, "all", "steps-all-at-once")


def show_switches(options: dict[str, Any], as_run: OpenHead, state: State, *, own: bool) -> None:
    """Draw the switches; our own module has variant and d_k, too."""
    labels: dict[str, dict[str, str]] = {
        "scale": _SCALE_LABELS | {"model": "√d_k" if _usual(as_run) else "the model's"},
        "notation": _NOTATION_LABELS,
        "precision": {"model": as_the_model(as_run)["precision"]},
        **({"variant": VARIANTS} if own else {}),
    }
    with st.container(key="steps-options"):
        for name, wording in labels.items():
            widgets.show(
                st.selectbox,
                name.capitalize(),
                of=STEP_CHOICES,
                name=name,
                options={one: wording.get(one, one) for one in options[name]},
            )
        widgets.show(
            st.number_input,
            "Named terms",
            1,
            MOST_TERMS,
            of=STEP_CHOICES,
            name="terms",
            help="How many of a score's terms are named, largest first.",
        )
        if own:
            _show_width(state)


def _show_width(state: State) -> None:
    """Draw the head width: the module's is heads times as large."""
    single = visit.chosen(STEP_CHOICES).variant != "multi"
    step, heads = (state.heads, 1) if single else (1, state.heads)
    largest = LARGEST_WIDTH // heads // step * step
    widgets.preset(_WIDTH, min(largest, max(step, state.d_model // heads // step * step)))
    if largest > step:
        st.slider("d_k", step, largest, step=step, key=_WIDTH, on_change=_take_width, args=(heads,))


def show_cell_pickers(as_run: OpenHead) -> None:
    """Draw the cell's row and column pickers."""
    chosen = visit.chosen(STEP_CHOICES)
    if is_pipeline(chosen) or chosen.all == "yes":
        return
    step = STEPS[chosen.step]
    matrix = step.function(as_run)
    if matrix is None:
        return
    with st.container(key="steps-switches", horizontal=True, vertical_alignment="bottom", gap="small"):
        _show_axes(step, matrix, as_run)


def _show_axes(step: Step, matrix: Tensor, as_run: OpenHead) -> None:
    for axis, count in zip(step.axes, matrix.shape, strict=True):
        show_picker(axis, as_run.trace, as_run.stream, count)


def chosen_cell(step: Step) -> tuple[int, int]:
    """Return the open cell's row and column, with tokens as rows."""
    row, column = (getattr(visit.chosen(STEP_CHOICES), _NAMES.get(axis, "dimension")) for axis in step.axes)
    return row, column


def show_picker(axis: str, trace: Trace, stream: str, count: int) -> None:
    """Draw the picker of one axis: a token or a dimension."""
    if axis in _NAMES:
        tokens = trace.key_tokens(stream) if axis == "key" else trace.query_tokens(stream)
        widgets.show(
            st.selectbox,
            f"{axis.capitalize()} token" if axis != "token" else "Token",
            of=STEP_CHOICES,
            name=_NAMES[axis],
            options={at: f"{at} · {shortened(tokens.names[at])}" for at in range(count)},
            width=_TOKEN_WIDTH,
            then=_share_pair,
        )
        return
    if visit.chosen(STEP_CHOICES).dimension >= count:
        visit.fill(STEP_CHOICES, dimension=count - 1)
    widgets.show(st.number_input, "Dimension", 0, count - 1, of=STEP_CHOICES, name="dimension", width=_DIMENSION_WIDTH)


def take_cell(axes: tuple[str, str], cell: tuple[int, int]) -> None:
    """Open the clicked cell."""
    for axis, place in zip(axes, cell, strict=True):
        visit.pick(STEP_CHOICES, **{_NAMES.get(axis, "dimension"): place})
    _share_pair()


def _share_pair() -> None:
    choice = visit.chosen(STEP_CHOICES)
    take_pair(choice.query, choice.key)


def _take_width(heads: int) -> None:
    visit.pick(SHARED, d_model=widgets.content(_WIDTH) * heads)
