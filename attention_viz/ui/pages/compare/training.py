"""A head's metric over training."""

import math
from dataclasses import replace
from typing import cast
from weakref import WeakKeyDictionary

import plotly.graph_objects as go
import streamlit as st

from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.metrics import METRICS
from attention_viz.errors import AttentionVizError
from attention_viz.models import moments
from attention_viz.serving.runs import run_request
from attention_viz.trace.trace import Trace
from attention_viz.ui import widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.compare.choice import COMPARE_CHOICES, CURVES, STEPS, TRAINED, CompareChoice, sides
from attention_viz.ui.parts.drawing import show_problem
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.views import training

# Metrics by head.
_Table = dict[tuple[int, int], dict[str, float]]

# By trace in the app's cache.
_tables: WeakKeyDictionary[Trace, _Table] = WeakKeyDictionary()


def show_curve(choice: CompareChoice, state: State) -> None:
    """Draw the metric's picker, curve and description."""
    widgets.show(
        st.selectbox,
        "Metric",
        of=COMPARE_CHOICES,
        name="metric",
        options={name: METRICS[name].label for name in CURVES},
    )
    place = st.empty()
    try:
        measured = {step: _measured(choice, state, step) for step in STEPS}
    except AttentionVizError as error:
        show_problem(error, place)
        return
    metric = METRICS[choice.metric]
    figure = _figure(choice, measured, metric.label)
    words = _words(choice, measured, metric.label, state)
    with place.container():
        show_picture(figure, "compare-curve", words)
        st.caption(plain(f"{metric.meaning} {words}"))


def _measured(choice: CompareChoice, state: State, step: int) -> float:
    first, _ = sides(replace(choice, moment=step), state)
    trace = run_request(first.request).trace
    if trace not in _tables:
        _tables[trace] = cast("_Table", head_table(trace).to_dict("index"))
    return _tables[trace][state.layer, state.head][choice.metric]


def _figure(choice: CompareChoice, measured: dict[int, float], label: str) -> go.Figure:
    accuracy = cast("dict[int, float]", moments(TRAINED.model)["accuracy"].to_dict())
    return training(measured, accuracy, label, marked=(choice.moment, choice.other_moment), theme=theme_name())


def _words(choice: CompareChoice, measured: dict[int, float], label: str, state: State) -> str:
    if math.isnan(measured[choice.moment]):
        return f"{label}: no token of this text repeats, so there is nothing to measure."
    numbers = ", ".join(f"{measured[step]:.3f} after {step} steps" for step in (choice.moment, choice.other_moment))
    return (
        f"{label} of layer {state.layer}, head {state.head} on this text: {numbers}. The dotted curve is the "
        "share of right answers, measured during training on rows of words that come twice."
    )
