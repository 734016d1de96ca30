"""Pictures: one function each, from a trace to a figure; `VIEWS` lists them.

Names load on first use, so that the colours in `views.theme` can be read without plotly.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_viz.views.aligned import alignment as alignment
    from attention_viz.views.atlas import head_grid as head_grid
    from attention_viz.views.atlas import head_map as head_map
    from attention_viz.views.atlas import head_scatter as head_scatter
    from attention_viz.views.calculation import angles as angles
    from attention_viz.views.calculation import learned as learned
    from attention_viz.views.calculation import steps as steps
    from attention_viz.views.changed import changed_heads as changed_heads
    from attention_viz.views.changed import changed_outputs as changed_outputs
    from attention_viz.views.changed import difference as difference
    from attention_viz.views.compared import compare as compare
    from attention_viz.views.compared import compared_heads as compared_heads
    from attention_viz.views.costs import before_after as before_after
    from attention_viz.views.costs import cost as cost
    from attention_viz.views.curves import training as training
    from attention_viz.views.effects import head_effects as head_effects
    from attention_viz.views.likely import candidates as candidates
    from attention_viz.views.looking import looks as looks
    from attention_viz.views.matrix import heatmap as heatmap
    from attention_viz.views.mixed import hull as hull
    from attention_viz.views.opened_row import shares as shares
    from attention_viz.views.opened_score import products as products
    from attention_viz.views.pictures import VIEWS as VIEWS
    from attention_viz.views.printing import save as save
    from attention_viz.views.several import side_by_side as side_by_side
    from attention_viz.views.softmax import saturation as saturation
    from attention_viz.views.svg import heatmap_svg as heatmap_svg
    from attention_viz.views.three_roles import roles as roles
    from attention_viz.views.ways import paths as paths
    from attention_viz.views.worth import weight_and_effect as weight_and_effect

# No module here may bear the name of a picture: importing it would put the module where the function belongs.
_HOMES = {
    "VIEWS": "pictures",
    "alignment": "aligned",
    "angles": "calculation",
    "before_after": "costs",
    "candidates": "likely",
    "changed_heads": "changed",
    "changed_outputs": "changed",
    "compare": "compared",
    "compared_heads": "compared",
    "cost": "costs",
    "difference": "changed",
    "head_effects": "effects",
    "head_grid": "atlas",
    "head_map": "atlas",
    "head_scatter": "atlas",
    "heatmap": "matrix",
    "heatmap_svg": "svg",
    "hull": "mixed",
    "learned": "calculation",
    "looks": "looking",
    "paths": "ways",
    "products": "opened_score",
    "roles": "three_roles",
    "saturation": "softmax",
    "save": "printing",
    "shares": "opened_row",
    "side_by_side": "several",
    "steps": "calculation",
    "training": "curves",
    "weight_and_effect": "worth",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll] -- resolved by __getattr__


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
