"""Every picture, by name: adding one is a function in this folder and a line here."""

from collections.abc import Callable

import plotly.graph_objects as go

from attention_viz.views.aligned import alignment
from attention_viz.views.atlas import head_grid, head_map, head_scatter
from attention_viz.views.calculation import angles, learned, steps
from attention_viz.views.changed import changed_heads, changed_outputs, difference
from attention_viz.views.compared import compare, compared_heads
from attention_viz.views.costs import before_after, cost
from attention_viz.views.curves import training
from attention_viz.views.effects import head_effects
from attention_viz.views.likely import candidates
from attention_viz.views.looking import looks
from attention_viz.views.matrix import heatmap
from attention_viz.views.mixed import hull
from attention_viz.views.opened_row import shares
from attention_viz.views.opened_score import products
from attention_viz.views.several import side_by_side
from attention_viz.views.softmax import saturation
from attention_viz.views.three_roles import roles
from attention_viz.views.ways import paths
from attention_viz.views.worth import weight_and_effect

__all__ = ["VIEWS"]

VIEWS: dict[str, Callable[..., go.Figure]] = {
    "heatmap": heatmap,
    "looks": looks,
    "alignment": alignment,
    "steps": steps,
    "learned": learned,
    "angles": angles,
    "saturation": saturation,
    "side_by_side": side_by_side,
    "roles": roles,
    "products": products,
    "shares": shares,
    "hull": hull,
    "difference": difference,
    "changed_heads": changed_heads,
    "changed_outputs": changed_outputs,
    "candidates": candidates,
    "head_grid": head_grid,
    "head_scatter": head_scatter,
    "head_map": head_map,
    "head_effects": head_effects,
    "compare": compare,
    "compared_heads": compared_heads,
    "training": training,
    "paths": paths,
    "cost": cost,
    "before_after": before_after,
    "weight_and_effect": weight_and_effect,
}
