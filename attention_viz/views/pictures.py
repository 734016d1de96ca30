"""Every picture, by name: adding one is a function in this folder and a line here."""

from collections.abc import Callable

import plotly.graph_objects as go

from attention_viz.views.aligned import alignment
from attention_viz.views.atlas import head_grid, head_map, head_scatter
from attention_viz.views.calculation import angles, learned, steps
from attention_viz.views.changed import changed_heads, changed_outputs, difference
from attention_viz.views.effects import head_effects
from attention_viz.views.likely import candidates
from attention_viz.views.matrix import heatmap
from attention_viz.views.softmax import saturation

__all__ = ["VIEWS"]

VIEWS: dict[str, Callable[..., go.Figure]] = {
    "heatmap": heatmap,
    "alignment": alignment,
    "steps": steps,
    "learned": learned,
    "angles": angles,
    "saturation": saturation,
    "difference": difference,
    "changed_heads": changed_heads,
    "changed_outputs": changed_outputs,
    "candidates": candidates,
    "head_grid": head_grid,
    "head_scatter": head_scatter,
    "head_map": head_map,
    "head_effects": head_effects,
}
