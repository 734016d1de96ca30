"""Every picture, by name: adding one is a function in this folder and a line here."""

from collections.abc import Callable

import plotly.graph_objects as go

from attention_viz.views.figures.alignment import alignment
from attention_viz.views.figures.before_after import before_after
from attention_viz.views.figures.candidates import candidates
from attention_viz.views.figures.changed_outputs import changed_outputs
from attention_viz.views.figures.compare import compare
from attention_viz.views.figures.cost import cost
from attention_viz.views.figures.difference import difference
from attention_viz.views.figures.heads.changed_heads import changed_heads
from attention_viz.views.figures.heads.compared_heads import compared_heads
from attention_viz.views.figures.heads.head_effects import head_effects
from attention_viz.views.figures.heads.head_grid import head_grid
from attention_viz.views.figures.heads.head_map import head_map
from attention_viz.views.figures.heads.head_scatter import head_scatter
from attention_viz.views.figures.heads.weight_and_effect import weight_and_effect
from attention_viz.views.figures.heatmap import heatmap
from attention_viz.views.figures.looks import looks
from attention_viz.views.figures.paths import paths
from attention_viz.views.figures.side_by_side import side_by_side
from attention_viz.views.figures.steps.angles import angles
from attention_viz.views.figures.steps.hull import hull
from attention_viz.views.figures.steps.learned import learned
from attention_viz.views.figures.steps.products import products
from attention_viz.views.figures.steps.roles import roles
from attention_viz.views.figures.steps.saturation import saturation
from attention_viz.views.figures.steps.shares import shares
from attention_viz.views.figures.steps.steps import steps
from attention_viz.views.figures.training import training

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
