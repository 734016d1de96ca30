"""Every picture, by name: adding one is a function in this folder and a line here."""

from collections.abc import Callable

import plotly.graph_objects as go

from attention_viz.views.matrix import heatmap

__all__ = ["VIEWS"]

VIEWS: dict[str, Callable[..., go.Figure]] = {
    "heatmap": heatmap,
}
